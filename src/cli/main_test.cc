// Tests of the way from words to subcommands: help, versions, errors and exit statuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "cli/cli_test.h"

namespace {

using cli_test::Stage;
using Words = std::vector<std::string>;

struct Case {
  Words args;
  int status;
  std::string err;  // part of standard error
  std::string out;  // part of standard output
};

TEST(Main, StatusesAndTexts) {
  const std::array cases = {
      Case{{}, 2, "usage: cerco", ""},
      Case{{"--help"}, 0, "", "usage: cerco"},
      Case{{"help"}, 0, "", "usage: cerco"},
      Case{{"run", "--help"}, 0, "", "--policy FILE"},
      Case{{"run", "--name", "x", "-h"}, 0, "", "--policy FILE"},
      Case{{"exec", "--help"}, 0, "", "give the command a terminal, with ours in front of it"},
      Case{{"publish", "--help"}, 0, "", "RUN PORT[:HOSTPORT]"},
      Case{{"diff", "--help"}, 0, "", "not carried out yet"},
      Case{{"publish", "x", "0"}, 2, "`0` is no port", ""},
      Case{{"publish", "x", "80:65536"}, 2, "is no port", ""},
      Case{{"publish", "x", "80:"}, 2, "is no port", ""},
      Case{{"publish", "x", "80"}, 3, "x: no such run", ""},
      Case{{"frobnicate"}, 2, "unknown command `frobnicate`", ""},
      Case{{"rum", "--", "x"}, 2, "did you mean run", ""},
      Case{{"policy"}, 2, "expected one of show, apply, suggest, schema", ""},
      Case{{"policy", "shwo"}, 2, "did you mean show", ""},
      Case{{"credential", "x"}, 2, "expected one of ls", ""},
      Case{{"attack"}, 2, "attack: not carried out yet", ""},
      Case{{"exec", "x", "--", "y"}, 125, "x: no such run", ""},
      Case{{"exec", "x"}, 125, "no command after `--`", ""},
      Case{{"exec", "--", "y"}, 125, "no RUN", ""},
      Case{{"exec", "x", "y", "--", "z"}, 125, "more than RUN", ""},
      Case{{"exec", "--timeout", "soon", "x", "--", "y"}, 125, "soon", ""},
      Case{{"exec", "-t", "x", "--", "y"}, 125, "-t: standard input is no terminal", ""},
      Case{{"attach", "x"}, 125, "x: no such run", ""},
      Case{{"start", "--", "x"}, 125, "it takes no command", ""},
      Case{{"start", "--name", "a/b"}, 125, "--name a/b", ""},
      Case{{"run", "--detach", "--out", "o", "--", "x"}, 125, "--out", ""},
      Case{{"kill", "x"}, 3, "no such run", ""},
      Case{{"kill", "-s", "NONE", "x"}, 2, "no such signal", ""},
      Case{{"kill"}, 2, "expected cerco kill", ""},
      Case{{"rm", "x"}, 3, "no such run", ""},
      Case{{"ps", "x"}, 2, "one word too many", ""},
      Case{{"ps", "--json"}, 0, "", "[]"},
      Case{{"ps"}, 0, "", "RUN"},
      Case{{"log", "--type", "egress.decisions"}, 2, "did you mean egress.decision", ""},
      Case{{"log", "verify", "--head", "00"}, 2, "64 hexadecimal digits", ""},
      Case{{"log", "verify", "--key", "/nowhere"}, 2, "cannot be read", ""},
      Case{{"check", "/nowhere.py"}, 2, "/nowhere.py", ""},
      Case{{"version"}, 0, "", "cerco "},
      Case{{"--version"}, 0, "", "cerco "},
      Case{{"version", "--json"}, 0, "", "{\"version\":\""},
      Case{{"version", "x"}, 2, "one word too many: `x`", ""},
      Case{{"report"}, 2, "expected cerco report RUN", ""},
      Case{{"report", "aaaaaaaaaaaa"}, 3, "no such run", ""},
      Case{{"run"}, 125, "nothing to run", ""},
      Case{{"run", "--"}, 125, "no command after `--`", ""},
      Case{{"run", "no-such-file", "x"}, 125, "cerco run -- no-such-file x", ""},
      Case{{"run", "-t", "--", "x"}, 125, "-t: standard input is no terminal", ""},
      Case{{"run", "--name", "a/b", "--", "x"}, 125, "--name a/b", ""},
      Case{{"run", "--name", "abcdefgh2345", "--", "x"}, 125, "form of a run's id", ""},
      Case{{"run", "--report", "fd:99", "--", "x"}, 125, "--report fd:99", ""},
      Case{{"run", "--report", "/nonexistent/x", "--", "x"}, 125, "/nonexistent/x", ""},
  };
  for (const Case& test : cases) {
    Stage stage;
    const std::string shown = test.args.empty() ? "(none)" : base::join(test.args, " ");
    EXPECT_EQ(stage.run(test.args), test.status) << shown;
    EXPECT_NE(stage.err().find(test.err), std::string::npos) << shown << ": " << stage.err();
    EXPECT_NE(stage.out().find(test.out), std::string::npos) << shown << ": " << stage.out();
    EXPECT_EQ(stage.out().empty(), test.out.empty()) << shown << ": " << stage.out();
  }
}

TEST(Main, AnErrorIsOneLineWhateverIsInIt) {
  Stage stage;
  EXPECT_EQ(stage.run({"run", "a\nb\x1b[2J"}), 125);
  const std::string err = stage.err();
  EXPECT_EQ(std::ranges::count(err, '\n'), 1) << err;
  EXPECT_FALSE(err.contains('\x1b'));
  EXPECT_TRUE(err.starts_with("cerco: "));
}

TEST(Main, TheVersionIsTheProjects) {
  const std::string project = *os::read_file(CERCO_SOURCE_DIR "/CMakeLists.txt", 1 << 20);
  EXPECT_NE(project.find("project(cerco VERSION " + std::string(cli::kVersion) + " "),
            std::string::npos);
}

TEST(Main, ExitStatusesOfErrors) {
  using base::Kind;
  const std::array<std::tuple<Kind, int, int>, 6> rows = {{{Kind::bad_input, 2, 125},
                                                           {Kind::unsupported, 2, 125},
                                                           {Kind::not_found, 3, 125},
                                                           {Kind::missing, 1, 125},
                                                           {Kind::system, 125, 125},
                                                           {Kind::peer, 125, 125}}};
  for (const auto& [kind, other, run] : rows) {
    EXPECT_EQ(cli::exit_status({.kind = kind}, 2), other);
    EXPECT_EQ(cli::exit_status({.kind = kind}, 125), run);
  }
}

TEST(Runs, AreFoundByNameIdAndPrefix) {
  Stage stage;
  const auto report = [&](const std::string& id, const std::string& name) {
    stage.folder().write(
        "state/runs/" + id + "/report.json",
        R"({"version":1,"cerco":"0","run":")" + id + R"(","name":")" + name + "\"}\n");
  };
  report("aaaabbbbcccc", "build");
  report("aaaazzzzcccc", "");
  report("bbbbbbbbbbbb", "aaaab");
  EXPECT_EQ(cli::find_run(stage.world, "build")->id, "aaaabbbbcccc");
  EXPECT_EQ(cli::find_run(stage.world, "aaaazzzzcccc")->id, "aaaazzzzcccc");
  EXPECT_EQ(cli::find_run(stage.world, "aaaaz")->id, "aaaazzzzcccc");
  EXPECT_EQ(cli::find_run(stage.world, "aaaab")->id, "bbbbbbbbbbbb")
      << "a name goes before a prefix";
  EXPECT_EQ(cli::find_run(stage.world, "aaaa").error().kind, base::Kind::not_found);
  EXPECT_EQ(cli::find_run(stage.world, "").error().kind, base::Kind::not_found);
  EXPECT_EQ(cli::find_run(stage.world, "nope").error().kind, base::Kind::not_found);
  EXPECT_EQ(stage.run({"report", "build"}), 0);
  EXPECT_NE(stage.out().find("\"run\":\"aaaabbbbcccc\""), std::string::npos);
}

}  // namespace
