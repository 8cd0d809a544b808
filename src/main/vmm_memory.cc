// A library in the VMM's box: QEMU's memory comes by a descriptor, as all else that it has.
//
// SECURITY: runs in QEMU, which is taken for hostile, and adds nothing to what that can do. QEMU
// before 8.2 opens the file of a guest's memory for writing, also where it maps it privately. A
// copy of a template has that file for reading alone, so that no VMM that was taken over can change
// what the next copy starts from; without this library there would have to be a path to write to.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>

#include "sandbox/microvm/qemu.h"

// As open(2) of the C library, whose name it takes.
extern "C" __attribute__((visibility("default"))) int open64(const char* path, int flags, ...) {
  if (std::strcmp(path, "/memory") == 0) return ::fcntl(sandbox::kVmmMemory, F_DUPFD_CLOEXEC, 0);
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    std::va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
