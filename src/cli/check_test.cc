// `cerco check` on the host that runs the tests (root, and all that a container needs).
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_test.h"

namespace {

using cli_test::Stage;

class Check : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a plan for the container tier needs root";
  }
  Stage stage_;
};

TEST_F(Check, SaysWhatCouldBeReachedAndRunsNothing) {
  EXPECT_EQ(
      stage_.run({"check", "--allow", "api.example.com", "--", "touch", stage_.folder().at("x")}),
      0)
      << stage_.err();
  EXPECT_NE(stage_.out().find("api.example.com:443: any bytes"), std::string::npos) << stage_.out();
  EXPECT_NE(stage_.out().find("seccomp profile default"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(stage_.folder().at("x")));
  EXPECT_FALSE(std::filesystem::exists(stage_.world.state_dir)) << "nothing is made";
}

TEST_F(Check, NamesTheApiWithTheCredentialAsTheWidestWayOut) {
  const std::string policy = stage_.folder().write(
      "policy.toml",
      "[[egress]]\nhost = \"pypi.test\"\n"
      "[[egress]]\nname = \"api\"\nhost = \"api.test\"\nmethods = [\"GET\"]\n"
      "[[credential]]\nname = \"api\"\nsource = { env = \"API_KEY\" }\n"
      "hosts = [\"api.test\"]\nmethods = [\"GET\"]\npaths = [\"/**\"]\n"
      "inject = { header = \"Authorization\", format = \"Bearer {secret}\" }\n"
      "env = { API_KEY = \"secret\" }\n");
  EXPECT_EQ(stage_.run({"check", "--policy", policy}), 0) << stage_.err();
  EXPECT_NE(stage_.out().find("The widest way out that remains\n  api.test:443 (rule api)"),
            std::string::npos)
      << stage_.out();
}

TEST_F(Check, StrictSaysNoBelowTheAdviceUnlessItIsAccepted) {
  EXPECT_EQ(stage_.run({"check", "--strict"}), 1);
  EXPECT_NE(stage_.err().find("shared-kernel"), std::string::npos) << stage_.err();
  EXPECT_EQ(stage_.run({"check", "--strict", "--set", "isolation.accept=[\"shared-kernel\"]"}), 0);
  EXPECT_EQ(stage_.run({"check", "--strict", "--set", "code=\"tools-only\""}), 0);
}

TEST_F(Check, PrintsOneJsonObject) {
  EXPECT_EQ(stage_.run({"check", "--tier", "container", "--json"}), 0) << stage_.err();
  EXPECT_TRUE(stage_.out().starts_with("{\"version\":1,\"tier\":\"container\"")) << stage_.out();
  EXPECT_TRUE(stage_.out().ends_with("}\n"));
}

TEST_F(Check, BadInputHasTheContractsStatus) {
  EXPECT_EQ(stage_.run({"check", "word"}), 2);
  EXPECT_EQ(stage_.run({"check", "--set", "filesystem.base=\"image:x\""}), 2);
  EXPECT_NE(stage_.err().find("not carried out yet"), std::string::npos) << stage_.err();
  EXPECT_EQ(stage_.run({"check", "--set", "limits.memroy=1"}), 2);
  EXPECT_EQ(stage_.run({"check", "--ro", "/not/there"}), 2);
}

TEST_F(Check, WhatTheHostLacksIsANo) {
  EXPECT_EQ(stage_.run({"check", "--set", "limits.disk=\"8TiB\""}), 1);
  EXPECT_NE(stage_.err().find("limits.disk is 8TiB"), std::string::npos) << stage_.err();
}

}  // namespace
