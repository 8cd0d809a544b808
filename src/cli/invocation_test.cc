// Tests of what `cerco run` is asked to run and to bring along.
#include "cli/invocation.h"

#include <gtest/gtest.h>

#include <array>

#include "cli/cli_test.h"

namespace {

using cli_test::Folder;
using Words = std::vector<std::string>;

cli::Parsed words(Words given) {
  return {.flags = {}, .words = std::move(given)};
}

TEST(Invocation, InAnIsolateTheCommandIsAScriptOfTheHost) {
  const Folder host;
  const std::string source = host.write("a.js", "1");
  for (const bool dashes : {false, true}) {
    cli::Parsed parsed;
    (dashes ? parsed.rest : parsed.words) = {source, "x", "--y"};
    parsed.dashes = dashes;
    const auto got = cli::read_script(parsed);
    ASSERT_TRUE(got) << got.error().line();
    EXPECT_EQ(got->argv, (Words{"a.js", "x", "--y"}));
    ASSERT_TRUE(got->file);
    EXPECT_EQ(got->file->source, source);
    EXPECT_FALSE(got->file->executable);
  }
  for (const std::string& wrong : {host.write("a.py", "1"), host.at("none.js"), host.path()}) {
    const auto got = cli::read_script(words({wrong}));
    ASSERT_FALSE(got) << wrong;
    EXPECT_EQ(got.error().kind, base::Kind::bad_input);
  }
  EXPECT_FALSE(cli::read_script(cli::Parsed{}));
}

TEST(Invocation, AFileStartsByShebangElseByExtension) {
  const Folder host;
  struct Row {
    std::string name, text;
    Words argv;
    bool executable;
  };
  const std::array rows = {
      Row{"a.py", "print(1)", {"python3", "./a.py", "x", "--y"}, false},
      Row{"a.js", "1", {"node", "./a.js", "x", "--y"}, false},
      Row{"a.sh", "true", {"sh", "./a.sh", "x", "--y"}, false},
      Row{"b.py", "#!/usr/bin/env python3\n", {"./b.py", "x", "--y"}, true},
      Row{"tool", "#!/bin/sh\n", {"./tool", "x", "--y"}, true},
      Row{"-rf", "#!/bin/sh\n", {"./-rf", "x", "--y"}, true},
      Row{"empty.py", "", {"python3", "./empty.py", "x", "--y"}, false},
  };
  for (const Row& row : rows) {
    const std::string source = host.write(row.name, row.text);
    const auto got = cli::read_invocation(words({source, "x", "--y"}));
    ASSERT_TRUE(got) << got.error().line();
    EXPECT_EQ(got->argv, row.argv);
    ASSERT_TRUE(got->file);
    EXPECT_EQ(*got->file, (workspace::Incoming{source, row.name, row.executable}));
  }
}

TEST(Invocation, OtherFilesNameTheFormThatWouldDo) {
  const Folder host;
  const std::string program = host.write("a.out",
                                         "\x7f"
                                         "ELF");
  const auto binary = cli::read_invocation(words({program}));
  ASSERT_FALSE(binary);
  EXPECT_NE(binary.error().line().find("cerco run --in " + program + " -- ./a.out"),
            std::string::npos);
  for (const std::string& name : {host.at("missing"), host.path(), std::string("/dev/null")}) {
    const auto got = cli::read_invocation(words({name, "b"}));
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().line().find("cerco run -- " + name + " b"), std::string::npos);
  }
}

TEST(Invocation, ACommandIsTakenAsItIs) {
  const cli::Parsed parsed = {.flags = {}, .words = {}, .dashes = true, .rest = {"a", "", "-b"}};
  const auto got = cli::read_invocation(parsed);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->argv, (Words{"a", "", "-b"}));
  EXPECT_FALSE(got->file);
}

TEST(Invocation, InSplitsAtTheLastColonUnlessTheWholeExists) {
  const Folder host;
  host.write("a", "1");
  host.write("b:c", "2");
  const auto in = [&](const std::string& text) {
    return cli::read_incoming({.flags = {{"--in", text}}});
  };
  EXPECT_EQ(in(host.at("a"))->at(0), (workspace::Incoming{host.at("a"), "a", false}));
  EXPECT_EQ(in(host.at("a") + ":d/e")->at(0).path, "d/e");
  EXPECT_EQ(in(host.at("b:c"))->at(0), (workspace::Incoming{host.at("b:c"), "b:c", false}));
  EXPECT_EQ(in(host.at("b:c") + ":x")->at(0), (workspace::Incoming{host.at("b:c"), "x", false}));
  EXPECT_EQ(in(host.path() + "/.")->at(0).path, host.path().substr(5));
  EXPECT_FALSE(in(host.at("none")));
  EXPECT_FALSE(in(host.at("a") + ":../x"));
}

TEST(Invocation, Names) {
  for (const char* good : {"a", "A-1_.x", "abcdefgh1111", "0"}) EXPECT_TRUE(cli::check_name(good));
  for (const char* bad : {"", "-a", ".a", "a b", "a/b", "\xc3\xbc", "abcdefgh2345"}) {
    EXPECT_FALSE(cli::check_name(bad)) << bad;
  }
  EXPECT_TRUE(cli::check_name(std::string(64, 'x')));
  EXPECT_FALSE(cli::check_name(std::string(65, 'x')));
}

}  // namespace
