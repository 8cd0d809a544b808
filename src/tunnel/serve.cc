// The loop of either end: the stream, the control channel, and every other channel.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/frame.h"
#include "os/socket.h"
#include "tunnel/channel.h"

namespace tunnel {

namespace {

constexpr std::size_t kMostWaiting = std::size_t{256} * 1024;  // bytes for the stream, about
constexpr std::size_t kMostChannels = 4096;
constexpr std::size_t kStreamRead = std::size_t{64} * 1024;
constexpr std::uint32_t kFirst = 1;  // channel; 0 is the control channel

// The end of a command, which waits until what it wrote has passed, or, without a command, the end
// of all of them.
struct Held {
  std::string bytes;
  std::optional<std::uint64_t> command;
};

class End {
 public:
  End(Side side, Ends ends) : side_(side), ends_(ends) {}
  int run();

 private:
  // One wait for something to do and the doing of it; false when nothing is left to do.
  bool turn();
  void gather(std::vector<pollfd>& polled) const;
  void act_channels(std::span<const pollfd> polled);

  void read_stream();
  void write_stream();
  void lose_stream();
  bool obey(Word word);
  bool obey_message(Word word);

  void read_control();
  void write_control();
  bool send_on(os::Received message);
  bool hold(const std::string& bytes);
  [[nodiscard]] bool waits(const Held& held, bool first) const;
  void release_held();
  void to_control(std::string bytes, std::vector<base::Fd> fds);

  bool add_channel(std::uint32_t number, Kind kind, base::Fd fd, std::uint64_t command);
  [[nodiscard]] std::uint64_t command_of(const std::string& bytes) const;
  [[nodiscard]] bool room() const { return stream_ && out_.size() - sent_ < kMostWaiting; }
  [[nodiscard]] bool control_readable() const {
    return stream_ && room() && control_credit_ >= cost(kMostMessage);
  }
  void settle();

  Side side_;
  Ends ends_;
  std::vector<Channel> channels_;
  std::uint32_t next_ = kFirst;  // number of the next channel
  Reader reader_;
  std::string out_;  // for the stream
  std::size_t sent_ = 0;
  Queue control_queue_;
  std::size_t control_credit_ = kWindow;
  std::size_t control_allowance_ = kWindow;
  std::size_t control_owed_ = 0;
  std::vector<Held> held_;
  bool stream_ = true;   // it is open
  bool control_ = true;  // it is open
  bool nonsense_ = false;
};

bool End::add_channel(std::uint32_t number, Kind kind, base::Fd fd, std::uint64_t command) {
  if (channels_.size() >= kMostChannels) return false;
  channels_.emplace_back(side_, number, kind, std::move(fd));
  channels_.back().command = command;
  return true;
}

// Of a message of the host: the command whose streams come with it, 0 for none.
std::uint64_t End::command_of(const std::string& bytes) const {
  const auto order = base::decode<frame::ToInit>(bytes, "frame");
  const auto* exec = order ? std::get_if<frame::Exec>(&*order) : nullptr;
  return exec == nullptr ? 0 : exec->id;
}

void End::gather(std::vector<pollfd>& polled) const {
  const bool sending = stream_ && sent_ < out_.size();
  polled.push_back({stream_ ? ends_.in : -1, POLLIN, 0});
  polled.push_back({sending ? ends_.out : -1, POLLOUT, 0});
  pollfd control = {control_ ? ends_.control : -1, 0, 0};
  if (control_readable()) control.events |= POLLIN;
  if (!control_queue_.empty()) control.events |= POLLOUT;
  polled.push_back(control);
  for (const Channel& channel : channels_) polled.push_back(channel.wants(room()));
}

void End::act_channels(std::span<const pollfd> polled) {
  for (std::size_t i = 0; i < polled.size(); ++i) {
    Channel& channel = channels_[i];
    const short happened = polled[i].revents;
    if ((happened & POLLOUT) != 0) channel.on_writable();
    if ((happened & POLLIN) != 0) {
      channel.on_readable(out_);
    } else if ((happened & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      channel.on_broken();
    }
  }
}

bool End::turn() {
  std::vector<pollfd> polled;
  gather(polled);
  if (::poll(polled.data(), polled.size(), -1) < 0) return errno == EINTR;
  // Of the channels that were there, before anything adds more.
  act_channels(std::span(polled).subspan(3));
  if ((polled[2].revents & POLLOUT) != 0) write_control();
  if ((polled[2].revents & POLLIN) != 0) {
    read_control();
  } else if ((polled[2].revents & (POLLHUP | POLLERR)) != 0) {
    control_ = false;
  }
  if (polled[0].revents != 0) read_stream();
  release_held();
  if (stream_) settle();
  std::erase_if(channels_, [](const Channel& channel) { return channel.over(); });
  if (stream_ && sent_ < out_.size()) write_stream();
  if (!control_ || nonsense_) return false;
  if (stream_) return true;
  return !control_queue_.empty() || !std::ranges::all_of(channels_, &Channel::written);
}

// --- The stream ----------------------------------------------------------------------------------

void End::lose_stream() {
  stream_ = false;
  for (Channel& channel : channels_) channel.cut();
}

void End::read_stream() {
  std::string bytes(kStreamRead, '\0');
  ssize_t got = -1;
  do {
    got = ::read(ends_.in, bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return lose_stream();
  reader_.feed(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
  while (true) {
    auto word = reader_.next();
    if (word && !*word) return;
    if (word && obey(std::move(**word))) continue;
    nonsense_ = true;
    return lose_stream();
  }
}

void End::write_stream() {
  const std::string_view rest = std::string_view(out_).substr(sent_);
  ssize_t put = -1;
  do {
    put = ::write(ends_.out, rest.data(), rest.size());
  } while (put < 0 && errno == EINTR);
  if (put < 0 && errno == EAGAIN) return;
  if (put < 0) return lose_stream();
  sent_ += static_cast<std::size_t>(put);
  if (sent_ < out_.size()) return;
  out_.clear();
  sent_ = 0;
}

bool End::obey(Word word) {
  if (word.say == Say::message) return obey_message(std::move(word));
  if (word.channel == 0) {
    if (word.say != Say::credit || word.amount > kWindow - control_credit_) return false;
    control_credit_ += word.amount;
    return true;
  }
  const auto found = std::ranges::find(channels_, word.channel, &Channel::number);
  if (found != channels_.end()) return found->take(std::move(word));
  // What crossed the last word of a channel that is over; its data cannot have.
  return word.channel < next_ && (word.say == Say::credit || word.say == Say::stop);
}

bool End::obey_message(Word word) {
  if (cost(word.bytes.size()) > control_allowance_) return false;
  control_allowance_ -= cost(word.bytes.size());
  if (side_ == Side::host) {
    if (!word.opens.empty()) return false;
    if (!hold(word.bytes)) to_control(std::move(word.bytes), {});
    return true;
  }
  const std::uint64_t command = command_of(word.bytes);
  std::vector<base::Fd> fds;
  for (const Kind kind : word.opens) {
    auto local = make_local(kind);
    if (!local || !add_channel(next_++, kind, std::move(local->ours), command)) return false;
    fds.push_back(std::move(local->theirs));
  }
  to_control(std::move(word.bytes), std::move(fds));
  return true;
}

// --- The control channel -------------------------------------------------------------------------

void End::to_control(std::string bytes, std::vector<base::Fd> fds) {
  control_queue_.push({std::move(bytes), std::move(fds)});
  write_control();
}

void End::write_control() {
  while (control_ && !control_queue_.empty()) {
    std::vector<int> fds;
    for (const base::Fd& fd : control_queue_.front_fds()) fds.push_back(fd.get());
    const std::string_view bytes = control_queue_.front();
    const auto sent = os::send_message(ends_.control, bytes, fds);
    if (!sent && sent.error().number == EAGAIN) return;
    if (!sent) {
      control_ = false;
      return;
    }
    control_owed_ += control_queue_.took(bytes.size());
  }
}

void End::read_control() {
  auto message = os::receive_message(ends_.control, kMostMessage, kMostFds);
  if (!message && message.error().number == EAGAIN) return;
  if (!message || message->end || !send_on(std::move(*message))) control_ = false;
}

// To the other end. The host's descriptors become channels, and inside nobody has any to give.
bool End::send_on(os::Received message) {
  if (side_ == Side::inside) {
    if (!message.fds.empty()) return false;
    if (hold(message.bytes)) return true;
  }
  Word word = {Say::message, next_, 0, {}, {}};
  const std::uint64_t command = side_ == Side::host ? command_of(message.bytes) : 0;
  for (std::size_t i = 0; i < message.fds.size(); ++i) {
    base::Fd fd = std::move(message.fds[i]);
    const auto kind = kind_of_descriptor(fd.get(), i);
    if (!kind || !set_waitless(fd.get())) return false;
    if (!add_channel(next_++, *kind, std::move(fd), command)) return false;
    word.opens.push_back(*kind);
  }
  control_credit_ -= cost(message.bytes.size());
  word.bytes = std::move(message.bytes);
  write(out_, word);
  return true;
}

// --- Ends of commands ----------------------------------------------------------------------------

// Whether the message has to wait for what was written before it. The end of everything waits for
// the ends that were told before.
bool End::hold(const std::string& bytes) {
  const auto told = base::decode<frame::FromInit>(bytes, "frame");
  if (!told) return false;
  if (std::holds_alternative<frame::AllDead>(*told) && !held_.empty()) {
    held_.push_back({bytes, std::nullopt});
    return true;
  }
  const auto* ended = std::get_if<frame::Ended>(&*told);
  if (ended == nullptr) return false;
  for (Channel& channel : channels_) {
    if (channel.command == ended->id) channel.mark();
  }
  held_.push_back({bytes, ended->id});
  return true;
}

bool End::waits(const Held& held, bool first) const {
  if (side_ == Side::inside && control_credit_ < cost(held.bytes.size())) return true;
  if (!held.command) return !first;
  return stream_ && std::ranges::any_of(channels_, [&](const Channel& channel) {
           return channel.command == held.command && !channel.passed_mark();
         });
}

void End::release_held() {
  std::vector<Held> still;
  for (Held& held : held_) {
    if (waits(held, still.empty())) {
      still.push_back(std::move(held));
    } else if (side_ == Side::host) {
      to_control(std::move(held.bytes), {});
    } else {
      control_credit_ -= cost(held.bytes.size());
      write(out_, {Say::message, next_, 0, {}, std::move(held.bytes)});
    }
  }
  held_ = std::move(still);
}

// What is owed to the other end goes on when the stream has room, so that it is bounded as well.
void End::settle() {
  if (!room()) return;
  if (control_owed_ >= kWindow / 4 || (control_owed_ > 0 && control_queue_.empty())) {
    control_allowance_ += control_owed_;
    write(out_, {Say::credit, 0, static_cast<std::uint32_t>(control_owed_), {}, {}});
    control_owed_ = 0;
  }
  for (Channel& channel : channels_) channel.settle(out_);
}

int End::run() {
  for (const int fd : {ends_.in, ends_.out, ends_.control}) {
    if (!set_waitless(fd)) return 1;
  }
  while (turn()) {
  }
  return nonsense_ ? 1 : 0;
}

}  // namespace

int serve(Side side, Ends ends) {
  return End(side, ends).run();
}

}  // namespace tunnel
