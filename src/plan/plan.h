// Exactly what will be done: the Plan, made from a Policy and the facts of the host.
//
// A Plan is a plain value. `cerco check` prints it, `cerco run` executes it, and the supervisor
// verifies it again before the first privileged act. `steps` is the container's start in order;
// each Step and the function that carries it out in priv or confine carry the same name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/base.h"
#include "plan/broker_frames.h"   // IWYU pragma: export
#include "plan/gateway_frames.h"  // IWYU pragma: export
#include "plan/minter_frames.h"   // IWYU pragma: export
#include "policy/policy.h"

namespace plan {

// --- Facts ---------------------------------------------------------------------------------

// Who starts the sandbox. As an ordinary user all namespaces belong to a user namespace of the
// caller's, whose map has one id: cerco's own processes, the sandbox's init and the workload share
// the caller's uid, and the working disk lies in memory.
enum class Rights { root, user, last_ = user };
[[nodiscard]] std::string_view to_string(Rights rights);

// What an ordinary user was refused when making namespaces was tried.
enum class Refused { nothing, user_namespace, namespaces, proc, last_ = proc };

enum class CgroupKind { v1, v2, last_ = v2 };
// Where one controller of this host can hold a limit; `path` is the folder that our groups go
// below.
struct Controller {
  CgroupKind kind = CgroupKind::v2;
  std::string path;
  bool operator==(const Controller&) const = default;
  template <class W>
  void fields(W& w) {
    w(kind, path);
  }
};

// What a guest's instructions are carried out by.
enum class Accelerator { kvm, emulation, last_ = emulation };
[[nodiscard]] std::string_view to_string(Accelerator accelerator);  // "KVM", "emulated"

// What the microVM tier stands on. Filled by module host where that tier may be taken.
struct MachineFacts {
  bool asked = false;                  // whether any of this was looked for
  std::string vmm;                     // QEMU's program; "": none here
  std::vector<std::string> vmm_files;  // it, its libraries and its firmware: all that it reads
  std::string kernel;                  // the guest's vmlinuz; "": none here
  std::vector<std::string> modules;    // and its modules, in the order in which they are loaded
  std::string base_image;     // EROFS image of filesystem.base as it is now; "": none was made
  std::string kvm_lack;       // why a guest cannot run on /dev/kvm; "": it can, as one has shown
  bool tun = false;           // /dev/net/tun can be opened
  std::uint64_t tsc_khz = 0;  // how fast the processors' time-stamp counters run
};
// The V8 engine of the isolate tier, as it is installed beside cerco.
struct Engine {
  std::string version;         // of its npm package, "1.20261117.1"
  std::string day;             // "2026-11-17"; "" where the version does not say
  std::uint64_t days_old = 0;  // by this host's clock
  // Path inside → file of this host: the engine, what starts it, and the libraries they load.
  std::map<std::string, std::string> files;
  std::vector<std::string> lacking;  // libraries that it loads and that are not here
  bool operator==(const Engine&) const = default;
};
inline constexpr std::string_view kEngineProgram = "/engine/workerd";
inline constexpr std::string_view kEngineStarter = "/engine/cerco-isolate";

// What this kernel, distribution and outer boundary can give. Filled by module host.
struct HostFacts {
  std::string kernel;  // "6.1.0-…"
  unsigned kernel_major = 0;
  unsigned kernel_minor = 0;
  bool root = false;
  std::set<std::string> capabilities;  // effective, lower case without CAP_: "sys_admin"
  int landlock_abi = 0;                // 0: none
  bool seccomp = false;
  bool user_namespaces = false;
  // Of these three nothing is asked as root.
  Refused refused = Refused::nothing;
  bool userns_for_root_alone = false;    // kernel.unprivileged_userns_clone = 0
  bool userns_by_profile_alone = false;  // kernel.apparmor_restrict_unprivileged_userns = 1
  bool time_namespaces = false;
  bool loop_devices = false;
  bool nf_tables = false;
  // "memory", "pids", "cpu", "cpuacct", "freezer", "cpuset"; and "unified" where a v2 hierarchy is
  // mounted (cgroup.kill), also without controllers.
  std::map<std::string, Controller> controllers;
  policy::HostSize size;
  // The most that RLIMIT_NOFILE can be set to here: the caller's own hard limit without
  // CAP_SYS_RESOURCE, else fs.nr_open. 0: not known.
  std::uint64_t most_files = 0;
  std::uint64_t swap_total = 0;  // bytes of swap that the host has
  // Filled by host::look_at_storage, where a policy asks for what stands on it. The whole disks
  // that the base and the state directory lie on, as "MAJOR:MINOR".
  std::vector<std::string> disks;
  bool overlays = false;           // the kernel has overlayfs
  bool base_stacked = false;       // /usr itself lies on an overlay, which takes no further two
  bool swap_accounting = false;    // memory.memsw.* (v1) or memory.swap.max (v2) can hold a limit
  bool socket_accounting = false;  // memory.kmem.tcp.* (v1) can hold a limit; v2 counts them itself
  std::uint64_t state_disk_free = 0;  // bytes free where the state directory lies
  std::uint64_t state_disk_total = 0;
  std::string state_dir;
  std::vector<std::string> resolvers;  // of the host, IP or IP:port
  std::string roots_file;  // upstream roots: SSL_CERT_FILE of the caller, else the host's bundle
  std::string helper_dir;  // where cerco-init, cerco-gateway … lie
  Engine engine;
  // gVisor's runsc: where it is, "" for nowhere. What it is and which platform it has on this host
  // is asked of it only where the tier may be used (host::ask_runsc); "" until then.
  std::string runsc;
  std::string runsc_release;
  std::string runsc_platform;
  // Folders of the base that exist on this host and what they are: "/usr" → "dir", "/bin" →
  // "link:usr/bin".
  std::map<std::string, std::string> base;
  // Files of /etc that are synthesised from the host's (ld.so.cache, localtime, alternatives, …).
  // Only what is_curated_etc() lets in.
  std::map<std::string, std::string> etc_binds;  // path inside → path on the host
  MachineFacts machine;
};

// Bytes of a disk of `total` bytes that no sandbox takes: a run is refused that could, and ended
// when it is near.
[[nodiscard]] constexpr std::uint64_t kept_for_host(std::uint64_t total) {
  return total / 20;
}

// --- Steps of the container's start --------------------------------------------------------
//
// They are carried out in the order of the list. A step that mounts (BindReadOnly, TrustBundle,
// MountDisk, MountDev, MountProc) or writes a file makes its own mount point, as a file or a folder
// like its source; the parent of every target is "/", a MakeFolder before it, or a folder of the
// working disk. Only a bind whose target lies on the working disk, and the folders above it, come
// after MountDisk.

// Whether a path of /etc may come in from the host: what tools need and what holds no account, key
// or network.
[[nodiscard]] bool is_curated_etc(std::string_view path);

// Every protection by name. A test takes single ones out of a Plan (positive controls); verify()
// refuses a Plan in which one is missing that its policy asks for.
enum class Protection {
  cgroup,
  user_namespace,
  pid_namespace,
  mount_namespace,
  network_namespace,
  ipc_namespace,
  uts_namespace,
  cgroup_namespace,
  time_namespace,
  read_only_base,
  base_as_nobody,
  private_proc,
  proc_masks,
  minimal_dev,
  pivot_root,
  disk_limit,
  drop_capabilities,
  no_new_privs,
  landlock,
  seccomp,
  rlimits,
  session_keyring,
  capture,
  memory_limit,
  process_limit,
  cpu_limit,
  io_limit,
  wall_limit,
  processor_time_limit,
  // At the gateway and the broker:
  name_filter,
  address_guard,
  sni_check,
  strict_http,
  upstream_verify,
  binding,
  redaction,
  last_ = redaction
};
[[nodiscard]] std::string_view to_string(Protection protection);
[[nodiscard]] std::optional<Protection> protection_named(std::string_view name);

struct EnterCgroup {
  template <class W>
  void fields(W&) {}
  bool operator==(const EnterCgroup&) const = default;
};
// clone3(2) of the namespaces in `kinds` ("user", "mount", "pid", "network", "ipc", "uts",
// "cgroup", "time").
struct CloneNamespaces {
  std::vector<std::string> kinds;
  bool operator==(const CloneNamespaces&) const = default;
  template <class W>
  void fields(W& w) {
    w(kinds);
  }
};
// inside 0 … count-1 → host first … (leased at the start). With a count of 1: inside 1000 → the
// caller's own uid and gid.
struct MapUsers {
  std::uint64_t count = 65536;
  bool operator==(const MapUsers&) const = default;
  template <class W>
  void fields(W& w) {
    w(count);
  }
};
// A sparse ext4 image, a tmpfs, or in a guest the second disk of its machine.
enum class Store { image, memory, device, last_ = device };
// What the tree is built on: a tmpfs, read-only at the end, or with an image a folder of the
// working disk, which is the workload's own like all that is made there (filesystem.root =
// "scratch").
struct MountRoot {
  std::uint64_t size = 0;
  Store store = Store::memory;
  bool operator==(const MountRoot&) const = default;
  template <class W>
  void fields(W& w) {
    w(size, store);
  }
};
struct BindReadOnly {  // a host folder or file, nosuid nodev, read-only, recursively
  std::string source;
  std::string target;
  bool operator==(const BindReadOnly&) const = default;
  template <class W>
  void fields(W& w) {
    w(source, target);
  }
};
// A host folder under a layer on the working disk that takes all changes: what everybody may read
// of it, as the workload's own, nosuid nodev. A host file as BindReadOnly has it.
struct LayScratch {
  std::string source;
  std::string target;
  bool operator==(const LayScratch&) const = default;
  template <class W>
  void fields(W& w) {
    w(source, target);
  }
};
struct MakeLink {
  std::string target;  // where the link stands
  std::string text;    // what it says
  bool operator==(const MakeLink&) const = default;
  template <class W>
  void fields(W& w) {
    w(target, text);
  }
};
struct WriteFile {  // a synthesised file
  std::string target;
  std::string content;
  std::uint32_t mode = 0644;
  bool operator==(const WriteFile&) const = default;
  template <class W>
  void fields(W& w) {
    w(target, content, mode);
  }
};
struct MakeFolder {
  std::string target;
  std::uint32_t mode = 0755;
  bool operator==(const MakeFolder&) const = default;
  template <class W>
  void fields(W& w) {
    w(target, mode);
  }
};
// What the limits of the sandbox's own groups are, read-only: /sys/fs/cgroup, or with version 1 a
// folder of that name a controller. Sources are the folders that the plan's groups get.
struct MountCgroups {
  template <class W>
  void fields(W&) {}
  bool operator==(const MountCgroups&) const = default;
};
// Own procfs; /proc/sys read-only; `masks` are covered by an empty file or folder: paths of /proc,
// and what filesystem.hide names below a path of filesystem.read_only.
struct MountProc {
  std::vector<std::string> masks;
  std::vector<std::string> read_only;
  std::string meminfo = {};  // stands in /proc/meminfo's place; "": the kernel's own
  bool operator==(const MountProc&) const = default;
  template <class W>
  void fields(W& w) {
    w(masks, read_only, meminfo);
  }
};
enum class Devices { made, bound, last_ = bound };  // device files: our own, or the host's by bind
inline constexpr std::uint32_t kMostTerminals = 128;  // of the host's 4096, which all share
struct MountDev {  // tmpfs with null zero full random urandom tty, fd links, shm of `shm_size`, own
                   // mqueue, own devpts of at most `terminals`
  std::uint64_t shm_size = 0;
  Devices devices = Devices::made;
  std::uint32_t terminals = kMostTerminals;
  bool operator==(const MountDev&) const = default;
  template <class W>
  void fields(W& w) {
    w(shm_size, devices, terminals);
  }
};
// Whether the blocks of a disk in an image are taken at the start or as they are written.
enum class Blocks { as_written, reserved, last_ = reserved };
struct MountDisk {  // the disk of limits.disk: its folders appear at `targets` as the workload's
                    // own
  std::uint64_t size = 0;
  std::uint64_t inodes = 0;
  std::vector<std::string> targets;  // "/workspace", "/home/agent", "/tmp", "/var/tmp"
  Store store = Store::image;
  Blocks blocks = Blocks::as_written;
  bool operator==(const MountDisk&) const = default;
  template <class W>
  void fields(W& w) {
    w(size, inodes, targets, store, blocks);
  }
};
struct TrustBundle {  // host roots plus the run's own authority, over `targets`; only where TLS is
                      // terminated
  std::vector<std::string> targets;
  bool operator==(const TrustBundle&) const = default;
  template <class W>
  void fields(W& w) {
    w(targets);
  }
};
struct PivotRoot {
  template <class W>
  void fields(W&) {}
  bool operator==(const PivotRoot&) const = default;
};
struct SetHostname {
  std::string name = "sandbox";
  bool operator==(const SetHostname&) const = default;
  template <class W>
  void fields(W& w) {
    w(name);
  }
};
// The network namespace's only interface, its routes and the packet rules; then the capture sockets
// (TCP by TPROXY, UDP and TCP 53, refusal log) are opened and handed out. TCP to `steered` is taken
// to the gateway, everything else is refused in the kernel.
inline constexpr std::string_view kProxyAddress = "198.18.0.1";  // the explicit proxy, inside
inline constexpr std::uint16_t kProxyPort = 3128;
inline constexpr std::string_view kGateway6 = "fd63:6572:636f::1";  // of the gateway's sockets
struct Steered {
  std::string cidr;  // "198.18.0.0/15", "fd…/64", or a literal of a tcp or cidr rule
  std::vector<std::uint16_t> ports;  // empty: every port
  bool operator==(const Steered&) const = default;
  template <class W>
  void fields(W& w) {
    w(cidr, ports);
  }
};
struct Capture {
  std::string own_v4 = "198.18.0.2";
  std::string own_v6 = "fd63:6572:636f::2";
  std::string pool_v4 = "198.19.0.0/16";
  std::string pool_v6 = "fd63:6572:636f:1::/64";
  std::vector<Steered> steered;
  // Beside `steered`, TCP to every address that the address guard calls open.
  bool steer_public = false;
  bool operator==(const Capture&) const = default;
  template <class W>
  void fields(W& w) {
    w(own_v4, own_v6, pool_v4, pool_v6, steered, steer_public);
  }
};
// The network namespace's only way to a guest: a tap, whose other end is the guest's card. What the
// guest sends is caught as the rest; what it is sent goes to own_v4 and own_v6 of the Capture,
// which are the guest's and not the namespace's.
struct MakeTap {
  template <class W>
  void fields(W&) {}
  bool operator==(const MakeTap&) const = default;
};
struct DropCapabilities {
  template <class W>
  void fields(W&) {}
  bool operator==(const DropCapabilities&) const = default;
};
struct NoNewPrivs {
  template <class W>
  void fields(W&) {}
  bool operator==(const NoNewPrivs&) const = default;
};
struct Landlock {
  std::vector<std::string> read;   // read and execute below
  std::vector<std::string> write;  // everything below
  bool operator==(const Landlock&) const = default;
  template <class W>
  void fields(W& w) {
    w(read, write);
  }
};
struct Rlimits {
  std::uint64_t files = 65536;
  std::uint64_t processes = 0;  // of the sandbox, init included, where no cgroup holds it; 0: none
  // How many processors programs count (nproc); what they get is the cgroup's to hold. 0: all.
  std::uint64_t processors = 0;
  bool operator==(const Rlimits&) const = default;
  template <class W>
  void fields(W& w) {
    w(files, processes, processors);
  }
};
struct Seccomp {
  policy::SeccompProfile profile = policy::SeccompProfile::standard;
  bool operator==(const Seccomp&) const = default;
  template <class W>
  void fields(W& w) {
    w(profile);
  }
};

// cerco-init in a kernel of gVisor's, which `program` (runsc) starts with the tree as its root:
// from here on no system call of the workload reaches the host's kernel, but what that kernel asks
// for.
struct RunGvisor {
  std::string program;
  std::string release;
  std::string platform;  // how it catches system calls: "systrap", "ptrace"
  bool operator==(const RunGvisor&) const = default;
  template <class W>
  void fields(W& w) {
    w(program, release, platform);
  }
};

using Step = std::variant<EnterCgroup, CloneNamespaces, MapUsers, SetHostname, Capture, MakeTap,
                          MountRoot, MakeFolder, MakeLink, BindReadOnly, LayScratch, WriteFile,
                          TrustBundle, MountDisk, MountDev, MountCgroups, MountProc, PivotRoot,
                          Landlock, DropCapabilities, NoNewPrivs, Rlimits, Seccomp, RunGvisor>;

// --- The Plan ------------------------------------------------------------------------------

struct Command {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string cwd = "/workspace";
  bool operator==(const Command&) const = default;
  template <class W>
  void fields(W& w) {
    w(argv, env, cwd);
  }
};

// What stands for a credential inside. Random, per run, worth nothing outside of it.
struct Placeholder {
  std::string credential;
  std::string field = "secret";
  std::string value;
  bool operator==(const Placeholder&) const = default;
  template <class W>
  void fields(W& w) {
    w(credential, field, value);
  }
};

// A credential that opens nothing, planted in the home. Random, per run.
struct Canary {
  std::string kind;    // of policy::kCanaries
  std::string id;      // aws: the id of the key, which requests show; else ""
  std::string secret;  // 36 characters or more
  bool operator==(const Canary&) const = default;
  template <class W>
  void fields(W& w) {
    w(kind, id, secret);
  }
};

// controller → where our folder `cerco-RUN` is made; `limits` are files to write there, in order
// (which is alphabetical). Several groups may have one path (v2; cpu and cpuacct of v1): that is
// one folder. Where `where.kind` is v2 and a limit's controller is not yet in the parent's
// cgroup.subtree_control, it is enabled.
struct CgroupPlan {
  struct Group {
    std::string controller;
    Controller where;
    std::vector<std::pair<std::string, std::string>> limits;  // file → text
    bool operator==(const Group&) const = default;
    template <class W>
    void fields(W& w) {
      w(controller, where);
      std::map<std::string, std::string> all(limits.begin(), limits.end());
      w(all);
      limits.assign(all.begin(), all.end());
    }
  };
  std::vector<Group> groups;
  bool operator==(const CgroupPlan&) const = default;
  template <class W>
  void fields(W& w) {
    w(groups);
  }
};

// The machine of the microVM tier: a guest kernel of its own, under a VMM in a box of its own. The
// plan's steps are then split: EnterCgroup and Capture are done on the host, with a MakeTap, for
// the box; the rest is done again inside the guest. The plan's cgroup is the box's.
struct Machine {
  Accelerator accelerator = Accelerator::kvm;
  std::string vmm;
  std::vector<std::string> files;  // all that the VMM's box holds
  std::string kernel;
  std::vector<std::string> modules;
  std::string base;          // EROFS image, the guest's first disk
  std::uint64_t memory = 0;  // bytes of the machine
  std::uint64_t processors = 0;
  std::uint64_t tsc_khz = 0;
  CgroupPlan cgroup;  // the groups inside the guest, which hold the workload's limits
  bool operator==(const Machine&) const = default;
  template <class W>
  void fields(W& w) {
    w(accelerator, vmm, files, kernel, modules, base, memory, processors, tsc_khz, cgroup);
  }
};

struct Plan {
  std::string run;
  std::string name;
  policy::Policy policy;  // effective; its limits are the ones that hold
  std::string policy_sha256;
  policy::Tier tier = policy::Tier::container;
  std::string engine;  // of an isolate: which V8, and how old
  Rights rights = Rights::root;
  // Why this is weaker than advised, one entry a risk; empty when it is not.
  std::vector<std::string> below_advice;
  std::vector<std::string> unheld;  // limits of not_required that this host cannot hold
  std::set<Protection> protections;
  CgroupPlan cgroup;
  std::optional<Machine> machine;  // in the microVM tier
  std::vector<Step> steps;
  Command command;       // of a session: without argv, what its commands have in common
  bool session = false;  // commands come later, one by one; it ends when nothing is asked of it
  std::vector<Placeholder> placeholders;
  std::vector<Canary> canaries;
  std::vector<std::string> resolvers;  // IP:port, upstream
  bool terminates = false;           // some host is looked into over TLS: the gateway starts first
  std::vector<std::string> retired;  // credentials that a change() left out: revoked for good
  policy::Limits asked;              // as the policy had them, before they were fitted to the host
  std::string state_dir;
  std::string helper_dir;
  bool operator==(const Plan&) const = default;
  template <class W>
  void fields(W& w) {
    w(run, name, policy, policy_sha256, tier, engine, rights, below_advice, unheld, protections,
      cgroup, machine, steps, command, session, placeholders, canaries, resolvers, terminates,
      retired, asked, state_dir, helper_dir);
  }
};

// Descriptor numbers that every process of ours finds at its start. 0, 1 and 2 are /dev/null (2 is
// the supervisor's own standard error); kPlan is a sealed memfd with encode(Plan).
enum : int {
  kFdPlan = 3,
  kFdControl = 4,  // SEQPACKET to the supervisor; the minter's to the broker
  kFdJournal = 5,  // SEQPACKET to the journal (gateway, broker)
  kFdBroker = 6,   // SEQPACKET gateway ↔ broker (both have it here)
  kFdRoots = 7,    // gateway, broker, minter: memfd with the upstream roots as PEM
  kFdMinter = 8,   // SEQPACKET broker → minter, where the policy mints
  // The capture sockets come by GatewayServe.
};

// What the caller asks beyond the policy.
struct Ask {
  std::string name;
  std::vector<std::string> argv;
  std::string cwd;                                // "" : the working folder
  std::map<std::string, std::string> caller_env;  // the values of environment.pass, already read
  bool session = false;                           // `cerco start`: no argv
  bool detached = false;                          // `cerco run --detach`
};

// The Plan for a policy on a host. `random(n)` gives n characters of a-z2-7. Errors: missing (a
// protection, limit or right that was asked for and cannot be given; the message names all of them
// and what would do), unsupported (a tier or mode that is not carried out yet), bad_input.
[[nodiscard]] base::Result<Plan> make(const policy::Policy& policy, const HostFacts& host,
                                      const Ask& ask,
                                      const std::function<std::string(std::size_t)>& random);

// The plan of a running sandbox under another policy: its rules, denials, alerts, the reach of its
// bindings, and what its packet rules take to the gateway, with the next revision. Credentials that
// `wanted` leaves out stay in the list, retired, so that the others keep their places. bad_input,
// WHERE the key ("limits.wall", "credential[1].source"), for what cannot change while it runs.
[[nodiscard]] base::Result<Plan> change(const Plan& running, const policy::Policy& wanted);
// The policy in force: without credentials that are retired.
[[nodiscard]] policy::Policy in_force(const Plan& plan);

// Whether a plan for that policy stands on facts of the host's disks (host::look_at_storage).
[[nodiscard]] bool asks_of_storage(const policy::Policy& policy);
// Whether a plan for that policy may come to the gvisor tier, on a host that has it.
[[nodiscard]] bool may_use_gvisor(const policy::Policy& policy);

// The first step of that kind, or nullptr.
template <class T>
[[nodiscard]] const T* step_of(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (const T* found = std::get_if<T>(&step)) return found;
  }
  return nullptr;
}

// Covers `paths`, which filesystem.hide names below paths of filesystem.read_only (as
// workspace::hidden_below finds them). bad_input for a path that is not clean and for more than
// 4096.
[[nodiscard]] base::Status hide(Plan& plan, const std::vector<std::string>& paths);
// What was covered so.
[[nodiscard]] std::vector<std::string> hidden(const Plan& plan);

// The supervisor's own check of a Plan that it was handed: every protection that the policy asks
// for is there, steps are in a legal order, paths are absolute and clean, numbers within bounds.
[[nodiscard]] base::Status verify(const Plan& plan);

// Of a plan with a machine: the box that its VMM runs in, as a container's plan, and the sandbox
// inside the guest, which is told of the policy only what it holds. Where the guest finds things:
inline constexpr std::string_view kGuestBase = "/base";     // its first disk
inline constexpr std::string_view kGuestDisk = "/dev/vdb";  // its second
inline constexpr std::string_view kGuestState = "/run/cerco";
[[nodiscard]] Plan box_of(const Plan& plan);
[[nodiscard]] Plan inside_guest(const Plan& plan);

// Takes a protection out: its steps, limits or its flag, and with it what would harm the host
// without it (no packet rule without a network namespace, no mount without a mount namespace, no
// seccomp without no_new_privs). private_proc and minimal_dev become binds of the host's folders;
// without pivot_root the tree that was built is entered by chroot(2). Flags alone are
// read_only_base (binds stay as the host has them, writable and with set-user-id programs, and the
// root stays writable), session_keyring and those of gateway and broker. For positive controls
// only.
void take_out(Plan& plan, Protection protection);

// Entries of `below_advice` start with the risk's name and a colon ("shared-kernel: …"); these are
// the ones that isolation.accept does not name. `--strict` refuses a plan that has any.
[[nodiscard]] std::vector<std::string> not_accepted(const Plan& plan);

// The tier that is advised at least for this code and its secrets.
[[nodiscard]] policy::Tier advised_tier(const policy::Policy& policy);

// The protections that the plan's policy asks for; verify() wants each of them. Of the plan only
// policy, rights, unheld and cgroup count.
[[nodiscard]] std::set<Protection> required(const Plan& plan);

// What could be reached if everything inside were hostile.
struct BlastRadius {
  std::vector<std::string> reach;        // host:port with methods and paths, one a line
  std::vector<std::string> credentials;  // name: where and how often it may be used
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  std::string kernel;            // which kernel it stands on
  std::vector<std::string> use;  // limits in words
  std::string lifetime;
  std::string widest;  // the widest remaining way out
  std::string advice;  // whether the tier is proportionate
};
[[nodiscard]] BlastRadius blast_radius(const Plan& plan);

// The plan in plain words (`cerco check`), and as one JSON object (`check --json`).
[[nodiscard]] std::string explain(const Plan& plan);
[[nodiscard]] std::string to_json(const Plan& plan);
[[nodiscard]] std::string describe(const Step& step);  // one line

}  // namespace plan
