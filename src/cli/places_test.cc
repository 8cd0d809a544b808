// What `cerco run` refuses before the start: `--out` and `--report` that touch cerco's own state or
// each other, and a command that does not fit.
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_test.h"

namespace {

using cli_test::Stage;

class Places : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a plan for the container tier needs root";
    std::filesystem::create_directories(stage_.world.state_dir + "/journal");
    std::ofstream(host_chain()) << "signed lines\n";
  }
  [[nodiscard]] std::string host_chain() const {
    return stage_.world.state_dir + "/journal/host.jsonl";
  }
  void expect_refused(const std::vector<std::string>& flags, const std::string& says) {
    std::vector<std::string> args = {"run"};
    args.insert(args.end(), flags.begin(), flags.end());
    args.insert(args.end(), {"--", "true"});
    EXPECT_EQ(stage_.run(args), 125) << base::join(flags, " ");
    EXPECT_TRUE(stage_.err().contains(says)) << stage_.err();
    EXPECT_EQ(*os::read_file(host_chain(), 100), "signed lines\n") << base::join(flags, " ");
  }
  Stage stage_;
};

TEST_F(Places, ARunDoesNotBringFilesOutIntoTheState) {
  const std::string& state = stage_.world.state_dir;
  expect_refused({"--out", state + "/journal"}, "own state");
  expect_refused({"--out", state + "/new"}, "own state");
  EXPECT_FALSE(std::filesystem::exists(state + "/new"));
  expect_refused({"--out", stage_.folder().path()}, "own state");  // which holds it
  std::filesystem::create_directory_symlink(state, stage_.folder().at("link"));
  expect_refused({"--out", stage_.folder().at("link/journal")}, "own state");
  expect_refused({"--out", stage_.folder().at("link/../state")}, "own state");
}

TEST_F(Places, AReportIsNotWrittenIntoTheState) {
  expect_refused({"--report", host_chain()}, "own state");
  std::filesystem::create_symlink(host_chain(), stage_.folder().at("r.json"));
  expect_refused({"--report", stage_.folder().at("r.json")}, "own state");
  expect_refused({"--report", stage_.world.state_dir + "/new"}, "own state");
  EXPECT_FALSE(std::filesystem::exists(stage_.world.state_dir + "/new"));
  const base::Fd open = *os::open(host_chain(), O_WRONLY, 0);
  expect_refused({"--report", "fd:" + std::to_string(open.get())}, "own state");
}

TEST_F(Places, AReportThatTheCommandCouldReplaceIsRefused) {
  const std::string out = stage_.folder().at("out-folder");
  std::filesystem::create_directories(out + "/deep");
  expect_refused({"--out", out, "--report", out + "/r.json"}, "within the folder of --out");
  expect_refused({"--out", out, "--report", out + "/deep/r.json"}, "within the folder of --out");
  std::filesystem::create_directory_symlink(out, stage_.folder().at("other-name"));
  expect_refused({"--out", out, "--report", stage_.folder().at("other-name/r.json")},
                 "within the folder of --out");
  const base::Fd open = *os::open(out + "/fd.json", O_WRONLY | O_CREAT, 0600);
  expect_refused({"--out", out, "--report", "fd:" + std::to_string(open.get())},
                 "within the folder of --out");
}

// What counts is the frame that carries them, where a length stands before each.
TEST_F(Places, ArgumentsThatDoNotFitAreRefusedBeforeTheStart) {
  std::vector<std::string> args = {"run", "--quiet", "--", "true"};
  args.insert(args.end(), 45'000, "x");
  EXPECT_EQ(stage_.run(args), 125);
  EXPECT_TRUE(stage_.err().contains("45001 arguments")) << stage_.err();
  EXPECT_TRUE(stage_.err().contains("use --in")) << stage_.err();
  args.resize(4);
  args.emplace_back(110'000, 'x');
  EXPECT_EQ(stage_.run(args), 125);
  EXPECT_TRUE(stage_.err().contains("2 arguments")) << stage_.err();
}

}  // namespace
