// Where presets are looked for, and what of an index a rule needs to open.
#include "cli/presets.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "os/os.h"

namespace cli {
namespace {

constexpr std::size_t kMostFile = std::size_t{1} << 20;

// What someone else can write is no word of the caller's. nullopt where there is no file, or none
// that the caller may read.
base::Result<std::optional<std::string>> read_owned(const std::string& path) {
  auto fd = os::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (!fd) {
    const int number = fd.error().number;
    if (number == ENOENT || number == ENOTDIR || number == EACCES) return std::nullopt;
    return std::unexpected(fd.error());
  }
  struct stat info = {};
  if (::fstat(fd->get(), &info) != 0) return base::system_error(path);
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  const bool ours = info.st_uid == 0 || info.st_uid == ::geteuid();
  if (!ours || (info.st_mode & S_IWOTH) != 0) {
    return base::bad_input(path, "others can write this file, so it says nothing",
                           "expected a file of yours or of root that no one else can write");
  }
  return TRY(os::read_all(fd->get(), kMostFile, path));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, decltype(&::closedir)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

std::string env_of(const World& world, const std::string& name) {
  const auto at = world.env.find(name);
  return at == world.env.end() ? std::string() : at->second;
}

// An index, taken apart for a rule.
struct Place {
  std::string host;
  std::uint16_t port = 443;
  bool tls = true;
  std::string folder;  // with a slash at its end
};

base::Result<Place> place_of(const host::Index& index) {
  const auto bad = [&](std::string_view what) {
    return base::bad_input(index.from, fmt::format("{}: {}", base::printable(index.url), what),
                           "expected the URL of an index with a host name");
  };
  Place place;
  place.tls = index.url.starts_with("https://");
  place.port = place.tls ? 443 : 80;
  const std::string_view rest = std::string_view(index.url).substr(place.tls ? 8 : 7);
  const auto slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  const auto colon = authority.find(':');
  const auto host = policy::canonical_host(authority.substr(0, colon));
  if (!host) return bad(host.error().what);
  if (host->is_address) return bad("an address, which takes a rule with tcp or cidr");
  place.host = host->name;
  if (colon != std::string_view::npos) {
    const auto port = base::parse_number(authority.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return bad("no port");
    place.port = static_cast<std::uint16_t>(*port);
  }
  const auto path = policy::canonical_path(rest.substr(slash), false);
  if (!path) return bad(path.error().what);
  if (path->contains('*') || path->contains('"') || path->contains('\\'))
    return bad("a path that no rule can name");
  place.folder = path->ends_with('/') ? *path : *path + "/";
  return place;
}

std::string rule_text(const Place& place, std::string_view method, std::string_view path,
                      std::string_view more) {
  std::string out = fmt::format("[[egress]]\nhost = \"{}\"\n", place.host);
  if (place.port != 443) out += fmt::format("ports = [{}]\n", place.port);
  if (place.tls) out += "tls_only = true\n";
  return out + fmt::format("methods = [\"{}\"]\npaths = [\"{}\"]\n{}", method, path, more);
}

// What is fetched lies beside the index in most mirrors ("…/simple", "…/packages").
std::string read_path(std::string_view tool, const Place& place) {
  constexpr std::string_view kSimple = "simple/";
  const bool beside = tool == "pip" && place.folder.ends_with("/" + std::string(kSimple)) &&
                      place.folder.size() > kSimple.size() + 1;
  return beside ? place.folder.substr(0, place.folder.size() - kSimple.size()) : place.folder;
}

std::vector<std::string> rules_of(std::string_view tool, const Place& place) {
  if (tool != "git") {
    return {rule_text(place, "GET", read_path(tool, place) + "**",
                      tool == "npm" ? "encoded_slash = true\n" : "")};
  }
  // Fetches ask with POST; pushes go to git-receive-pack, which no rule names.
  const std::string repository = place.folder.substr(0, place.folder.size() - 1);
  return {rule_text(place, "GET", repository + "/info/refs", ""),
          rule_text(place, "POST", repository + "/git-upload-pack", "")};
}

std::string variables_text(const std::map<std::string, std::string>& variables) {
  std::string out;
  for (const auto& [name, value] : variables)
    out += fmt::format("{} = {}\n", name, base::json_string(value));
  return out.empty() ? out : "[environment.set]\n" + out;
}

base::Result<policy::PresetRules> tool_rules(const World& world, std::string_view name) {
  std::error_code error;
  const host::ToolPlaces places = {.env = world.env,
                                   .home = env_of(world, "HOME"),
                                   .folder = std::filesystem::current_path(error).string(),
                                   .read = read_owned,
                                   .list = names_in};
  const host::Indexes indexes = TRY(host::indexes_of(name, places));
  std::vector<std::string> from;
  for (const host::Index& index : indexes.all) {
    if (std::ranges::find(from, index.from) == from.end()) from.push_back(index.from);
  }
  return policy::PresetRules{.text = TRY(rules_for(name, indexes)),
                             .from = base::join(from, ", "),
                             .kind = policy::PresetRules::Kind::tool};
}

}  // namespace

base::Result<std::string> rules_for(std::string_view tool, const host::Indexes& indexes) {
  std::vector<std::string> rules;
  for (const host::Index& index : indexes.all) {
    const Place place = TRY(place_of(index));
    for (std::string& rule : rules_of(tool, place)) {
      if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(std::move(rule));
    }
  }
  return base::join(rules, "") + variables_text(indexes.variables);
}

policy::PresetSource preset_source(const World& world) {
  return [&world](std::string_view name) -> base::Result<policy::PresetRules> {
    const std::string home = env_of(world, "HOME");
    for (const std::string& folder :
         {home.empty() ? std::string() : home + "/.config/cerco/presets",
          std::string("/etc/cerco/presets")}) {
      if (folder.empty()) continue;
      const std::string path = fmt::format("{}/{}.toml", folder, name);
      if (auto text = TRY(read_owned(path)); text)
        return policy::PresetRules{.text = std::move(*text), .from = path};
    }
    return tool_rules(world, name);
  };
}

}  // namespace cli
