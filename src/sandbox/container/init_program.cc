// cerco-init as the sandbox gets it.
#include "sandbox/container/init_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <cerrno>

#include "os/os.h"

namespace sandbox {

namespace {

constexpr off_t kMost = 16 << 20;
constexpr unsigned kExecutable = 0x10;  // MFD_EXEC, which this libc does not name

// Kernels before 6.3 do not know the flag, and need no word for what they allow anyway.
base::Result<base::Fd> executable_memfd() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  base::Fd memory(::memfd_create("cerco-init", kFlags | kExecutable));
  if (!memory.open() && errno == EINVAL) memory = base::Fd(::memfd_create("cerco-init", kFlags));
  if (!memory.open()) return base::system_error("memfd_create");
  return memory;
}

}  // namespace

base::Result<base::Fd> init_program(const std::string& path, std::uint32_t owner) {
  const base::Fd file = TRY(os::open(path, O_RDONLY, 0));
  const struct stat status = TRY(os::fstat(file.get(), path));
  if (!S_ISREG(status.st_mode) || status.st_size > kMost) {
    return base::bad_input(path, "not a program of ours", "cerco-init");
  }
  base::Fd memory = TRY(executable_memfd());
  for (off_t left = status.st_size; left > 0;) {
    const ssize_t moved =
        ::sendfile(memory.get(), file.get(), nullptr, static_cast<std::size_t>(left));
    if (moved <= 0) return base::system_error("copy " + path, moved < 0 ? errno : EIO);
    left -= moved;
  }
  if (owner != 0 && ::fchown(memory.get(), owner, owner) != 0) {
    return base::system_error("give cerco-init away");
  }
  if (::fchmod(memory.get(), 0500) != 0) return base::system_error("fchmod cerco-init");
  if (::fcntl(memory.get(), F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return base::system_error("seal cerco-init");
  }
  return memory;
}

}  // namespace sandbox
