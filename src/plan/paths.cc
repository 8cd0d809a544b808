// Which paths a plan may name.
#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {

bool is_clean_path(std::string_view path) {
  static constexpr std::size_t kMost = 4095;  // PATH_MAX with its end
  if (path.empty() || path[0] != '/' || path.size() > kMost) return false;
  if (base::has_control(path)) return false;
  if (path == "/") return true;
  const auto parts = base::split(path.substr(1), '/');
  return std::ranges::none_of(
      parts, [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

std::string parent_of(std::string_view path) {
  const auto at = path.rfind('/');
  return at == 0 || at == std::string_view::npos ? "/" : std::string(path.substr(0, at));
}

std::string refused_source(std::string_view path, std::string_view state_dir) {
  if (path == "/") return "the whole host";
  static constexpr std::array<std::string_view, 5> kKernel = {"/proc", "/sys", "/dev", "/run",
                                                              "/var/run"};
  for (std::string_view folder : kKernel) {
    if (is_within(path, folder)) return "below " + std::string(folder);
  }
  if (!state_dir.empty() && (is_within(path, state_dir) || is_within(state_dir, path))) {
    return "it holds cerco's own state";
  }
  static constexpr std::array<std::string_view, 9> kSecret = {
      "/etc/shadow", "/etc/shadow-", "/etc/gshadow",   "/etc/gshadow-",   "/etc/ssl/private",
      "/etc/ssh",    "/etc/sudoers", "/etc/sudoers.d", "/etc/krb5.keytab"};
  for (std::string_view secret : kSecret) {
    if (is_within(path, secret) || is_within(secret, path)) {
      return "it holds the host's secrets (" + std::string(secret) + ")";
    }
  }
  return {};
}

// Each costs a mount at the start (11 µs tried), so only what tools fail without.
bool is_curated_etc(std::string_view path) {
  static constexpr std::array<std::string_view, 16> kWhole = {
      "/etc/ld.so.cache", "/etc/ld.so.conf",   "/etc/ld.so.conf.d",    "/etc/services",
      "/etc/protocols",   "/etc/alternatives", "/etc/localtime",       "/etc/mime.types",
      "/etc/fonts",       "/etc/os-release",   "/etc/debian_version",  "/etc/matplotlibrc",
      "/etc/perl",        "/etc/ssl/certs",    "/etc/ssl/openssl.cnf", "/etc/maven/m2.conf"};
  if (std::ranges::find(kWhole, path) != kWhole.end()) return true;
  // Versioned folders of language runtimes: python3, python3.11, java-17-openjdk.
  static constexpr std::array<std::string_view, 2> kRuntimes = {"/etc/python", "/etc/java-"};
  return std::ranges::any_of(kRuntimes, [&](std::string_view prefix) {
    return path.starts_with(prefix) && path.find('/', prefix.size()) == std::string_view::npos;
  });
}

}  // namespace plan
