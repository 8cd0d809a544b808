// What the tests of module workspace share: folders of their own and the sandbox's end of a file
// session.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/base.h"
#include "os/os.h"
#include "workspace/workspace.h"

namespace workspace_test {

class Folder {
 public:
  Folder() {
    std::string name = "/tmp/cerco-workspace-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return os::read_file(at(name), 1 << 20).value_or("(none)");
  }
  // Every path below, sorted: folders end in "/", links in "@".
  [[nodiscard]] std::vector<std::string> tree() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      std::string name = std::filesystem::relative(entry.path().parent_path(), path_).string();
      name = (name == "." ? "" : name + "/") + entry.path().filename().string();
      if (entry.is_symlink()) {
        name += "@";
      } else if (entry.is_directory()) {
        name += "/";
      }
      all.push_back(name);
    }
    std::ranges::sort(all);
    return all;
  }

 private:
  std::string path_;
};

// Both ends of a session. The sandbox's end says what a test scripts beforehand: the kernel holds
// it.
class Wire {
 public:
  Wire() {
    auto ends = os::socket_pair(SOCK_SEQPACKET);
    EXPECT_TRUE(ends);
    host_ = std::move(ends->first);
    inside_ = std::move(ends->second);
    // Room for a whole script, so that no test needs a second process to read along.
    const int room = 4 << 20;
    for (const int end : {host_.get(), inside_.get()}) {
      EXPECT_EQ(::setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), 0);
    }
  }
  [[nodiscard]] workspace::Session session() const {
    return {.socket = host_.get(), .stop = -1, .stall_ms = 5000};
  }
  void say(const frame::FileFrame& value) { say_bytes(base::encode(value)); }
  void say_bytes(const std::string& bytes) {
    EXPECT_TRUE(os::send_message(inside_.get(), bytes, {}));
  }
  void file(const std::string& path, const std::string& bytes, std::uint32_t mode = 0644) {
    say(frame::Entry{path, frame::EntryKind::file, mode, bytes.size(), ""});
    if (!bytes.empty()) say(frame::Data{bytes});
  }
  void folder(const std::string& path) {
    say(frame::Entry{path, frame::EntryKind::folder, 0755, 0, ""});
  }
  void link(const std::string& path, const std::string& text) {
    say(frame::Entry{path, frame::EntryKind::link, 0777, 0, text});
  }
  // What the host has sent so far.
  frame::FileFrame heard() {
    auto received = os::receive_message(inside_.get(), frame::kMaxFrame, 0);
    EXPECT_TRUE(received);
    auto value = base::decode<frame::FileFrame>(received->bytes, "heard");
    EXPECT_TRUE(value);
    return value ? *value : frame::FileFrame();
  }
  [[nodiscard]] bool something_heard() const {
    pollfd polled = {inside_.get(), POLLIN, 0};
    return os::wait_for({&polled, 1}, 0).value_or(false);
  }
  [[nodiscard]] int inside() const { return inside_.get(); }
  void close_inside() { inside_.reset(); }
  void close_host() { host_.reset(); }

 private:
  base::Fd host_;
  base::Fd inside_;
};

}  // namespace workspace_test
