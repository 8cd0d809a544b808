// Processes by descriptor, and starting our own programs.
#include "os/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>

namespace os {

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    this->~Child();
    pid_ = std::exchange(other.pid_, 0);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(SIGKILL);
  (void)wait();
}

void Child::kill(int signal) const {
  if (pid_ > 0) (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

base::Result<int> Child::wait() {
  int status = 0;
  int got = -1;
  do {
    got = ::waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  pid_ = 0;
  if (got < 0) return base::system_error("waitpid");
  return status;
}

base::Status use_processors(std::uint64_t count) {
  // 8192 processors is the most that Linux is built for.
  static constexpr std::size_t kBytes = 1024;
  std::array<unsigned char, kBytes> mask{};
  const long got = ::syscall(SYS_sched_getaffinity, 0, mask.size(), mask.data());
  if (got < 0) return base::system_error("sched_getaffinity");
  std::uint64_t usable = 0;
  for (const unsigned char byte : mask) usable += static_cast<unsigned>(std::popcount(byte));
  if (count >= usable) return {};
  std::uint32_t first = 0;
  (void)::getrandom(&first, sizeof first, 0);
  const std::uint64_t from = first % usable;
  // The n-th usable one stays when n, counted from `from` and around, is below `count`.
  std::uint64_t n = 0;
  for (std::size_t bit = 0; bit < kBytes * 8; ++bit) {
    const auto one = static_cast<unsigned char>(1U << bit % 8);
    if ((mask[bit / 8] & one) == 0) continue;
    if ((n + usable - from) % usable >= count) mask[bit / 8] &= static_cast<unsigned char>(~one);
    ++n;
  }
  if (::syscall(SYS_sched_setaffinity, 0, static_cast<std::size_t>(got), mask.data()) != 0) {
    return base::system_error("sched_setaffinity");
  }
  return {};
}

base::Result<base::Fd> open_pidfd(int pid) {
  base::Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.open()) return base::system_error("pidfd_open");
  return fd;
}

namespace {

// Runs in the child of vfork-like state: no allocation. Returns only on failure, with errno set.
const char* become(char* const* argv, char* const* env, std::span<const std::pair<int, int>> pairs,
                   int parent) {
  // Copies go above every number that is to be filled first, so that none overwrites a source.
  static constexpr int kScratch = 200;
  int index = 0;
  for (const auto& [from, to] : pairs) {
    if (::dup3(from, kScratch + index++, O_CLOEXEC) < 0) return "dup3";
  }
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(null, 1) < 0) return "open /dev/null";
  index = 0;
  for (const auto& [from, to] : pairs) {
    if (::dup2(kScratch + index++, to) < 0) return "dup2";
  }
  // Numbers between the given ones may hold something of ours: all that was not given closes at
  // execve.
  int next = 3;
  for (const auto& [from, to] : pairs) {
    if (to > next && ::syscall(SYS_close_range, next, to - 1, CLOSE_RANGE_CLOEXEC) != 0)
      return "close_range";
    next = std::max(next, to + 1);
  }
  if (::syscall(SYS_close_range, next, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return "close_range";
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "prctl";
  if (::getppid() != parent) return "parent ended";
  ::execve(argv[0], argv, env);
  return "execve";
}

}  // namespace

base::Result<Child> spawn(std::span<const std::string> argv, std::span<const std::string> env,
                          std::span<const std::pair<int, int>> pairs) {
  std::vector<std::pair<int, int>> sorted(pairs.begin(), pairs.end());
  std::ranges::sort(sorted, {}, &std::pair<int, int>::second);
  std::vector<char*> args;
  for (const auto& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  std::vector<char*> variables;
  for (const auto& variable : env) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);

  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return base::system_error("pipe2");
  base::Fd reader(report[0]);
  base::Fd writer(report[1]);
  const int parent = ::getpid();
  // It runs in our memory until it executes, so that no page table is copied: become() touches
  // nothing but its own stack.
  // posix_spawn cannot do what become() does.
  // NOLINTNEXTLINE(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork)
  const int pid = ::vfork();
  if (pid < 0) return base::system_error("vfork");
  if (pid == 0) {
    // The report pipe itself must survive until execve: move it out of the way of the numbers to
    // fill.
    // NOLINTNEXTLINE(clang-analyzer-unix.Vfork): a bare system call, and one word on our own stack
    const int out = ::fcntl(writer.get(), F_DUPFD_CLOEXEC, 300);
    const char* step = become(args.data(), variables.data(), sorted, parent);
    const int number = errno;
    (void)!::write(out, &number, sizeof number);
    (void)!::write(out, step, __builtin_strlen(step));
    ::_exit(127);
  }
  writer.reset();
  base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Child child(pid, std::move(pidfd));
  char text[64] = {};
  ssize_t got = -1;
  do {
    got = ::read(reader.get(), text, sizeof text - 1);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    int number = 0;
    __builtin_memcpy(&number, text, sizeof number);
    (void)child.wait();
    return base::system_error("start " + argv[0], number);
  }
  return child;
}

base::Status outlive_parent() {
  if (::prctl(PR_SET_PDEATHSIG, 0) != 0) return base::system_error("prctl PR_SET_PDEATHSIG");
  return {};
}

}  // namespace os
