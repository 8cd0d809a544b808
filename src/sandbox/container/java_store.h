// The trust store that Java reads, made of PEM: Java knows no bundle of the usual kind.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"

namespace sandbox {

// Where Debian's and its relatives' Java runtimes look.
inline constexpr std::string_view kJavaStore = "/etc/ssl/certs/java/cacerts";

// A keystore of the kind JKS, version 2, with every certificate of `pem` as one to be trusted,
// under the usual password ("changeit"), which guards nothing. Java 9 and later take it under any
// name of a kind. bad_input for PEM that is none.
[[nodiscard]] base::Result<std::string> java_store(std::string_view pem);

}  // namespace sandbox
