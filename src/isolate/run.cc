// The script's life: standard input goes in, output and the exit status come out.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>

#include "confine/confine.h"
#include "isolate/engine.h"
#include "isolate/isolate.h"
#include "os/files.h"

namespace isolate {
namespace {

constexpr int kFailed = 125;
constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::size_t kKeptErrors = std::size_t{16} << 10;  // of what the engine says of itself

void say(std::string_view text) {
  (void)os::write_all(2, std::string("isolate: ") + std::string(text) + "\n", "standard error");
}

// limits.memory, as the sandbox's /proc/meminfo has it. The heap may be larger than that: then the
// limit that ends the script is the policy's, with its own ending.
std::uint64_t heap_mib() {
  constexpr std::uint64_t kOtherwise = 4096;
  const auto text = os::read_file("/proc/meminfo", 1 << 16);
  constexpr std::string_view kTotal = "MemTotal:";
  if (!text || !text->starts_with(kTotal)) return kOtherwise;
  const char* at = text->data() + kTotal.size();
  while (*at == ' ') ++at;
  std::uint64_t kib = 0;
  std::from_chars(at, text->data() + text->size(), kib);
  return kib == 0 ? kOtherwise : std::max<std::uint64_t>(2 * (kib >> 10), 64);
}

// From here on this process has the engine's own filter: it starts nothing and signals nobody.
base::Status give_up_rights() {
  const int mode = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
  if (mode < 0) return base::system_error("prctl");
  if (mode == 0) return {};  // a sandbox without filters, see engine.cc
  return confine::as_status(confine::install(confine::filter(confine::Profile::isolate)),
                            "isolate");
}

class Life {
 public:
  explicit Life(Engine engine) : engine_(std::move(engine)) {}
  int run();

 private:
  void step();
  void read_input();
  void send_input();
  void take_output();
  void take_errors();
  void take_answer();
  void ask_how_it_ended();
  int ended_by_itself();

  Engine engine_;
  Lines lines_;
  std::string to_send_ = "POST / HTTP/1.1\r\nHost: script\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string errors_;
  std::optional<int> status_;
  bool input_open_ = true;
  bool answered_ = false;
  bool output_open_ = true;
};

// As one chunk of the request's body; the empty one ends it.
void Life::read_input() {
  std::array<char, kPiece> bytes;
  const ssize_t got = ::read(0, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    input_open_ = false;
    to_send_ += "0\r\n\r\n";
    return;
  }
  std::array<char, 16> size;
  const auto number = std::to_chars(size.begin(), size.end(), got, 16);
  to_send_.append(size.begin(), number.ptr).append("\r\n");
  to_send_.append(bytes.data(), static_cast<std::size_t>(got)).append("\r\n");
}

void Life::send_input() {
  const ssize_t sent =
      ::send(engine_.request.get(), to_send_.data(), to_send_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) {
    to_send_.erase(0, static_cast<std::size_t>(sent));
  } else if (errno != EAGAIN && errno != EINTR) {
    to_send_.clear();
    input_open_ = false;
  }
}

void Life::take_output() {
  std::array<char, kPiece> bytes;
  const ssize_t got = ::read(engine_.out.get(), bytes.data(), bytes.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    output_open_ = false;
    return;
  }
  for (const Piece& piece : lines_.feed({bytes.data(), static_cast<std::size_t>(got)})) {
    if (piece.status) {
      status_ = piece.status;
      return;
    }
    if (!os::write_all(piece.stream, piece.bytes, "output")) status_ = 128 + SIGPIPE;
  }
}

// Kept, and shown only where the engine ends by itself.
void Life::take_errors() {
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(engine_.err.get(), bytes.data(), bytes.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    engine_.err.reset();
    return;
  }
  const std::size_t room = kKeptErrors - std::min(kKeptErrors, errors_.size());
  errors_.append(bytes.data(), std::min(room, static_cast<std::size_t>(got)));
}

void Life::take_answer() {
  std::array<char, 4096> bytes;
  const int from = answered_ ? engine_.finish.get() : engine_.request.get();
  const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (answered_) {
    if (got <= 0) engine_.finish.reset();
    return;
  }
  answered_ = true;
  ask_how_it_ended();
}

void Life::ask_how_it_ended() {
  constexpr std::string_view kAsk = "GET / HTTP/1.1\r\nHost: script\r\n\r\n";
  input_open_ = false;
  to_send_.clear();
  (void)!::send(engine_.finish.get(), kAsk.data(), kAsk.size(), MSG_NOSIGNAL);
}

void Life::step() {
  enum : std::size_t { input, request, finish, output, errors };
  std::array<pollfd, 5> polled = {
      pollfd{input_open_ && to_send_.empty() ? 0 : -1, POLLIN, 0},
      pollfd{answered_ ? -1 : engine_.request.get(),
             static_cast<short>(to_send_.empty() ? POLLIN : POLLIN | POLLOUT), 0},
      pollfd{answered_ ? engine_.finish.get() : -1, POLLIN, 0},
      pollfd{engine_.out.get(), POLLIN, 0}, pollfd{engine_.err.get(), POLLIN, 0}};
  if (::poll(polled.data(), polled.size(), -1) < 0) return;
  if (polled[errors].revents != 0) take_errors();
  if (polled[output].revents != 0) return take_output();  // all of it before an end is believed
  if (polled[input].revents != 0) read_input();
  if ((polled[request].revents & POLLOUT) != 0) send_input();
  if ((polled[request].revents & ~POLLOUT) != 0 || polled[finish].revents != 0) take_answer();
}

// The engine refused the script (its syntax, a module that is not there), or was killed.
int Life::ended_by_itself() {
  while (engine_.err.open()) take_errors();
  int how = 0;
  while (::waitpid(engine_.pid, &how, 0) < 0 && errno == EINTR) {
  }
  if (!errors_.empty()) {
    if (!errors_.ends_with('\n')) errors_ += '\n';
    (void)os::write_all(2, errors_, "standard error");
  }
  if (WIFSIGNALED(how)) return 128 + WTERMSIG(how);
  return WEXITSTATUS(how) == 0 ? 1 : WEXITSTATUS(how);
}

// The engine is killed by the end of this process, which it asked for at its start.
int Life::run() {
  while (!status_ && output_open_) step();
  return status_ ? *status_ : ended_by_itself();
}

}  // namespace

int run(std::span<const std::string> argv, std::vector<std::pair<std::string, std::string>> env) {
  if (argv.size() < 2) {
    say("no script");
    return kFailed;
  }
  auto source = os::read_file(argv[1], kMostScript);
  if (!source) {
    say(source.error().line());
    return kFailed;
  }
  if (source->find('\0') != std::string::npos) {
    say(argv[1] + " is no text: it holds a NUL byte");
    return kFailed;
  }
  Script script;
  script.name = argv[1];
  script.source = std::move(*source);
  script.argv = {std::string(kEngine), "/workspace/" + argv[1]};
  script.argv.insert(script.argv.end(), argv.begin() + 2, argv.end());
  script.env = std::move(env);
  script.heap_mib = heap_mib();
  script.authorities = os::open(std::string(kAuthorities), O_PATH, 0).has_value();
  auto engine = start_engine(config_text(script));
  if (!engine) {
    say(engine.error().line());
    return kFailed;
  }
  if (const auto done = give_up_rights(); !done) {
    say(done.error().line());
    return kFailed;
  }
  return Life(std::move(*engine)).run();
}

}  // namespace isolate
