// Netlink messages as constant bytes, and the socket that carries them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/namespaces.h"

namespace priv {

// Puts messages one behind another. Pure; the bytes are made before a sandbox's process exists,
// which then only sends them.
class NetlinkMessages {
 public:
  // A message with `header` (ifinfomsg, nfgenmsg, …) after nlmsghdr. Sequence numbers count from 1.
  void begin(std::uint16_t type, std::uint16_t flags, std::string_view header);
  void end();
  void attribute(std::uint16_t type, std::string_view bytes);
  void text(std::uint16_t type, std::string_view text);    // with its NUL
  void number(std::uint16_t type, std::uint32_t value);    // big endian, as nf_tables wants them
  void number64(std::uint16_t type, std::uint64_t value);  // big endian
  void native(std::uint16_t type, std::uint32_t value);    // host order, as rtnetlink wants them
  void open(std::uint16_t type);                           // a nested attribute
  void close();
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t count() const { return sequence_; }

 private:
  void pad();

  std::string bytes_;
  std::size_t message_ = 0;
  std::array<std::size_t, 8> nested_{};
  std::size_t depth_ = 0;
  std::uint32_t sequence_ = 0;
};

template <class T>
std::string_view as_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The value of the first attribute of that type in a row of attributes; empty when there is none or
// the row is malformed. Pure.
[[nodiscard]] std::string_view attribute_in(std::string_view attributes, std::uint16_t type);

// A netlink socket in the network namespace of the process that opens it, and that it stays in
// wherever it is used later. `protocol` is NETLINK_ROUTE or NETLINK_NETFILTER. Safe: the kernel
// asks sender and opener for CAP_NET_ADMIN over that namespace with each message. [between clone
// and exec]
[[nodiscard]] base::Result<base::Fd> open_netlink(Badge badge, int protocol);
// Sends the messages at once and takes the answers; the first that was refused is the error, whose
// text names its sequence number. The last that is not the end of a batch must ask for an
// acknowledgement. Safe: refused unless `inside` has a network namespace. [between clone and exec]
[[nodiscard]] base::Status transact(Badge badge, const Inside& inside, int socket,
                                    std::string_view messages);
// The same from outside, on a socket that was opened inside.
[[nodiscard]] base::Status transact_from_outside(Badge badge, int socket,
                                                 std::string_view messages);
// Sends one request and gives the answer's bytes up to 64 KiB.
[[nodiscard]] base::Result<std::string> request(Badge badge, int socket, std::string_view message);

}  // namespace priv
