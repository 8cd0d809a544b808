// The guest's start before its sandbox.
#include "sandbox/guest/stage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "os/os.h"
#include "sandbox/container/rights.h"
#include "sandbox/guest/guest.h"

namespace sandbox {

namespace {

constexpr const char* kRoot = "/root";
constexpr const char* kBaseDisk = "/dev/vda";
constexpr const char* kCard = "eth0";
constexpr int kPatience = 5'000;  // milliseconds for a device of the machine to show

base::Status mount_at(const char* source, const char* target, const char* kind, unsigned long flags,
                      const char* options) {
  (void)::mkdir(target, 0755);
  if (::mount(source, target, kind, flags, options) != 0) {
    return base::system_error(std::string("mount ") + target);
  }
  return {};
}

base::Status write_setting(const std::string& path, std::string_view text) {
  const base::Fd file = TRY(os::open(path, O_WRONLY, 0));
  return os::write_all(file.get(), text, path);
}

base::Status load_modules() {
  for (const auto& name : TRY(os::list_folder(kModules))) {
    const base::Fd file = TRY(os::open(fmt::format("{}/{}", kModules, name), O_RDONLY, 0));
    if (::syscall(SYS_finit_module, file.get(), "", 0) != 0 && errno != EEXIST) {
      return base::system_error("load module " + name);
    }
  }
  return write_setting("/proc/sys/kernel/modules_disabled", "1");
}

// The first root of a kernel cannot be left by pivot_root(2); one that is mounted over it can.
base::Status leave_first_root() {
  TRY(mount_at("tmpfs", kRoot, "tmpfs", MS_NOSUID, "mode=0755,size=16m"));
  for (const char* name : {"/proc", "/sys", "/dev"}) {
    const std::string target = std::string(kRoot) + name;
    (void)::mkdir(target.c_str(), 0755);
    if (::mount(name, target.c_str(), nullptr, MS_MOVE, nullptr) != 0) {
      return base::system_error("move " + target);
    }
  }
  const std::string init = TRY(os::read_file(kGuestInit, std::size_t{16} << 20));
  const base::Fd file =
      TRY(os::open(std::string(kRoot) + kGuestInit, O_WRONLY | O_CREAT | O_EXCL, 0500));
  TRY(os::write_all(file.get(), init, kGuestInit));
  if (::chdir(kRoot) != 0 || ::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 ||
      ::chroot(".") != 0 || ::chdir("/") != 0) {
    return base::system_error("leave the first root");
  }
  return {};
}

// Nothing to be learned of the kernel, and no keys into it.
base::Status close_kernel() {
  static constexpr std::pair<const char*, const char*> kSettings[] = {
      {"/proc/sys/kernel/sysrq", "0"},
      {"/proc/sys/kernel/kptr_restrict", "2"},
      {"/proc/sys/kernel/dmesg_restrict", "1"},
      {"/proc/sys/kernel/unprivileged_bpf_disabled", "1"},
      {"/proc/sys/kernel/kexec_load_disabled", "1"},
      {"/proc/sys/kernel/perf_event_paranoid", "3"},
      {"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
      {"/proc/sys/net/ipv6/conf/all/accept_ra", "0"},
      {"/proc/sys/net/ipv6/conf/default/accept_ra", "0"}};
  for (const auto& [path, value] : kSettings) TRY(write_setting(path, value));
  return {};
}

template <std::size_t N>
void take_address(std::string_view text, std::array<std::uint8_t, N>& into) {
  const auto address = policy::parse_address(text);
  if (address) std::copy_n(address->bytes.begin(), N, into.begin());
}

}  // namespace

base::Status prepare_guest() {
  ::umask(022);
  TRY(mount_at("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  TRY(mount_at("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  TRY(mount_at("devtmpfs", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755"));
  TRY(load_modules());
  TRY(leave_first_root());
  return close_kernel();
}

base::Result<base::Fd> open_port(std::string_view name) {
  const std::string folder = "/sys/class/virtio-ports";
  for (int waited = 0; waited < kPatience; ++waited) {
    const auto ports = os::list_folder(folder);
    for (const auto& port : ports ? *ports : std::vector<std::string>()) {
      const auto told = os::read_file(fmt::format("{}/{}/name", folder, port), 128);
      if (told && *told == std::string(name) + "\n") return os::open("/dev/" + port, O_RDWR, 0);
    }
    // The host's names come in messages of their own after the device.
    ::usleep(1000);
  }
  return base::system_error(fmt::format("port {}", name), ENODEV);
}

base::Status become_new(const GuestLaunch& launch) {
  const base::Fd pool = TRY(os::open("/dev/urandom", O_RDWR, 0));
  std::vector<char> request(sizeof(rand_pool_info) + launch.entropy.size());
  rand_pool_info head = {};
  // Five bits each.
  head.entropy_count = static_cast<int>(launch.entropy.size() * 5);
  head.buf_size = static_cast<int>(launch.entropy.size());
  std::memcpy(request.data(), &head, sizeof head);
  std::memcpy(request.data() + sizeof head, launch.entropy.data(), launch.entropy.size());
  if (::ioctl(pool.get(), RNDADDENTROPY, request.data()) != 0 ||
      ::ioctl(pool.get(), RNDRESEEDCRNG, nullptr) != 0) {
    return base::system_error("seed the random numbers");
  }
  const timespec now = {static_cast<time_t>(launch.seconds), static_cast<long>(launch.nanoseconds)};
  if (::clock_settime(CLOCK_REALTIME, &now) != 0) return base::system_error("set the clock");
  return {};
}

base::Status mount_base() {
  return mount_at(kBaseDisk, plan::kGuestBase.data(), "erofs", MS_RDONLY | MS_NOSUID | MS_NODEV,
                  nullptr);
}

base::Status mount_groups() {
  return mount_at("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                  nullptr);
}

base::Status set_up_network() {
  const plan::Capture addresses;
  priv::NamespaceNetwork network;
  take_address(addresses.own_v4, network.own4);
  take_address(addresses.own_v6, network.own6);
  take_address(plan::kProxyAddress, network.gateway4);
  take_address(plan::kGateway6, network.gateway6);
  const unsigned index = ::if_nametoindex(kCard);
  if (index == 0) return base::system_error("network card");
  const base::Fd routes = TRY(priv::open_netlink(Rights::badge(), NETLINK_ROUTE));
  return priv::transact_from_outside(Rights::badge(), routes.get(),
                                     priv::card_messages(network, index));
}

}  // namespace sandbox
