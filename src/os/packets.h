// Many messages of SEQPACKET sockets, one after another, through one buffer.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace os {

enum class Got { message, nothing, end };

// A message longer than `most` bytes arrives cut, with `cut` set, and is no error: what a peer
// sends must not stop the reader.
class PacketReader {
 public:
  PacketReader(std::size_t most, std::size_t most_fds);

  // Takes the next message without waiting. `bytes()` is valid until the next call. Descriptors are
  // taken (close-on-exec) up to `most_fds`; others are closed by the kernel. A reset by the peer is
  // its end.
  [[nodiscard]] base::Result<Got> next(int socket);
  [[nodiscard]] std::string_view bytes() const { return {buffer_.get(), size_}; }
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] std::vector<base::Fd>& fds() { return fds_; }

 private:
  std::unique_ptr<char[]> buffer_;  // untouched pages cost nothing
  std::size_t most_;
  std::vector<char> control_;
  std::vector<base::Fd> fds_;
  std::size_t size_ = 0;
  bool cut_ = false;
};

}  // namespace os
