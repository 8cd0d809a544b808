// What [network] upstream_proxy says, as it is acted on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "policy/policy.h"

namespace policy {

struct ProxyPlace {
  enum class Scheme { http, https } scheme = Scheme::http;
  Host host;
  std::uint16_t port = 0;
};
// "http://HOST:PORT" or "https://HOST:PORT". bad_input for anything else: without a port, with a
// user or a password (`auth` has them), with a path.
[[nodiscard]] base::Result<ProxyPlace> proxy_place(std::string_view url);

// The text of one entry of no_proxy in its one form: a name (it and all below it; a leading dot is
// allowed), an address, a CIDR. bad_input for anything else.
[[nodiscard]] base::Result<std::string> proxy_exception(std::string_view text);
// Whether a host, or one of its addresses, is reached without the proxy. The host's own services
// always are.
[[nodiscard]] bool past_proxy(const UpstreamProxy& proxy, const Host& host);
[[nodiscard]] bool past_proxy(const UpstreamProxy& proxy, const Address& address);

// Where the proxy's password is read from; nullopt where it wants none.
[[nodiscard]] std::optional<Source> proxy_password(const UpstreamProxy& proxy);

}  // namespace policy
