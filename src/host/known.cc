// One small file a name: the key and, behind it, the value.
#include "host/known.h"

#include <fcntl.h>

#include "base/base.h"
#include "os/os.h"

namespace host {

std::optional<std::string> known(const std::string& state_dir, const std::string& name,
                                 std::string_view key) {
  const auto text = os::read_file(state_dir + "/" + name, 512);
  if (!text || !text->starts_with(key)) return std::nullopt;
  return text->substr(key.size());
}

void keep(const std::string& state_dir, const std::string& name, std::string_view key,
          std::string_view value) {
  const auto folder = os::open(state_dir, O_PATH | O_DIRECTORY, 0);
  if (!folder) return;
  const std::string fresh = name + "." + base::random_base32(8);
  const std::string path = state_dir + "/" + fresh;
  const auto file = os::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file || !os::write_all(file->get(), std::string(key).append(value), path) ||
      !os::rename_at(folder->get(), fresh, name)) {
    (void)os::remove_at(folder->get(), fresh);
  }
}

}  // namespace host
