// Takes secrets out of what a server sends in a WebSocket (RFC 6455): its frames are read, the
// messages in them cleaned, and frames of our own written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/redact.h"

namespace http {

// One direction of one connection, from the server. Frames are cut anew; messages, their kinds and
// their order stay. What a server cuts off at the end of a message is masked as in a body.
class FrameRedactor {
 public:
  // `redactions` may grow: what is added is looked for from the next message on.
  explicit FrameRedactor(const std::vector<std::unique_ptr<Redaction>>& redactions)
      : redactions_(&redactions) {}
  ~FrameRedactor() { base::wipe(held_); }
  FrameRedactor(const FrameRedactor&) = delete;
  FrameRedactor& operator=(const FrameRedactor&) = delete;

  // What may go on; nullopt when the bytes are no frames of a server without extensions: masked,
  // with a reserved bit or an unknown kind, a control frame that is long or cut, a continuation of
  // nothing.
  [[nodiscard]] std::optional<std::string> push(std::string_view piece);

 private:
  struct Frame {
    unsigned kind = 0;
    bool last = false;
    std::uint64_t left = 0;
    std::string control;  // the payload of a control frame
  };
  [[nodiscard]] bool take_head(std::string_view& piece, bool& whole);
  [[nodiscard]] bool begin(Frame frame);
  void take_payload(std::string_view& piece, std::string& out);
  void end_frame(std::string_view cleaned, std::string& out);
  [[nodiscard]] std::string cleaned(std::string_view text, bool last);

  const std::vector<std::unique_ptr<Redaction>>* redactions_;
  std::vector<std::unique_ptr<BodyRedactor>> redactors_;  // of the message that is under way
  std::string held_;                                      // a head that is not whole yet
  std::optional<Frame> frame_;
  unsigned message_ = 0;  // the kind that its next frame is to say; 0 once one has gone out
  bool in_message_ = false;
};

}  // namespace http
