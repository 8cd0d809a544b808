// Tests of what is said of a command before anything is started.
#include "cli/executables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_test.h"

namespace {

using cli_test::Folder;
using cli_test::Stage;

// A base like the host's: `usr` of a folder at /usr, /bin a link into it.
plan::Plan plan_of(const Folder& host, std::vector<std::string> argv) {
  plan::Plan plan;
  plan.command.argv = std::move(argv);
  plan.command.env["PATH"] = "/home/agent/.local/bin:/usr/bin:/bin";
  plan.steps = {plan::BindReadOnly{host.at("usr"), "/usr"}, plan::MakeLink{"/bin", "usr/bin"},
                plan::WriteFile{"/etc/passwd", "", 0644},
                plan::MountDisk{0, 0, {"/workspace", "/home/agent", "/tmp"}}};
  return plan;
}

class Executables : public testing::Test {
 protected:
  Executables() {
    host_.write("usr/bin/tool", "x", 0755);
    host_.write("usr/bin/data", "x", 0644);
    host_.write("usr/bin/script", "#! /usr/bin/tool -x\n", 0755);
    host_.write("usr/bin/lost", "#!" + host_.at("opt/x/bin/python") + "\n", 0755);
    host_.write("opt/x/bin/python", "x", 0755);
    EXPECT_EQ(::symlink(host_.at("opt/x/bin/python").c_str(), host_.at("usr/bin/link").c_str()), 0);
    EXPECT_EQ(::symlink("nowhere", host_.at("usr/bin/dangling").c_str()), 0);
    stage_.world.env["PATH"] = host_.at("opt/x/bin");
  }
  // Status and line, or 0 and "".
  std::pair<int, std::string> check(const std::string& name) {
    const auto problem = cli::check_command(stage_.world, plan_of(host_, {name}));
    if (!problem) return {0, ""};
    return {problem->status, problem->error.line()};
  }
  Folder host_;
  Stage stage_;
};

TEST_F(Executables, WhatIsInsideStarts) {
  for (const char* name : {"tool", "/usr/bin/tool", "/bin/tool", "script", "./brought-by-in",
                           "/workspace/x", "sub/x"}) {
    EXPECT_EQ(check(name).first, 0) << name << check(name).second;
  }
}

TEST_F(Executables, ArgumentsOfTheHostThatAreNotInsideNameTheRemedy) {
  host_.write("data/table.csv", "x", 0644);
  const std::string table = host_.at("data/table.csv");
  const auto hints = [&](std::vector<std::string> argv, const std::vector<std::string>& brought) {
    return cli::hints_of_arguments(plan_of(host_, std::move(argv)), brought);
  };
  const auto said = hints({"cat", table}, {});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].contains("--in " + table + " brings it in as table.csv")) << said[0];
  EXPECT_EQ(hints({"ls", host_.at("data")}, {}).size(), 1U);
  // Inside already, written by the plan, brought along, a flag, nothing of the host, the program.
  for (const std::vector<std::string>& argv : {std::vector<std::string>{"cat", "/usr/bin/tool"},
                                               {"cat", "/etc/passwd"},
                                               {"cat", "--x"},
                                               {"cat", host_.at("data/none")},
                                               {table},
                                               {"cat", ""},
                                               {"ls", "."},
                                               {"cat", "/bin/tool"}}) {
    EXPECT_TRUE(hints(argv, {}).empty()) << argv.back();
  }
  plan::Plan plan = plan_of(host_, {"cat", table});
  plan.command.cwd = host_.at("data");
  EXPECT_TRUE(cli::hints_of_arguments(plan, {"table.csv"}).empty());
  plan.command.argv = {"cat", host_.at("data/./table.csv")};
  EXPECT_TRUE(cli::hints_of_arguments(plan, {"table.csv"}).empty());
}

TEST_F(Executables, AMissingCommandIs127) {
  for (const char* name :
       {"no-such", "/usr/bin/no-such", "/no/such", "dangling", "", "/home/agent/x"}) {
    EXPECT_EQ(check(name).first, 127) << name;
  }
  EXPECT_NE(check("no-such").second.find("command not found"), std::string::npos);
}

TEST_F(Executables, WhatMayNotBeExecutedIs126) {
  EXPECT_EQ(check("data").first, 126);
  EXPECT_EQ(check("/usr/bin/data").first, 126);
  EXPECT_EQ(check("/etc/passwd").first, 126);
  EXPECT_EQ(check("/usr/bin").first, 126);
}

TEST_F(Executables, WhatTheHostHasOutsideNamesTheRemedy) {
  const std::string remedy = "--ro " + host_.at("opt/x");
  for (const std::string& name : {std::string("python"), host_.at("opt/x/bin/python"),
                                  std::string("link"), std::string("lost")}) {
    const auto [status, line] = check(name);
    EXPECT_EQ(status, 127) << name;
    EXPECT_NE(line.find(remedy), std::string::npos) << line;
  }
}

TEST_F(Executables, WhatRoBringsInStarts) {
  plan::Plan plan = plan_of(host_, {host_.at("opt/x/bin/python")});
  plan.steps.emplace_back(plan::BindReadOnly{host_.at("opt/x"), host_.at("opt/x")});
  EXPECT_FALSE(cli::check_command(stage_.world, plan));
}

TEST_F(Executables, AWorkingFolderInPathMayHoldIt) {
  plan::Plan plan = plan_of(host_, {"brought"});
  plan.command.env["PATH"] = "/workspace/bin:/usr/bin";
  EXPECT_FALSE(cli::check_command(stage_.world, plan));
}

TEST_F(Executables, LinksThatCircleEnd) {
  plan::Plan plan = plan_of(host_, {"/a/x"});
  plan.steps.emplace_back(plan::MakeLink{"/a", "b"});
  plan.steps.emplace_back(plan::MakeLink{"/b", "a"});
  EXPECT_EQ(cli::host_path(plan, "/a/x"), std::nullopt);
}

TEST_F(Executables, PathIsSearchedInOrder) {
  host_.write("p1/t", "x", 0644);
  host_.write("p2/t", "x", 0755);
  EXPECT_EQ(cli::find_executable("t", host_.at("p1") + ":" + host_.at("p2")), host_.at("p2/t"));
  EXPECT_EQ(cli::find_executable("t", host_.at("p1")), "");
  EXPECT_EQ(cli::find_executable("", host_.at("p2")), "");
}

}  // namespace
