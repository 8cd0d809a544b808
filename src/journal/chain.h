// Writes one run's hash chain: lines, checkpoints, files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"
#include "journal/journal.h"
#include "journal/keys.h"
#include "os/os.h"

namespace journal {

// `prev` of a first line.
[[nodiscard]] const std::string& zeros();
inline constexpr std::uint64_t kCheckpointEvery = 256;  // events that are no checkpoints

// What a checkpoint signs.
[[nodiscard]] std::string checkpoint_text(std::string_view run, std::uint64_t seq,
                                          std::string_view prev);

// Lines wait in memory until flush(), so that several cost one write(2). Nothing else may write the
// file.
class Chain {
 public:
  // `run` and `task` stand in every line. `file` is open for append. `key` outlives the chain.
  Chain(std::string run, const std::string& task, const SigningKey& key, base::Fd file);

  // Adds an event; its number. `members` is JSON that Members accepts, without the chain's own
  // keys.
  std::uint64_t add(std::string_view type, std::string_view members, const os::Instant& wall);
  // Whether kCheckpointEvery events stand behind the last checkpoint.
  [[nodiscard]] bool checkpoint_due() const { return unsigned_ >= kCheckpointEvery; }
  void checkpoint(const os::Instant& wall);
  [[nodiscard]] base::Status flush();
  [[nodiscard]] base::Status start_writing() const;  // to the disk, without waiting
  // Flushes to the old file and goes on in `file`.
  [[nodiscard]] base::Status go_on_in(base::Fd file);

  [[nodiscard]] std::uint64_t events() const { return seq_; }
  [[nodiscard]] const std::string& head() const { return prev_; }  // SHA-256 of the last line
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  // Of all files, with what waits.
  [[nodiscard]] std::uint64_t run_bytes() const { return run_bytes_ + waiting_.size(); }
  [[nodiscard]] std::size_t waiting_bytes() const { return waiting_.size(); }
  [[nodiscard]] std::string id(std::uint64_t seq) const { return run_ + ":" + std::to_string(seq); }

 private:
  std::string run_;
  std::string run_json_;
  std::string task_json_;
  const SigningKey& key_;
  base::Fd file_;
  std::string prev_ = zeros();
  std::string waiting_;
  std::uint64_t seq_ = 0;
  std::uint64_t unsigned_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t run_bytes_ = 0;  // flushed
};

}  // namespace journal
