// The upstream proxy's place, its exceptions, and where its password is.
#include "policy/upstream_proxy.h"

#include <algorithm>

namespace policy {
namespace {

constexpr const char* kPlace =
    "expected a URL with a port such as \"http://proxy.example.com:3128\"";

bool same_or_below(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  return name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.';
}

}  // namespace

base::Result<ProxyPlace> proxy_place(std::string_view url) {
  ProxyPlace place;
  std::string_view rest = url;
  if (url.starts_with("https://")) {
    place.scheme = ProxyPlace::Scheme::https;
    rest.remove_prefix(8);
  } else if (url.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return base::bad_input("", "no http or https URL", kPlace);
  }
  if (rest.contains('@')) {
    return base::bad_input("", "a user in the URL",
                           "expected auth = { user = \"NAME\", env = \"VARIABLE\" } beside it");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto bracket = rest.rfind(']');
  const auto colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const auto port =
      colon == std::string_view::npos ? std::nullopt : base::parse_number(rest.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return base::bad_input("", "no port", kPlace);
  auto host = canonical_host(rest.substr(0, colon));
  if (!host) return base::bad_input("", "no host", kPlace);
  place.host = std::move(*host);
  place.port = static_cast<std::uint16_t>(*port);
  return place;
}

base::Result<std::string> proxy_exception(std::string_view text) {
  if (const auto address = parse_address(text)) return to_string(*address);
  if (text.contains('/')) {
    if (const auto cidr = parse_cidr(text)) return to_string(*cidr);
  } else {
    const auto host = canonical_host(text.starts_with('.') ? text.substr(1) : text);
    if (host && !host->is_address) return host->name;
  }
  return base::bad_input("", "no name, address or CIDR",
                         "expected for example \"corp.example.com\" (and all below it) or "
                         "\"10.0.0.0/8\"");
}

bool past_proxy(const UpstreamProxy& proxy, const Host& host) {
  if (host.is_address) return false;
  return host.name == kHostName ||
         std::ranges::any_of(proxy.no_proxy, [&](const std::string& entry) {
           return same_or_below(host.name, entry);
         });
}

bool past_proxy(const UpstreamProxy& proxy, const Address& address) {
  return std::ranges::any_of(proxy.no_proxy, [&](const std::string& entry) {
    if (const auto one = parse_address(entry)) return *one == address;
    const auto cidr = parse_cidr(entry);
    return cidr && contains(*cidr, address);
  });
}

std::optional<Source> proxy_password(const UpstreamProxy& proxy) {
  for (const auto& [key, kind] :
       {std::pair{"env", SourceKind::env}, std::pair{"file", SourceKind::file},
        std::pair{"systemd", SourceKind::systemd}}) {
    const auto found = proxy.auth.find(key);
    if (found == proxy.auth.end()) continue;
    Source source;
    source.kind = kind;
    source.name = found->second;
    return source;
  }
  return std::nullopt;
}

}  // namespace policy
