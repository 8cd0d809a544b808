// SCRAM-SHA-256 (RFC 5802, RFC 7677) as a client of PostgreSQL speaks it, from a salted password.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"

namespace http {

// What a server may ask for: fewer rounds would make what was seen easy to guess from, more would
// hold the broker up.
inline constexpr std::uint64_t kLeastRounds = 4096;
inline constexpr std::uint64_t kMostRounds = 200'000;
inline constexpr std::size_t kMostSalt = 64;

struct ScramChallenge {
  std::string salt;
  std::uint64_t rounds = 0;
};
[[nodiscard]] bool is_fair(const ScramChallenge& challenge);

// Whether the password is taken as it is: what is not printable ASCII would have to go through
// SASLprep (RFC 4013), which is not carried out.
[[nodiscard]] bool is_scram_password(std::string_view password);
// Hi(password, salt, rounds), 32 bytes: worth the password for this salt and no other. Wipe it.
[[nodiscard]] base::Result<std::string> scram_salted(std::string_view password,
                                                     const ScramChallenge& challenge);

// How the exchange is tied to the TLS connection that it runs in.
struct ChannelBinding {
  std::string header = "n,,";  // "y,,": could, but the server does not offer it
  std::string data;            // of "p=tls-server-end-point,,": the certificate's digest
};

// One exchange: first() goes out, challenge() reads the answer, last() proves the password, and
// proves() says whether the server knows it, too.
class Scram {
 public:
  // `user`: without a comma or an equals sign; PostgreSQL wants none here. `nonce`: printable,
  // without a comma, 15 random bytes or more.
  Scram(std::string_view user, std::string nonce, ChannelBinding binding);
  [[nodiscard]] std::string first() const;
  // bad_input for an answer that is not to these words: another nonce, extensions, a challenge that
  // is not fair.
  [[nodiscard]] base::Result<ScramChallenge> challenge(std::string_view server_first);
  [[nodiscard]] std::string last(std::string_view salted);
  [[nodiscard]] bool proves(std::string_view server_final) const;

 private:
  std::string bare_;  // what first() says behind the binding
  std::string nonce_;
  ChannelBinding binding_;
  std::string whole_nonce_;
  std::string server_first_;
  std::string expected_;  // "v=…"
};

}  // namespace http
