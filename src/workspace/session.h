// Frames of one file session, sent and received with a deadline.
#pragma once

#include "base/frame.h"
#include "workspace/workspace.h"

namespace workspace {

[[nodiscard]] base::Status send(const Session& session, const frame::FileFrame& value);
[[nodiscard]] base::Result<frame::FileFrame> receive(const Session& session);
// Whether a frame can be received without waiting.
[[nodiscard]] base::Result<bool> answer_is_there(const Session& session);

// SHA-256 over pieces.
class Digest {
 public:
  Digest();
  void add(std::string_view bytes);
  [[nodiscard]] std::string hex();  // once, at the end

 private:
  alignas(8) unsigned char state_[128];
};

}  // namespace workspace
