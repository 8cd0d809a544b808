// The one request by which `cerco credential test` tries a binding.
#pragma once

#include <string>
#include <vector>

#include "base/base.h"
#include "policy/policy.h"

namespace cli {

struct TestRequest {
  std::string method;
  std::string url;                // as it is shown: with … where the placeholder goes
  std::vector<std::string> argv;  // sh, which puts the placeholder into curl's arguments
};

// A request that the credential's binding covers. `url` and `method`, where they are not "", stand
// in place of the binding's first ones. bad_input where the binding does not say which (a wildcard
// for a host or within the path, no method that reads) or where nothing inside holds the
// placeholder.
[[nodiscard]] base::Result<TestRequest> test_request(const policy::Credential& credential,
                                                     const std::string& method,
                                                     const std::string& url);

}  // namespace cli
