// Opening the journal's files for its process, and handing events over to it.
#include <linux/openat2.h>

#include "journal/host_chain.h"
#include "journal/journal.h"
#include "os/os.h"

namespace journal {
namespace {

constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;

base::Result<base::Fd> new_file(int folder, const std::string& name) {
  return os::openat2(folder, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0600, kBeneath);
}

base::Result<base::Fd> folder(const std::string& path) {
  TRY(os::make_folders(path, 0700));
  return os::open(path, O_RDONLY | O_DIRECTORY, 0);
}

}  // namespace

base::Status hand_over(const ipc::Channel& channel, const Draft& draft) {
  return ipc::send_value(channel, draft, {});
}

base::Result<std::vector<base::Fd>> open_files(const std::string& state_dir,
                                               const std::string& run) {
  base::Fd journal = TRY_IN("journal", folder(state_dir + "/journal"));
  base::Fd keys = TRY_IN("journal", folder(state_dir + "/keys"));
  std::vector<base::Fd> files;
  files.push_back(TRY_IN("journal", new_file(journal.get(), run + ".jsonl")));
  files.push_back(TRY_IN("journal", os::openat2(journal.get(), kHostFile,
                                                O_RDWR | O_APPEND | O_CREAT, 0600, kBeneath)));
  files.push_back(std::move(keys));
  files.push_back(std::move(journal));
  return files;
}

base::Result<base::Fd> open_next(const std::string& state_dir, const std::string& run,
                                 std::uint64_t number) {
  const base::Fd journal =
      TRY_IN("journal", os::open(state_dir + "/journal", O_RDONLY | O_DIRECTORY, 0));
  return new_file(journal.get(), run + "." + std::to_string(number) + ".jsonl");
}

}  // namespace journal
