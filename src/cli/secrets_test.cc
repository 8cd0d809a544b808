// Tests of where secrets are read and what is refused.
#include "cli/secrets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_test.h"

namespace {

using cli_test::Folder;
using cli_test::Stage;
using policy::SourceKind;

class Secrets : public testing::Test {
 protected:
  // What lies in the sealed memory, or the error's line.
  std::string read(policy::Source source) {
    policy::Policy policy;
    policy.credentials.push_back({.name = "api", .source = std::move(source)});
    const auto got = cli::open_secrets(stage_.world, policy);
    if (!got) return got.error().line();
    EXPECT_EQ(got->size(), 1U);
    const int seals = ::fcntl(got->at(0).get(), F_GET_SEALS);
    EXPECT_EQ(seals & (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return *os::read_all(got->at(0).get(), 1 << 20, "secret");
  }
  std::string command(std::vector<std::string> argv) {
    return read({.kind = SourceKind::command, .name = "", .command = std::move(argv)});
  }
  Stage stage_;
  Folder host_;
};

TEST_F(Secrets, FromTheEnvironment) {
  stage_.world.env["KEY"] = "s3cret";
  EXPECT_EQ(read({.kind = SourceKind::env, .name = "KEY"}), "s3cret");
  EXPECT_EQ(read({.kind = SourceKind::env, .name = "NONE"}),
            "credential api: the variable NONE is not set; set it where cerco is called");
}

TEST_F(Secrets, FromSystemd) {
  EXPECT_NE(read({.kind = SourceKind::systemd, .name = "key"}).find("CREDENTIALS_DIRECTORY"),
            std::string::npos);
  stage_.world.env["CREDENTIALS_DIRECTORY"] = host_.path();
  host_.write("key", "s3cret\n", 0400);
  EXPECT_EQ(read({.kind = SourceKind::systemd, .name = "key"}), "s3cret");
  host_.write("open", "s3cret\n", 0644);
  EXPECT_NE(read({.kind = SourceKind::systemd, .name = "open"}).find("chmod 0600"),
            std::string::npos);
  EXPECT_NE(read({.kind = SourceKind::systemd, .name = "none"}).find("ENOENT"), std::string::npos);
  stage_.world.env["CREDENTIALS_DIRECTORY"] = "relative";
  EXPECT_NE(read({.kind = SourceKind::systemd, .name = "key"}).find("names no folder"),
            std::string::npos);
}

// The code inside would hold the secret after all, under another name or within a longer value.
TEST_F(Secrets, AVariableThatIsLetInHoldsNone) {
  stage_.world.env["KEY"] = "s3cret-0123\n";
  stage_.world.env["SAME"] = "s3cret-0123";
  stage_.world.env["WITHIN"] = "postgres://u:s3cret-0123@db";
  stage_.world.env["OTHER"] = "s3cret-012";
  const auto start = [&](policy::Environment environment) {
    policy::Policy policy;
    policy.environment = std::move(environment);
    policy.credentials.push_back(
        {.name = "api", .source = {.kind = SourceKind::env, .name = "KEY"}});
    const auto got = cli::open_secrets(stage_.world, policy);
    return got ? "opened" : got.error().line();
  };
  EXPECT_EQ(start({.pass = {"SAME"}}),
            "credential api: the variable SAME holds its secret as well; leave SAME out of "
            "environment.set, environment.pass and --env");
  EXPECT_NE(start({.pass = {"OTHER", "WITHIN"}}).find("variable WITHIN"), std::string::npos);
  EXPECT_NE(start({.pass = {"KEY"}}).find("variable KEY"), std::string::npos);
  EXPECT_NE(start({.set = {{"X", "s3cret-0123"}}}).find("variable X"), std::string::npos);
  EXPECT_EQ(start({.set = {{"X", "s3cret"}}, .pass = {"OTHER", "NOT_THERE"}}), "opened");
  stage_.world.env["KEY"] = "ab";
  stage_.world.env["SAME"] = "ab";
  EXPECT_EQ(start({.set = {{"X", "cab"}}}), "opened") << "too short to mean anything";
  EXPECT_NE(start({.pass = {"SAME"}}).find("variable SAME"), std::string::npos);
}

TEST_F(Secrets, OneLineEndIsCutAndTheRestIsExact) {
  struct Row {
    std::string text, secret;
  };
  for (const Row& row : {Row{"a\n", "a"}, Row{"a\r\n", "a"}, Row{"a", "a"}, Row{" a ", " a "}}) {
    EXPECT_EQ(read({.kind = SourceKind::file, .name = host_.write("key", row.text, 0600)}),
              row.secret);
  }
}

TEST_F(Secrets, WhatIsNoSecretIsRefusedAndNotShown) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string("two\nlines\n"),
                                  std::string("nul\0x", 5), std::string(70'000, 'x')}) {
    const std::string line =
        read({.kind = SourceKind::file, .name = host_.write("key", text, 0600)});
    EXPECT_TRUE(line.starts_with("credential api: the secret ")) << line;
    EXPECT_FALSE(line.contains("lines\n"));
  }
}

TEST_F(Secrets, AFileThatOthersMayReadIsRefused) {
  const std::string path = host_.write("key", "s3cret", 0644);
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod(host_.path().c_str(), 0755), 0);
  EXPECT_NE(read({.kind = SourceKind::file, .name = path}).find("another user"), std::string::npos);
  ASSERT_EQ(::seteuid(12345), 0);
  const std::string open = read({.kind = SourceKind::file, .name = path});
  (void)::chmod(path.c_str(), 0600);
  const std::string closed = read({.kind = SourceKind::file, .name = path});
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_NE(open.find("chmod 0600"), std::string::npos) << open;
  EXPECT_EQ(closed, "s3cret") << "the control";
}

TEST_F(Secrets, OnlyARegularFile) {
  EXPECT_NE(read({.kind = SourceKind::file, .name = "/dev/zero"}).find("no regular file"),
            std::string::npos);
  EXPECT_NE(read({.kind = SourceKind::file, .name = host_.at("none")}).find("ENOENT"),
            std::string::npos);
}

TEST_F(Secrets, FromACommandOfTheCallers) {
  stage_.world.env["PATH"] = "/usr/bin:/bin";
  stage_.world.env["WORD"] = "from-env";
  EXPECT_EQ(command({"sh", "-c", "echo s3cret"}), "s3cret");
  EXPECT_EQ(command({"sh", "-c", "printf %s \"$WORD\""}), "from-env");
  EXPECT_EQ(command({"cat"}).find("credential api"), 0U) << "its input is empty";
}

TEST_F(Secrets, ACommandThatFailsIsRefused) {
  stage_.world.env["PATH"] = "/usr/bin:/bin";
  EXPECT_NE(command({"sh", "-c", "echo s3cret; exit 3"}).find("status 3"), std::string::npos);
  EXPECT_FALSE(command({"sh", "-c", "echo s3cret; exit 3"}).contains("s3cret"));
  EXPECT_NE(command({"sh", "-c", "kill -9 $$"}).find("signal 9"), std::string::npos);
  EXPECT_NE(command({"no-such-command"}).find("command not found"), std::string::npos);
  EXPECT_NE(command({"sh", "-c", "yes"}).find("more than 64 KiB"), std::string::npos);
}

}  // namespace
