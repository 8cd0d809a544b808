// For the tests of confine: acts that cannot be undone are done by a forked child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "os/os.h"

namespace confine {

struct Ended {
  int status = 0;      // as waitpid gives it
  std::string output;  // what it wrote to descriptor 1
  [[nodiscard]] bool exited(int code) const {
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
  }
  [[nodiscard]] bool killed_by(int signal) const {
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
  }
};

// Runs `act` in a forked child, which exits with what it returns.
inline Ended in_child(const std::function<int()>& act) {
  auto pipe = os::pipe();
  if (!pipe) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe->second.get(), 1);
    ::_exit(act());
  }
  pipe->second.reset();
  Ended out;
  out.output = os::read_all(pipe->first.get(), 1 << 20, "output").value_or("(unreadable)");
  ::waitpid(pid, &out.status, 0);
  return out;
}

// In a child: replaces it by a program with its output in descriptor 1.
inline int become_program(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& arg : argv) pointers.push_back(const_cast<char*>(arg.c_str()));
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  return 126;
}

}  // namespace confine
