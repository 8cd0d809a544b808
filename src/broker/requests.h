// The requests that recipes are made of; private to this module.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "broker/recipe.h"

namespace broker {

using Form = std::vector<std::pair<std::string, std::string>>;

// A request to an endpoint of the policy's, `below` its path; the policy's parser has checked it.
[[nodiscard]] plan::MintAsk ask_of(const std::string& url, std::string method,
                                   const std::string& below);
// The pairs that have a value, as application/x-www-form-urlencoded; wipes them.
[[nodiscard]] std::string form_of(Form form);
void set_form(plan::MintAsk& ask, Form form);
void set_json(plan::MintAsk& ask, std::string json);

// The first request of each vendor.
[[nodiscard]] base::Result<plan::MintAsk> ask_oauth2(const Mintage& m);
[[nodiscard]] base::Result<plan::MintAsk> ask_jwt_bearer(const Mintage& m);
[[nodiscard]] plan::MintAsk ask_vault(const Mintage& m);
// `installation` as a number, or "" to ask for it first.
[[nodiscard]] base::Result<plan::MintAsk> ask_github(const Mintage& m,
                                                     std::string_view installation);
[[nodiscard]] base::Result<plan::MintAsk> ask_aws(const Mintage& m);
[[nodiscard]] base::Result<plan::MintAsk> ask_gcp(const Mintage& m);
// Google's second: the key cut down to the binding.
[[nodiscard]] base::Result<plan::MintAsk> ask_gcp_exchange(const Mintage& m,
                                                           const std::string& token);
// RFC 7009.
[[nodiscard]] base::Result<plan::MintAsk> ask_oauth2_revocation(const Mintage& m,
                                                                std::string_view token);

}  // namespace broker
