// Secrets in memfds.
#include "os/memory.h"

#include <unistd.h>

#include <cerrno>

#include "os/files.h"

namespace os {

base::Result<base::Secret> take_secret(int memfd, std::size_t most) {
  const struct stat facts = TRY(fstat(memfd, "secret"));
  if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) > most) {
    return base::bad_input("secret", "larger than " + std::to_string(most) + " bytes", {});
  }
  // Sized once, so that no copy is left behind by growing.
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        ::pread(memfd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      base::wipe(bytes);
      return base::system_error("read secret", got == 0 ? EIO : errno);
    }
    have += static_cast<std::size_t>(got);
  }
  base::Result<base::Secret> secret = base::Secret::hold(bytes);
  base::wipe(bytes);
  if (!secret) return secret;
  // A sealed one cannot be emptied: it goes with its last descriptor.
  if (::ftruncate(memfd, 0) != 0 && errno != EPERM) return base::system_error("empty secret");
  return secret;
}

}  // namespace os
