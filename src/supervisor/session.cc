// Sending to clients without waiting for them.
#include "supervisor/session.h"

#include <cerrno>

namespace supervisor {

namespace {

constexpr int kAtOnce = 16;  // messages of output before others have their turn

}  // namespace

bool Client::has_more(const OutputRing* ring) const {
  if (gone) return false;
  if (!outbox.empty()) return true;
  return reading && ring != nullptr && !ring->at_end(*reading);
}

void Client::pump(const OutputRing* ring) {
  const auto send = [&](const std::string& bytes) {
    const auto sent = channel.send(bytes, {});
    if (!sent && sent.error().number != EAGAIN) gone = true;
    return sent.has_value();
  };
  for (int i = 0; i < kAtOnce && !gone; ++i) {
    // What is still to be read comes before the last word.
    if (reading && ring != nullptr) {
      OutputRing::Position at = *reading;
      auto next = ring->next(at);
      if (next.lost > 0) {
        if (!send(base::encode(ToClient(Lost{next.lost})))) return;
        reading->bytes += next.lost;
      }
      if (next.output) {
        if (!send(base::encode(ToClient(std::move(*next.output))))) return;
        reading = at;
        continue;
      }
    }
    if (outbox.empty()) return;
    if (!send(outbox.front())) return;
    outbox.pop_front();
  }
}

}  // namespace supervisor
