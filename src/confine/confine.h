// Irreversible self-restriction: what a process gives up about itself, and cannot get back.
//
// Functions that return Outcome neither allocate nor lock, so that they may be called between clone
// and exec of a process with one thread. None of them falls back: what was asked for and cannot be
// done is a Failure. Man pages: capabilities(7), landlock(7), seccomp(2), prctl(2), keyrings(7).
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace confine {

// The call that failed, by name, and its errno.
struct Failure {
  const char* step = "";
  int number = 0;
  bool operator==(const Failure& other) const {
    return std::string_view(step) == other.step && number == other.number;
  }
};
using Outcome = std::expected<void, Failure>;

// The same as an Error: "WHERE: STEP: EPERM (…)".
[[nodiscard]] base::Status as_status(const Outcome& outcome, std::string_view where);

// --- Descriptors, limits, identity -------------------------------------------------------------

// Closes every descriptor from `first` on.
[[nodiscard]] Outcome close_from(int first);
// No core dump, no ptrace and no /proc/self by others of the same uid (PR_SET_DUMPABLE 0). execve
// undoes it.
[[nodiscard]] Outcome not_dumpable();
[[nodiscard]] Outcome no_new_privs();
// Leaves the caller's session keyring for an empty one. A kernel without keyrings has nothing to
// leave.
[[nodiscard]] Outcome new_session_keyring();
// RLIMIT_CORE 1: no core file, and a piped core_pattern is not run either, as it would be with 0
// (core(5)). RLIMIT_NOFILE `files`, soft and hard; 0 leaves it.
[[nodiscard]] Outcome rlimits(std::uint64_t files);
// RLIMIT_NPROC, soft and hard: processes and threads that the caller's uid may have in the caller's
// user namespace (user_namespaces(7); from Linux 5.14 on each namespace counts for itself).
[[nodiscard]] Outcome limit_processes(std::uint64_t most);
// Real, effective and saved ids; no supplementary groups. Needs CAP_SETGID and CAP_SETUID. Who has
// all these ids already and no capability to get others stays as it is, groups included: in a user
// namespace whose map has one id they cannot be given up (setgroups(2) is denied there).
[[nodiscard]] Outcome become(std::uint32_t uid, std::uint32_t gid);
// Makes what it makes as `uid`: the effective uid alone, so that nobody of that uid may signal or
// trace the process. Needs CAP_SETUID; from 0 the effective capabilities go with it.
[[nodiscard]] Outcome act_as(std::uint32_t uid);

// Ids of our own processes when root starts them: one each, far from where distributions and the
// leases of sandboxes take theirs.
inline constexpr std::uint32_t kGatewayId = 1879044096;
inline constexpr std::uint32_t kBrokerId = 1879044097;
inline constexpr std::uint32_t kJournalId = 1879044098;
inline constexpr std::uint32_t kTunnelId = 1879044099;
inline constexpr std::uint32_t kMinterId = 1879044100;
inline constexpr std::uint32_t kPublisherId = 1879044101;

// --- Capabilities ------------------------------------------------------------------------------

// A set of capabilities as bits, `bit(CAP_SETUID)`.
using Capabilities = std::uint64_t;
[[nodiscard]] constexpr Capabilities bit(int capability) {
  return Capabilities{1} << capability;
}
inline constexpr Capabilities kNone = 0;

// Empties the bounding set, so that no execve gives a capability back; needs CAP_SETPCAP unless it
// is empty already. Inheritable and ambient ones still pass, see keep_capabilities.
[[nodiscard]] Outcome drop_bounding();
// Effective, permitted and inheritable sets become exactly `keep`, which must be held now; the
// ambient set becomes empty.
[[nodiscard]] Outcome keep_capabilities(Capabilities keep);
// For a program that is to start with exactly `keep` whatever its uid: the ambient set carries
// `keep` through execve, the bounding set is empty, and uid 0 and set-user-id programs mean nothing
// more than others, locked (SECBIT_NOROOT, SECBIT_NO_CAP_AMBIENT_RAISE). Needs CAP_SETPCAP.
[[nodiscard]] Outcome start_with(Capabilities keep);
// become(), but every capability that is held stays, also through execve: only for the tests'
// positive control of dropping them.
[[nodiscard]] Outcome become_with_capabilities(std::uint32_t uid, std::uint32_t gid);

// --- Landlock ----------------------------------------------------------------------------------

// The kernel's Landlock ABI, 0 for none.
[[nodiscard]] int landlock_abi();
// File access from here on: below `read` reading and executing, below `write` everything, elsewhere
// nothing. Every file right that the kernel knows is handled (ABI 1 to 7, ioctls of devices
// included); where ABI ≥ 6 signals and abstract sockets end at the domain as well. No network
// rights: the network namespace is that fence. Descriptors that are open keep their rights, and
// descriptors of anonymous files (memfd) can be executed. Needs no_new_privs, or CAP_SYS_ADMIN in
// the caller's user namespace. Errors: ENOENT for a path that does not exist, EOPNOTSUPP or ENOSYS
// without Landlock.
[[nodiscard]] Outcome landlock(std::span<const std::string> read,
                               std::span<const std::string> write);

// --- Seccomp -----------------------------------------------------------------------------------

// For the workload; the words of isolation.seccomp, `standard` being "default". `strict` starts no
// program: what runs under it was loaded before. `strict_program` is the same for a program that is
// executed: one process with one thread, which reads files and computes.
// `vmm` is for a machine monitor in its box: it is executed, has threads and serves the descriptors
// that it was given; it makes no socket and no process. `isolate` is for the V8 engine of the
// isolate tier, whose own exec (execveat(2) of descriptor kIsolateProgram) is the last that it lets
// through.
enum class Profile { strict, standard, debug, browser, strict_program, vmm, isolate };
inline constexpr int kIsolateProgram = 1000;
// For our own processes; `files` serves a file session inside the sandbox, `tunnel` is either end
// of a tunnel, `connection` carries one connection to a server inside, `publisher` those of one
// port on the host's side, `minter` asks token endpoints for the broker.
enum class Own { gateway, broker, journal, files, tunnel, connection, publisher, minter };

using Filter = std::vector<sock_filter>;
enum class Arch { x86_64, aarch64 };
// Builds with sanitizers add the calls that these make to the lists of our own processes.
enum class Build { release, sanitized };
#ifdef __aarch64__
inline constexpr Arch kThisArch = Arch::aarch64;
#else
inline constexpr Arch kThisArch = Arch::x86_64;
#endif
#ifdef CERCO_SANITIZE
inline constexpr Build kThisBuild = Build::sanitized;
#else
inline constexpr Build kThisBuild = Build::release;
#endif

// The program for this machine, and for a given architecture. At most 4096 instructions. What is
// refused by choice answers EPERM, what is to look absent (and every number past the reviewed
// table) ENOSYS, families and protocols of sockets EAFNOSUPPORT and EPROTONOSUPPORT, a foreign
// architecture kills. Setting RLIMIT_CORE answers success and changes nothing, see rlimits().
[[nodiscard]] Filter filter(Profile profile);
[[nodiscard]] Filter filter(Profile profile, Arch arch);
// For this build, and for a given one. A call that is not in the list kills the process, but
// opening and looking at paths answers EACCES where the process has no business with them.
[[nodiscard]] Filter filter(Own own);
[[nodiscard]] Filter filter(Own own, Arch arch, Build build);
// The program as bytes, for frame::Exec::filter.
[[nodiscard]] std::string as_bytes(const Filter& filter);
// Installs a program on the calling thread. Needs no_new_privs or CAP_SYS_ADMIN.
[[nodiscard]] Outcome install(std::span<const sock_filter> filter);

// What the kernel would return for one call: SECCOMP_RET_…; `arch` is AUDIT_ARCH_…. A program that
// the kernel would not take, or that runs off its end, gives SECCOMP_RET_KILL_PROCESS.
[[nodiscard]] std::uint32_t evaluate(std::span<const sock_filter> filter, std::uint32_t nr,
                                     std::uint32_t arch, const std::array<std::uint64_t, 6>& args);

// --- Our own processes -------------------------------------------------------------------------

// The whole of what one of our processes gives up: core dumps, its session keyring, new privileges,
// every path but those below `write` (a folder descriptor N is "/proc/self/fd/N"), its uid and gid
// (when `id` is not 0; this needs root), every capability, /proc/self for others of its uid, and
// the system calls that are not in its list. Descriptors stay open. Afterwards openat and its like
// answer EACCES outside of `write`, as far as the list has them at all. Errors name the step; the
// process must end then. In builds with sanitizers leaks are not looked for afterwards.
[[nodiscard]] base::Status shut_in(Own own, std::uint32_t id, std::span<const std::string> write);

}  // namespace confine
