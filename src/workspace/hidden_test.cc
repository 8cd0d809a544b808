// What is found to be hidden below folders that are shown whole.
#include <sys/stat.h>

#include "workspace/workspace_test.h"

namespace {

using workspace_test::Folder;
using Texts = std::vector<std::string>;

const Texts kHide = {"**/.env", "**/id_rsa*", "/data/private", "conf/*.key"};
constexpr std::uint64_t kEnough = 1000;

Texts found(const Folder& host, const Texts& folders, const Texts& hide) {
  Texts whole;
  for (const std::string& folder : folders) whole.push_back(host.at(folder));
  const auto hidden = workspace::hidden_below(whole, hide, kEnough);
  EXPECT_TRUE(hidden) << hidden.error().line();
  Texts names;
  for (const std::string& path : hidden.value_or(Texts{})) {
    names.push_back(path.substr(host.path().size() + 1));
  }
  return names;
}

TEST(Hidden, FilesAndFoldersByEveryFormOfPattern) {
  const Folder host;
  for (const char* name : {"data/.env", "data/a/b/.env", "data/a/id_rsa.pub", "data/private/x",
                           "data/a/private/x", "data/conf/a.key", "data/a/conf/a.key", "data/env",
                           "data/id_rsa.d/deep/file", "other/.env"}) {
    host.write(name, "x");
  }
  EXPECT_EQ(found(host, {"data"}, kHide),
            (Texts{"data/.env", "data/a/b/.env", "data/a/id_rsa.pub", "data/conf/a.key",
                   "data/id_rsa.d", "data/private"}));
  EXPECT_EQ(found(host, {"data"}, {host.at("data/a/conf/a.key")}), (Texts{"data/a/conf/a.key"}));
  EXPECT_EQ(found(host, {"data", "other"}, {"**/.env"}),
            (Texts{"data/.env", "data/a/b/.env", "other/.env"}));
  EXPECT_EQ(found(host, {"data"}, {}), Texts{});
}

TEST(Hidden, WhatTheCallerNamesByItselfIsShown) {
  const Folder host;
  host.write(".env", "x");
  host.write("data/id_rsa.d/.env", "x");
  EXPECT_EQ(found(host, {".env"}, kHide), Texts{});
  EXPECT_EQ(found(host, {"data", "data/id_rsa.d"}, kHide), Texts{"data/id_rsa.d/.env"});
}

TEST(Hidden, ALinkStandsForWhatItLeadsTo) {
  const Folder host;
  host.write("data/real", "x");
  host.write("outside", "x");
  std::filesystem::create_symlink("real", host.at("data/.env"));
  std::filesystem::create_symlink("../outside", host.at("data/id_rsa"));
  std::filesystem::create_symlink("nowhere", host.at("data/id_rsa2"));
  std::filesystem::create_directory_symlink("..", host.at("data/up"));  // not walked
  EXPECT_EQ(found(host, {"data"}, kHide), Texts{"data/real"});
}

TEST(Hidden, MoreThanCanBeLookedThroughIsRefused) {
  const Folder host;
  for (int i = 0; i < 10; ++i) host.write("data/" + std::to_string(i), "x");
  const Texts folders = {host.at("data")};
  EXPECT_TRUE(workspace::hidden_below(folders, kHide, 10));
  const auto refused = workspace::hidden_below(folders, kHide, 9);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, base::Kind::bad_input);
  EXPECT_TRUE(refused.error().line().contains("more than 9")) << refused.error().line();
  EXPECT_TRUE(workspace::hidden_below(folders, {}, 9)) << "nothing is looked for";
}

}  // namespace
