// The text of loader.mjs.
#pragma once

#include <string_view>

namespace isolate {

extern const std::string_view kLoader;

}  // namespace isolate
