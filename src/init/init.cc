// The loop of pid 1: frames of the control channel, ends of children, reports of starting commands.
#include "init/init.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/frame.h"
#include "confine/confine.h"
#include "init/command.h"
#include "init/connection.h"
#include "init/session.h"
#include "init/terminal.h"
#include "os/socket.h"

namespace init {
namespace {

constexpr int kFailed = 125;

struct Command {
  std::uint64_t id = 0;
  pid_t pid = 0;
  base::Fd report;  // open until it is known whether execve went well
  bool failed = false;
  std::optional<Terminal> terminal;
};

// A command that has ended, and whose terminal still has something to pass on.
struct Closing {
  frame::Ended ended;
  Terminal terminal;
};

class Init {
 public:
  Init(int control, int signals, Kills kills)
      : control_(control), signals_(signals), kills_(kills) {}

  // One wait for something to do and the doing of it; false at the end of the control channel.
  bool turn() {
    std::vector<pollfd> waiting = {{control_, POLLIN, 0}, {signals_, POLLIN, 0}};
    for (const Command& command : commands_) {
      if (command.report.open()) waiting.push_back({command.report.get(), POLLIN, 0});
    }
    const std::size_t reports = waiting.size();
    for (Terminal* terminal : terminals()) {
      for (const pollfd& wanted : terminal->wants()) waiting.push_back(wanted);
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0) return errno == EINTR;
    act_terminals(std::span<const pollfd>(waiting).subspan(reports));
    for (std::size_t i = 2; i < reports; ++i) {
      if (waiting[i].revents != 0) hear_report(waiting[i].fd);
    }
    if (waiting[1].revents != 0) reap();
    return alive_ && (waiting[0].revents == 0 || hear_control());
  }
  void say(const frame::FromInit& word) {
    if (!os::send_message(control_, base::encode(word), {})) alive_ = false;
  }

 private:
  [[nodiscard]] std::vector<Terminal*> terminals() {
    std::vector<Terminal*> all;
    for (Command& command : commands_) {
      if (command.terminal) all.push_back(&*command.terminal);
    }
    for (Closing& closing : closing_) all.push_back(&closing.terminal);
    return all;
  }

  // In the order of terminals(), before any of them comes or goes.
  void act_terminals(std::span<const pollfd> polled) {
    for (Terminal* terminal : terminals()) {
      terminal->act(polled.first<Terminal::kPolled>());
      polled = polled.subspan(Terminal::kPolled);
    }
    say_closed();
  }

  void say_closed() {
    std::erase_if(closing_, [&](const Closing& closing) {
      if (!closing.terminal.over()) return false;
      say(closing.ended);
      return true;
    });
  }

  bool hear_control() {
    auto message = os::receive_message(control_, frame::kMaxFrame + 1024,
                                       3 + frame::kMaxGroups + frame::kMaxPassed);
    if (!message || message->end) return false;
    auto order = base::decode<frame::ToInit>(message->bytes, "control frame");
    // Only the supervisor can have sent it: a mistake of ours ends the sandbox.
    if (!order) return false;
    std::visit([&](const auto& held) { obey(held, message->fds); }, *order);
    return alive_;
  }

  void obey(const frame::Exec& exec, std::span<base::Fd> fds) {
    auto command = start(exec, fds);
    if (!command) {
      say(frame::NotStarted{exec.id, command.error().step,
                            static_cast<std::uint32_t>(command.error().error)});
      return;
    }
    commands_.push_back(std::move(*command));
  }

  static std::expected<Command, NotStarted> start(const frame::Exec& exec,
                                                  std::span<base::Fd> fds) {
    const bool few = exec.groups <= frame::kMaxGroups && exec.passed <= frame::kMaxPassed;
    if (!few || fds.size() != 3U + exec.groups + exec.passed) {
      return std::unexpected(NotStarted{"frame", EINVAL});
    }
    Command command;
    command.id = exec.id;
    Streams streams = {{fds[0].get(), fds[1].get(), fds[2].get()}};
    if (exec.terminal) {
      auto terminal = Terminal::open(*exec.terminal, std::move(fds[0]), std::move(fds[1]));
      if (!terminal) return std::unexpected(terminal.error());
      const int side = terminal->far_side();
      streams = {{side, side, side}, true};
      command.terminal = std::move(*terminal);
    }
    auto begun = begin(exec, streams, fds.subspan(3, exec.groups), fds.subspan(3U + exec.groups));
    if (!begun) return std::unexpected(begun.error());
    if (command.terminal) command.terminal->let_go();
    command.pid = begun->pid;
    command.report = std::move(begun->report);
    return command;
  }

  void obey(const frame::Resize& resize, std::span<const base::Fd>) {
    const auto found = std::ranges::find(commands_, resize.id, &Command::id);
    if (found != commands_.end() && found->terminal) found->terminal->resize(resize.window);
  }

  // To the command's whole group: it leads its session, so that its group has its number for as
  // long as it has not been reaped, and nothing else does.
  void obey(const frame::Signal& signal, std::span<const base::Fd>) {
    if (signal.number == 0 || signal.number >= NSIG) return;
    const auto found = std::ranges::find(commands_, signal.id, &Command::id);
    if (found == commands_.end()) return;
    const int number = static_cast<int>(signal.number);
    // Before its setsid there is no such group yet.
    if (::kill(-found->pid, number) != 0) (void)::kill(found->pid, number);
  }

  void obey(const frame::ServeFiles& serve, std::span<const base::Fd> sockets) {
    if (sockets.size() != 1) return;
    const pid_t server = begin_session(serve, sockets.front().get());
    if (server > 0) servers_.push_back(server);
  }

  void obey(const frame::Connect& connect, std::span<const base::Fd> sockets) {
    if (sockets.size() != 1) return;
    const pid_t server = begin_connection(connect, sockets.front().get());
    if (server > 0) servers_.push_back(server);
  }

  void obey(const frame::KillAll&, std::span<const base::Fd>) {
    kill_all_ = true;
    reap();
  }

  // Its own processes and those that lost their parent. Two ends of one kind of signal may come as
  // one.
  void reap() {
    signalfd_siginfo ignored[8];
    while (::read(signals_, ignored, sizeof ignored) > 0) {
    }
    if (kill_all_) kill_everyone();
    while (true) {
      int status = 0;
      rusage used = {};
      const pid_t pid = ::wait4(-1, &status, WNOHANG | WUNTRACED | __WALL, &used);
      if (pid > 0 && WIFSTOPPED(status)) {
        stopped(pid);
      } else if (pid > 0) {
        std::erase(servers_, pid);
        ended(pid, status, used);
      } else if (pid == 0 || errno != EINTR) {
        if (pid < 0 && errno == ECHILD && std::exchange(kill_all_, false)) {
          await_strangers();
          say(frame::AllDead{});
        }
        return;
      }
    }
  }

  // Orphans that pid 1 has instead, which may still be dying.
  void await_strangers() const {
    while (kills_ == Kills::everyone && ::kill(-1, SIGKILL) == 0) (void)::poll(nullptr, 0, 1);
  }

  // The kernel leaves pid 1 and the caller out of -1, and lets no process fork between the first
  // and the last kill.
  void kill_everyone() {
    if (kills_ == Kills::everyone) {
      (void)::kill(-1, SIGKILL);
      return;
    }
    for (const Command& command : commands_) {
      if (::kill(-command.pid, SIGKILL) != 0) (void)::kill(command.pid, SIGKILL);
    }
  }

  // The workload may stop whoever has its uid: a server of ours that it stops would keep the host
  // waiting, and is of no use to anybody else.
  void stopped(pid_t pid) {
    if (std::ranges::find(servers_, pid) != servers_.end()) (void)::kill(pid, SIGKILL);
  }

  void ended(pid_t pid, int status, const rusage& used) {
    const auto found = std::ranges::find(commands_, pid, &Command::pid);
    if (found == commands_.end()) return;
    if (found->report.open()) settle(*found);
    if (!found->failed) {
      const auto milliseconds = [](const timeval& time) {
        return static_cast<std::uint64_t>(time.tv_sec) * 1000 +
               static_cast<std::uint64_t>(time.tv_usec) / 1000;
      };
      const bool signalled = WIFSIGNALED(status);
      const frame::Ended ended = {
          found->id, signalled,
          static_cast<std::uint32_t>(signalled ? WTERMSIG(status) : WEXITSTATUS(status)),
          milliseconds(used.ru_utime) + milliseconds(used.ru_stime)};
      if (found->terminal) {
        close(ended, std::move(*found->terminal));
      } else {
        say(ended);
      }
    }
    commands_.erase(found);
  }

  // Its number may be another's from now on, so it is no command any more; its end is said when
  // what its terminal showed is passed on.
  void close(const frame::Ended& ended, Terminal terminal) {
    terminal.command_ended();
    terminal.act(std::array<pollfd, Terminal::kPolled>{});
    closing_.push_back({ended, std::move(terminal)});
    say_closed();
  }

  void hear_report(int report) {
    const auto found = std::ranges::find_if(
        commands_, [&](const Command& command) { return command.report.get() == report; });
    if (found != commands_.end()) settle(*found);
  }

  void settle(Command& command) {
    const auto failure = read_report(command.report.get());
    command.report.reset();
    command.failed = failure.has_value();
    if (failure) {
      say(frame::NotStarted{command.id, failure->step, static_cast<std::uint32_t>(failure->error)});
    } else {
      say(frame::Started{command.id});
    }
  }

  int control_;
  int signals_;
  Kills kills_;
  std::vector<Command> commands_;
  std::vector<Closing> closing_;
  std::vector<pid_t> servers_;  // of files, one a session; of published ports, one a connection
  bool kill_all_ = false;
  bool alive_ = true;
};

}  // namespace

int run(int control, Kills kills) {
  // Before anything of ours can get its number.
  if (::fcntl(control, F_SETFD, FD_CLOEXEC) != 0) return kFailed;
  // A command may have the uid of this process: none may look into it or trace it.
  if (!confine::not_dumpable()) return kFailed;
  // What the caller was started to ignore would stay ignored in every command.
  for (int number = 1; number < __SIGRTMIN; ++number) (void)::signal(number, SIG_DFL);
  sigset_t all;
  ::sigfillset(&all);
  if (::sigprocmask(SIG_SETMASK, &all, nullptr) != 0) return kFailed;
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  const base::Fd signals(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.open()) return kFailed;
  Init init(control, signals.get(), kills);
  init.say(frame::Ready{});
  while (init.turn()) {
  }
  return 0;
}

}  // namespace init
