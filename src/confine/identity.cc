// Descriptors, limits and identity of the calling process.
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "confine/confine.h"

namespace confine {
namespace {

Outcome failed(const char* step) {
  return std::unexpected(Failure{step, errno});
}

bool holds_nothing() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return data[0].permitted == 0 && data[1].permitted == 0;
}

// Whether all ids are these and nothing that is held could make them others, as it is in a user
// namespace with a map of one id.
bool is_already(std::uint32_t uid, std::uint32_t gid) {
  uid_t uids[3] = {};
  gid_t gids[3] = {};
  if (::syscall(SYS_getresuid, &uids[0], &uids[1], &uids[2]) != 0) return false;
  if (::syscall(SYS_getresgid, &gids[0], &gids[1], &gids[2]) != 0) return false;
  for (int i = 0; i < 3; ++i) {
    if (uids[i] != uid || gids[i] != gid) return false;
  }
  return holds_nothing();
}

}  // namespace

base::Status as_status(const Outcome& outcome, std::string_view where) {
  if (outcome) return {};
  return base::system_error(std::string(where) + ": " + outcome.error().step,
                            outcome.error().number);
}

Outcome close_from(int first) {
  if (::syscall(SYS_close_range, first, INT_MAX, 0) != 0) return failed("close_range");
  return {};
}

Outcome not_dumpable() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("prctl PR_SET_DUMPABLE");
  return {};
}

Outcome no_new_privs() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("prctl PR_SET_NO_NEW_PRIVS");
  return {};
}

Outcome new_session_keyring() {
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS) {
    return failed("keyctl");
  }
  return {};
}

Outcome rlimits(std::uint64_t files) {
  const rlimit core = {1, 1};
  if (::setrlimit(RLIMIT_CORE, &core) != 0) return failed("setrlimit RLIMIT_CORE");
  if (files == 0) return {};
  const rlimit open_files = {files, files};
  if (::setrlimit(RLIMIT_NOFILE, &open_files) != 0) return failed("setrlimit RLIMIT_NOFILE");
  return {};
}

Outcome limit_processes(std::uint64_t most) {
  const rlimit limit = {most, most};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) return failed("setrlimit RLIMIT_NPROC");
  return {};
}

// The system calls themselves: the C library's functions would signal other threads, of which there
// are none, and take locks for it.
Outcome act_as(std::uint32_t uid) {
  constexpr std::uint32_t kStays = ~0U;
  if (::syscall(SYS_setresuid, kStays, uid, kStays) != 0) return failed("setresuid");
  return {};
}

Outcome become(std::uint32_t uid, std::uint32_t gid) {
  if (is_already(uid, gid)) return {};
  if (::syscall(SYS_setgroups, 0, nullptr) != 0) return failed("setgroups");
  if (::syscall(SYS_setresgid, gid, gid, gid) != 0) return failed("setgid");
  if (::syscall(SYS_setresuid, uid, uid, uid) != 0) return failed("setuid");
  return {};
}

}  // namespace confine
