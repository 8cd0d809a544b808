// pip, npm and git: what their files say, most specific first.
#include "host/indexes.h"

#include <algorithm>
#include <array>

#include "host/settings.h"

namespace host {
namespace {

// The folders of the host's Python installations that packages lie in.
std::vector<std::string> python_folders(const ToolPlaces& places) {
  std::vector<std::string> folders;
  for (const std::string& lib : {places.home + "/.local/lib", std::string("/usr/local/lib")}) {
    for (const std::string& name : places.list(lib)) {
      if (!name.starts_with("python3")) continue;
      folders.push_back(lib + "/" + name + "/site-packages");
      folders.push_back(lib + "/" + name + "/dist-packages");
    }
  }
  folders.emplace_back("/usr/lib/python3/dist-packages");
  return folders;
}

// pip's own default, and where the files of that index lie, from pip's own source.
base::Status add_pip_default(Indexes& indexes, const ToolPlaces& places) {
  for (const std::string& folder : python_folders(places)) {
    const std::string path = folder + "/pip/_internal/models/index.py";
    const auto text = TRY(places.read(path));
    if (!text) continue;
    const std::string index = between(*text, "PyPI = PackageIndex(", ")");
    const std::string url = between(index, "\"", "\"");
    if (url.empty()) continue;
    add_index(indexes, url + (url.ends_with('/') ? "simple/" : "/simple/"), path);
    const std::string files = between(index, "file_storage_domain=\"", "\"");
    if (!files.empty()) add_index(indexes, "https://" + files + "/", path);
    return {};
  }
  return {};
}

struct Pip {
  std::string index, extra, from;
};

base::Status take_pip_file(Pip& pip, const ToolPlaces& places, const std::string& path) {
  const auto text = TRY(places.read(path));
  if (!text) return {};
  for (const Setting& setting : read_settings(*text, true)) {
    if (setting.section != "global" && setting.section != "install") continue;
    if (setting.key == "index-url") pip.index = setting.value;
    if (setting.key == "extra-index-url") pip.extra = setting.value;
    if (setting.key.ends_with("index-url")) pip.from = path;
  }
  return {};
}

}  // namespace

base::Result<Indexes> pip_indexes(const ToolPlaces& places) {
  Pip pip;
  const std::string config = variable(places, "XDG_CONFIG_HOME").empty()
                                 ? places.home + "/.config"
                                 : variable(places, "XDG_CONFIG_HOME");
  for (const std::string& path : {std::string("/etc/xdg/pip/pip.conf"),
                                  std::string("/etc/pip.conf"), places.home + "/.pip/pip.conf",
                                  config + "/pip/pip.conf", variable(places, "PIP_CONFIG_FILE")}) {
    if (!path.empty()) TRY(take_pip_file(pip, places, path));
  }
  for (const auto& [name, value] :
       {std::pair{"PIP_INDEX_URL", &pip.index}, std::pair{"PIP_EXTRA_INDEX_URL", &pip.extra}}) {
    if (variable(places, name).empty()) continue;
    *value = variable(places, name);
    pip.from = name;
  }
  Indexes indexes;
  if (!pip.index.empty()) {
    add_index(indexes, pip.index, pip.from);
    if (!indexes.all.empty()) indexes.variables["PIP_INDEX_URL"] = indexes.all[0].url;
  } else {
    TRY(add_pip_default(indexes, places));
  }
  std::string extra;
  for (const std::string& url : words_of(pip.extra)) {
    add_index(indexes, url, pip.from);
    if (const std::string plain = plain_url(url); !plain.empty())
      extra += (extra.empty() ? "" : " ") + plain;
  }
  if (!extra.empty()) indexes.variables["PIP_EXTRA_INDEX_URL"] = extra;
  if (!indexes.all.empty()) return indexes;
  return no_index("pip",
                  "expected index-url in pip.conf, PIP_INDEX_URL, or pip itself on this host");
}

base::Result<Indexes> npm_indexes(const ToolPlaces& places) {
  Indexes indexes;
  std::string registry;
  std::string from;
  for (const std::string& path : {std::string("/etc/npmrc"), std::string("/usr/etc/npmrc"),
                                  std::string("/usr/local/etc/npmrc"), places.home + "/.npmrc"}) {
    const auto text = TRY(places.read(path));
    if (!text) continue;
    for (const Setting& setting : read_settings(*text, false)) {
      if (setting.key == "registry") {
        registry = setting.value;
        from = path;
      }
      if (setting.key.starts_with('@') && setting.key.ends_with(":registry"))
        add_index(indexes, setting.value, path);
    }
  }
  for (const char* name : {"npm_config_registry", "NPM_CONFIG_REGISTRY"}) {
    if (variable(places, name).empty()) continue;
    registry = variable(places, name);
    from = name;
  }
  if (!plain_url(registry).empty()) {
    add_index(indexes, registry, from);
    indexes.variables["NPM_CONFIG_REGISTRY"] = plain_url(registry);
    return indexes;
  }
  const std::string own = "/@npmcli/config/lib/definitions/definitions.js";
  for (const std::string& folder :
       {std::string("/usr/local/lib/node_modules/npm/node_modules"),
        std::string("/usr/lib/node_modules/npm/node_modules"),
        std::string("/usr/share/nodejs/npm/node_modules"), std::string("/usr/share/nodejs")}) {
    const auto text = TRY(places.read(folder + own));
    if (!text) continue;
    std::string definition = between(*text, "define('registry',", "})");
    if (definition.empty())
      definition = between(*text, "registry: new Definition('registry',", "})");
    add_index(indexes, between(between(definition, "default:", ","), "'", "'"), folder + own);
    break;
  }
  if (!indexes.all.empty()) return indexes;
  return no_index("npm",
                  "expected registry in ~/.npmrc, NPM_CONFIG_REGISTRY, or npm itself on this host");
}

namespace {

// [url "BASE"] insteadOf = PREFIX, of the host's and the user's own settings.
base::Result<std::vector<std::pair<std::string, std::string>>> git_rewrites(
    const ToolPlaces& places) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& path :
       {std::string("/etc/gitconfig"), places.home + "/.config/git/config",
        places.home + "/.gitconfig"}) {
    const auto text = TRY(places.read(path));
    if (!text) continue;
    for (const Setting& setting : read_settings(*text, false)) {
      if (setting.key == "insteadof" && setting.section.starts_with("url "))
        all.emplace_back(setting.value, between(setting.section, "\"", "\""));
    }
  }
  return all;
}

}  // namespace

base::Result<Indexes> git_indexes(const ToolPlaces& places) {
  const auto rewrites = TRY(git_rewrites(places));
  const std::string path = places.folder + "/.git/config";
  const auto text = TRY(places.read(path));
  Indexes indexes;
  for (const Setting& setting : read_settings(text.value_or(""), false)) {
    if (setting.key != "url" || !setting.section.starts_with("remote ")) continue;
    std::string url = setting.value;
    std::size_t longest = 0;
    for (const auto& [prefix, base] : rewrites) {
      if (!setting.value.starts_with(prefix) || prefix.size() <= longest) continue;
      longest = prefix.size();
      url = base + setting.value.substr(prefix.size());
    }
    add_index(indexes, url, path);
  }
  if (!indexes.all.empty()) return indexes;
  return no_index("git", "expected a repository in this folder with a remote over https");
}

const std::vector<std::string_view>& index_tools() {
  static const std::vector<std::string_view> kTools = {"pip", "npm",   "cargo", "go",
                                                       "apt", "maven", "git"};
  return kTools;
}

base::Result<Indexes> indexes_of(std::string_view tool, const ToolPlaces& places) {
  using Read = base::Result<Indexes> (*)(const ToolPlaces&);
  static constexpr std::array<std::pair<std::string_view, Read>, 7> kReaders = {
      {{"pip", pip_indexes},
       {"npm", npm_indexes},
       {"cargo", cargo_indexes},
       {"go", go_indexes},
       {"apt", apt_indexes},
       {"maven", maven_indexes},
       {"git", git_indexes}}};
  for (const auto& [name, read] : kReaders) {
    if (name == tool) return read(places);
  }
  const std::string near = base::closest(tool, index_tools());
  return base::fail(
      base::Kind::not_found, "preset " + base::printable(tool),
      "there is none of that name" + (near.empty() ? "" : " (did you mean " + near + ")"),
      "expected pip, npm, cargo, go, apt, maven, git or a file of that name in "
      "/etc/cerco/presets or ~/.config/cerco/presets");
}

}  // namespace host
