// `cerco attach`: what a detached run has written and writes, and its end as one's own.
#include <fcntl.h>

#include <cerrno>
#include <optional>

#include "cli/living.h"
#include "cli/run_files.h"
#include "cli/terminal.h"
#include "journal/members.h"
#include "os/os.h"
#include "supervisor/ending.h"
#include "supervisor/output_ring.h"

namespace cli {
namespace {

constexpr std::size_t kKeys = 4096;  // read at once
constexpr std::size_t kMostReport = std::size_t{1} << 20;

base::Status write_out(const World& world, const supervisor::Output& output) {
  const bool error = output.stream == supervisor::Stream::error;
  return os::write_all(error ? world.err : world.out, output.bytes, "output");
}

void tell_lost(const World& world, std::uint64_t bytes) {
  print_error(world, "cerco: " + std::to_string(bytes) +
                         " bytes of output are no longer kept (the last 64 MiB are)\n");
}

// One run that is followed, to its end or until the keys that leave it are typed.
class Following {
 public:
  Following(const World& world, const ipc::Channel& channel) : world_(world), channel_(channel) {}

  base::Result<int> run() {
    TRY(ask(channel_, supervisor::Attach{}, {}));
    std::vector<pollfd> polled;
    while (!status_) {
      const int terminal = typed_.empty() && front_ ? world_.in : -1;
      polled.assign({{channel_.fd(), POLLIN, 0},
                     {terminal, POLLIN, 0},
                     {typed_.empty() ? -1 : typing_.get(), POLLOUT, 0},
                     {front_ ? front_->resized() : -1, POLLIN, 0}});
      (void)TRY(os::wait_for(polled, -1));
      if (polled[1].revents != 0) TRY(on_keys());
      if (polled[2].revents != 0) TRY(write_typed());
      if (polled[3].revents != 0) {
        TRY(ask(channel_, supervisor::Resize{TRY(front_->window())}, {}));
      }
      if (polled[0].revents != 0) TRY(on_answer());
    }
    if (front_) front_->restore();
    if (!why_.empty()) print_error(world_, "cerco: " + why_ + "\n");
    return *status_;
  }

 private:
  base::Status on_answer() {
    auto message = TRY_IN("supervisor", channel_.receive());
    if (!message) return base::fail(base::Kind::peer, "supervisor", "ended: the run is gone", {});
    const auto answer = TRY(base::decode<supervisor::ToClient>(message->bytes, "supervisor"));
    if (const auto* output = std::get_if<supervisor::Output>(&answer)) {
      return write_out(world_, *output);
    }
    if (const auto* lost = std::get_if<supervisor::Lost>(&answer)) tell_lost(world_, lost->bytes);
    if (const auto* over = std::get_if<supervisor::Over>(&answer)) {
      status_ = static_cast<int>(over->status);
      why_ = supervisor::why_ended(over->ending, over->limits_hit);
    } else if (const auto* failed = std::get_if<supervisor::StartFailed>(&answer)) {
      return std::unexpected(base::Error{base::Kind::system, 0, failed->message, {}, {}});
    } else if (std::holds_alternative<supervisor::Typing>(answer) && message->fds.size() == 1 &&
               world_.terminal[0]) {
      typing_ = std::move(message->fds[0]);
      TRY(os::set_nonblocking(typing_.get()));
      front_.emplace(TRY(Front::make(world_)));
      return ask(channel_, supervisor::Resize{TRY(front_->window())}, {});
    }
    return {};
  }

  base::Status on_keys() {
    auto keys = os::read_some(world_.in, kKeys, "standard input");
    // The terminal is gone, and so are we; the run goes on.
    if (!keys || keys->empty() || leaving_.heard(*keys)) {
      status_ = 0;
      return {};
    }
    typed_ = std::move(*keys);
    return typed_.empty() ? base::Status() : write_typed();
  }

  base::Status write_typed() {
    const auto put = os::write_some(typing_.get(), typed_, "the run's terminal");
    if (!put && put.error().number == EAGAIN) return {};
    // Nobody reads it any more: what is typed is lost, and the end of the run follows.
    typed_.erase(0, put ? *put : typed_.size());
    return {};
  }

  const World& world_;
  const ipc::Channel& channel_;
  base::Fd typing_;  // into the command's terminal
  std::optional<Front> front_;
  LeavingKeys leaving_;
  std::string typed_;
  std::optional<int> status_;
  std::string why_;  // a limit or a person ended it
};

base::Result<int> follow(const World& world, const ipc::Channel& channel) {
  return Following(world, channel).run();
}

// Of a run that has ended: what it left, and its status from the report.
base::Result<int> replay(const World& world, const KnownRun& run) {
  const std::string folder = world.state_dir + "/runs/" + run.id + "/";
  const std::vector<std::string> names = TRY(output_files(world.state_dir, run.id));
  const std::string text = TRY(os::read_file(folder + supervisor::kReportFile, kMostReport));
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const auto report = TRY(journal::Members::parse_object(line));
  const auto status = report.number("status");
  if (names.empty() || !status) {
    return base::fail(base::Kind::not_found, run.id, "its output went to whoever started it",
                      "cerco report " + run.id + " tells how it ended");
  }
  for (const std::string& name : names) {
    const base::Fd file = TRY(os::open(folder + name, O_RDONLY | O_NOFOLLOW, 0));
    std::uint64_t offset = 0;
    while (const auto output = supervisor::read_record(file.get(), offset)) {
      offset += supervisor::OutputRing::kHead + output->bytes.size();
      TRY(write_out(world, *output));
    }
  }
  return static_cast<int>(*status);
}

}  // namespace

base::Result<int> attach(const World& world, const Parsed& parsed) {
  TRY(want_words("attach", parsed, 1, "RUN"));
  const KnownRun run = TRY(find_run(world, parsed.words[0]));
  const auto channel = supervisor::connect_to_run(world.state_dir, run.id);
  if (!channel && channel.error().kind != base::Kind::not_found) {
    return std::unexpected(channel.error());
  }
  return channel ? follow(world, *channel) : replay(world, run);
}

}  // namespace cli
