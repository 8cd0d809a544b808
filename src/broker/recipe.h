// How each vendor makes a short-lived key out of a long-lived secret: requests in order, and what
// is read from their answers. Pure: the minter asks, this says what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/base.h"
#include "plan/plan.h"

namespace broker {

// What a vendor gave. Wipe its texts.
struct Minted {
  std::string secret;
  std::string access_key;     // AWS
  std::string session_token;  // AWS
  std::string lease;          // Vault: what is renewed and revoked; "" for none
  std::string rotated;        // OAuth: the refresh token that holds from now on; "" for the old one
  std::uint64_t lives_s = 0;  // from now
};
void wipe(Minted& minted);

// What a recipe goes by; must outlive it.
struct Mintage {
  const policy::Credential& credential;
  std::string_view secret;  // the long-lived one
  std::string run;          // for names in the vendor's own records
  std::string nonce;        // random
  std::int64_t now = 0;     // seconds since 1970
};

using Step = std::variant<plan::MintAsk, Minted>;

// One minting. begin() gives the first request; take() an answer's consequence: another request,
// or what was minted. Errors (peer, bad_input): `what` is short, and holds no secret.
class Recipe {
 public:
  explicit Recipe(Mintage mintage) : m_(std::move(mintage)) {}
  [[nodiscard]] base::Result<Step> begin();
  [[nodiscard]] base::Result<Step> take(const plan::MintTold& told);

 private:
  [[nodiscard]] base::Result<Step> github_token(std::string_view installation);
  [[nodiscard]] base::Result<Step> take_token(const plan::MintTold& told);
  [[nodiscard]] base::Result<Step> take_vault(const plan::MintTold& told) const;
  [[nodiscard]] base::Result<Step> take_github(const plan::MintTold& told);
  [[nodiscard]] base::Result<Step> take_aws(const plan::MintTold& told) const;
  [[nodiscard]] base::Result<Step> take_gcp(const plan::MintTold& told);

  Mintage m_;
  int step_ = 0;
  std::uint64_t lives_s_ = 0;  // of the first of two keys
};

// What prolongs a lease of Vault, and how long it then lives (0: not at all).
[[nodiscard]] base::Result<plan::MintAsk> renewal(const Mintage& mintage, std::string_view lease);
[[nodiscard]] std::uint64_t renewed_for(const plan::MintTold& told);
// What makes the vendor forget a key; nullopt where it has no such thing.
[[nodiscard]] base::Result<std::optional<plan::MintAsk>> revocation(const Mintage& mintage,
                                                                    std::string_view secret,
                                                                    std::string_view lease);
[[nodiscard]] bool revocation_done(const plan::MintTold& told);

// Seconds since 1970 of "2026-01-02T03:04:05Z", perhaps with a fraction; nullopt for anything else.
[[nodiscard]] std::optional<std::int64_t> instant_of(std::string_view text);

}  // namespace broker
