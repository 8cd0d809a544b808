// Opening what lies in a state folder, which others may have put there.
#include "journal/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "os/os.h"

namespace journal {

base::Result<base::Fd> open_file(const std::string& path, const std::string& name) {
  base::Fd file = TRY(os::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0));
  if (S_ISREG(TRY(os::fstat(file.get(), name)).st_mode)) return file;
  base::Error error = {.kind = base::Kind::bad_input,
                       .number = ENXIO,
                       .where = name,
                       .what = "is no regular file",
                       .expected = "see cerco log verify"};
  return std::unexpected(std::move(error));
}

bool is_missing(const base::Error& error) {
  return error.number == ENOENT || error.number == ENOTDIR;
}

bool is_strange(const base::Error& error) {
  return error.number == ELOOP || error.number == ENXIO;
}

}  // namespace journal
