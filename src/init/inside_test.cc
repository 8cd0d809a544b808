// How the tests of init start it and speak to it.
#include "init/inside_test.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "os/os.h"
#include "tunnel/tunnel.h"

namespace init {
namespace {

constexpr int kPatience = 20'000;  // milliseconds, far more than anything takes

// What the new pid 1 is to have for its first descriptors, and the words that it is started with.
struct Begin {
  std::vector<int> fds;
  std::vector<const char*> argv;
};

// In the new pid 1: its own mounts, then the program with nothing but what it needs.
[[noreturn]] void become_init(const Begin& begin) {
  const auto need = [](bool good) {
    if (!good) ::_exit(99);
  };
  need(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  need(::mount("tmpfs", "/mnt", "tmpfs", MS_NOSUID | MS_NODEV,
               "size=8m,mode=755,uid=1000,gid=1000") == 0);
  for (std::size_t i = 0; i < begin.fds.size(); ++i) {
    const int number = static_cast<int>(i);
    need(::dup2(begin.fds[i], number) == number && ::fcntl(number, F_SETFD, 0) == 0);
  }
  (void)::signal(SIGHUP, SIG_IGN);  // as `nohup` leaves it
  const char* env[] = {nullptr};
  ::execve(CERCO_BUILD_DIR "/cerco-init", const_cast<char**>(begin.argv.data()),
           const_cast<char**>(env));
  ::_exit(99);
}

// A copy above the numbers that the program is started with.
base::Fd clear_of_streams(const base::Fd& fd) {
  base::Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
  if (!copy.open()) std::abort();
  return copy;
}

int clone_first(const Begin& begin) {
  clone_args args = {};
  args.flags = CLONE_NEWPID | CLONE_NEWNS;
  args.exit_signal = SIGCHLD;
  const int pid = static_cast<int>(::syscall(SYS_clone3, &args, sizeof args));
  if (pid < 0) std::abort();  // these tests need root
  if (pid == 0) become_init(begin);
  return pid;
}

std::string drain(int pipe) {
  auto text = os::read_all(pipe, 1 << 20, "output");
  return text ? *text : "(" + text.error().line() + ")";
}

}  // namespace

void HostEnd::say_bytes(const std::string& bytes, const std::vector<int>& fds) {
  (void)os::send_message(socket_.get(), bytes, fds);
}

std::optional<std::string> HostEnd::hear_bytes() {
  pollfd waiting = {socket_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, kPatience) != 1) return std::nullopt;
  auto message = os::receive_message(socket_.get(), 160 * 1024, 4);
  if (!message || message->end) return std::nullopt;
  return std::move(message->bytes);
}

Inside::Inside(Way way) {
  if (way == Way::tunnelled) {
    start_tunnelled();
    return;
  }
  auto pair = os::socket_pair(SOCK_SEQPACKET);
  auto null = os::open("/dev/null", O_RDWR, 0);
  if (!pair || !null) std::abort();
  const base::Fd empty = clear_of_streams(*null);
  const base::Fd theirs = clear_of_streams(pair->second);
  const int none = empty.get();
  pid_ = clone_first({{none, none, none, theirs.get()}, {"cerco-init", nullptr}});
  control = HostEnd(std::move(pair->first));
}

void Inside::start_tunnelled() {
  auto down = os::pipe();
  auto up = os::pipe();
  if (!down || !up) std::abort();
  const base::Fd in = clear_of_streams(down->first);
  const base::Fd out = clear_of_streams(up->second);
  pid_ = clone_first({{in.get(), out.get(), out.get()}, {"cerco-init", "tunnel", nullptr}});
  auto started =
      tunnel::start(CERCO_BUILD_DIR "/cerco-tunnel", up->first.get(), down->second.get());
  if (!started) std::abort();
  tunnel_ = std::move(started->child);
  control = HostEnd(started->control.release());
}

int Inside::init_pid() const {
  if (!tunnel_.running()) return pid_;
  const std::string pid = std::to_string(pid_);
  auto child = os::read_file("/proc/" + pid + "/task/" + pid + "/children", 100);
  return child ? std::atoi(child->c_str()) : 0;
}

int Inside::wait() {
  int status = 0;
  if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), &status, 0);
  return status;
}

Inside::~Inside() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

frame::Exec shell(const std::string& script) {
  frame::Exec exec;
  exec.id = 1;
  exec.argv = {"/bin/sh", "-c", script};
  exec.env = {"PATH=/usr/bin:/bin"};
  exec.cwd = "/";
  return exec;
}

Outcome run_to_end(Inside& inside, const frame::Exec& exec) {
  auto pipe = os::pipe();
  auto null = os::open("/dev/null", O_RDWR, 0);
  if (!pipe || !null) std::abort();
  inside.control.say(frame::ToInit(exec), {null->get(), pipe->second.get(), pipe->second.get()});
  pipe->second.reset();
  Outcome out;
  while (const auto word = inside.control.hear<frame::FromInit>()) {
    if (std::holds_alternative<frame::Started>(*word)) out.started = true;
    if (const auto* failed = std::get_if<frame::NotStarted>(&*word)) {
      out.not_started = *failed;
      break;
    }
    if (const auto* ended = std::get_if<frame::Ended>(&*word)) {
      out.ended = *ended;
      break;
    }
  }
  out.output = drain(pipe->first.get());
  return out;
}

void start(Inside& inside, const frame::Exec& exec, int output) {
  auto null = os::open("/dev/null", O_RDWR, 0);
  if (!null) std::abort();
  const int to = output < 0 ? null->get() : output;
  inside.control.say(frame::ToInit(exec), {null->get(), to, to});
  const auto word = inside.control.hear<frame::FromInit>();
  if (!word || !std::holds_alternative<frame::Started>(*word)) std::abort();
}

HostEnd files(Inside& inside, const std::string& root) {
  auto pair = os::socket_pair(SOCK_SEQPACKET);
  if (!pair) std::abort();
  inside.control.say(frame::ToInit(frame::ServeFiles{1000, 1000, root}), {pair->second.get()});
  return HostEnd(std::move(pair->first));
}

}  // namespace init
