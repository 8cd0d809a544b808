// Tests of what comes out of a sandbox: every script here is what hostile code could make init say.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "workspace/workspace_test.h"

namespace {

using frame::EntryKind;
using workspace::Caps;
using workspace::Manifest;
using workspace::Taken;
using workspace_test::Folder;
using workspace_test::Wire;

constexpr Caps kCaps = {.bytes = 1 << 20, .entries = 1000};
using Names = std::vector<std::string>;

base::Result<Taken> take(Wire& wire, const Folder& out, const Manifest& manifest = {},
                         const Caps& caps = kCaps) {
  const base::Fd dir = *os::open(out.path(), O_PATH | O_DIRECTORY, 0);
  return workspace::take(wire.session(), dir.get(), manifest, caps);
}

TEST(Take, FilesFoldersAndLinksComeOut) {
  const Folder out;
  Wire wire;
  wire.folder("d");
  wire.file("d/y", "x\n", 0755);
  wire.link("d/l", "y");
  wire.file("name with \xff and \n", "z");
  wire.say(frame::Done{});
  const auto taken = take(wire, out);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(taken->changes, 4U);
  EXPECT_EQ(out.tree(), (Names{"d/", "d/l@", "d/y", "name with \xff and \n"}));
  EXPECT_EQ(out.read("d/l"), "x\n");
  EXPECT_EQ(std::get<frame::Fetch>(wire.heard()).path, "");
  struct stat status = {};
  ASSERT_EQ(::stat(out.at("d/y").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());
  EXPECT_NE(status.st_mode & S_IXUSR, 0U);
}

// `cerco cp RUN:src/d as`: one thing by another name, and nothing that was not asked for.
base::Result<Taken> take_one(Wire& wire, const Folder& out) {
  const base::Fd dir = *os::open(out.path(), O_PATH | O_DIRECTORY, 0);
  return workspace::take_one(wire.session(), "d", dir.get(), "as", kCaps);
}

TEST(TakeOne, ComesOutUnderItsNewName) {
  const Folder out;
  Wire wire;
  wire.folder("d");
  wire.file("d/y", "x");
  wire.folder("d/sub");
  wire.link("d/sub/up", "../y");
  wire.say(frame::Done{});
  const auto taken = take_one(wire, out);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.tree(), (Names{"as/", "as/sub/", "as/sub/up@", "as/y"}));
  EXPECT_EQ(std::get<frame::Fetch>(wire.heard()).path, "d");
}

TEST(TakeOne, LinksThatLeaveTheCopyAreLeftOut) {
  const Folder out;
  Wire wire;
  wire.folder("d");
  wire.link("d/beside", "../other");  // still within the folder that it is copied to
  wire.link("d/abs", "/etc/passwd");
  wire.say(frame::Done{});
  const auto taken = take_one(wire, out);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.tree(), Names{"as/"});
  EXPECT_EQ(taken->left_out_count, 2U);
  Wire link;
  link.link("d", "y");
  link.say(frame::Done{});
  const auto itself = take_one(link, out);
  ASSERT_TRUE(itself) << itself.error().line();
  EXPECT_EQ(itself->left_out_count, 1U);
  EXPECT_EQ(out.tree(), Names{"as/"});
}

TEST(TakeOne, WhatWasNotAskedForIsRefused) {
  for (const char* path : {"e", "dd", "e/d", "d2/x"}) {
    const Folder out;
    Wire wire;
    wire.file(path, "x");
    wire.say(frame::Done{});
    EXPECT_FALSE(take_one(wire, out)) << path;
    EXPECT_EQ(out.tree(), Names{}) << path;
  }
  const Folder out;
  Wire wire;
  wire.say(frame::Done{});
  const auto nothing = take_one(wire, out);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().line().find("nothing is at `d`"), std::string::npos);
}

TEST(Take, SetIdBitsStayInside) {
  const Folder out;
  Wire wire;
  wire.file("suid", "x", 06755);
  wire.say(frame::Done{});
  ASSERT_TRUE(take(wire, out));
  struct stat status = {};
  ASSERT_EQ(::stat(out.at("suid").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07000, 0U);
}

TEST(Take, WhatWasPutInUnchangedStaysWhereItIs) {
  const Folder out;
  Manifest manifest;
  manifest["same"] = {EntryKind::file, base::sha256("old"), false};
  manifest["edited"] = {EntryKind::file, base::sha256("old"), false};
  manifest["made-executable"] = {EntryKind::file, base::sha256("old"), false};
  manifest["deleted"] = {EntryKind::file, base::sha256("old"), false};
  manifest["link"] = {EntryKind::link, "same", false};
  Wire wire;
  wire.file("same", "old");
  wire.file("edited", "new");
  wire.file("made-executable", "old", 0755);
  wire.link("link", "same");
  wire.say(frame::Done{});
  const auto taken = take(wire, out, manifest);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.tree(), (Names{"edited", "made-executable"}));
  EXPECT_EQ(taken->changes, 3U) << "edited, made executable, deleted";
}

TEST(Take, AFolderThatWasPutInIsMadeOnlyForWhatChangedInIt) {
  const Folder out;
  Manifest manifest;
  for (const char* folder : {"a", "a/b", "same"}) manifest[folder] = {EntryKind::folder, "", false};
  for (const char* file : {"a/b/edited", "same/x"}) {
    manifest[file] = {EntryKind::file, base::sha256("old"), false};
  }
  Wire wire;
  wire.folder("a");
  wire.folder("a/b");
  wire.file("a/b/edited", "new");
  wire.folder("same");
  wire.file("same/x", "old");
  wire.say(frame::Done{});
  const auto taken = take(wire, out, manifest);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.tree(), (Names{"a/", "a/b/", "a/b/edited"}));
  EXPECT_EQ(taken->changes, 1U);
}

TEST(Take, ReplacesFilesOfTheSameName) {
  const Folder out;
  out.write("a", "mine, and longer than the new one");
  Wire wire;
  wire.file("a", "new");
  wire.say(frame::Done{});
  ASSERT_TRUE(take(wire, out));
  EXPECT_EQ(out.read("a"), "new");
  EXPECT_EQ(out.tree(), Names{"a"}) << "no temporary file is left";
}

// E70: a link in the host's folder is replaced, never written through.
TEST(Take, ALinkOfTheHostIsReplacedNotFollowed) {
  const Folder out;
  const Folder elsewhere;
  elsewhere.write("target", "untouched");
  ASSERT_EQ(::symlink(elsewhere.at("target").c_str(), out.at("file").c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), out.at("folder").c_str()), 0);
  Wire wire;
  wire.file("file", "new");
  wire.folder("folder");
  wire.file("folder/planted", "new");
  wire.say(frame::Done{});
  ASSERT_TRUE(take(wire, out));
  EXPECT_EQ(elsewhere.tree(), Names{"target"});
  EXPECT_EQ(elsewhere.read("target"), "untouched");
  EXPECT_EQ(out.tree(), (Names{"file", "folder/", "folder/planted"}));
}

// Positive control of the one above: a plain write at the same path does go through the link.
TEST(Take, WithoutTheCareAWriteGoesThroughTheLink) {
  const Folder out;
  const Folder elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), out.at("folder").c_str()), 0);
  out.write("folder/planted", "new");
  EXPECT_EQ(elsewhere.tree(), Names{"planted"});
}

TEST(Take, AHardLinkOfTheHostIsNotWrittenThrough) {
  const Folder out;
  const Folder elsewhere;
  elsewhere.write("target", "untouched");
  ASSERT_EQ(::link(elsewhere.at("target").c_str(), out.at("file").c_str()), 0);
  Wire wire;
  wire.file("file", "new");
  wire.say(frame::Done{});
  ASSERT_TRUE(take(wire, out));
  EXPECT_EQ(elsewhere.read("target"), "untouched");
}

// E69: a link out of the folder brings nothing of the host and does not come out itself.
TEST(Take, LinksThatLeaveStayInside) {
  const Folder out;
  Wire wire;
  wire.folder("d");
  wire.link("shadow", "/etc/shadow");
  wire.link("up", "../x");
  wire.link("d/up", "../../x");
  wire.link("d/fine", "../d");
  wire.link("sneaky", "d/fine/../../../x");
  wire.say(frame::Done{});
  const auto taken = take(wire, out);
  ASSERT_TRUE(taken);
  EXPECT_EQ(out.tree(), (Names{"d/", "d/fine@"}));
  EXPECT_EQ(taken->left_out_count, 4U);
  EXPECT_NE(taken->left_out[0].find("shadow"), std::string::npos);
}

TEST(Take, ALinkAndThenAFileThroughItIsRefused) {
  const Folder out;
  Wire wire;
  wire.folder("d");
  wire.link("l", "d");
  wire.file("l/x", "through");
  wire.say(frame::Done{});
  const auto taken = take(wire, out);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().number, ELOOP);
  EXPECT_EQ(out.tree(), (Names{"d/", "l@"}));
}

// E74, F71: paths that leave, or that two readers could read differently, end the session.
TEST(Take, PathsThatLeaveAreRefused) {
  const std::array<std::string, 12> paths = {"../x", "/etc/x", "a/../../b", "..",
                                             "",     ".",      "a//b",      "a/./b",
                                             "a/",   "/",      "./a",       std::string("a\0b", 3)};
  for (const std::string& path : paths) {
    const Folder out;
    const Folder beside;
    Wire wire;
    wire.folder("a");
    wire.file(path, "x");
    wire.say(frame::Done{});
    const auto taken = take(wire, out);
    ASSERT_FALSE(taken) << path;
    EXPECT_EQ(taken.error().kind, base::Kind::peer);
    EXPECT_EQ(out.tree(), Names{"a/"}) << path;
  }
}

TEST(Take, AFileWithoutItsFolderIsRefused) {
  const Folder out;
  Wire wire;
  wire.file("d/x", "x");
  EXPECT_FALSE(take(wire, out));
  EXPECT_EQ(out.tree(), Names{});
}

TEST(Take, MoreOrOtherDataThanWasSaidIsRefused) {
  const std::array<std::vector<frame::FileFrame>, 6> scripts = {{
      {frame::Entry{"x", EntryKind::file, 0644, 3, ""}, frame::Data{"1234"}},
      {frame::Entry{"x", EntryKind::file, 0644, 3, ""}, frame::Data{""}},
      {frame::Entry{"x", EntryKind::file, 0644, 3, ""}, frame::Data{"12"}, frame::Done{}},
      {frame::Entry{"x", EntryKind::file, 0644, 3, ""}, frame::Entry{"y"}},
      {frame::Data{"stray"}},
      {frame::PutFile{"x", 0644, 0}},
  }};
  for (const auto& script : scripts) {
    const Folder out;
    Wire wire;
    for (const auto& value : script) wire.say(value);
    wire.say(frame::Done{});
    EXPECT_FALSE(take(wire, out));
    EXPECT_EQ(out.tree(), Names{}) << "nothing, and no temporary file";
  }
}

TEST(Take, MalformedFramesAreRefused) {
  const std::string good = base::encode(frame::FileFrame(frame::Entry{"x", EntryKind::file}));
  const std::array<std::string, 4> frames = {good.substr(0, good.size() - 1), good + "x",
                                             std::string(8, '\xff'), std::string(1000, '\0')};
  for (const std::string& bytes : frames) {
    const Folder out;
    Wire wire;
    wire.say_bytes(bytes);
    EXPECT_FALSE(take(wire, out));
    EXPECT_EQ(out.tree(), Names{});
  }
}

TEST(Take, ADescriptorFromInsideIsRefused) {
  const Folder out;
  Wire wire;
  const std::array<int, 1> fds = {0};
  ASSERT_TRUE(os::send_message(wire.inside(), base::encode(frame::FileFrame(frame::Done{})), fds));
  EXPECT_FALSE(take(wire, out));
}

// Whoever always says a little is never silent. Here the patience is none, and all is there.
TEST(Take, ATrickleEnds) {
  for (const int pace_ms : {0, 60'000}) {
    const Folder out;
    Wire wire;
    wire.say(frame::Entry{"large", EntryKind::file, 0644, 100, ""});
    for (int i = 0; i < 100; ++i) wire.say(frame::Data{"x"});
    wire.say(frame::Done{});
    workspace::Session session = wire.session();
    session.stall_ms = 0;
    session.pace_ms = pace_ms;
    const base::Fd dir = *os::open(out.path(), O_PATH | O_DIRECTORY, 0);
    const auto taken = workspace::take(session, dir.get(), {}, kCaps);
    EXPECT_EQ(taken.has_value(), pace_ms > 0);
    if (!taken) EXPECT_TRUE(taken.error().line().contains("too slowly")) << taken.error().line();
    EXPECT_EQ(out.tree(), pace_ms > 0 ? Names{"large"} : Names{});
  }
}

TEST(Take, AnEarlyEndIsAnError) {
  const Folder out;
  Wire wire;
  wire.file("x", "whole");
  wire.say(frame::Entry{"y", EntryKind::file, 0644, 10, ""});
  wire.close_inside();
  EXPECT_FALSE(take(wire, out));
}

// E73: a file of 8 EiB, holes included, is refused before anything of it is read.
TEST(Take, ASparseBombIsRefusedByItsSize) {
  const Folder out;
  Wire wire;
  wire.say(frame::Entry{"big", EntryKind::file, 0644, 8ULL << 60, ""});
  const auto taken = take(wire, out);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().line().find("limits.disk"), std::string::npos);
  EXPECT_EQ(out.tree(), Names{});
}

TEST(Take, TheCapOnBytesIsForAllFilesTogether) {
  const Folder out;
  Wire wire;
  wire.file("a", std::string(60, 'a'));
  wire.file("b", std::string(60, 'b'));
  wire.say(frame::Done{});
  EXPECT_FALSE(take(wire, out, {}, {.bytes = 100, .entries = 10}));
  EXPECT_EQ(out.tree(), Names{"a"});
}

// E75: endless entries end at the cap, however fast they come.
TEST(Take, EndlessEntriesEndAtTheCap) {
  const Folder out;
  Wire wire;
  const pid_t inside = ::fork();
  ASSERT_GE(inside, 0);
  if (inside == 0) {
    wire.close_host();
    for (std::uint64_t i = 0;; ++i) {
      const frame::FileFrame entry =
          frame::Entry{"f" + std::to_string(i), EntryKind::other, 0644, 0, ""};
      if (!os::send_message(wire.inside(), base::encode(entry), {})) ::_exit(0);
    }
  }
  const auto taken = take(wire, out);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().line().find("limits.inodes"), std::string::npos);
  wire.close_host();
  wire.close_inside();
  int status = 0;
  ASSERT_EQ(::waitpid(inside, &status, 0), inside);
}

// E75: what is too deep or too long is left out and counted; the rest comes.
TEST(Take, DeepTreesAreLeftOutAndTheRestComes) {
  const Folder out;
  Wire wire;
  std::string deep = "d";
  wire.folder(deep);
  for (int i = 0; i < 140; ++i) {
    deep += "/d";
    wire.folder(deep);
  }
  wire.file(deep + "/x", "x");
  wire.file("y", "y");
  wire.file(std::string(300, 'n'), "n");
  wire.say(frame::Done{});
  const auto taken = take(wire, out);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.read("y"), "y");
  EXPECT_GT(taken->left_out_count, 12U);
  EXPECT_LE(taken->left_out.size(), 8U);
}

TEST(Take, SpecialFilesAreLeftOut) {
  const Folder out;
  Wire wire;
  wire.say(frame::Entry{"pipe", EntryKind::other, 0644, 0, ""});
  wire.say(frame::Done{});
  const auto taken = take(wire, out);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->left_out, Names{"pipe: is no file, folder or link"});
  EXPECT_EQ(out.tree(), Names{});
}

TEST(Take, WhatCouldNotBeReadInsideIsNamed) {
  const Folder out;
  Wire wire;
  wire.file("x", "x");
  wire.say(frame::Refused{"locked\x1b[2J: open", EACCES});
  const auto taken = take(wire, out);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(taken->left_out, Names{"locked\\x1b[2J: open: EACCES (Permission denied)"});
  EXPECT_EQ(out.tree(), Names{"x"});
}

TEST(Take, ASessionThatCouldNotBeServedIsAnError) {
  const Folder out;
  Wire wire;
  wire.say(frame::Refused{"fork", EAGAIN});
  EXPECT_FALSE(take(wire, out));
}

TEST(Take, AFolderOfTheHostIsNotReplacedAndTheRestComes) {
  const Folder out;
  out.write("d/mine", "mine");
  out.write("l/mine", "mine");
  Wire wire;
  wire.file("a", "1");
  wire.file("d", "x");
  wire.link("l", "a");
  wire.file("z", "2");
  wire.say(frame::Done{});
  const auto taken = take(wire, out);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.tree(), (Names{"a", "d/", "d/mine", "l/", "l/mine", "z"}));
  EXPECT_EQ(taken->changes, 2U);
  EXPECT_EQ(taken->left_out_count, 2U);
  EXPECT_EQ(taken->left_out, (Names{"d: the host keeps what it has there: EISDIR",
                                    "l: the host keeps what it has there: EISDIR"}));
}

TEST(Take, AFileThatWasPutInAndChangedClashesToo) {
  const Folder out;
  out.write("d/mine", "mine");
  const Manifest manifest = {{"d", {EntryKind::file, base::sha256("old"), false}}};
  Wire wire;
  wire.file("d", "new");
  wire.file("z", "2");
  wire.say(frame::Done{});
  const auto taken = take(wire, out, manifest);
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(out.tree(), (Names{"d/", "d/mine", "z"}));
  EXPECT_EQ(taken->left_out_count, 1U);
}

struct Link {
  std::string path, text;
  bool inside;
};
TEST(Take, WhereLinksLead) {
  const std::array links = {
      Link{"l", "x", true},
      Link{"l", "x/y", true},
      Link{"l", "./x", true},
      Link{"a/l", "../x", true},
      Link{"a/b/l", "../../x", true},
      Link{"l", "..", false},
      Link{"a/l", "../..", false},
      Link{"l", "/x", false},
      Link{"l", "", false},
      Link{"l", "x/..", false},
      Link{"l", "x/../y", false},
      Link{"a/l", "./../x", false},
      Link{"l", std::string("x\0y", 3), false},
  };
  for (const Link& link : links) {
    EXPECT_EQ(workspace::link_stays_inside(link.path, link.text), link.inside)
        << link.path << " -> " << link.text;
  }
}

}  // namespace
