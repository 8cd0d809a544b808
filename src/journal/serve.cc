// The journal process: one loop over the supervisor's channel and the producers' sockets.
#include <list>
#include <set>

#include "confine/confine.h"
#include "journal/members.h"
#include "journal/recorder.h"

namespace journal {
namespace {

constexpr int kAtOnce = 128;  // messages of one socket before the others have their turn
constexpr std::size_t kRunDigits = 12;
constexpr std::size_t kMostTask = 1024;  // bytes; it stands in every line

constexpr std::string_view kRunEnded = "run.ended";
constexpr int kKilled = 128 + 9;

Draft lost_run() {
  base::JsonObject ending;
  ending.add("kind", "killed").add("code", 0).add("signal", "").add("by", "host");
  return {std::string(kRunEnded),
          base::JsonObject()
              .raw("ending", ending.text())
              .add("status", kKilled)
              .add("text", "the supervisor ended without a word, and everything inside with it")
              .members(),
          0, 0};
}

Draft lost_command(std::uint64_t number) {
  return {
      "command.ended",
      base::JsonObject().add("command", number).add("kind", "killed").add("by", "host").members(),
      0, 0};
}

class SystemClock : public Clock {
 public:
  [[nodiscard]] os::Instant wall() const override { return os::wall_time(); }
  [[nodiscard]] os::Instant steady() const override { return os::steady_time(); }
};

struct Connected {
  Producer producer;
  base::Fd socket;
  bool over = false;
};

base::Status clean(const Open& open) {
  for (char c : open.run) {
    if (!((c >= 'a' && c <= 'z') || (c >= '2' && c <= '7')))
      return base::bad_input("open", "malformed run id", {});
  }
  if (open.run.size() != kRunDigits) return base::bad_input("open", "malformed run id", {});
  if (open.task.size() > kMostTask)
    return base::bad_input("open", "the task's name is too long", {});
  return {};
}

class Service {
 public:
  explicit Service(ipc::Channel control) : control_(std::move(control)) {}

  base::Status run() {
    TRY_IN("open", open());
    while (!finished_ && !abandoned_) TRY(turn());
    return finish();
  }

 private:
  // The only paths of this process's life are walked here, before it confines itself.
  base::Status open() {
    auto message = TRY(control_.receive());
    if (!message) return base::fail(base::Kind::peer, "supervisor", "ended before Open", {});
    const auto first = TRY(base::decode<ToJournal>(message->bytes, "message of the supervisor"));
    const Open* open = std::get_if<Open>(&first);
    if (open == nullptr || message->fds.size() != 4) {
      return base::fail(base::Kind::peer, "supervisor", "its first message is not Open", {});
    }
    TRY(clean(*open));
    const int keys = message->fds[2].get();
    SigningKey key = TRY_IN("keys", SigningKey::load_or_make(keys));
    Files files;
    files.run = std::move(message->fds[0]);
    files.host = std::move(message->fds[1]);
    files.last = TRY(HostChain::open_last(keys));
    files.memory = TRY(TaskMemory::open_file(message->fds[3].get(), open->task));
    message.reset();  // the folders are closed
    TRY(os::outlive_parent());
    TRY(confine::shut_in(confine::Own::journal, os::effective_uid() == 0 ? confine::kJournalId : 0,
                         {}));
    recorder_ = TRY(Recorder::start(*open, std::move(key), std::move(files), clock_));
    return answer(Opened{});
  }

  base::Status answer(const FromJournal& message) {
    const base::Status sent = ipc::send_value(control_, message, {});
    // A supervisor that is gone is seen as the end of its channel, after what it sent.
    if (!sent && sent.error().number != EPIPE) return sent;
    return {};
  }

  // Waits, takes what has come, writes it down, and only then tells of it.
  base::Status turn() {
    std::vector<pollfd> descriptors = {{control_.fd(), POLLIN, 0}};
    bool dropped = false;
    for (const Connected& connected : producers_) {
      descriptors.push_back({connected.socket.get(), POLLIN, 0});
      dropped = dropped || connected.producer.owes();
    }
    TRY(os::wait_for(descriptors, dropped ? 1000 : -1));
    auto ready = descriptors.begin() + 1;
    for (Connected& connected : producers_) {
      if ((ready++)->revents != 0) TRY(take_some(connected, kAtOnce));
      TRY(recorder_->report_dropped(connected.producer, Recorder::When::due));
    }
    if (descriptors[0].revents != 0) TRY(take_control());
    return settle();
  }

  base::Status settle() {
    TRY(recorder_->flush());
    for (const Alarm& alarm : recorder_->take_alarms()) TRY(answer(alarm));
    if (const std::uint64_t number = recorder_->take_file_wish(); number != 0)
      TRY(answer(NextFile{number}));
    if (recorder_->full() && !full_told_) TRY(shut_producers());
    std::erase_if(producers_, [](const Connected& connected) { return connected.over; });
    return {};
  }

  // Their next send() fails with EPIPE; what they have handed over already is still read and
  // written, down to the end that then shows.
  base::Status shut_producers() {
    full_told_ = true;
    for (const Connected& connected : producers_) TRY(os::shut_down_read(connected.socket.get()));
    return answer(Full{});
  }

  base::Status take_some(Connected& connected, int most) {
    for (int i = 0; i < most || most < 0; ++i) {
      const os::Got got = TRY(producer_reader_.next(connected.socket.get()));
      if (got == os::Got::nothing) return {};
      if (got == os::Got::end) {
        connected.over = true;
        return recorder_->report_dropped(connected.producer, Recorder::When::now);
      }
      if (producer_reader_.cut()) {
        TRY(recorder_->take_malformed(connected.producer, "too long"));
        continue;
      }
      const auto draft = base::decode<Draft>(producer_reader_.bytes(), "event");
      TRY(draft ? recorder_->take(connected.producer, *draft)
                : recorder_->take_malformed(connected.producer, "no frame of an event"));
    }
    return {};
  }

  base::Status take_control() {
    for (int i = 0; i < kAtOnce && !finished_ && !abandoned_; ++i) {
      const os::Got got = TRY(control_reader_.next(control_.fd()));
      if (got == os::Got::nothing) return {};
      if (got == os::Got::end) {
        abandoned_ = true;
        return {};
      }
      auto message =
          TRY(base::decode<ToJournal>(control_reader_.bytes(), "message of the supervisor"));
      TRY(std::visit([this](const auto& held) { return this->act(held); }, message));
    }
    return {};
  }

  base::Status act(const Open&) {
    return base::fail(base::Kind::peer, "supervisor", "a second Open", {});
  }
  base::Status act(const Draft& draft) {
    ended_ = ended_ || draft.type == kRunEnded;
    note_command(draft);
    return recorder_->take(supervisor_, draft);
  }
  // Which commands run, for the case that nobody says any more how they ended.
  void note_command(const Draft& draft) {
    const bool starts = draft.type == "command.started";
    if (!starts && draft.type != "command.ended") return;
    const auto members = Members::parse(draft.members);
    const auto number = members ? members->number("command") : std::nullopt;
    if (!number) return;
    if (starts) {
      commands_.insert(*number);
    } else {
      commands_.erase(*number);
    }
  }
  // A supervisor that was killed has taken its sandbox with it, and cannot say so.
  base::Status take_lost_ends() {
    for (const std::uint64_t command : commands_) {
      TRY(recorder_->take(supervisor_, lost_command(command)));
    }
    return recorder_->take(supervisor_, lost_run());
  }
  base::Status act(const Finish&) {
    finished_ = true;
    return {};
  }
  base::Status act(const AddProducer& add) {
    if (control_reader_.fds().size() != 1) {
      return base::fail(base::Kind::peer, "supervisor", "a producer without its socket", {});
    }
    producers_.push_back({Producer(add.who), std::move(control_reader_.fds()[0]), false});
    if (full_told_) TRY(os::shut_down_read(producers_.back().socket.get()));
    return {};
  }
  base::Status act(const Actions& change) {
    recorder_->act_as(change.actions);
    return {};
  }
  base::Status act(const File&) {
    if (control_reader_.fds().size() != 1) {
      return base::fail(base::Kind::peer, "supervisor", "a file without its descriptor", {});
    }
    return recorder_->go_on_in(std::move(control_reader_.fds()[0]));
  }

  base::Status finish() {
    for (Connected& connected : producers_) {
      TRY(take_some(connected, -1));
      TRY(recorder_->report_dropped(connected.producer, Recorder::When::now));
    }
    TRY(recorder_->report_dropped(supervisor_, Recorder::When::now));
    if (!finished_ && !ended_) TRY(take_lost_ends());
    const Summary summary = TRY(recorder_->finish(finished_ ? "end" : "abandoned"));
    TRY(settle());
    TRY(answer(summary));
    return recorder_->start_writing();
  }

  SystemClock clock_;
  ipc::Channel control_;
  os::PacketReader control_reader_{ipc::kMaxMessage, 1};
  os::PacketReader producer_reader_{kMaxMembers + 1024, 0};
  std::unique_ptr<Recorder> recorder_;
  Producer supervisor_{"supervisor"};
  std::list<Connected> producers_;
  bool finished_ = false;
  bool abandoned_ = false;
  bool full_told_ = false;
  bool ended_ = false;  // the supervisor has said how the run ended
  std::set<std::uint64_t> commands_;
};

}  // namespace

int serve(ipc::Channel control) {
  const base::Status status = Service(std::move(control)).run();
  if (status) return 0;
  // Nobody else can be told, and standard error may be closed.
  (void)os::write_all(2, "cerco-journal: " + status.error().line() + "\n", "standard error");
  return 125;
}

}  // namespace journal
