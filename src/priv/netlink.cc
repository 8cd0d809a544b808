// Netlink messages as constant bytes, and the socket that carries them.
#include "priv/netlink.h"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace priv {

namespace {

static_assert(std::endian::native == std::endian::little);

base::Status send_all(int socket, std::string_view messages) {
  const ssize_t put = ::send(socket, messages.data(), messages.size(), MSG_NOSIGNAL);
  if (put != static_cast<ssize_t>(messages.size())) return base::system_error("send netlink");
  return {};
}

// The kernel answers while send(2) runs, so that whatever there is to read is there now.
base::Status take_answers(int socket) {
  alignas(nlmsghdr) char buffer[16384];
  int refused = 0;
  std::uint32_t at = 0;
  bool acknowledged = false;
  while (true) {
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) return base::system_error("receive netlink");
    auto left = static_cast<unsigned>(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(head, left);
         head = NLMSG_NEXT(head, left)) {
      if (head->nlmsg_type != NLMSG_ERROR) continue;
      const auto* answer = static_cast<const nlmsgerr*>(NLMSG_DATA(head));
      acknowledged = true;
      if (answer->error != 0 && refused == 0) {
        refused = -answer->error;
        at = head->nlmsg_seq;
      }
    }
  }
  if (refused != 0) return base::system_error(fmt::format("netlink message {}", at), refused);
  if (!acknowledged) return base::system_error("netlink without an answer", EPROTO);
  return {};
}

}  // namespace

void NetlinkMessages::pad() {
  bytes_.resize((bytes_.size() + 3) / 4 * 4, '\0');
}

void NetlinkMessages::begin(std::uint16_t type, std::uint16_t flags, std::string_view header) {
  message_ = bytes_.size();
  nlmsghdr head = {};
  head.nlmsg_type = type;
  head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  head.nlmsg_seq = ++sequence_;
  bytes_ += as_bytes(head);
  bytes_ += header;
  pad();
}

void NetlinkMessages::end() {
  const auto length = static_cast<std::uint32_t>(bytes_.size() - message_);
  std::memcpy(bytes_.data() + message_, &length, sizeof length);
}

void NetlinkMessages::attribute(std::uint16_t type, std::string_view bytes) {
  const std::uint16_t head[2] = {static_cast<std::uint16_t>(bytes.size() + 4), type};
  bytes_ += as_bytes(head);
  bytes_ += bytes;
  pad();
}

void NetlinkMessages::text(std::uint16_t type, std::string_view text) {
  attribute(type, std::string(text) + '\0');
}

void NetlinkMessages::number(std::uint16_t type, std::uint32_t value) {
  attribute(type, as_bytes(__builtin_bswap32(value)));
}

void NetlinkMessages::number64(std::uint16_t type, std::uint64_t value) {
  attribute(type, as_bytes(__builtin_bswap64(value)));
}

void NetlinkMessages::native(std::uint16_t type, std::uint32_t value) {
  attribute(type, as_bytes(value));
}

void NetlinkMessages::open(std::uint16_t type) {
  nested_.at(depth_++) = bytes_.size();
  attribute(type | NLA_F_NESTED, {});
}

void NetlinkMessages::close() {
  const std::size_t start = nested_.at(--depth_);
  const auto length = static_cast<std::uint16_t>(bytes_.size() - start);
  std::memcpy(bytes_.data() + start, &length, sizeof length);
}

std::string_view attribute_in(std::string_view attributes, std::uint16_t type) {
  while (attributes.size() >= sizeof(nlattr)) {
    nlattr head = {};
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > attributes.size()) return {};
    if ((head.nla_type & NLA_TYPE_MASK) == type) {
      return attributes.substr(sizeof head, head.nla_len - sizeof head);
    }
    attributes.remove_prefix(std::min<std::size_t>(NLA_ALIGN(head.nla_len), attributes.size()));
  }
  return {};
}

base::Result<base::Fd> open_netlink(Badge, int protocol) {
  base::Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket.open()) return base::system_error("socket netlink");
  return socket;
}

base::Status transact(Badge, const Inside& inside, int socket, std::string_view messages) {
  if (!inside.has(CLONE_NEWNET)) return base::system_error("netlink", EPERM);
  TRY(send_all(socket, messages));
  return take_answers(socket);
}

base::Status transact_from_outside(Badge, int socket, std::string_view messages) {
  TRY(send_all(socket, messages));
  return take_answers(socket);
}

base::Result<std::string> request(Badge, int socket, std::string_view message) {
  TRY(send_all(socket, message));
  std::string answer;
  ssize_t got = -1;
  answer.resize_and_overwrite(65536, [&](char* room, std::size_t size) {
    do {
      got = ::recv(socket, room, size, 0);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  });
  if (got < 0) return base::system_error("receive netlink");
  return answer;
}

}  // namespace priv
