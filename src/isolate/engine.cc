// How the engine is started: all that it will have is made ready before fork, and its own exec is
// the last that its filter lets through.
#include "isolate/engine.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "confine/confine.h"
#include "isolate/isolate.h"
#include "os/files.h"

namespace isolate {
namespace {

constexpr int kListen = 3;
constexpr int kConfig = 4;
constexpr int kFailed = 125;

// An abstract name that the kernel picks; nobody outside of the network namespace can see it.
base::Result<std::pair<base::Fd, sockaddr_un>> listen_somewhere() {
  base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.open()) return base::system_error("socket");
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  auto* address = reinterpret_cast<sockaddr*>(&name);
  if (::bind(fd.get(), address, sizeof(sa_family_t)) != 0) return base::system_error("bind");
  socklen_t size = sizeof name;
  if (::getsockname(fd.get(), address, &size) != 0) return base::system_error("getsockname");
  if (::listen(fd.get(), 2) != 0) return base::system_error("listen");
  return std::pair(std::move(fd), name);
}

base::Result<base::Fd> connect_to(const sockaddr_un& name) {
  base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.open()) return base::system_error("socket");
  constexpr socklen_t kSize = offsetof(sockaddr_un, sun_path) + 6;  // of an autobound name, unix(7)
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), kSize) != 0) {
    return base::system_error("connect");
  }
  return fd;
}

struct Ends {
  int program;
  int listen;
  int config;
  int out;
  int err;
  const confine::Filter* filter;
};

// In the child, one thread, no allocation. Returns only on failure.
const char* become_engine(const Ends& ends) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "prctl";
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, 0) < 0) return "open /dev/null";
  if (::dup3(ends.program, confine::kIsolateProgram, O_CLOEXEC) < 0) return "dup3";
  // From above every number that is filled, so that none is written over.
  const int high_listen = ::fcntl(ends.listen, F_DUPFD_CLOEXEC, 16);
  const int high_config = ::fcntl(ends.config, F_DUPFD_CLOEXEC, 16);
  if (high_listen < 0 || high_config < 0) return "fcntl";
  if (::dup2(ends.out, 1) < 0 || ::dup2(ends.err, 2) < 0 || ::dup2(high_listen, kListen) < 0 ||
      ::dup2(high_config, kConfig) < 0) {
    return "dup2";
  }
  if (::close_range(kConfig + 1, confine::kIsolateProgram - 1, 0) != 0) return "close_range";
  // No descriptor gets the program's number again: it is past this limit, which cannot be raised.
  constexpr rlimit kFiles = {confine::kIsolateProgram, confine::kIsolateProgram};
  if (::setrlimit(RLIMIT_NOFILE, &kFiles) != 0) return "setrlimit";
  // Where its starter gave this process no filter (a test's positive control), the engine gets
  // none.
  const int mode = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
  if (mode < 0) return "prctl";
  if (mode != 0 && !confine::install(*ends.filter)) return "seccomp";
  static const char* const kArgv[] = {"workerd",     "serve",   "/proc/self/fd/4",
                                      "--socket-fd", "start=3", nullptr};
  static const char* const kEnv[] = {"LD_LIBRARY_PATH=/lib",
                                     "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", nullptr};
  ::syscall(SYS_execveat, confine::kIsolateProgram, "", kArgv, kEnv, AT_EMPTY_PATH);
  return "execveat";
}

}  // namespace

base::Result<Engine> start_engine(std::string_view config) {
  Engine engine;
  const std::string path(kEngine);
  const base::Fd program = TRY(os::open(path, O_PATH, 0));
  const base::Fd text = TRY(os::sealed_memfd("config", config));
  auto [listening, name] = TRY(listen_somewhere());
  // In this order they are taken, and both before the engine runs, so that no socket is made later.
  engine.request = TRY(connect_to(name));
  engine.finish = TRY(connect_to(name));
  auto out = TRY(os::pipe());
  auto err = TRY(os::pipe());
  const confine::Filter filter = confine::filter(confine::Profile::isolate);
  const Ends ends = {program.get(),    listening.get(),  text.get(),
                     out.second.get(), err.second.get(), &filter};
  engine.pid = ::fork();
  if (engine.pid < 0) return base::system_error("fork");
  if (engine.pid == 0) {
    const std::string_view step = become_engine(ends);
    const int error = errno;
    (void)!::write(2, step.data(), step.size());
    (void)!::write(2, ": ", 2);
    const char* word = ::strerrorname_np(error);
    const std::string_view why = word == nullptr ? "" : word;
    (void)!::write(2, why.data(), why.size());
    ::_exit(kFailed);
  }
  engine.out = std::move(out.first);
  engine.err = std::move(err.first);
  return engine;
}

}  // namespace isolate
