// cargo, go, apt and maven: what their files say.
#include <algorithm>
#include <map>

#include "host/settings.h"

namespace host {
namespace {

std::string without_prefix(const std::string& text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

// The source that stands for the default one, and every registry that has a name.
base::Result<Indexes> cargo_indexes(const ToolPlaces& places) {
  Indexes indexes;
  const std::string set = variable(places, "CARGO_HOME");
  const std::string folder = set.empty() ? places.home + "/.cargo" : set;
  for (const std::string& path : {folder + "/config.toml", folder + "/config"}) {
    const auto text = TRY(places.read(path));
    if (!text) continue;
    const auto settings = read_settings(*text, false);
    std::string source;
    for (const Setting& one : settings) {
      if (one.section == "source.crates-io" && one.key == "replace-with") source = one.value;
    }
    for (const Setting& one : settings) {
      const bool replaces = !source.empty() && one.section == "source." + source;
      const bool named = one.section.starts_with("registries.");
      if ((replaces && one.key == "registry") || (named && one.key == "index"))
        add_index(indexes, without_prefix(one.value, "sparse+"), path);
    }
    break;  // cargo reads one of the two
  }
  if (!indexes.all.empty()) return indexes;
  return no_index(
      "cargo",
      "expected [source.crates-io] replace-with and that source's registry, or "
      "[registries.NAME] index, in ~/.cargo/config.toml: cargo's own default is in no file");
}

namespace {

struct GoSetting {
  std::string value, from;
  bool own = false;  // Go's own default
};

base::Result<GoSetting> go_setting(const ToolPlaces& places, const std::string& name) {
  if (const std::string value = variable(places, name); !value.empty())
    return GoSetting{value, name};
  const std::string root = variable(places, "GOROOT");
  std::vector<std::string> files = {places.home + "/.config/go/env"};
  for (const std::string& folder : {root, std::string("/usr/local/go")}) {
    if (!folder.empty()) files.push_back(folder + "/go.env");
  }
  for (const std::string& found : places.list("/usr/lib")) {
    if (found.starts_with("go-")) files.push_back("/usr/lib/" + found + "/go.env");
  }
  std::string key = base::to_lower(name);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto text = TRY(places.read(files[i]));
    for (const Setting& setting : read_settings(text.value_or(""), false)) {
      if (setting.key == key) return GoSetting{setting.value, files[i], i != 0};
    }
  }
  return GoSetting{};
}

}  // namespace

base::Result<Indexes> go_indexes(const ToolPlaces& places) {
  Indexes indexes;
  const GoSetting proxy = TRY(go_setting(places, "GOPROXY"));
  std::string list = proxy.value;
  std::ranges::replace(list, '|', ',');
  std::string usable;
  for (const std::string_view part : base::split(list, ',')) {
    const std::string url = plain_url(part);
    if (url.empty()) continue;
    add_index(indexes, url, proxy.from);
    usable += (usable.empty() ? "" : ",") + url;
  }
  if (indexes.all.empty()) {
    return no_index("go",
                    "expected a URL in GOPROXY (go env -w GOPROXY=…), or go.env of Go itself");
  }
  if (!proxy.own) indexes.variables["GOPROXY"] = usable;
  // NAME, NAME+KEY or NAME+KEY URL; the name is a host.
  const GoSetting sums = TRY(go_setting(places, "GOSUMDB"));
  const auto words = words_of(sums.value);
  if (words.empty() || words[0] == "off") return indexes;
  add_index(indexes,
            words.size() > 1 ? words[1] : "https://" + words[0].substr(0, words[0].find('+')),
            sums.from);
  if (!sums.own) indexes.variables["GOSUMDB"] = sums.value;
  return indexes;
}

namespace {

// One-line form: deb [options] URI suite components.
void take_list(Indexes& indexes, const std::string& text, const std::string& path) {
  for (const std::string_view line : base::split(text, '\n')) {
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty() || (words[0] != "deb" && words[0] != "deb-src")) continue;
    const auto uri = std::ranges::find_if(
        words, [](const std::string& word) { return !plain_url(word).empty(); });
    if (uri != words.end()) add_index(indexes, *uri, path);
  }
}

// deb822 form: paragraphs with URIs, left out where they are not enabled.
void take_sources(Indexes& indexes, const std::string& text, const std::string& path) {
  std::string paragraph;
  const auto take = [&] {
    std::string uris;
    bool enabled = true;
    for (const Setting& setting : read_settings(std::exchange(paragraph, {}), true)) {
      if (setting.key == "uris") uris = setting.value;
      if (setting.key == "enabled") enabled = base::to_lower(setting.value) != "no";
    }
    for (const std::string& uri : words_of(enabled ? uris : "")) add_index(indexes, uri, path);
  };
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      take();
    } else {
      paragraph += std::string(line) + "\n";
    }
  }
  take();
}

}  // namespace

base::Result<Indexes> apt_indexes(const ToolPlaces& places) {
  Indexes indexes;
  std::vector<std::string> files = {"/etc/apt/sources.list"};
  for (const std::string& name : places.list("/etc/apt/sources.list.d")) {
    if (name.ends_with(".list") || name.ends_with(".sources"))
      files.push_back("/etc/apt/sources.list.d/" + name);
  }
  for (const std::string& path : files) {
    const auto text = TRY(places.read(path));
    if (text && path.ends_with(".sources")) {
      take_sources(indexes, *text, path);
    } else if (text) {
      take_list(indexes, *text, path);
    }
  }
  if (!indexes.all.empty()) return indexes;
  return no_index("apt",
                  "expected an http or https URI in /etc/apt/sources.list or sources.list.d");
}

// The mirrors and repositories of settings.xml; comments are taken out.
base::Result<Indexes> maven_indexes(const ToolPlaces& places) {
  Indexes indexes;
  for (const std::string& path :
       {places.home + "/.m2/settings.xml", std::string("/etc/maven/settings.xml"),
        std::string("/usr/share/maven/conf/settings.xml")}) {
    std::string text = TRY(places.read(path)).value_or("");
    for (auto at = text.find("<!--"); at != std::string::npos; at = text.find("<!--")) {
      const auto end = text.find("-->", at);
      text.erase(at, end == std::string::npos ? end : end + 3 - at);
    }
    for (const std::string_view element : {"mirror", "repository", "pluginRepository"}) {
      const std::string open = "<" + std::string(element) + ">";
      for (auto at = text.find(open); at != std::string::npos; at = text.find(open, at + 1)) {
        const std::string body =
            between(std::string_view(text).substr(at), open, "</" + std::string(element) + ">");
        for (const std::string& word : words_of(between(body, "<url>", "</url>")))
          add_index(indexes, word, path);
      }
    }
  }
  if (!indexes.all.empty()) return indexes;
  return no_index("maven",
                  "expected a <mirror> in ~/.m2/settings.xml: Maven's own default is in no file "
                  "that can be read");
}

}  // namespace host
