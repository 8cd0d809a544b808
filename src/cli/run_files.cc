// What lies in the folder of a run that has ended.
#include "cli/run_files.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "os/os.h"
#include "supervisor/run_folder.h"

namespace cli {

base::Result<std::vector<std::string>> output_files(const std::string& state_dir,
                                                    const std::string& run) {
  std::vector<std::string> names = TRY(os::list_folder(state_dir + "/runs/" + run));
  std::erase_if(
      names, [](const std::string& name) { return !name.starts_with(supervisor::kOutputPrefix); });
  const auto number = [](const std::string& name) {
    const std::string_view digits =
        std::string_view(name).substr(std::string_view(supervisor::kOutputPrefix).size());
    return base::parse_number(digits).value_or(0);
  };
  std::ranges::sort(names, {}, number);
  return names;
}

base::Status remove_run_files(const std::string& state_dir, const std::string& run) {
  const auto found = supervisor::look_at_run(state_dir, run);
  if (found && found->alive) {
    return base::fail(base::Kind::system, run, "the run still lives", {});
  }
  const std::string path = state_dir + "/runs/" + run;
  const base::Fd folder = TRY(os::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
  for (const std::string& name : TRY(os::list_folder(path))) {
    TRY(os::remove_at(folder.get(), name));
  }
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) return base::system_error("remove " + path, error.value());
  return {};
}

}  // namespace cli
