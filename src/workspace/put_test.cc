// Tests of what goes into a sandbox.
#include <sys/un.h>
#include <unistd.h>

#include <array>

#include "workspace/workspace_test.h"

namespace {

using workspace::Manifest;
using workspace_test::Folder;
using workspace_test::Wire;

// Runs put() against a sandbox that agrees to everything, and returns what it was told.
struct Put {
  base::Result<std::vector<std::string>> result = std::vector<std::string>();
  std::vector<frame::FileFrame> told;
  Manifest manifest;
};
Put put(const std::string& source, const std::string& path,
        const std::vector<std::string>& hide = {}) {
  Put done;
  Wire wire;
  for (int i = 0; i < 40; ++i) wire.say(frame::Done{});
  done.result = workspace::put(wire.session(), {source, path, false}, hide, done.manifest);
  while (wire.something_heard()) done.told.push_back(wire.heard());
  return done;
}

std::vector<std::string> names(const Put& done) {
  std::vector<std::string> all;
  for (const frame::FileFrame& told : done.told) {
    if (const auto* file = std::get_if<frame::PutFile>(&told)) {
      all.push_back(file->path + " " + std::to_string(file->size));
    } else if (const auto* folder = std::get_if<frame::PutFolder>(&told)) {
      all.push_back(folder->path + "/");
    } else if (const auto* link = std::get_if<frame::PutLink>(&told)) {
      all.push_back(link->path + " -> " + link->text);
    }
  }
  return all;
}
using Names = std::vector<std::string>;

TEST(Put, OneFileWithItsModeAndBytes) {
  const Folder host;
  host.write("a.csv", "1,2\n");
  ASSERT_EQ(::chmod(host.at("a.csv").c_str(), 04755), 0);
  const Put done = put(host.at("a.csv"), "a.csv");
  ASSERT_TRUE(done.result) << done.result.error().line();
  ASSERT_EQ(done.told.size(), 2U);
  EXPECT_EQ(std::get<frame::PutFile>(done.told[0]).mode, 0755U) << "set-id bits stay outside";
  EXPECT_EQ(std::get<frame::Data>(done.told[1]).bytes, "1,2\n");
  EXPECT_EQ(done.manifest.at("a.csv").content, base::sha256("1,2\n"));
  EXPECT_TRUE(done.manifest.at("a.csv").executable);
}

TEST(Put, ABigFileGoesInPieces) {
  const Folder host;
  host.write("big", std::string(2 * frame::kChunk + 1, 'x'));
  const Put done = put(host.at("big"), "d/big");
  ASSERT_TRUE(done.result) << done.result.error().line();
  EXPECT_EQ(names(done), (Names{"d/", "d/big 131073"}));
  EXPECT_EQ(done.told.size(), 5U);
}

// F71: names that a shell or a path would read differently are names and nothing else.
TEST(Put, AFileThatSaysNoSizeIsReadToItsEnd) {
  struct stat status = {};
  ASSERT_EQ(::stat("/proc/self/cmdline", &status), 0);
  ASSERT_EQ(status.st_size, 0);
  const Put done = put("/proc/self/cmdline", "cmdline");
  ASSERT_TRUE(done.result) << done.result.error().line();
  const std::string text = *os::read_file("/proc/self/cmdline", 1 << 20);
  ASSERT_FALSE(text.empty());
  ASSERT_EQ(done.told.size(), 2U);
  EXPECT_EQ(std::get<frame::PutFile>(done.told[0]).size, text.size());
  EXPECT_EQ(std::get<frame::Data>(done.told[1]).bytes, text);
  EXPECT_EQ(done.manifest.at("cmdline").content, base::sha256(text));
}

TEST(Put, AnEmptyFileIsAnEmptyFile) {
  const Folder host;
  host.write("a", "");
  const Put done = put(host.at("a"), "a");
  ASSERT_TRUE(done.result) << done.result.error().line();
  EXPECT_EQ(names(done), Names{"a 0"});
  EXPECT_EQ(done.manifest.at("a").content, base::sha256(""));
}

TEST(Put, NamesAreNotInterpreted) {
  const Folder host;
  host.write("a;touch x", "1");
  host.write("-rf", "2");
  host.write("new\nline", "3");
  host.write("\xff\xfe", "4");
  const Put done = put(host.path(), "d");
  ASSERT_TRUE(done.result) << done.result.error().line();
  EXPECT_EQ(names(done),
            (Names{"d/", "d/-rf 1", "d/a;touch x 1", "d/new\nline 1", "d/\xff\xfe 1"}));
}

TEST(Put, LinksStayLinksAndAreNotFollowed) {
  const Folder host;
  host.write("d/real", "x");
  ASSERT_EQ(::symlink("/etc/shadow", host.at("d/shadow").c_str()), 0);
  ASSERT_EQ(::symlink("..", host.at("d/up").c_str()), 0);
  const Put done = put(host.at("d"), "d");
  EXPECT_EQ(names(done), (Names{"d/", "d/real 1", "d/shadow -> /etc/shadow", "d/up -> .."}));
}

TEST(Put, TheCallersOwnLinkIsFollowed) {
  const Folder host;
  host.write("real", "x");
  ASSERT_EQ(::symlink("real", host.at("link").c_str()), 0);
  EXPECT_EQ(names(put(host.at("link"), "link")), (Names{"link 1"}));
}

TEST(Put, HiddenFilesOfAFolderComeInEmpty) {
  const Folder host;
  host.write("p/.env", "SECRET=1");
  host.write("p/sub/.env.local", "SECRET=2");
  host.write("p/sub/.npmrc", "token");
  host.write("p/sub/kept", "x");
  host.write("p/secrets/a", "hidden with its folder");
  ASSERT_EQ(::symlink("../elsewhere", host.at("p/.netrc").c_str()), 0);
  const Put done =
      put(host.at("p"), "p", {"**/.env", "**/.env.*", "**/.npmrc", "**/.netrc", "secrets"});
  ASSERT_TRUE(done.result);
  EXPECT_EQ(names(done), (Names{"p/", "p/.env 0", "p/.netrc 0", "p/secrets/", "p/sub/",
                                "p/sub/.env.local 0", "p/sub/.npmrc 0", "p/sub/kept 1"}));
  EXPECT_EQ(done.result->size(), 5U);
}

TEST(Put, WithoutPatternsNothingIsHidden) {
  const Folder host;
  host.write("p/.env", "SECRET=1");
  EXPECT_EQ(names(put(host.at("p"), "p")), (Names{"p/", "p/.env 8"}));
}

TEST(Put, AFileNamedItselfIsNotHidden) {
  const Folder host;
  host.write(".env", "SECRET=1");
  EXPECT_EQ(names(put(host.at(".env"), ".env", {"**/.env"})), (Names{".env 8"}));
}

TEST(Put, SpecialFilesAreErrorsThatNameThem) {
  const Folder host;
  host.write("d/a", "x");
  ASSERT_EQ(::mkfifo(host.at("d/pipe").c_str(), 0600), 0);
  const Put folder = put(host.at("d"), "d");
  ASSERT_FALSE(folder.result);
  EXPECT_NE(folder.result.error().line().find("d/pipe"), std::string::npos);
  const Put pipe = put(host.at("d/pipe"), "pipe");
  ASSERT_FALSE(pipe.result);
  const Put device = put("/dev/null", "null");
  ASSERT_FALSE(device.result);
  EXPECT_EQ(device.result.error().kind, base::Kind::bad_input);
}

TEST(Put, AClashIsAnError) {
  const Folder host;
  host.write("a/x", "1");
  host.write("b/x", "2");
  Manifest manifest;
  Wire wire;
  for (int i = 0; i < 4; ++i) wire.say(frame::Done{});
  ASSERT_TRUE(workspace::put(wire.session(), {host.at("a/x"), "x", false}, {}, manifest));
  const auto second = workspace::put(wire.session(), {host.at("b/x"), "x", false}, {}, manifest);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().line().find("`x`"), std::string::npos);
}

TEST(Put, ARefusalFromInsideNamesThePath) {
  const Folder host;
  host.write("x", "1");
  Manifest manifest;
  Wire wire;
  wire.say(frame::Refused{"open", EEXIST});
  const auto done = workspace::put(wire.session(), {host.at("x"), "x", false}, {}, manifest);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().number, EEXIST);
  EXPECT_NE(done.error().line().find("put x"), std::string::npos);
}

TEST(Put, AnAnswerThatDoesNotFitOrNoneIsAnError) {
  const Folder host;
  host.write("x", "1");
  for (const bool answers : {true, false}) {
    Manifest manifest;
    Wire wire;
    if (answers) {
      wire.say(frame::Data{"?"});
    } else {
      wire.close_inside();
    }
    EXPECT_FALSE(workspace::put(wire.session(), {host.at("x"), "x", false}, {}, manifest));
  }
}

TEST(Put, ASilentSandboxIsNotWaitedForForever) {
  const Folder host;
  host.write("x", "1");
  Manifest manifest;
  const Wire wire;
  workspace::Session session = wire.session();
  session.stall_ms = 20;
  const auto done = workspace::put(session, {host.at("x"), "x", false}, {}, manifest);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().line().find("does not answer"), std::string::npos);
}

TEST(Put, ASignalStopsIt) {
  const Folder host;
  host.write("x", "1");
  Manifest manifest;
  const Wire wire;
  auto [reader, writer] = *os::pipe();
  ASSERT_TRUE(os::write_all(writer.get(), "!", "stop"));
  workspace::Session session = wire.session();
  session.stop = reader.get();
  EXPECT_FALSE(workspace::put(session, {host.at("x"), "x", false}, {}, manifest));
}

struct Place {
  std::string source, dest, path;  // path "": refused
};
TEST(Incoming, WhereThingsGo) {
  const std::array places = {
      Place{"/h/a.csv", "", "a.csv"},
      Place{"a.csv", "b.csv", "b.csv"},
      Place{"a.csv", "d/", "d/a.csv"},
      Place{"a.csv", "d/e/b", "d/e/b"},
      Place{"/h/folder/", "", "folder"},
      Place{"a.csv", "/workspace/x", "x"},
      Place{"a.csv", "/workspace", "a.csv"},
      Place{"a.csv", "/workspace/", "a.csv"},
      Place{"a.csv", "./x", "x"},
      Place{"a.csv", ".", "a.csv"},
      Place{"-rf", "", "-rf"},
      Place{"a;touch x", "", "a;touch x"},
      Place{"a.csv", "../../x", ""},
      Place{"a.csv", "/etc/x", ""},
      Place{"a.csv", "/workspacex/y", ""},
      Place{"a.csv", "d/../x", ""},
      Place{"a.csv", "d//x", ""},
      Place{"..", "", ""},
      Place{"/", "", ""},
      Place{"", "x", ""},
      Place{"a.csv", std::string(300, 'n'), ""},
  };
  for (const Place& place : places) {
    const auto got = workspace::incoming(place.source, place.dest, "/workspace");
    ASSERT_EQ(got.has_value(), !place.path.empty()) << place.source << ":" << place.dest;
    if (got) EXPECT_EQ(got->path, place.path);
    if (!got) EXPECT_EQ(got.error().kind, base::Kind::bad_input);
  }
}

}  // namespace
