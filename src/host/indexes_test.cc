// What each tool's files say of its index, from files of the test's own.
#include "host/indexes.h"

#include <gtest/gtest.h>

#include "host/settings.h"

namespace {

using host::Index;
using host::ToolPlaces;
using Files = std::map<std::string, std::string>;

ToolPlaces places_with(const Files& files, std::map<std::string, std::string> env = {}) {
  ToolPlaces places;
  places.env = std::move(env);
  places.home = "/home/a";
  places.folder = "/srv/project";
  places.read = [files](const std::string& path) -> base::Result<std::optional<std::string>> {
    const auto at = files.find(path);
    if (at == files.end()) return std::nullopt;
    if (at->second == "OTHERS") return base::bad_input(path, "others can write this file", "yours");
    return at->second;
  };
  places.list = [files](const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& [path, text] : files) {
      if (!path.starts_with(folder + "/")) continue;
      const std::string rest = path.substr(folder.size() + 1);
      const std::string name = rest.substr(0, rest.find('/'));
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
  };
  return places;
}

std::vector<std::string> urls_of(std::string_view tool, const ToolPlaces& places) {
  const auto got = host::indexes_of(tool, places);
  if (!got) return {got.error().line()};
  std::vector<std::string> urls;
  for (const Index& index : got->all) urls.push_back(index.url);
  return urls;
}

using Urls = std::vector<std::string>;

TEST(Indexes, Pip) {
  const Files files = {
      {"/etc/pip.conf", "[global]\nindex-url = https://one.test/simple\n"},
      {"/home/a/.config/pip/pip.conf",
       "# mine\n[global]\nindex_url: "
       "https://u:secret@mirror.test:8443/pypi/simple/\nextra-index-url =\n"
       "    https://b.test/simple\n    https://c.test/simple\n[list]\nformat = columns\n"}};
  const auto got = host::indexes_of("pip", places_with(files));
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(got->all, (std::vector<Index>{
                          {"https://mirror.test:8443/pypi/simple/", "/home/a/.config/pip/pip.conf"},
                          {"https://b.test/simple", "/home/a/.config/pip/pip.conf"},
                          {"https://c.test/simple", "/home/a/.config/pip/pip.conf"}}));
  // A user of the host's stays outside.
  EXPECT_EQ(got->variables.at("PIP_INDEX_URL"), "https://mirror.test:8443/pypi/simple/");
  EXPECT_EQ(got->variables.at("PIP_EXTRA_INDEX_URL"),
            "https://b.test/simple https://c.test/simple");
  EXPECT_EQ(urls_of("pip", places_with(files, {{"PIP_INDEX_URL", "http://env.test/x"},
                                               {"PIP_EXTRA_INDEX_URL", "https://d.test/"}})),
            (Urls{"http://env.test/x", "https://d.test/"}));
}

// Without a word of the host's, pip's own source says what its default is.
TEST(Indexes, PipsOwnDefaultIsReadFromPip) {
  const Files files = {
      {"/usr/lib/python3/dist-packages/pip/_internal/models/index.py",
       "class PackageIndex: pass\nPyPI = PackageIndex(\n    \"https://index.test/\", "
       "file_storage_domain=\"files.test\"\n)\n"}};
  const auto got = host::indexes_of("pip", places_with(files));
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(urls_of("pip", places_with(files)),
            (Urls{"https://index.test/simple/", "https://files.test/"}));
  EXPECT_TRUE(got->variables.empty());
  EXPECT_TRUE(urls_of("pip", places_with({}))[0].contains("no index is configured"));
}

TEST(Indexes, Npm) {
  const Files files = {{"/home/a/.npmrc",
                        "registry=https://npm.test/\n@team:registry=https://team.test/npm/\n"
                        "//npm.test/:_authToken=npm_secret\n"},
                       {"/srv/project/.npmrc", "registry=https://evil.test/\n"}};
  EXPECT_EQ(urls_of("npm", places_with(files)),
            (Urls{"https://team.test/npm/", "https://npm.test/"}));
  EXPECT_EQ(urls_of("npm", places_with(files, {{"NPM_CONFIG_REGISTRY", "https://env.test"}})),
            (Urls{"https://team.test/npm/", "https://env.test/"}));
  const std::string own =
      "/usr/local/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js";
  EXPECT_EQ(
      urls_of("npm",
              places_with({{own,
                            "define('x', {default: 'https://no.test/'})\ndefine('registry', {\n"
                            "  default: 'https://own.test/',\n  type: url,\n})\n"}})),
      (Urls{"https://own.test/"}));
}

TEST(Indexes, Cargo) {
  const std::string path = "/home/a/.cargo/config.toml";
  EXPECT_EQ(
      urls_of("cargo",
              places_with({{path,
                            "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = "
                            "\"sparse+https://cargo.test/index/\"\n[source.other]\nregistry = "
                            "\"https://no.test/\"\n[registries.own]\nindex = "
                            "\"sparse+https://own.test/\"\n"}})),
      (Urls{"https://cargo.test/index/", "https://own.test/"}));
  EXPECT_TRUE(urls_of("cargo", places_with({}))[0].contains("replace-with"));
}

TEST(Indexes, Go) {
  const Files files = {
      {"/usr/local/go/go.env", "GOPROXY=https://proxy.test,direct\nGOSUMDB=sum.test\n"}};
  EXPECT_EQ(urls_of("go", places_with(files)), (Urls{"https://proxy.test/", "https://sum.test/"}));
  EXPECT_EQ(urls_of("go", places_with(files, {{"GOPROXY", "https://a.test/go|https://b.test,off"},
                                              {"GOSUMDB", "off"}})),
            (Urls{"https://a.test/go", "https://b.test/"}));
  EXPECT_EQ(host::indexes_of("go", places_with(files, {{"GOPROXY", "https://a.test,direct"}}))
                ->variables.at("GOPROXY"),
            "https://a.test/");
  EXPECT_TRUE(
      urls_of("go", places_with({{"/home/a/.config/go/env", "GOPROXY=direct\n"}}))[0].contains(
          "no index"));
}

TEST(Indexes, Apt) {
  EXPECT_EQ(
      urls_of("apt",
              places_with(
                  {{"/etc/apt/sources.list",
                    "# deb http://old.test/ x main\ndeb [arch=amd64 signed-by=/k] "
                    "http://deb.test/debian x main\n"
                    "deb-src http://deb.test/debian x main\ndeb cdrom:[x]/ x main\n"},
                   {"/etc/apt/sources.list.d/b.sources",
                    "Types: deb\nURIs: https://b.test/debian\n https://c.test/debian\nSuites: x\n\n"
                    "Types: deb\nURIs: https://off.test/\nEnabled: no\n"},
                   {"/etc/apt/sources.list.d/x.save", "deb http://saved.test/ x main\n"}})),
      (Urls{"http://deb.test/debian", "https://b.test/debian", "https://c.test/debian"}));
}

TEST(Indexes, Maven) {
  EXPECT_EQ(
      urls_of(
          "maven",
          places_with(
              {{"/home/a/.m2/settings.xml",
                "<settings><!-- <mirror><url>https://no.test/</url></mirror> --><mirrors><mirror>\n"
                "<id>m</id><url>\n https://maven.test/repo </url></mirror></mirrors><profiles>"
                "<repository><url>https://r.test/x</url></repository></profiles></settings>"}})),
      (Urls{"https://maven.test/repo", "https://r.test/x"}));
}

TEST(Indexes, Git) {
  const Files files = {
      {"/srv/project/.git/config",
       "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@code.test:o/r.git\n\tfetch = x\n"
       "[remote \"up\"]\n\turl = https://tok@up.test/o/r.git\n"},
      {"/home/a/.gitconfig", "[url \"https://code.test/\"]\n\tinsteadOf = git@code.test:\n"}};
  EXPECT_EQ(urls_of("git", places_with(files)),
            (Urls{"https://code.test/o/r.git", "https://up.test/o/r.git"}));
}

// A file that someone else wrote says nothing, and nothing else takes its place.
TEST(Indexes, AFileThatOthersCanWriteIsAnError) {
  for (const auto& [tool, path] :
       std::map<std::string, std::string>{{"pip", "/etc/pip.conf"},
                                          {"npm", "/home/a/.npmrc"},
                                          {"cargo", "/home/a/.cargo/config.toml"},
                                          {"go", "/home/a/.config/go/env"},
                                          {"apt", "/etc/apt/sources.list"},
                                          {"maven", "/home/a/.m2/settings.xml"},
                                          {"git", "/srv/project/.git/config"}}) {
    const auto got = urls_of(tool, places_with({{path, "OTHERS"}}));
    EXPECT_TRUE(got[0].contains("others can write")) << tool << got[0];
  }
}

TEST(Indexes, AnUnknownToolIsAnError) {
  EXPECT_TRUE(urls_of("pop", places_with({}))[0].contains("did you mean"));
}

TEST(Settings, OnlyHttpUrlsAreUrls) {
  EXPECT_EQ(host::plain_url("https://u:p@h.test/a?q#f"), "https://h.test/a");
  EXPECT_EQ(host::plain_url("HTTPS://h.test"), "https://h.test/");
  EXPECT_EQ(host::plain_url("file:///x"), "");
  EXPECT_EQ(host::plain_url("git@h.test:x"), "");
  EXPECT_EQ(host::plain_url("https://"), "");
  EXPECT_EQ(host::plain_url("https://u@/"), "");
}

}  // namespace
