// Every system call that was reviewed: its numbers, and what the standard profile does with it.
#include <algorithm>
#include <cstdlib>

#include "confine/rules.h"

namespace confine {
namespace {

constexpr Standard kA = Standard::allow;
constexpr Standard kP = Standard::refuse;  // reviewed and refused: EPERM
constexpr Standard kN =
    Standard::absent;  // looks like an older kernel: ENOSYS, so that callers fall back
constexpr Standard kC = Standard::checked;  // by argument, profile.cc

// Numbers: asm/unistd_64.h and asm-generic/unistd.h of Linux 6.1, later ones from the kernel's
// scripts/syscall.tbl, where they are the same for all. To add one, keep the order by name, decide
// its class, and raise kLastReviewed.
// clang-format off
constexpr Call kCalls[] = {
    {"_sysctl", 156, -1, kN}, {"accept", 43, 202, kA}, {"accept4", 288, 242, kA}, {"access", 21, -1, kA},
    {"acct", 163, 89, kP}, {"add_key", 248, 217, kN}, {"adjtimex", 159, 171, kA},
    {"afs_syscall", 183, -1, kN}, {"alarm", 37, -1, kA}, {"arch_prctl", 158, -1, kC}, {"bind", 49, 200, kA},
    {"bpf", 321, 280, kP}, {"brk", 12, 214, kA}, {"cachestat", 451, 451, kN}, {"capget", 125, 90, kA},
    {"capset", 126, 91, kA}, {"chdir", 80, 49, kA}, {"chmod", 90, -1, kA}, {"chown", 92, -1, kA},
    {"chroot", 161, 51, kP}, {"clock_adjtime", 305, 266, kA}, {"clock_getres", 229, 114, kA},
    {"clock_gettime", 228, 113, kA}, {"clock_nanosleep", 230, 115, kA}, {"clock_settime", 227, 112, kP},
    {"clone", 56, 220, kC}, {"clone3", 435, 435, kN}, {"close", 3, 57, kA}, {"close_range", 436, 436, kA},
    {"connect", 42, 203, kA}, {"copy_file_range", 326, 285, kA}, {"creat", 85, -1, kA},
    {"create_module", 174, -1, kN}, {"delete_module", 176, 106, kP}, {"dup", 32, 23, kA},
    {"dup2", 33, -1, kA}, {"dup3", 292, 24, kA}, {"epoll_create", 213, -1, kA},
    {"epoll_create1", 291, 20, kA}, {"epoll_ctl", 233, 21, kA}, {"epoll_ctl_old", 214, -1, kN},
    {"epoll_pwait", 281, 22, kA}, {"epoll_pwait2", 441, 441, kA}, {"epoll_wait", 232, -1, kA},
    {"epoll_wait_old", 215, -1, kN}, {"eventfd", 284, -1, kA}, {"eventfd2", 290, 19, kA},
    {"execve", 59, 221, kA}, {"execveat", 322, 281, kA}, {"exit", 60, 93, kA}, {"exit_group", 231, 94, kA},
    {"faccessat", 269, 48, kA}, {"faccessat2", 439, 439, kA}, {"fadvise64", 221, 223, kA},
    {"fallocate", 285, 47, kA}, {"fanotify_init", 300, 262, kP}, {"fanotify_mark", 301, 263, kP},
    {"fchdir", 81, 50, kA}, {"fchmod", 91, 52, kA}, {"fchmodat", 268, 53, kA}, {"fchmodat2", 452, 452, kA},
    {"fchown", 93, 55, kA}, {"fchownat", 260, 54, kA}, {"fcntl", 72, 25, kC}, {"fdatasync", 75, 83, kA},
    {"fgetxattr", 193, 10, kA}, {"file_getattr", 468, 468, kN}, {"file_setattr", 469, 469, kN},
    {"finit_module", 313, 273, kP}, {"flistxattr", 196, 13, kA}, {"flock", 73, 32, kA}, {"fork", 57, -1, kA},
    {"fremovexattr", 199, 16, kA}, {"fsconfig", 431, 431, kP}, {"fsetxattr", 190, 7, kA},
    {"fsmount", 432, 432, kP}, {"fsopen", 430, 430, kP}, {"fspick", 433, 433, kP}, {"fstat", 5, 80, kA},
    {"fstatfs", 138, 44, kA}, {"fsync", 74, 82, kA}, {"ftruncate", 77, 46, kA}, {"futex", 202, 98, kA},
    {"futex_requeue", 456, 456, kN}, {"futex_wait", 455, 455, kN}, {"futex_waitv", 449, 449, kA},
    {"futex_wake", 454, 454, kN}, {"futimesat", 261, -1, kA}, {"get_kernel_syms", 177, -1, kN},
    {"get_mempolicy", 239, 236, kP}, {"get_robust_list", 274, 100, kA}, {"get_thread_area", 211, -1, kN},
    {"getcpu", 309, 168, kA}, {"getcwd", 79, 17, kA}, {"getdents", 78, -1, kA}, {"getdents64", 217, 61, kA},
    {"getegid", 108, 177, kA}, {"geteuid", 107, 175, kA}, {"getgid", 104, 176, kA},
    {"getgroups", 115, 158, kA}, {"getitimer", 36, 102, kA}, {"getpeername", 52, 205, kA},
    {"getpgid", 121, 155, kA}, {"getpgrp", 111, -1, kA}, {"getpid", 39, 172, kA}, {"getpmsg", 181, -1, kN},
    {"getppid", 110, 173, kA}, {"getpriority", 140, 141, kA}, {"getrandom", 318, 278, kA},
    {"getresgid", 120, 150, kA}, {"getresuid", 118, 148, kA}, {"getrlimit", 97, 163, kA},
    {"getrusage", 98, 165, kA}, {"getsid", 124, 156, kA}, {"getsockname", 51, 204, kA},
    {"getsockopt", 55, 209, kA}, {"gettid", 186, 178, kA}, {"gettimeofday", 96, 169, kA},
    {"getuid", 102, 174, kA}, {"getxattr", 191, 8, kA}, {"getxattrat", 464, 464, kN},
    {"init_module", 175, 105, kP}, {"inotify_add_watch", 254, 27, kA}, {"inotify_init", 253, -1, kA},
    {"inotify_init1", 294, 26, kA}, {"inotify_rm_watch", 255, 28, kA}, {"io_cancel", 210, 3, kN},
    {"io_destroy", 207, 1, kN}, {"io_getevents", 208, 4, kN}, {"io_pgetevents", 333, 292, kN},
    {"io_setup", 206, 0, kN}, {"io_submit", 209, 2, kN}, {"io_uring_enter", 426, 426, kN},
    {"io_uring_register", 427, 427, kN}, {"io_uring_setup", 425, 425, kN}, {"ioctl", 16, 29, kC},
    {"ioperm", 173, -1, kP}, {"iopl", 172, -1, kP}, {"ioprio_get", 252, 31, kA}, {"ioprio_set", 251, 30, kC},
    {"kcmp", 312, 272, kP}, {"kexec_file_load", 320, 294, kP}, {"kexec_load", 246, 104, kP},
    {"keyctl", 250, 219, kN}, {"kill", 62, 129, kA}, {"landlock_add_rule", 445, 445, kA},
    {"landlock_create_ruleset", 444, 444, kA}, {"landlock_restrict_self", 446, 446, kA},
    {"lchown", 94, -1, kA}, {"lgetxattr", 192, 9, kA}, {"link", 86, -1, kA}, {"linkat", 265, 37, kA},
    {"listen", 50, 201, kA}, {"listmount", 458, 458, kN}, {"listns", 470, 470, kN},
    {"listxattr", 194, 11, kA}, {"listxattrat", 465, 465, kN}, {"llistxattr", 195, 12, kA},
    {"lookup_dcookie", 212, 18, kP}, {"lremovexattr", 198, 15, kA}, {"lseek", 8, 62, kA},
    {"lsetxattr", 189, 6, kA}, {"lsm_get_self_attr", 459, 459, kN}, {"lsm_list_modules", 461, 461, kN},
    {"lsm_set_self_attr", 460, 460, kN}, {"lstat", 6, -1, kA}, {"madvise", 28, 233, kA},
    {"map_shadow_stack", 453, 453, kN}, {"mbind", 237, 235, kP}, {"membarrier", 324, 283, kA},
    {"memfd_create", 319, 279, kA}, {"memfd_secret", 447, 447, kN}, {"migrate_pages", 256, 238, kP},
    {"mincore", 27, 232, kA}, {"mkdir", 83, -1, kA}, {"mkdirat", 258, 34, kA}, {"mknod", 133, -1, kC},
    {"mknodat", 259, 33, kC}, {"mlock", 149, 228, kA}, {"mlock2", 325, 284, kA}, {"mlockall", 151, 230, kA},
    {"mmap", 9, 222, kA}, {"modify_ldt", 154, -1, kP}, {"mount", 165, 40, kP},
    {"mount_setattr", 442, 442, kP}, {"move_mount", 429, 429, kP}, {"move_pages", 279, 239, kP},
    {"mprotect", 10, 226, kA}, {"mq_getsetattr", 245, 185, kA}, {"mq_notify", 244, 184, kA},
    {"mq_open", 240, 180, kA}, {"mq_timedreceive", 243, 183, kA}, {"mq_timedsend", 242, 182, kA},
    {"mq_unlink", 241, 181, kA}, {"mremap", 25, 216, kA}, {"mseal", 462, 462, kA}, {"msgctl", 71, 187, kA},
    {"msgget", 68, 186, kA}, {"msgrcv", 70, 188, kA}, {"msgsnd", 69, 189, kA}, {"msync", 26, 227, kA},
    {"munlock", 150, 229, kA}, {"munlockall", 152, 231, kA}, {"munmap", 11, 215, kA},
    {"name_to_handle_at", 303, 264, kP}, {"nanosleep", 35, 101, kA}, {"newfstatat", 262, 79, kA},
    {"nfsservctl", 180, 42, kP}, {"open", 2, -1, kA}, {"open_by_handle_at", 304, 265, kP},
    {"open_tree", 428, 428, kP}, {"open_tree_attr", 467, 467, kP}, {"openat", 257, 56, kA},
    {"openat2", 437, 437, kA}, {"pause", 34, -1, kA}, {"perf_event_open", 298, 241, kP},
    {"personality", 135, 92, kC}, {"pidfd_getfd", 438, 438, kP}, {"pidfd_open", 434, 434, kA},
    {"pidfd_send_signal", 424, 424, kA}, {"pipe", 22, -1, kA}, {"pipe2", 293, 59, kA},
    {"pivot_root", 155, 41, kP}, {"pkey_alloc", 330, 289, kA}, {"pkey_free", 331, 290, kA},
    {"pkey_mprotect", 329, 288, kA}, {"poll", 7, -1, kA}, {"ppoll", 271, 73, kA}, {"prctl", 157, 167, kC},
    {"pread64", 17, 67, kA}, {"preadv", 295, 69, kA}, {"preadv2", 327, 286, kA}, {"prlimit64", 302, 261, kC},
    {"process_madvise", 440, 440, kP}, {"process_mrelease", 448, 448, kP}, {"process_vm_readv", 310, 270, kP},
    {"process_vm_writev", 311, 271, kP}, {"pselect6", 270, 72, kA}, {"ptrace", 101, 117, kP},
    {"putpmsg", 182, -1, kN}, {"pwrite64", 18, 68, kA}, {"pwritev", 296, 70, kA}, {"pwritev2", 328, 287, kA},
    {"query_module", 178, -1, kN}, {"quotactl", 179, 60, kP}, {"quotactl_fd", 443, 443, kP},
    {"read", 0, 63, kA}, {"readahead", 187, 213, kA}, {"readlink", 89, -1, kA}, {"readlinkat", 267, 78, kA},
    {"readv", 19, 65, kA}, {"reboot", 169, 142, kP}, {"recvfrom", 45, 207, kA}, {"recvmmsg", 299, 243, kA},
    {"recvmsg", 47, 212, kA}, {"remap_file_pages", 216, 234, kN}, {"removexattr", 197, 14, kA},
    {"removexattrat", 466, 466, kN}, {"rename", 82, -1, kA}, {"renameat", 264, 38, kA},
    {"renameat2", 316, 276, kA}, {"request_key", 249, 218, kN}, {"restart_syscall", 219, 128, kA},
    {"rmdir", 84, -1, kA}, {"rseq", 334, 293, kA}, {"rt_sigaction", 13, 134, kA},
    {"rt_sigpending", 127, 136, kA}, {"rt_sigprocmask", 14, 135, kA}, {"rt_sigqueueinfo", 129, 138, kA},
    {"rt_sigreturn", 15, 139, kA}, {"rt_sigsuspend", 130, 133, kA}, {"rt_sigtimedwait", 128, 137, kA},
    {"rt_tgsigqueueinfo", 297, 240, kA}, {"sched_get_priority_max", 146, 125, kA},
    {"sched_get_priority_min", 147, 126, kA}, {"sched_getaffinity", 204, 123, kA},
    {"sched_getattr", 315, 275, kA}, {"sched_getparam", 143, 121, kA}, {"sched_getscheduler", 145, 120, kA},
    {"sched_rr_get_interval", 148, 127, kA}, {"sched_setaffinity", 203, 122, kC},
    {"sched_setattr", 314, 274, kC}, {"sched_setparam", 142, 118, kC}, {"sched_setscheduler", 144, 119, kC},
    {"sched_yield", 24, 124, kA}, {"seccomp", 317, 277, kC}, {"security", 185, -1, kN},
    {"select", 23, -1, kA}, {"semctl", 66, 191, kA}, {"semget", 64, 190, kA}, {"semop", 65, 193, kA},
    {"semtimedop", 220, 192, kA}, {"sendfile", 40, 71, kA}, {"sendmmsg", 307, 269, kA},
    {"sendmsg", 46, 211, kA}, {"sendto", 44, 206, kA}, {"set_mempolicy", 238, 237, kP},
    {"set_mempolicy_home_node", 450, 450, kP}, {"set_robust_list", 273, 99, kA},
    {"set_thread_area", 205, -1, kN}, {"set_tid_address", 218, 96, kA}, {"setdomainname", 171, 162, kP},
    {"setfsgid", 123, 152, kA}, {"setfsuid", 122, 151, kA}, {"setgid", 106, 144, kA},
    {"setgroups", 116, 159, kA}, {"sethostname", 170, 161, kP}, {"setitimer", 38, 103, kA},
    {"setns", 308, 268, kP}, {"setpgid", 109, 154, kA}, {"setpriority", 141, 140, kC},
    {"setregid", 114, 143, kA}, {"setresgid", 119, 149, kA}, {"setresuid", 117, 147, kA},
    {"setreuid", 113, 145, kA}, {"setrlimit", 160, 164, kC}, {"setsid", 112, 157, kA},
    {"setsockopt", 54, 208, kA}, {"settimeofday", 164, 170, kP}, {"setuid", 105, 146, kA},
    {"setxattr", 188, 5, kA}, {"setxattrat", 463, 463, kN}, {"shmat", 30, 196, kA}, {"shmctl", 31, 195, kA},
    {"shmdt", 67, 197, kA}, {"shmget", 29, 194, kA}, {"shutdown", 48, 210, kA}, {"sigaltstack", 131, 132, kA},
    {"signalfd", 282, -1, kA}, {"signalfd4", 289, 74, kA}, {"socket", 41, 198, kC},
    {"socketpair", 53, 199, kC}, {"splice", 275, 76, kA}, {"stat", 4, -1, kA}, {"statfs", 137, 43, kA},
    {"statmount", 457, 457, kN}, {"statx", 332, 291, kA}, {"swapoff", 168, 225, kP}, {"swapon", 167, 224, kP},
    {"symlink", 88, -1, kA}, {"symlinkat", 266, 36, kA}, {"sync", 162, 81, kA},
    {"sync_file_range", 277, 84, kA}, {"syncfs", 306, 267, kA}, {"sysfs", 139, -1, kP},
    {"sysinfo", 99, 179, kA}, {"syslog", 103, 116, kP}, {"tee", 276, 77, kA}, {"tgkill", 234, 131, kA},
    {"time", 201, -1, kA}, {"timer_create", 222, 107, kA}, {"timer_delete", 226, 111, kA},
    {"timer_getoverrun", 225, 109, kA}, {"timer_gettime", 224, 108, kA}, {"timer_settime", 223, 110, kA},
    {"timerfd_create", 283, 85, kA}, {"timerfd_gettime", 287, 87, kA}, {"timerfd_settime", 286, 86, kA},
    {"times", 100, 153, kA}, {"tkill", 200, 130, kA}, {"truncate", 76, 45, kA}, {"tuxcall", 184, -1, kN},
    {"umask", 95, 166, kA}, {"umount2", 166, 39, kP}, {"uname", 63, 160, kA}, {"unlink", 87, -1, kA},
    {"unlinkat", 263, 35, kA}, {"unshare", 272, 97, kC}, {"uselib", 134, -1, kN},
    {"userfaultfd", 323, 282, kN}, {"ustat", 136, -1, kP}, {"utime", 132, -1, kA}, {"utimensat", 280, 88, kA},
    {"utimes", 235, -1, kA}, {"vfork", 58, -1, kA}, {"vhangup", 153, 58, kP}, {"vmsplice", 278, 75, kA},
    {"vserver", 236, -1, kN}, {"wait4", 61, 260, kA}, {"waitid", 247, 95, kA}, {"write", 1, 64, kA},
    {"writev", 20, 66, kA},
};
// clang-format on
static_assert(std::ranges::is_sorted(kCalls, {}, &Call::name));

}  // namespace

std::span<const Call> calls() {
  return kCalls;
}

std::optional<std::size_t> number_of(std::string_view name, Arch arch) {
  const auto* found = std::ranges::lower_bound(kCalls, name, {}, &Call::name);
  if (found == std::end(kCalls) || found->name != name)
    std::abort();  // a list of ours names no call
  const int number = found->number(arch);
  if (number < 0) return std::nullopt;
  return static_cast<std::size_t>(number);
}

}  // namespace confine
