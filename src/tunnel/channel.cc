// One descriptor of ours and its counterpart at the other end.
#include "tunnel/channel.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/files.h"
#include "os/socket.h"

namespace tunnel {

namespace {

constexpr std::size_t kChunk = std::size_t{32} * 1024;  // bytes of a stream in one word
constexpr std::size_t kWorthIt = 4096;  // less of a window is not filled, but waited for more

}  // namespace

std::size_t Queue::took(std::size_t count) {
  waiting_ -= count;
  written_ += count;
  const std::size_t size = items_[next_].bytes.size();
  if (written_ < size) return 0;
  items_[next_] = {};
  written_ = 0;
  if (++next_ == items_.size()) {
    items_.clear();
    next_ = 0;
  }
  return cost(size);
}

std::size_t Queue::clear() {
  std::size_t all = 0;
  for (std::size_t i = next_; i < items_.size(); ++i) all += cost(items_[i].bytes.size());
  items_.clear();
  next_ = 0;
  written_ = 0;
  waiting_ = 0;
  return all;
}

Channel::Channel(Side side, std::uint32_t number, Kind kind, base::Fd fd)
    : side_(side), number_(number), kind_(kind), fd_(std::move(fd)) {
  const bool host = side == Side::host;
  source_ = kind != (host ? Kind::output : Kind::input);
  sink_ = kind != (host ? Kind::input : Kind::output);
  // A way that does not exist is over from the start.
  sent_end_ = !source_;
  got_end_ = !sink_;
}

bool Channel::may_read() const {
  if (!source_) return false;
  return credit_ >= cost(is_messages() ? kMostMessage : kWorthIt);
}

pollfd Channel::wants(bool room) const {
  pollfd wanted = {fd_.get(), 0, 0};
  if (room && may_read()) wanted.events |= POLLIN;
  if (sink_ && !queue_.empty()) wanted.events |= POLLOUT;
  // With nothing to do only the loss of a sink is waited for: a source that has ended would be told
  // of again and again.
  if (wanted.events == 0 && (!sink_ || source_)) wanted.fd = -1;
  return wanted;
}

std::optional<std::string> Channel::read_some() {
  if (is_messages()) {
    auto message = os::receive_message(fd_.get(), kMostMessage, 0);
    if (!message) return message.error().number == EAGAIN ? std::optional("") : std::nullopt;
    if (message->end) return std::nullopt;
    return std::move(message->bytes);
  }
  std::string bytes(std::min(kChunk, credit_ - kOverhead), '\0');
  ssize_t got = -1;
  do {
    got = ::read(fd_.get(), bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return std::string();
  if (got <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

void Channel::on_readable(std::string& out) {
  if (!may_read()) return;
  auto bytes = read_some();
  if (!bytes) return end_source();
  if (bytes->empty()) return;
  credit_ -= cost(bytes->size());
  if (side_ == Side::inside) passed(bytes->size());
  write(out, {Say::data, number_, 0, {}, std::move(*bytes)});
}

void Channel::on_writable() {
  while (sink_ && !queue_.empty()) {
    const std::string_view bytes = queue_.front();
    std::size_t put = bytes.size();
    if (is_messages()) {
      const auto sent = os::send_message(fd_.get(), bytes, {});
      if (!sent && sent.error().number == EAGAIN) return;
      if (!sent) return break_sink();
    } else {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EAGAIN) return;
      if (written < 0) return break_sink();
      put = static_cast<std::size_t>(written);
    }
    if (side_ == Side::host) passed(put);
    owed_ += queue_.took(put);
  }
  if (sink_ && got_end_) end_sink();
}

// A socket that still has something to be read, its end included, says so besides.
void Channel::on_broken() {
  if (sink_) break_sink();
  if (!is_socket()) end_source();
}

void Channel::end_source() {
  if (!std::exchange(source_, false)) return;
  owes_end_ = true;
  if (side_ == Side::inside) mark_ = 0;
  close_if_unused();
}

// Nobody reads what we write: the other end is told, and what still comes is thrown away.
void Channel::break_sink() {
  if (!std::exchange(sink_, false)) return;
  owed_ += queue_.clear();
  if (side_ == Side::host) mark_ = 0;
  owes_stop_ = !got_end_;
  close_if_unused();
}

void Channel::end_sink() {
  sink_ = false;
  if (is_socket()) (void)::shutdown(fd_.get(), SHUT_WR);
  close_if_unused();
}

void Channel::close_if_unused() {
  if (!source_ && !sink_) fd_.reset();
}

bool Channel::take(Word word) {
  switch (word.say) {
    case Say::data: {
      if (got_end_ || cost(word.bytes.size()) > allowance_) return false;
      allowance_ -= cost(word.bytes.size());
      if (sink_) {
        queue_.push({std::move(word.bytes), {}});
        on_writable();
      } else {
        owed_ += cost(word.bytes.size());
      }
      return true;
    }
    case Say::credit:
      if (word.amount > kWindow - credit_) return false;
      credit_ += word.amount;
      return true;
    case Say::end:
      if (std::exchange(got_end_, true)) return false;
      owes_stop_ = false;
      if (sink_ && queue_.empty()) end_sink();
      return true;
    case Say::stop:
      // What never was a source, or said its end before this came, has nothing to stop.
      if (source_ && is_socket()) (void)::shutdown(fd_.get(), SHUT_RD);
      end_source();
      return true;
    case Say::message:
      break;
  }
  return false;
}

void Channel::settle(std::string& out) {
  const bool worth_it = owed_ >= kWindow / 4 || (owed_ > 0 && queue_.empty());
  if (worth_it && !got_end_) {
    allowance_ += owed_;
    write(out, {Say::credit, number_, static_cast<std::uint32_t>(owed_), {}, {}});
    owed_ = 0;
  }
  if (std::exchange(owes_stop_, false) && !std::exchange(said_stop_, true)) {
    write(out, {Say::stop, number_, 0, {}, {}});
  }
  if (std::exchange(owes_end_, false)) {
    sent_end_ = true;
    write(out, {Say::end, number_, 0, {}, {}});
  }
}

void Channel::mark() {
  if (side_ == Side::host) {
    mark_ = sink_ ? queue_.waiting() : 0;
    return;
  }
  int count = 0;
  if (source_ && ::ioctl(fd_.get(), FIONREAD, &count) == 0 && count > 0) {
    mark_ = static_cast<std::uint64_t>(count);
  }
}

void Channel::cut() {
  source_ = false;
  got_end_ = true;
  if (sink_ && queue_.empty()) end_sink();
  close_if_unused();
}

std::optional<Kind> kind_of_descriptor(int fd, std::size_t position) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0) {
    if (type == SOCK_SEQPACKET) return Kind::messages;
    return type == SOCK_STREAM ? std::optional(Kind::stream) : std::nullopt;
  }
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0) return std::nullopt;
  const int access = flags & O_ACCMODE;
  if (access == O_RDONLY || (access == O_RDWR && position == 0)) return Kind::input;
  return Kind::output;
}

base::Status set_waitless(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return base::system_error("fcntl");
  return {};
}

// A pipe belongs to whom its maker acts as, who may open its end again (/dev/stdout).
base::Result<Local> make_local(Kind kind) {
  Local local;
  if (kind == Kind::stream || kind == Kind::messages) {
    auto pair = TRY(os::socket_pair(kind == Kind::stream ? SOCK_STREAM : SOCK_SEQPACKET));
    local = {std::move(pair.first), std::move(pair.second)};
  } else {
    auto [reads, writes] = TRY(os::pipe());
    if (kind == Kind::input) {
      local = {std::move(writes), std::move(reads)};
    } else {
      local = {std::move(reads), std::move(writes)};
    }
  }
  TRY(set_waitless(local.ours.get()));
  return local;
}

}  // namespace tunnel
