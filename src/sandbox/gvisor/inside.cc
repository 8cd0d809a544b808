// The acts of a start in the process that becomes runsc.
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "os/os.h"
#include "priv/veth.h"
#include "sandbox/container/rights.h"
#include "sandbox/gvisor/gvisor.h"

namespace sandbox::gvisor {

namespace {

using priv::kNoDev;
using priv::kNoExec;
using priv::kNoSuid;
using priv::kReadOnly;
using priv::Place;

// Below the sandbox's /dev/shm, a tmpfs that nobody sees but runsc.
constexpr const char* kBundle = "/dev/shm/bundle";
constexpr const char* kState = "/dev/shm/state";
constexpr const char* kWholeProc = "/dev/shm/proc";
constexpr const char* kConfiguration = "/dev/shm/bundle/config.json";
constexpr const char* kCore = "/proc/sys/net/core";
constexpr std::size_t kMostInit = 16U << 20;

priv::Badge badge() {
  return Rights::badge();
}

}  // namespace

base::Status make_network(const Prepared& prepared, const priv::Inside& inside, int proc,
                          int routes) {
  TRY(priv::without_ipv6(badge(), inside, proc));
  const base::Fd first = TRY(priv::second_network(badge(), inside, proc));
  TRY(priv::without_ipv6(badge(), inside, proc));
  const base::Fd second = TRY(priv::open_netlink(badge(), NETLINK_ROUTE));
  TRY_IN("pair of interfaces", priv::transact(badge(), inside, second.get(),
                                              priv::pair_messages(prepared.network, first.get())));
  TRY_IN("uplink",
         priv::transact(badge(), inside, routes, priv::uplink_messages(prepared.network)));
  return {};
}

base::Status place_init(const Prepared& prepared, const priv::Inside& inside, int root, int init) {
  const std::string program = TRY(os::read_all(init, kMostInit, "cerco-init"));
  return priv::write_file(badge(), inside, root, kInit, program, 0500, prepared.owner);
}

base::Status prepare(const Prepared& prepared, const priv::Inside& inside, int root) {
  for (const char* folder : {kBundle, kState}) {
    TRY(priv::make_folder(badge(), inside, root, folder, 0700, 0));
  }
  const std::string configured = configuration(*prepared.plan, prepared.owner);
  TRY(priv::write_file(badge(), inside, root, kConfiguration, configured, 0600, 0));
  const base::Fd proc = TRY(priv::new_mount(badge(), "proc", {}, kNoSuid | kNoDev | kNoExec));
  const base::Fd place = TRY(priv::make_place(badge(), inside, root, kWholeProc, Place::folder, 0));
  TRY(priv::attach(badge(), inside, proc.get(), place.get()));
  const auto core = priv::find_in(root, kCore);
  if (!core && core.error().number == ENOENT) return {};
  if (!core) return std::unexpected(core.error());
  const base::Fd nothing =
      TRY(priv::new_mount(badge(), "tmpfs", {{"size", "4096"}, {"mode", "0555"}},
                          kReadOnly | kNoSuid | kNoDev | kNoExec));
  return priv::attach(badge(), inside, nothing.get(), core->get());
}

base::Status execute(const Prepared& prepared, const StartEnds& ends, int runsc) {
  TRY(priv::die_with_parent(badge()));
  char byte = 0;
  if (::recv(ends.channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) ::_exit(125);
  for (int stream = 0; stream < 3; ++stream) {
    if (::dup2(ends.streams[stream], stream) < 0) return base::system_error("dup2");
  }
  if (::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    return base::system_error("close_range");
  }
  const std::string root = std::string("--root=") + kState;
  const std::string platform = "--platform=" + prepared.gvisor->platform;
  const std::string bundle = std::string("--bundle=") + kBundle;
  const char* argv[] = {"runsc",
                        root.c_str(),
                        platform.c_str(),
                        "--network=sandbox",
                        "--ignore-cgroups",
                        "--overlay2=none",
                        "run",
                        bundle.c_str(),
                        prepared.plan->run.c_str(),
                        nullptr};
  const char* env[] = {"PATH=/usr/bin:/bin", "TMPDIR=/tmp", nullptr};
  ::syscall(SYS_execveat, runsc, "", argv, env, AT_EMPTY_PATH);
  return base::system_error("execute runsc");
}

}  // namespace sandbox::gvisor
