// From the index of a tool to rules that read and do not publish.
#include "cli/presets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/cli_test.h"

namespace {

using cli_test::Folder;
using cli_test::Stage;

policy::Policy policy_of(std::string_view tool, const std::vector<std::string>& urls) {
  host::Indexes indexes;
  for (const std::string& url : urls) indexes.all.push_back({url, "conf"});
  const auto text = cli::rules_for(tool, indexes);
  EXPECT_TRUE(text) << text.error().line();
  const auto got = policy::parse(text.value_or(""), "rules", {}, {});
  EXPECT_TRUE(got) << (got ? "" : got.error().line()) << text.value_or("");
  return got ? got->policy : policy::Policy{};
}

bool allows(const policy::Policy& policy, const std::string& method, const std::string& host,
            const std::string& path, policy::Scheme scheme = policy::Scheme::tls,
            std::uint16_t port = 443) {
  return policy::decide_request(policy, {.scheme = scheme,
                                         .host = {.name = host},
                                         .port = port,
                                         .method = method,
                                         .path = path})
      .allow;
}

// N190: what publishes is refused, whatever the tool calls it.
TEST(PresetRules, ReadAndDoNotPublish_N190) {
  const policy::Policy pip =
      policy_of("pip", {"https://index.test/simple/", "https://files.test/"});
  EXPECT_TRUE(allows(pip, "GET", "index.test", "/simple/requests/"));
  EXPECT_TRUE(allows(pip, "HEAD", "files.test", "/packages/x.whl"));
  EXPECT_FALSE(allows(pip, "POST", "index.test", "/legacy/"));
  EXPECT_FALSE(allows(pip, "POST", "index.test", "/simple/"));
  EXPECT_FALSE(allows(pip, "GET", "index.test", "/manage/"));
  EXPECT_FALSE(allows(pip, "GET", "other.test", "/simple/"));
  EXPECT_FALSE(allows(pip, "GET", "index.test", "/simple/x", policy::Scheme::http));
  const policy::Policy npm = policy_of("npm", {"https://npm.test/repo"});
  EXPECT_TRUE(allows(npm, "GET", "npm.test", "/repo/@scope%2Fname"));
  EXPECT_FALSE(allows(npm, "PUT", "npm.test", "/repo/@scope%2Fname"));
  EXPECT_FALSE(allows(npm, "GET", "npm.test", "/other/x"));
  const policy::Policy cargo = policy_of("cargo", {"https://cargo.test/index/"});
  EXPECT_FALSE(allows(cargo, "PUT", "cargo.test", "/index/api/v1/crates/new"));
}

// Mirrors keep the files beside the index.
TEST(PresetRules, AMirrorsFilesLieBesideItsIndex) {
  const policy::Policy pip = policy_of("pip", {"https://mirror.test:8443/repository/pypi/simple"});
  EXPECT_TRUE(allows(pip, "GET", "mirror.test", "/repository/pypi/packages/x.whl",
                     policy::Scheme::tls, 8443));
  EXPECT_FALSE(allows(pip, "GET", "mirror.test", "/repository/npm/x", policy::Scheme::tls, 8443));
  EXPECT_FALSE(allows(pip, "GET", "mirror.test", "/repository/pypi/packages/x.whl",
                      policy::Scheme::http, 8443));
  const policy::Policy plain =
      policy_of("apt", {"http://deb.test/debian", "http://deb.test/debian"});
  EXPECT_EQ(plain.egress.size(), 1U);
  EXPECT_TRUE(allows(plain, "GET", "deb.test", "/debian/dists/x", policy::Scheme::http, 80));
  EXPECT_FALSE(allows(plain, "GET", "deb.test", "/debian/dists/x"));
}

// Fetches ask with POST; pushes do as well, elsewhere.
TEST(PresetRules, GitFetchesAndDoesNotPush) {
  const policy::Policy git = policy_of("git", {"https://code.test/o/r.git"});
  EXPECT_TRUE(allows(git, "GET", "code.test", "/o/r.git/info/refs"));
  EXPECT_TRUE(allows(git, "POST", "code.test", "/o/r.git/git-upload-pack"));
  EXPECT_FALSE(allows(git, "POST", "code.test", "/o/r.git/git-receive-pack"));
  EXPECT_FALSE(allows(git, "POST", "code.test", "/o/r.git/info/refs"));
  EXPECT_FALSE(allows(git, "POST", "code.test", "/o/other.git/git-upload-pack"));
}

TEST(PresetRules, WhatNoRuleCanNameIsAnError) {
  for (const char* url : {"https://10.1.2.3/simple/", "https://h.test:x/", "https://h..test/",
                          "https://h.test/a/../b", "https://h.test/a\"b/"}) {
    EXPECT_FALSE(cli::rules_for("pip", {.all = {{url, "conf"}}, .variables = {}})) << url;
  }
}

TEST(PresetSource, FilesOfTheCallersComeFirst) {
  Stage stage;
  const Folder home;
  stage.world.env = {{"HOME", home.path()}, {"PIP_INDEX_URL", "https://env.test/simple"}};
  const auto source = cli::preset_source(stage.world);
  const auto tool = source("pip");
  ASSERT_TRUE(tool) << tool.error().line();
  EXPECT_EQ(tool->from, "PIP_INDEX_URL");
  EXPECT_NE(tool->text.find("[environment.set]\nPIP_INDEX_URL = \"https://env.test/simple\""),
            std::string::npos)
      << tool->text;
  const std::string path =
      home.write(".config/cerco/presets/pip.toml", "[[egress]]\nhost = \"mine.test\"\n");
  const auto file = source("pip");
  ASSERT_TRUE(file) << file.error().line();
  EXPECT_EQ(file->from, path);
  ASSERT_EQ(::chmod(path.c_str(), 0646), 0);
  EXPECT_FALSE(source("pip")) << "others can write it";
  EXPECT_FALSE(source("no-such-tool"));
}

TEST(PresetSource, TheCommandLineTakesThem) {
  Stage stage;
  const Folder home;
  stage.world.env = {{"HOME", home.path()}};
  home.write(".config/cerco/presets/team.toml",
             "[[egress]]\nhost = \"team.test\"\nmethods = [\"GET\"]\n");
  EXPECT_EQ(stage.run({"why", "https://team.test/x", "--allow", "preset:team"}), 0) << stage.err();
  EXPECT_NE(stage.out().find("rule \"team\" ("), std::string::npos) << stage.out();
}

}  // namespace
