// The caller's own proxy, through which everything leaves that it does not except.
#pragma once

#include <memory>
#include <string>

#include "gateway/core.h"
#include "policy/upstream_proxy.h"

namespace gateway {

class UpstreamProxy {
 public:
  UpstreamProxy(policy::UpstreamProxy wanted, policy::ProxyPlace place)
      : wanted_(std::move(wanted)), place_(std::move(place)) {}
  void take_password(base::Secret password) { password_ = std::move(password); }

  [[nodiscard]] const policy::ProxyPlace& place() const { return place_; }
  [[nodiscard]] bool serves(const policy::Host& host) const {
    return !policy::past_proxy(wanted_, host);
  }
  [[nodiscard]] bool serves(const policy::Address& address) const {
    return !policy::past_proxy(wanted_, address);
  }
  // The head that asks it for an address; wipe it.
  [[nodiscard]] std::string request(const Passed& to, std::uint16_t port) const;

 private:
  policy::UpstreamProxy wanted_;
  policy::ProxyPlace place_;
  base::Secret password_;  // each new connection shows it
};

// Asks the proxy for the first passed address, then for the next ones where it says that it cannot
// reach one. connection.upstream is then the way to it. Never tells the proxy a name. Errors
// (kDialError): "proxy-name" (it cannot be resolved), "proxy-unreachable", "proxy-timeout",
// "proxy-tls", "proxy-certificate", "proxy-auth" (407), "proxy-refused", "proxy-answer" (no HTTP).
asio::awaitable<base::Result<policy::Address>> dial_by_proxy(Connection& connection, Vetted vetted,
                                                             std::uint16_t port);

}  // namespace gateway
