// The task's memory as lines of text.
#include "journal/task_memory.h"

#include <linux/openat2.h>

#include "os/os.h"

namespace journal {
namespace {

bool plain(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F) return false;
  }
  return !text.empty() && text.size() <= 300;
}

}  // namespace

TaskMemory::TaskMemory(std::string_view text) : first_run_(text.empty()) {
  if (first_run_) new_text_ = "v 1\n";
  for (std::string_view line : base::split(text, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.size() == 2 && words[0] == "d" && destinations_.size() < kMostDestinations) {
      destinations_.emplace(words[1]);
    } else if (words.size() == 3 && words[0] == "w") {
      windows_ += base::parse_number(words[1]).value_or(0) & 0xFFFFFFFF;
      requests_ += base::parse_number(words[2]).value_or(0) & 0xFFFFFFFF;
    }
  }
}

void TaskMemory::learn_destination(const std::string& destination) {
  if (!plain(destination) || destinations_.size() >= kMostDestinations) return;
  if (destinations_.insert(destination).second) new_text_ += "d " + destination + "\n";
}

void TaskMemory::learn_windows(std::uint64_t windows, std::uint64_t requests) {
  if (windows > 0)
    new_text_ += "w " + std::to_string(windows) + " " + std::to_string(requests) + "\n";
}

base::Result<base::Fd> TaskMemory::open_file(int journal_folder, std::string_view task) {
  constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  TRY(os::make_folder_at(journal_folder, "tasks", 0700));
  return os::openat2(journal_folder, "tasks/" + base::sha256(task) + ".seen",
                     O_RDWR | O_APPEND | O_CREAT, 0600, kBeneath);
}

}  // namespace journal
