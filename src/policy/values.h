// Values inside the module: sizes, durations and the names of the closed sets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/policy.h"

namespace policy {

enum class Built { yes, not_yet };

template <class E>
struct Name {
  std::string_view text;
  E value;
  Built built = Built::yes;
};

inline constexpr std::array kCodes = {Name{"tools-only", Code::tools_only},
                                      Name{"reviewed", Code::reviewed},
                                      Name{"unreviewed", Code::unreviewed}};
inline constexpr std::array kTiers = {Name{"isolate", Tier::isolate},
                                      Name{"container", Tier::container},
                                      Name{"gvisor", Tier::gvisor}, Name{"microvm", Tier::microvm}};
inline constexpr std::array kProfiles = {
    Name{"strict", SeccompProfile::strict}, Name{"default", SeccompProfile::standard},
    Name{"debug", SeccompProfile::debug}, Name{"browser", SeccompProfile::browser}};
inline constexpr std::array kRoots = {Name{"read-only", RootMode::read_only},
                                      Name{"scratch", RootMode::scratch}};
inline constexpr std::array kWorkdirs = {Name{"empty", WorkdirMode::empty},
                                         Name{"overlay", WorkdirMode::overlay, Built::not_yet},
                                         Name{"copy", WorkdirMode::copy, Built::not_yet}};
inline constexpr std::array kNetworkDefaults = {Name{"deny", NetworkDefault::deny},
                                                Name{"public", NetworkDefault::open_public}};
inline constexpr std::array kNetworkModes = {Name{"enforce", NetworkMode::enforce},
                                             Name{"audit", NetworkMode::audit}};
inline constexpr std::array kActions = {Name{"note", Action::note},
                                        Name{"alert", Action::alert},
                                        Name{"freeze", Action::freeze},
                                        Name{"revoke", Action::revoke},
                                        Name{"cut-network", Action::cut_network},
                                        Name{"kill", Action::kill}};
inline constexpr std::array kExecNeeds = {Name{"best", Need::best},
                                          Name{"required", Need::required, Built::not_yet}};
inline constexpr std::array kNeeds = {Name{"best", Need::best}, Name{"required", Need::required}};
inline constexpr std::array kOwns = {Name{"pass", Own::pass}, Name{"strip", Own::strip},
                                     Name{"refuse", Own::refuse}};

inline constexpr std::array kMints = {
    Name{"oauth2", MintKind::oauth2},   Name{"jwt_bearer", MintKind::jwt_bearer},
    Name{"vault", MintKind::vault},     Name{"github_app", MintKind::github_app},
    Name{"aws_sts", MintKind::aws_sts}, Name{"gcp", MintKind::gcp}};
inline constexpr std::array kGrants = {Name{"client_credentials", Grant::client_credentials},
                                       Name{"refresh_token", Grant::refresh_token}};
inline constexpr std::array kClientAuths = {Name{"basic", ClientAuth::basic},
                                            Name{"body", ClientAuth::body},
                                            Name{"none", ClientAuth::none}};
inline constexpr std::array kJwtAlgorithms = {Name{"RS256", JwtAlgorithm::rs256},
                                              Name{"ES256", JwtAlgorithm::es256}};

template <class E, std::size_t N>
constexpr std::string_view name_of(const std::array<Name<E>, N>& names, E value) {
  for (const auto& name : names) {
    if (name.value == value) return name.text;
  }
  return "";
}

// "512MiB", "10MB", "1024" → bytes; nullopt for anything else or past 2^64-1.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);
// "90s", "1h30m", "250ms" → milliseconds; nullopt for anything else or past 2^64-1.
[[nodiscard]] std::optional<std::uint64_t> parse_duration(std::string_view text);

}  // namespace policy
