// Where the report goes.
#include "cli/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <limits>

#include "cli/places.h"
#include "os/os.h"

namespace cli {
namespace {

base::Result<base::Fd> given_descriptor(const std::string& target, std::string_view number) {
  const auto parsed = base::parse_number(number);
  if (parsed && *parsed <= static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    auto copy = os::duplicate(static_cast<int>(*parsed));
    if (copy) return copy;
  }
  return base::bad_input("--report " + base::printable(target), "no such descriptor is open",
                         "expected FILE or fd:N");
}

// A device such as /dev/stderr's terminal or a pipe is no file that could be lost.
base::Status check_apart(const std::string& place, const std::string& state_dir,
                         const std::string& what) {
  if (place.empty()) return {};
  return check_apart_from_state(place, state_dir, what);
}

}  // namespace

base::Result<ReportFile> ReportFile::open(const std::optional<std::string>& target,
                                          const std::string& state_dir) {
  ReportFile file;
  if (!target) return file;
  const std::string what = "--report " + base::printable(*target);
  if (target->starts_with("fd:")) {
    file.fd_ = TRY(given_descriptor(*target, std::string_view(*target).substr(3)));
  } else {
    // Before it is opened, so that none is made there.
    if (auto place = real_place(*target)) TRY(check_apart(*place, state_dir, what));
    auto fd = os::open(*target, O_WRONLY | O_CREAT | O_NOCTTY, 0644);
    if (!fd) {
      base::Error error = std::move(fd).error();
      error.kind = base::Kind::bad_input;
      error.where = what;
      return std::unexpected(std::move(error));
    }
    file.fd_ = std::move(*fd);
  }
  TRY(check_apart(place_of(file.fd_.get()), state_dir, what));
  return file;
}

base::Status ReportFile::write(std::string_view json) const {
  if (!fd_.open()) return {};
  const auto status = TRY(os::fstat(fd_.get(), "report"));
  // A descriptor that was handed in may stand anywhere in its file: only what is written is ours.
  if (S_ISREG(status.st_mode) && status.st_size > 0) TRY(os::truncate(fd_.get(), 0, "report"));
  return os::write_all(fd_.get(), json, "report");
}

base::Status keep_report(const std::string& state_dir, const std::string& run,
                         std::string_view json) {
  const std::string folder = state_dir + "/runs/" + run;
  TRY(os::make_folders(folder, 0700));
  const base::Fd fd = TRY(os::open(folder + "/report.json", O_WRONLY | O_CREAT | O_TRUNC, 0600));
  return os::write_all(fd.get(), json, "report");
}

}  // namespace cli
