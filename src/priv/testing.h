// For the tests of module priv: their own badge, and a child in namespaces of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "os/os.h"
#include "priv/priv.h"

namespace sandbox {
class Rights {  // the tests' own: priv_tests does not link module sandbox
 public:
  static priv::Badge badge() { return {}; }
};
}  // namespace sandbox

namespace priv::testing {

inline Badge badge() {
  return sandbox::Rights::badge();
}

class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/cerco-test-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs `body` in a child with these namespaces; its text is the answer, an Error's line where it
// failed.
inline std::string inside(std::uint64_t spaces,
                          const std::function<base::Result<std::string>(const Inside&)>& body) {
  auto pipe = os::pipe();
  if (!pipe) return pipe.error().line();
  auto cloned = clone_process(badge(), spaces, 0, -1);
  if (!cloned) return cloned.error().line();
  if (cloned->pid == 0) {
    const auto text = body(cloned->inside);
    (void)os::write_all(pipe->second.get(), text ? *text : text.error().line(), "pipe");
    ::_exit(0);
  }
  pipe->second.reset();
  const auto text = os::read_all(pipe->first.get(), 1 << 20, "pipe");
  ::waitpid(cloned->pid, nullptr, 0);
  return text ? *text : text.error().line();
}

// What a shell command prints.
inline base::Result<std::string> shell(const std::string& command) {
  auto pipe = TRY(os::pipe());
  const std::array<std::string, 3> argv = {"/bin/sh", "-c", "{ " + command + "; } 2>&1"};
  const std::array<std::string, 1> env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  const std::array<std::pair<int, int>, 1> fds = {std::pair{pipe.second.get(), 1}};
  auto child = TRY(os::spawn(argv, env, fds));
  pipe.second.reset();
  std::string text = TRY(os::read_all(pipe.first.get(), 1 << 20, "shell"));
  TRY(child.wait());
  return text;
}

}  // namespace priv::testing
