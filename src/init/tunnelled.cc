// Two processes where one stands in the container: the tunnel's end as pid 1, and init below it.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "confine/confine.h"
#include "init/init.h"
#include "os/socket.h"
#include "tunnel/tunnel.h"

namespace init {
namespace {

constexpr int kControl = 3;
constexpr int kFailed = 125;

void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
}

// Below pid 1: orphans are its own, and nothing of the stream stays open in it.
int serve_as_init(int control) {
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return kFailed;
  for (int stream = 0; stream < 3; ++stream) {
    if (::dup2(null, stream) < 0) return kFailed;
  }
  if (::dup2(control, kControl) < 0 || !confine::close_from(kControl + 1)) return kFailed;
  // Below gVisor's kernel nobody but pid 1 can have orphans for children: it leaves no zombies.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 && errno != EINVAL) return kFailed;
  return run(kControl, Kills::everyone);
}

// What pid 1 keeps is its descriptors: it only carries bytes. The pipes that it makes are the
// workload's.
confine::Outcome give_up_all() {
  constexpr std::uint32_t kWorkload = 1000;
  if (const auto done = confine::drop_bounding(); !done) return done;
  if (const auto done = confine::act_as(kWorkload); !done) return done;
  if (const auto done = confine::not_dumpable(); !done) return done;
  if (const auto done = confine::keep_capabilities(confine::kNone); !done) return done;
  if (const auto done = confine::no_new_privs(); !done) return done;
  return confine::install(confine::filter(confine::Own::tunnel));
}

}  // namespace

int run_tunnelled(int in, int out) {
  block_signals();
  if (!confine::not_dumpable()) return kFailed;
  auto pair = os::socket_pair(SOCK_SEQPACKET);
  if (!pair) return kFailed;
  const pid_t child = ::fork();
  if (child < 0) return kFailed;
  if (child == 0) {
    pair->first.reset();
    ::_exit(serve_as_init(pair->second.get()));
  }
  pair->second.reset();
  (void)::signal(SIGCHLD, SIG_IGN);
  if (!give_up_all()) return kFailed;
  return tunnel::serve(tunnel::Side::inside, {in, out, pair->first.get()});
}

}  // namespace init
