// From the text of a policy to the text of its plan: tests/cases/plan/NAME.toml and NAME.txt.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The hash of the policy changes with every key that the format gains.
std::string without_hash(std::string text) {
  const auto at = text.find("policy ");
  if (at != std::string::npos && text.size() > at + 71) text.replace(at + 7, 64, "HASH");
  return text;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, IsWhatTheFileSays) {
  const std::string stem = std::string(CERCO_SOURCE_DIR) + "/tests/cases/plan/" + GetParam();
  const plan::HostFacts host = plan::testing::host();
  const auto effective = policy::parse(read_text(stem + ".toml"), GetParam(), {}, host.size);
  ASSERT_TRUE(effective) << effective.error().line();
  const auto made =
      plan::make(effective->policy, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_TRUE(plan::verify(*made)) << plan::verify(*made).error().line();
  const std::string got = without_hash(plan::explain(*made));
  // What to put into the file when the change is meant.
  std::ofstream(std::string(CERCO_BUILD_DIR) + "/plan-" + GetParam() + ".txt") << got;
  EXPECT_EQ(got, read_text(stem + ".txt"));
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::Values("defaults", "api", "wide", "public"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
