// Lengths are read before what they count, and a message ends where its lengths say.
#include "http/socks.h"

#include <algorithm>

#include "http/syntax.h"

namespace http {
namespace {

constexpr std::size_t kVersion = 5;
constexpr std::size_t kLoginVersion = 1;
constexpr std::size_t kConnect = 1;
constexpr std::size_t kTypeV4 = 1;
constexpr std::size_t kTypeName = 3;
constexpr std::size_t kTypeV6 = 4;
constexpr std::size_t kBeforeAddress = 4;  // version, command, reserved, address type
constexpr std::size_t kPort = 2;

std::size_t byte(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

std::unexpected<Rejection> refuse(SocksReply reply, std::string_view reason,
                                  std::string_view text) {
  return reject(static_cast<unsigned>(reply), reason, text);
}

}  // namespace

Parsed<SocksGreeting> read_socks_greeting(std::string_view bytes) {
  SocksGreeting greeting;
  if (!bytes.empty() && byte(bytes, 0) != kVersion) {
    return refuse(SocksReply::failed, "socks-version", "only version 5 of SOCKS is taken");
  }
  if (bytes.size() < greeting.needs) return greeting;
  greeting.needs += byte(bytes, 1);
  if (bytes.size() < greeting.needs) return greeting;
  const std::string_view offered = bytes.substr(2, byte(bytes, 1));
  for (const SocksMethod method : {SocksMethod::none, SocksMethod::password}) {
    if (!offered.contains(static_cast<char>(method))) continue;
    greeting.method = method;
    break;
  }
  greeting.offers_password = offered.contains(static_cast<char>(SocksMethod::password));
  return greeting;
}

Parsed<std::size_t> read_socks_login(std::string_view bytes) {
  if (!bytes.empty() && byte(bytes, 0) != kLoginVersion) {
    return refuse(SocksReply::failed, "socks-login", "only version 1 of the login is known");
  }
  std::size_t needs = 2;
  if (bytes.size() < needs) return needs;
  needs += byte(bytes, 1) + 1;
  if (bytes.size() < needs) return needs;
  return needs + byte(bytes, needs - 1);
}

std::string_view socks_password(std::string_view login) {
  const std::size_t at = 3 + byte(login, 1);  // version, length, user, length
  return login.substr(at, byte(login, at - 1));
}

Parsed<SocksRequest> read_socks_request(std::string_view bytes) {
  SocksRequest request;
  if (!bytes.empty() && byte(bytes, 0) != kVersion) {
    return refuse(SocksReply::failed, "socks-version", "only version 5 of SOCKS is taken");
  }
  if (bytes.size() < request.needs) return request;
  if (byte(bytes, 1) != kConnect) {
    return refuse(SocksReply::unknown_command, "socks-command", "only CONNECT is taken");
  }
  if (byte(bytes, 2) != 0) {
    return refuse(SocksReply::failed, "socks-request", "the reserved byte is not 0");
  }
  const std::size_t type = byte(bytes, 3);
  std::size_t at = kBeforeAddress;
  std::size_t size = type == kTypeV4 ? 4 : 16;
  if (type == kTypeName) {
    size = byte(bytes, at++);
    if (size == 0) return refuse(SocksReply::failed, "host", "the host name is empty");
  } else if (type != kTypeV4 && type != kTypeV6) {
    return refuse(SocksReply::unknown_address, "socks-address", "no known kind of address");
  }
  request.needs = at + size + kPort;
  if (bytes.size() < request.needs) return request;
  const std::string_view address = bytes.substr(at, size);
  if (type == kTypeName) {
    request.name = address;
  } else {
    request.kind = type == kTypeV4 ? SocksRequest::Kind::v4 : SocksRequest::Kind::v6;
    std::ranges::copy(address, request.address.begin());
  }
  request.port =
      static_cast<std::uint16_t>(byte(bytes, at + size) << 8 | byte(bytes, at + size + 1));
  if (request.port == 0) return refuse(SocksReply::failed, "port", "port 0 is no port");
  return request;
}

std::string socks_choice(SocksMethod method) {
  return {static_cast<char>(kVersion), static_cast<char>(method)};
}

std::string socks_login_refused() {
  return {static_cast<char>(kLoginVersion), 1};
}

std::string socks_login_taken() {
  return {static_cast<char>(kLoginVersion), '\0'};
}

std::string socks_reply(SocksReply reply) {
  std::string out = {static_cast<char>(kVersion), static_cast<char>(reply), '\0',
                     static_cast<char>(kTypeV4)};
  return out.append(4 + kPort, '\0');
}

}  // namespace http
