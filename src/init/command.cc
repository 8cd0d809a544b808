// How a command is started: everything is made ready before fork, and the child only makes system
// calls.
#include "init/command.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "confine/confine.h"
#include "os/files.h"

namespace init {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

struct Prepared {
  std::vector<std::string> files;  // candidates for execve
  std::vector<char*> argv;
  std::vector<char*> env;
  confine::Filter filter;
  Streams streams;
  std::vector<int> groups;
  std::vector<int> passed;
};

std::vector<char*> pointers(std::span<const std::string> texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::expected<Prepared, NotStarted> prepare(const frame::Exec& exec, const Streams& streams,
                                            std::span<const base::Fd> groups,
                                            std::span<const base::Fd> passed) {
  if (exec.argv.empty()) return std::unexpected(NotStarted{"frame", EINVAL});
  if (exec.filter.size() % sizeof(sock_filter) != 0)
    return std::unexpected(NotStarted{"seccomp", EINVAL});
  Prepared out;
  out.files = candidates(exec.argv.front(), exec.env);
  out.argv = pointers(exec.argv);
  out.env = pointers(exec.env);
  out.filter.resize(exec.filter.size() / sizeof(sock_filter));
  if (!exec.filter.empty()) std::memcpy(out.filter.data(), exec.filter.data(), exec.filter.size());
  out.streams = streams;
  for (const base::Fd& group : groups) out.groups.push_back(group.get());
  for (const base::Fd& one : passed) out.passed.push_back(one.get());
  return out;
}

// As execvp(3): what is not there is passed over, what may not be executed is remembered.
confine::Failure execute(const Prepared& prepared) {
  int error = ENOENT;
  for (const std::string& file : prepared.files) {
    ::execve(file.c_str(), prepared.argv.data(), prepared.env.data());
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return {"execve", errno};
    }
  }
  return {"execve", error};
}

// "0" is whoever writes it.
confine::Outcome enter_groups(const Prepared& prepared) {
  for (const int group : prepared.groups) {
    if (::write(group, "0", 1) != 1) return std::unexpected(confine::Failure{"cgroup", errno});
  }
  return {};
}

// To 3, 4, …. All are copied past those numbers first, since any of them may be one of them.
confine::Outcome take_passed(const std::vector<int>& passed) {
  const int clear_of = 3 + static_cast<int>(passed.size());
  int copies[frame::kMaxPassed] = {};
  for (std::size_t i = 0; i < passed.size(); ++i) {
    copies[i] = ::fcntl(passed[i], F_DUPFD_CLOEXEC, clear_of);
    if (copies[i] < 0) return std::unexpected(confine::Failure{"dup", errno});
  }
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (::dup2(copies[i], 3 + static_cast<int>(i)) < 0) {
      return std::unexpected(confine::Failure{"dup2", errno});
    }
  }
  return {};
}

confine::Outcome take_stdio(const Prepared& prepared) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (::dup2(prepared.streams.numbers[i], static_cast<int>(i)) < 0)
      return std::unexpected(confine::Failure{"dup2", errno});
  }
  if (prepared.streams.terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) {
    return std::unexpected(confine::Failure{"terminal", errno});
  }
  if (::syscall(SYS_close_range, 3, INT_MAX, CLOSE_RANGE_CLOEXEC) != 0) {
    return std::unexpected(confine::Failure{"close_range", errno});
  }
  return take_passed(prepared.passed);
}

confine::Outcome give_up_rights(const frame::Exec& exec) {
  if (!exec.drop_capabilities) return confine::become_with_capabilities(exec.uid, exec.gid);
  if (const auto done = confine::drop_bounding(); !done) return done;
  if (const auto done = confine::become(exec.uid, exec.gid); !done) return done;
  return confine::keep_capabilities(confine::kNone);
}

// In the child, one thread, no allocation. Returns only on failure.
confine::Failure become_command(const frame::Exec& exec, const Prepared& prepared) {
  if (const auto done = enter_groups(prepared); !done) return done.error();
  if (::setsid() < 0) return {"setsid", errno};
  if (const auto done = take_stdio(prepared); !done) return done.error();
  ::umask(022);
  if (exec.files != 0) {
    if (const auto done = confine::rlimits(exec.files); !done) return done.error();
  }
  if (const auto done = give_up_rights(exec); !done) return done.error();
  // As the workload's user, so that a folder that is closed to it stays closed.
  if (::chdir(exec.cwd.c_str()) != 0) return {"chdir", errno};
  if (exec.no_new_privs) {
    if (const auto done = confine::no_new_privs(); !done) return done.error();
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!prepared.filter.empty()) {
    if (const auto done = confine::install(prepared.filter); !done) return done.error();
  }
  return execute(prepared);
}

}  // namespace

std::vector<std::string> candidates(const std::string& name, std::span<const std::string> env) {
  if (name.empty()) return {};
  if (name.contains('/')) return {name};
  std::string_view path = kDefaultPath;
  for (const std::string& variable : env) {
    if (variable.starts_with("PATH=")) {
      path = std::string_view(variable).substr(5);
      break;
    }
  }
  std::vector<std::string> out;
  for (const std::string_view folder : base::split(path, ':')) {
    // An empty part means the working folder to shells; here it means nothing.
    if (!folder.empty()) out.push_back(std::string(folder) + "/" + name);
  }
  return out;
}

std::expected<Begun, NotStarted> begin(const frame::Exec& exec, const Streams& streams,
                                       std::span<const base::Fd> groups,
                                       std::span<const base::Fd> passed) {
  const auto prepared = prepare(exec, streams, groups, passed);
  if (!prepared) return std::unexpected(prepared.error());
  auto pipe = os::pipe();
  if (!pipe) return std::unexpected(NotStarted{"pipe", pipe.error().number});
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(NotStarted{"fork", errno});
  if (pid == 0) {
    const confine::Failure failure = become_command(exec, *prepared);
    char report[64] = {};
    std::memcpy(report, &failure.number, sizeof failure.number);
    std::strncpy(report + sizeof failure.number, failure.step,
                 sizeof report - sizeof failure.number - 1);
    (void)!::write(pipe->second.get(), report, sizeof report);
    ::_exit(127);
  }
  return Begun{pid, std::move(pipe->first)};
}

std::optional<NotStarted> read_report(int report) {
  char bytes[64] = {};
  ssize_t got = -1;
  do {
    got = ::read(report, bytes, sizeof bytes);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof bytes) return std::nullopt;
  NotStarted out;
  std::memcpy(&out.error, bytes, sizeof out.error);
  out.step = bytes + sizeof out.error;
  return out;
}

}  // namespace init
