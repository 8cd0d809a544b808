// SOCKS5 as a server reads it (RFC 1928, RFC 1929): CONNECT alone, one message at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/field.h"

namespace http {

// Reply codes of RFC 1928 section 6.
enum class SocksReply : std::uint8_t {
  done = 0,
  failed = 1,
  not_allowed = 2,
  host_unreachable = 4,
  unknown_command = 7,
  unknown_address = 8,
};
// How the client may prove who it is. Inside a sandbox nobody asks it to, since the socket says
// whose it is.
enum class SocksMethod : std::uint8_t { none = 0, password = 2, unacceptable = 0xff };

// Each reader gets what has come so far and says how many bytes its message needs in all, as far as
// can be told yet: the message is whole when that many are there, and only then do the other
// members hold. So nothing behind a message is ever read with it. A rejection's `status` is the
// SocksReply to give.
struct SocksGreeting {
  std::size_t needs = 2;
  SocksMethod method = SocksMethod::unacceptable;  // without a password where the client offers it
  bool offers_password = false;
};
[[nodiscard]] Parsed<SocksGreeting> read_socks_greeting(std::string_view bytes);

// User name and password: their bytes are counted and forgotten.
[[nodiscard]] Parsed<std::size_t> read_socks_login(std::string_view bytes);
// The password of a whole login.
[[nodiscard]] std::string_view socks_password(std::string_view login);

struct SocksRequest {
  enum class Kind { name, v4, v6 };
  std::size_t needs = 5;
  Kind kind = Kind::name;
  std::string name;                        // Kind::name: any bytes, at least one
  std::array<std::uint8_t, 16> address{};  // in network byte order
  std::uint16_t port = 0;                  // never 0 in a whole message
};
// Rejections: another version, BIND and UDP (unknown_command), another kind of address
// (unknown_address), an empty name, port 0.
[[nodiscard]] Parsed<SocksRequest> read_socks_request(std::string_view bytes);

[[nodiscard]] std::string socks_choice(SocksMethod method);  // answers a greeting
[[nodiscard]] std::string socks_login_taken();               // answers a login
[[nodiscard]] std::string socks_login_refused();
// Answers a request; the bound address in it says nothing (0.0.0.0:0).
[[nodiscard]] std::string socks_reply(SocksReply reply);

}  // namespace http
