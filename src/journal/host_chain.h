// Appends to journal/host.jsonl: the heads of every run's chain, each line signed, under a lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"
#include "journal/keys.h"
#include "os/os.h"

namespace journal {

inline constexpr const char* kHostFile = "host.jsonl";
inline constexpr const char* kLastFile = "host.last";  // in keys/
inline constexpr std::size_t kMaxHostLine = 4096;

// What a host line signs: everything before `,"sig":`.
[[nodiscard]] std::string host_text(std::string_view body);

// The number and hash of the last signed line, as keys/host.last holds them. An empty file has no
// hash.
struct LastSigned {
  std::uint64_t seq = 0;
  std::string head;
};
[[nodiscard]] std::string last_text(const LastSigned& last);
[[nodiscard]] base::Result<LastSigned> parse_last(std::string_view text);

class HostChain {
 public:
  // `file` is host.jsonl, open for append and reading; `last` is keys/host.last, open for reading
  // and writing. Both stay locked during one append only, so any number of processes may share
  // them.
  HostChain(base::Fd file, base::Fd last, const SigningKey& key);
  // keys/host.last of the folder, made empty when it is missing.
  [[nodiscard]] static base::Result<base::Fd> open_last(int keys_folder);

  // A head of a run's chain: `at` is "start", "checkpoint", "end" or "abandoned" (the supervisor
  // died).
  [[nodiscard]] base::Status head(std::string_view run, std::string_view at, std::uint64_t events,
                                  std::string_view head, const os::Instant& wall);
  [[nodiscard]] base::Status append(std::string_view run, std::string_view type,
                                    std::string_view members, const os::Instant& wall);
  [[nodiscard]] base::Status start_writing() const;  // to the disk, without waiting

 private:
  base::Fd file_;
  base::Fd last_;
  const SigningKey& key_;
};

}  // namespace journal
