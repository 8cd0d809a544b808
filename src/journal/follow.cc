// Following by inotify: the folder tells that something changed, the files are read from where they
// were.
#include "journal/follow.h"

#include <array>
#include <vector>

#include "journal/open_file.h"
#include "os/os.h"

namespace journal {

Follower::Follower(std::string journal_dir, std::string run)
    : folder_(std::move(journal_dir)), run_(std::move(run)) {}

base::Status Follower::watch() {
  watch_ = TRY(os::watch_folder(folder_));
  return {};
}

base::Status Follower::take(const std::function<void(std::string_view)>& line) {
  for (const std::string& name : TRY(os::list_folder(folder_))) {
    const auto parsed = parse_file_name(name);
    if (!parsed || (!run_.empty() && parsed->run != run_) || files_.contains(name)) continue;
    auto file = open_file(folder_ + "/" + name, name);
    // What is no file of a journal has no lines; `cerco log verify` names it.
    if (!file && (is_missing(file.error()) || is_strange(file.error()))) continue;
    files_.emplace(name, Lines(TRY(std::move(file)), name));
  }
  for (auto& [name, lines] : files_) {
    while (TRY(lines.next()) == Lines::Kind::line) line(lines.line());
  }
  return {};
}

base::Status Follower::wait(int milliseconds) {
  std::array<pollfd, 1> descriptors = {pollfd{watch_.get(), POLLIN, 0}};
  if (TRY(os::wait_for(descriptors, milliseconds))) {
    TRY(os::read_some(watch_.get(), 65536, folder_));  // what changed is found by reading
  }
  return {};
}

base::Status follow(const std::string& journal_dir, const std::string& run, const Filter& filter,
                    const std::function<bool(std::string_view)>& line) {
  Follower follower(journal_dir, run);
  TRY(follower.watch());
  bool wanted = true;
  while (wanted) {
    TRY(follower.take([&](std::string_view text) {
      if (wanted && matches(filter, text)) wanted = line(text);
    }));
    if (wanted) TRY(follower.wait(-1));
  }
  return {};
}

}  // namespace journal
