// Wildcards over suffixes under which anyone can get a name (publicsuffix.org, by libpsl).
#include <fmt/format.h>
#include <libpsl.h>

#include <algorithm>
#include <array>
#include <memory>

#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

// Hosting suffixes that the list does not have, or not in every release.
constexpr std::array<std::string_view, 12> kHosting = {
    "amazonaws.com",  "blob.core.windows.net", "core.windows.net", "windows.net",
    "ngrok.app",      "ngrok-free.app",        "ngrok.dev",        "r2.cloudflarestorage.com",
    "googleapis.com", "trycloudflare.com",     "pages.dev",        "azurewebsites.net"};

enum class Kind { none, private_part, icann };

Kind kind_of(const std::string& suffix) {
  // The newer of the list that libpsl carries and the one that the distribution installs.
  static const std::unique_ptr<psl_ctx_t, decltype(&psl_free)> kList(psl_latest(nullptr),
                                                                     &psl_free);
  const psl_ctx_t* list = kList ? kList.get() : psl_builtin();
  // Without a list nothing can be told apart, so every wildcard counts as one over a public suffix.
  if (list == nullptr || psl_is_public_suffix2(list, suffix.c_str(), PSL_TYPE_ICANN) != 0)
    return Kind::icann;
  if (psl_is_public_suffix2(list, suffix.c_str(), PSL_TYPE_PRIVATE | PSL_TYPE_NO_STAR_RULE) != 0)
    return Kind::private_part;
  return std::ranges::find(kHosting, std::string_view(suffix)) != kHosting.end()
             ? Kind::private_part
             : Kind::none;
}

}  // namespace

std::string shared_suffix(std::string_view name) {
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const std::string suffix(name.substr(dot + 1));
    if (kind_of(suffix) == Kind::private_part) return suffix;
  }
  return "";
}

base::Status check_suffix(Reading& reading, const std::string& pattern, const std::string& path) {
  if (!pattern.starts_with('*')) return {};
  const std::string suffix(suffix_of(pattern));
  const std::string& where = reading.origins[path];
  switch (kind_of(suffix)) {
    case Kind::none:
      return {};
    case Kind::icann:
      return base::bad_input(
          where,
          fmt::format("{}: \"{}\" is every name under the public suffix {}", path, pattern, suffix),
          "expected a wildcard below a name that one owner holds");
    case Kind::private_part:
      reading.warnings.push_back(fmt::format(
          "{}: {}: anyone can get a name under {}, so \"{}\" reaches whoever asks for one", where,
          path, suffix, pattern));
      return {};
  }
  return {};
}

}  // namespace policy
