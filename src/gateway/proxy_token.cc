// Digests are compared, so that how long it takes says nothing of the token.
#include "gateway/proxy_token.h"

namespace gateway {
namespace {

// What follows the scheme's name, "" where it is another one.
std::string_view behind(std::string_view value, std::string_view scheme) {
  if (value.size() <= scheme.size() || value[scheme.size()] != ' ' ||
      base::to_lower(value.substr(0, scheme.size())) != scheme) {
    return {};
  }
  return value.substr(value.find_first_not_of(' ', scheme.size()));
}

}  // namespace

bool is_token(const Core& core, std::string_view password) {
  return core.proxy_token.empty() || base::sha256(password) == core.proxy_token;
}

bool shows_token(const Core& core, const std::vector<http::Field>& dropped) {
  if (core.proxy_token.empty()) return true;
  const http::Field* field = http::find_field(dropped, "proxy-authorization");
  if (field == nullptr) return false;
  if (const auto token = behind(field->value, "bearer"); !token.empty()) {
    return is_token(core, token);
  }
  const auto login = base::from_base64(behind(field->value, "basic"));
  const auto colon = login ? login->find(':') : std::string::npos;
  return colon != std::string::npos && is_token(core, std::string_view(*login).substr(colon + 1));
}

}  // namespace gateway
