// Where a run may write on the host.
#include "cli/places.h"

#include <filesystem>
#include <system_error>

#include "os/os.h"

namespace cli {

base::Result<std::string> real_place(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  const auto real = error ? whole : std::filesystem::weakly_canonical(whole, error);
  if (error) return base::system_error(base::printable(path), error.value());
  std::string text = real.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::string place_of(int fd) {
  std::error_code error;
  const auto text =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
  return !error && text.starts_with('/') ? text : std::string();
}

base::Status check_apart_from_state(const std::string& place, const std::string& state_dir,
                                    const std::string& what) {
  const std::string state = TRY(real_place(state_dir));
  if (!base::is_within(place, state) && !base::is_within(state, place)) return {};
  return base::bad_input(what, "would write over cerco's own state in " + base::printable(state),
                         "expected a place apart from it");
}

base::Status check_report_apart(int report, int out) {
  const std::string place = place_of(report);
  const std::string folder = place_of(out);
  if (place.empty() || folder.empty() || !base::is_within(place, folder)) return {};
  return base::bad_input("--report", base::printable(place) + " lies within the folder of --out",
                         "expected a file elsewhere: the command inside could put its own there");
}

}  // namespace cli
