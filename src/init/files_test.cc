// File sessions, through a real cerco-init with all that the session's process gives up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "init/init.h"
#include "init/inside_test.h"
#include "os/os.h"

namespace init {
namespace {

using frame::EntryKind;
using frame::FileFrame;

struct Sent {
  EntryKind kind = EntryKind::other;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::string text;
  std::string content;
};
struct Tree {
  std::map<std::string, Sent> entries;
  std::vector<std::string> order;
  bool done = false;
  frame::Refused refused;
};

// Everything below `path`; `when` is called at the first entry, before any data is read.
Tree fetch_tree(HostEnd& session, const std::string& path, const std::function<void()>& when = {}) {
  Tree tree;
  Sent* last = nullptr;
  session.say(FileFrame(frame::Fetch{path}), {});
  while (auto word = session.hear<FileFrame>()) {
    if (auto* entry = std::get_if<frame::Entry>(&*word)) {
      tree.order.push_back(entry->path);
      last = &tree.entries[entry->path];
      *last = {entry->kind, entry->mode, entry->size, entry->text, ""};
      if (when && tree.order.size() == 1) when();
    } else if (auto* data = std::get_if<frame::Data>(&*word)) {
      last->content += data->bytes;
    } else if (auto* refused = std::get_if<frame::Refused>(&*word)) {
      tree.refused = *refused;
      return tree;
    } else {
      tree.done = std::holds_alternative<frame::Done>(*word);
      return tree;
    }
  }
  return tree;
}

// 0 for Done, the errno of Refused, -1 for anything else.
int answer(HostEnd& session) {
  const auto word = session.hear<FileFrame>();
  if (!word) return -1;
  if (std::holds_alternative<frame::Done>(*word)) return 0;
  const auto* refused = std::get_if<frame::Refused>(&*word);
  return refused != nullptr ? static_cast<int>(refused->error) : -1;
}
int put(HostEnd& session, const std::string& path, const std::string& content) {
  session.say(FileFrame(frame::PutFile{path, 0644, content.size()}), {});
  if (!content.empty()) session.say(FileFrame(frame::Data{content}), {});
  return answer(session);
}
int put_folder(HostEnd& session, const std::string& path) {
  session.say(FileFrame(frame::PutFolder{path, 0755}), {});
  return answer(session);
}
int put_link(HostEnd& session, const std::string& path, const std::string& text) {
  session.say(FileFrame(frame::PutLink{path, text}), {});
  return answer(session);
}

std::string content_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// `depth` folders `name` within each other, each with a folder `beside`, and a file f at the
// bottom.
void make_deep(const std::string& root, int depth, const std::string& name,
               const std::string& beside) {
  base::Fd at(::open(root.c_str(), O_PATH | O_DIRECTORY));
  for (int i = 0; i < depth; ++i) {
    ASSERT_GE(at.get(), 0);
    ASSERT_EQ(::mkdirat(at.get(), beside.c_str(), 0755), 0);
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at = base::Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY));
  }
  const base::Fd file(::openat(at.get(), "f", O_WRONLY | O_CREAT, 0644));
  ASSERT_TRUE(file.open());
}

class FilesTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const auto ready = inside_.control.hear<frame::FromInit>();
    ASSERT_TRUE(ready && std::holds_alternative<frame::Ready>(*ready));
    session_ = files(inside_, "/mnt");
    mnt_ = inside_.mnt();
  }
  // A shell script inside, as the workload's user, in /mnt.
  void inside(const std::string& script) {
    frame::Exec exec = shell(script);
    exec.cwd = "/mnt";
    const Outcome out = run_to_end(inside_, exec);
    ASSERT_EQ(out.ended.code, 0U) << out.output;
  }
  Inside inside_{GetParam()};
  HostEnd session_;
  std::string mnt_;
};

TEST_P(FilesTest, what_is_put_is_there_as_the_workloads_own) {
  EXPECT_EQ(put_folder(session_, "a"), 0);
  EXPECT_EQ(put(session_, "a/f", "content"), 0);
  EXPECT_EQ(put(session_, "a/empty", ""), 0);
  EXPECT_EQ(put_link(session_, "a/l", "/anywhere/at all"), 0);
  EXPECT_EQ(content_of(mnt_ + "/a/f"), "content");
  EXPECT_EQ(std::filesystem::read_symlink(mnt_ + "/a/l"), "/anywhere/at all");
  for (const char* name : {"/a", "/a/f", "/a/empty", "/a/l"}) {
    struct stat about = {};
    ASSERT_EQ(::lstat((mnt_ + name).c_str(), &about), 0) << name;
    EXPECT_EQ(about.st_uid, 1000U) << name;
    EXPECT_EQ(about.st_gid, 1000U) << name;
  }
}

TEST_P(FilesTest, modes_are_as_said_but_never_set_user_id) {
  session_.say(FileFrame(frame::PutFile{"x", 07755, 0}), {});
  EXPECT_EQ(answer(session_), 0);
  session_.say(FileFrame(frame::PutFolder{"d", 07700}), {});
  EXPECT_EQ(answer(session_), 0);
  struct stat about = {};
  ASSERT_EQ(::stat((mnt_ + "/x").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0755U);
  ASSERT_EQ(::stat((mnt_ + "/d").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700U);
}

TEST_P(FilesTest, nothing_is_replaced) {
  EXPECT_EQ(put(session_, "f", "first"), 0);
  EXPECT_EQ(put(session_, "f", "second"), EEXIST);
  EXPECT_EQ(put_folder(session_, "f"), EEXIST);
  EXPECT_EQ(put_folder(session_, "there"), 0);
  EXPECT_EQ(put_folder(session_, "there"), EEXIST);
  EXPECT_EQ(put_link(session_, "f", "x"), EEXIST);
  EXPECT_EQ(put(session_, "missing/f", "x"), ENOENT);
  EXPECT_EQ(put(session_, "f/below", "x"), ENOTDIR);
  EXPECT_EQ(content_of(mnt_ + "/f"), "first");
}

// Up to 16 puts are on their way before the first answer is read.
TEST_P(FilesTest, puts_are_answered_in_order) {
  for (int i = 0; i < 16; ++i) {
    session_.say(FileFrame(frame::PutFile{i % 4 == 3 ? "0" : std::to_string(i), 0644, 3}), {});
    session_.say(FileFrame(frame::Data{"abc"}), {});
  }
  for (int i = 0; i < 16; ++i) EXPECT_EQ(answer(session_), i % 4 == 3 ? EEXIST : 0) << i;
}

// What `cerco cp` puts goes in the place of files and links, never through them, and of no folder.
TEST_P(FilesTest, what_is_there_is_replaced_where_that_is_asked_for) {
  auto pair = os::socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair);
  const frame::ServeFiles serve = {1000, 1000, "/mnt", frame::Existing::replace};
  inside_.control.say(frame::ToInit(serve), {pair->second.get()});
  HostEnd session(std::move(pair->first));
  ASSERT_EQ(put(session_, "f", "old"), 0);
  EXPECT_EQ(put(session_, "f", "x"), EEXIST) << "not where it is not";
  EXPECT_EQ(put(session, "f", "new"), 0);
  EXPECT_EQ(content_of(mnt_ + "/f"), "new");
  ASSERT_EQ(put_link(session, "l", "f"), 0);
  EXPECT_EQ(put(session, "l", "of l"), 0);
  EXPECT_EQ(content_of(mnt_ + "/f"), "new");
  EXPECT_EQ(content_of(mnt_ + "/l"), "of l");
  EXPECT_EQ(put_link(session, "l", "f"), 0);
  EXPECT_EQ(put_folder(session, "d"), 0);
  EXPECT_EQ(put(session, "d/x", "kept"), 0);
  EXPECT_EQ(put_folder(session, "d"), 0);
  EXPECT_EQ(put(session, "d", "x"), EEXIST);
  EXPECT_EQ(put_link(session, "d", "f"), EEXIST);
  EXPECT_EQ(content_of(mnt_ + "/d/x"), "kept");
  EXPECT_EQ(put_folder(session, "f"), EEXIST);
  ASSERT_EQ(put_link(session, "elsewhere", "d"), 0);
  EXPECT_EQ(put_folder(session, "elsewhere"), EEXIST) << "a link is no folder";
}

// E69, E71 and the like from the host's side: no path leaves the root.
TEST_P(FilesTest, no_path_leaves_the_root) {
  ASSERT_EQ(put_folder(session_, "sub"), 0);
  HostEnd session = files(inside_, "/mnt/sub");
  ASSERT_EQ(put_link(session, "up", ".."), 0);
  ASSERT_EQ(put_link(session, "abs", "/mnt"), 0);
  ASSERT_EQ(put_link(session, "magic", "/proc/self/cwd"), 0);
  const std::string longest(256, 'n');
  const std::string paths[] = {"",     ".",   "..",  "../x",     "/mnt/x", "a/../../x",
                               "x/",   "//x", "./x", "sub/../x", "/",      std::string("nul\0x", 5),
                               longest};
  for (const std::string& path : paths) {
    EXPECT_EQ(put(session, path, "out"), EINVAL) << path;
    EXPECT_EQ(put_folder(session, path), EINVAL) << path;
    EXPECT_EQ(put_link(session, path, "t"), EINVAL) << path;
    if (!path.empty())
      EXPECT_EQ(fetch_tree(session, path).refused.error, static_cast<unsigned>(EINVAL)) << path;
  }
  for (const std::string link : {"up", "abs", "magic"}) {
    EXPECT_EQ(put(session, link + "/x", "out"), ELOOP) << link;
    EXPECT_EQ(put_folder(session, link + "/x"), ELOOP) << link;
    EXPECT_EQ(put_link(session, link + "/x", "t"), ELOOP) << link;
    EXPECT_EQ(put(session, link, "out"), EEXIST) << link;
    EXPECT_EQ(fetch_tree(session, link + "/x").refused.error, static_cast<unsigned>(ELOOP)) << link;
    EXPECT_EQ(fetch_tree(session, link).entries.at(link).kind, EntryKind::link) << link;
  }
  EXPECT_FALSE(std::filesystem::exists(mnt_ + "/x"));
  // Positive control: the same link is followed by an ordinary open as that user.
  inside("echo through > sub/up/x");
  EXPECT_EQ(content_of(mnt_ + "/x"), "through\n");
}

TEST_P(FilesTest, it_has_the_workloads_rights_only) {
  ASSERT_EQ(::mkdir((mnt_ + "/roots").c_str(), 0700), 0);
  std::ofstream(mnt_ + "/roots/secret") << "of root";
  EXPECT_EQ(put(session_, "roots/x", "x"), EACCES);
  const Tree tree = fetch_tree(session_, "");
  EXPECT_EQ(tree.refused.error, static_cast<unsigned>(EACCES));
  EXPECT_EQ(tree.entries.at("roots").kind, EntryKind::folder);
  EXPECT_FALSE(tree.entries.contains("roots/secret"));
}

TEST_P(FilesTest, a_root_that_cannot_be_had_is_refused) {
  for (const auto& [root, error] :
       {std::pair("/no/such", ENOENT), std::pair("/root", 0), std::pair("/etc/passwd", ENOTDIR),
        std::pair("/proc/self/root", ELOOP)}) {
    HostEnd session = files(inside_, root);
    if (error == 0) continue;
    EXPECT_EQ(answer(session), error) << root;
    EXPECT_EQ(answer(session), -1) << root;  // and over
  }
}

TEST_P(FilesTest, a_full_disk_is_told_and_leaves_no_piece) {
  session_.say(FileFrame(frame::PutFile{"big", 0644, 10 << 20}), {});
  for (int i = 0; i < 160; ++i) session_.say(FileFrame(frame::Data{std::string(65536, 'x')}), {});
  EXPECT_EQ(answer(session_), ENOSPC);
  EXPECT_FALSE(std::filesystem::exists(mnt_ + "/big"));
  EXPECT_EQ(put(session_, "small", "still works"), 0);
}

TEST_P(FilesTest, a_session_out_of_step_ends) {
  HostEnd more = files(inside_, "/mnt");
  more.say(FileFrame(frame::PutFile{"f", 0644, 2}), {});
  more.say(FileFrame(frame::Data{"too much"}), {});
  EXPECT_EQ(answer(more), -1);
  HostEnd other = files(inside_, "/mnt");
  other.say(FileFrame(frame::PutFile{"g", 0644, 2}), {});
  other.say(FileFrame(frame::PutFolder{"h", 0755}), {});
  EXPECT_EQ(answer(other), -1);
  HostEnd bad = files(inside_, "/mnt");
  bad.say_bytes("nonsense", {});
  EXPECT_EQ(answer(bad), -1);
  EXPECT_EQ(put(session_, "fine", "x"), 0);
}

TEST_P(FilesTest, a_tree_comes_out_whole) {
  const std::string odd = "\xff\xfe n\n\"\\";
  const std::string longest(255, 'n');
  inside(
      "umask 022; mkdir -p d/e; printf hello > d/e/f; : > empty; ln -s nowhere d/l; chmod 750 d; "
      "chmod 4755 empty; "
      "mkfifo d/fifo; head -c 200000 /dev/zero | tr '\\0' z > big; mkdir hollow");
  std::ofstream(mnt_ + "/" + odd) << "odd";
  std::ofstream(mnt_ + "/" + longest) << "long";
  ASSERT_EQ(::chmod((mnt_ + "/" + odd).c_str(), 0644), 0);
  ASSERT_EQ(::mknod((mnt_ + "/socket").c_str(), S_IFSOCK | 0644, 0), 0);
  const Tree tree = fetch_tree(session_, "");
  EXPECT_TRUE(tree.done) << tree.refused.what;
  EXPECT_EQ(tree.entries.size(), 11U);
  EXPECT_EQ(tree.entries.at("d").kind, EntryKind::folder);
  EXPECT_EQ(tree.entries.at("d").mode, 0750U);
  EXPECT_EQ(tree.entries.at("d/e/f").content, "hello");
  EXPECT_EQ(tree.entries.at("empty").content, "");
  EXPECT_EQ(tree.entries.at("d/l").kind, EntryKind::link);
  EXPECT_EQ(tree.entries.at("d/l").text, "nowhere");
  EXPECT_EQ(tree.entries.at("d/fifo").kind, EntryKind::other);
  EXPECT_EQ(tree.entries.at("socket").kind, EntryKind::other);
  EXPECT_EQ(tree.entries.at("hollow").kind, EntryKind::folder);
  EXPECT_EQ(tree.entries.at("big").content, std::string(200000, 'z'));
  EXPECT_EQ(tree.entries.at(odd).content, "odd");
  EXPECT_EQ(tree.entries.at(longest).content, "long");
  // A folder comes before what is in it.
  const auto place = [&](const std::string& path) {
    return std::ranges::find(tree.order, path) - tree.order.begin();
  };
  EXPECT_LT(place("d"), place("d/e"));
  EXPECT_LT(place("d/e"), place("d/e/f"));
}

TEST_P(FilesTest, a_part_of_a_tree_comes_with_its_own_entry) {
  inside("mkdir -p a/b; printf x > a/b/f; printf y > a/g");
  const Tree folder = fetch_tree(session_, "a/b");
  EXPECT_EQ(folder.order, (std::vector<std::string>{"a/b", "a/b/f"}));
  const Tree file = fetch_tree(session_, "a/g");
  EXPECT_TRUE(file.done);
  EXPECT_EQ(file.entries.at("a/g").content, "y");
  EXPECT_TRUE(fetch_tree(session_, "a/none").entries.empty());
}

// E75: 5000 folders deep, each with a side folder, so that the way back up is walked again.
TEST_P(FilesTest, a_very_deep_tree_comes_out) {
  make_deep(mnt_, 5000, "d", "s");
  const Tree tree = fetch_tree(session_, "");
  EXPECT_TRUE(tree.done) << tree.refused.what;
  EXPECT_EQ(tree.entries.size(), 10'001U);
  std::string bottom;
  for (int i = 0; i < 5000; ++i) bottom += "d/";
  EXPECT_EQ(tree.entries.at(bottom + "f").content, "");
}

// E75: deeper than a frame can name: what fits comes, the rest is said to be left out.
TEST_P(FilesTest, names_past_every_frame_are_left_out_and_said) {
  make_deep(mnt_, 600, std::string(255, 'n'), "s");
  const Tree tree = fetch_tree(session_, "");
  EXPECT_FALSE(tree.done);
  EXPECT_EQ(tree.refused.error, static_cast<unsigned>(ENAMETOOLONG));
  EXPECT_EQ(tree.entries.size(), 2 * 64U * 1024 / 256);
  EXPECT_EQ(put(session_, "still", "serves"), 0);
}

// E75: many names in one folder.
TEST_P(FilesTest, many_names_in_one_folder_come_out) {
  inside("mkdir many; cd many; seq 1 5000 | xargs touch");
  const Tree tree = fetch_tree(session_, "");
  EXPECT_TRUE(tree.done);
  EXPECT_EQ(tree.entries.size(), 5001U);
}

// E73: a file of holes is larger than its disk.
TEST_P(FilesTest, a_file_larger_than_the_disk_is_named_but_not_sent) {
  inside("truncate -s 1T sparse; truncate -s 4M holes; printf ok > small");
  const Tree tree = fetch_tree(session_, "");
  EXPECT_EQ(tree.refused.error, static_cast<unsigned>(EFBIG));
  EXPECT_EQ(tree.entries.at("sparse").kind, EntryKind::other);
  EXPECT_EQ(tree.entries.at("sparse").size, 1ULL << 40);
  EXPECT_EQ(tree.entries.at("holes").content.size(), 4U << 20);
  EXPECT_EQ(tree.entries.at("small").content, "ok");
}

// E73: the size that was announced is the size that comes.
TEST_P(FilesTest, a_file_that_changes_while_it_is_read_keeps_its_size) {
  inside("head -c 4000000 /dev/zero | tr '\\0' z > f");
  const Tree shrunk =
      fetch_tree(session_, "", [&] { ASSERT_EQ(::truncate((mnt_ + "/f").c_str(), 100), 0); });
  const Sent& sent = shrunk.entries.at("f");
  EXPECT_EQ(sent.content.size(), 4'000'000U);
  EXPECT_EQ(sent.content[0], 'z');
  EXPECT_EQ(sent.content.back(), '\0');
  EXPECT_EQ(shrunk.refused.error, static_cast<unsigned>(EIO));
  const Tree grown =
      fetch_tree(session_, "", [&] { ASSERT_EQ(::truncate((mnt_ + "/f").c_str(), 3'000'000), 0); });
  EXPECT_EQ(grown.entries.at("f").content.size(), 100U);
  EXPECT_TRUE(grown.done);
}

TEST_P(FilesTest, what_is_closed_to_the_user_is_said) {
  inside("printf x > closed; chmod 000 closed; mkdir shut; chmod 000 shut; printf y > open");
  const Tree tree = fetch_tree(session_, "");
  EXPECT_EQ(tree.refused.error, static_cast<unsigned>(EACCES));
  EXPECT_TRUE(tree.refused.what.contains("(and 1 more)")) << tree.refused.what;
  EXPECT_EQ(tree.entries.at("open").content, "y");
  EXPECT_EQ(tree.entries.at("shut").kind, EntryKind::folder);
}

// E70: a name that is a file and a link to a secret in turn, as fast as the workload can.
TEST_P(FilesTest, an_exchanged_name_never_gives_what_a_link_points_to) {
  std::ofstream(mnt_ + "/secret") << "SECRET";
  inside(
      "mkdir w; printf mine > w/a; ln -s ../secret w/b; mkdir w/c; printf mine > w/c/f; ln -s .. "
      "w/d");
  const pid_t racer = ::fork();
  if (racer == 0) {
    const int folder = ::open((mnt_ + "/w").c_str(), O_PATH | O_DIRECTORY);
    while (true) {
      (void)::renameat2(folder, "a", folder, "b", RENAME_EXCHANGE);
      (void)::renameat2(folder, "c", folder, "d", RENAME_EXCHANGE);
    }
  }
  HostEnd session = files(inside_, "/mnt/w");
  int links = 0;
  int plain = 0;
  for (int i = 0; i < 60 || ((links == 0 || plain == 0) && i < 2000); ++i) {
    const Tree tree = fetch_tree(session, "");
    for (const auto& [path, sent] : tree.entries) {
      EXPECT_NE(sent.content, "SECRET") << path;
      EXPECT_FALSE(path.ends_with("secret")) << path;
      if (path == "a") (sent.kind == EntryKind::link ? links : plain)++;
    }
  }
  ::kill(racer, SIGKILL);
  ::waitpid(racer, nullptr, 0);
  EXPECT_GT(links, 0);  // both were seen, so the race was one
  EXPECT_GT(plain, 0);
}

// The walk holds few descriptors, however deep.
TEST_P(FilesTest, a_deep_walk_holds_few_descriptors) {
  make_deep(mnt_, 300, "d", "s");
  auto pair = os::socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair);
  const pid_t server = ::fork();
  if (server == 0) {
    const int root = ::open(mnt_.c_str(), O_PATH | O_DIRECTORY);
    const rlimit few = {64, 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    pair->first.reset();
    ::_exit(serve_files(pair->second.get(), root, frame::Existing::keep));
  }
  pair->second.reset();
  HostEnd session(std::move(pair->first));
  const Tree tree = fetch_tree(session, "");
  EXPECT_TRUE(tree.done) << tree.refused.what;
  EXPECT_EQ(tree.entries.size(), 601U);
  session.close();
  int status = -1;
  ::waitpid(server, &status, 0);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, FilesTest, testing::Values(Way::direct, Way::tunnelled),
                         [](const auto& way) {
                           return way.param == Way::direct ? "direct" : "tunnelled";
                         });

}  // namespace
}  // namespace init
