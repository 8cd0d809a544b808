// The addresses of this host and the networks that it touches, as the kernel has them now.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace os {

// One address of an interface, or a network that is reached without a router. IPv4 fills the first
// four bytes.
struct Network {
  bool v6 = false;
  std::array<std::uint8_t, 16> address{};
  unsigned bits = 0;  // length of the prefix
  bool operator==(const Network&) const = default;
};

struct LocalNetworks {
  std::vector<Network> own;  // addresses of interfaces, and routes that the host takes for itself
  std::vector<Network>
      attached;  // subnets of the addresses, on-link routes, and the routers themselves
  bool operator==(const LocalNetworks&) const = default;
};

// Reads messages of a RTM_GETADDR or RTM_GETROUTE dump into `networks`; false on a malformed one,
// true at anything else. `done` is set by NLMSG_DONE. Pure: for rtnetlink(7) bytes from wherever.
[[nodiscard]] bool read_networks(std::string_view bytes, LocalNetworks& networks, bool& done);

// Opened before the process confines itself; the sockets stay in the network namespace they were
// made in.
class Interfaces {
 public:
  [[nodiscard]] static base::Result<Interfaces> open();
  // What holds at this moment. The kernel queues a notice before an address can be used, so that
  // a cached answer is given only when there was no notice since. An error is a reason to refuse.
  [[nodiscard]] base::Result<const LocalNetworks*> now();

 private:
  [[nodiscard]] base::Result<LocalNetworks> dump();

  base::Fd notices_;
  base::Fd dumps_;
  LocalNetworks networks_;
  bool fresh_ = false;
};

}  // namespace os
