// PostgreSQL's messages as far as a session is opened with them (protocol 3.0, "Message Formats");
// pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"

namespace gateway::postgres {

inline constexpr std::size_t kMostStartup = 10'000;  // the server's own bound
inline constexpr std::size_t kMostMessage = std::size_t{64} * 1024;

// What a client begins with; the length in front of it is gone.
struct Startup {
  enum class Kind { tls, gss, cancel, session };
  Kind kind = Kind::session;
  std::string key;                                              // cancel: whose query, 8 bytes
  std::vector<std::pair<std::string, std::string>> parameters;  // session: "user" is among them
  bool operator==(const Startup&) const = default;
  [[nodiscard]] std::string user() const;
};
// bad_input: another version, a parameter twice, no user, text without its end.
[[nodiscard]] base::Result<Startup> parse_startup(std::string_view body);
// With its length. parse_startup() of what is behind it gives the same.
[[nodiscard]] std::string write_startup(const Startup& startup);

// The length that stands in front of a message, of itself and what follows.
[[nodiscard]] std::uint32_t length_of(std::string_view four_bytes);
[[nodiscard]] std::string message(char type, std::string_view body);
// What a client is told when it is turned away: FATAL, with an SQLSTATE.
[[nodiscard]] std::string fatal(std::string_view state, std::string_view text);

// The server's word about authentication ('R').
struct Authentication {
  static constexpr std::uint32_t kOk = 0;
  static constexpr std::uint32_t kPlain = 3;
  static constexpr std::uint32_t kSasl = 10;
  static constexpr std::uint32_t kSaslContinue = 11;
  static constexpr std::uint32_t kSaslFinal = 12;
  std::uint32_t kind = 0;
  std::string data;
};
[[nodiscard]] std::optional<Authentication> parse_authentication(std::string_view body);
[[nodiscard]] std::string write_authentication(std::uint32_t kind, std::string_view data);
// Of kSasl: the names that the server offers; nullopt for a list without its end.
[[nodiscard]] std::optional<std::vector<std::string>> mechanisms(std::string_view data);
// The client's answers ('p').
[[nodiscard]] std::string write_sasl_initial(std::string_view mechanism, std::string_view data);

}  // namespace gateway::postgres
