// What the tests of module cli share: a world whose streams are files, and folders of their own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "os/os.h"

namespace cli_test {

inline const cli::Command& command(std::string_view name) {
  for (const cli::Command& entry : cli::commands()) {
    if (entry.name == name) return entry;
  }
  std::abort();
}

class Folder {
 public:
  Folder() {
    std::string name = "/tmp/cerco-cli-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text, unsigned mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << text;
    EXPECT_EQ(::chmod(at(name).c_str(), mode), 0);
    return at(name);
  }

 private:
  std::string path_;
};

// A World with nothing of this process's: no environment, streams into files of its own.
class Stage {
 public:
  Stage() {
    out_ = *os::open(folder_.at("out"), O_RDWR | O_CREAT, 0600);
    err_ = *os::open(folder_.at("err"), O_RDWR | O_CREAT, 0600);
    in_ = *os::open("/dev/null", O_RDONLY, 0);
    world.in = in_.get();
    world.out = out_.get();
    world.err = err_.get();
    world.state_dir = folder_.at("state");
    world.helper_dir = folder_.path();
  }
  int run(std::vector<std::string> args) {
    world.args = std::move(args);
    return cli::main(world);
  }
  [[nodiscard]] std::string out() const { return *os::read_all(out_.get(), 1 << 20, "out"); }
  [[nodiscard]] std::string err() const { return *os::read_all(err_.get(), 1 << 20, "err"); }
  [[nodiscard]] const Folder& folder() const { return folder_; }

  cli::World world;

 private:
  Folder folder_;
  base::Fd in_, out_, err_;
};

}  // namespace cli_test
