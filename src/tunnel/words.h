// What goes over the stream: words of bounded size, each about one channel.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame.h"

namespace tunnel {

// How the host uses a descriptor that came with a message.
enum class Kind : std::uint32_t {
  input = 1,     // it is read, and written inside
  output = 2,    // it is written, and read inside
  stream = 3,    // a stream socket, both ways
  messages = 4,  // a SEQPACKET, both ways
};
[[nodiscard]] std::optional<Kind> kind_of(std::uint32_t number);

inline constexpr std::size_t kMostMessage = frame::kMaxFrame + 1024;
inline constexpr std::size_t kMostFds = 16;  // with one message
inline constexpr std::size_t kHead = 12;     // bytes of a word before its body
inline constexpr std::size_t kMostBody = kMostMessage + 4 * (kMostFds + 1);
// What a receiver keeps for one channel. Each word counts kOverhead more than its bytes, so that
// empty ones are bounded as well.
inline constexpr std::size_t kWindow = std::size_t{512} * 1024;
inline constexpr std::size_t kOverhead = 64;
[[nodiscard]] constexpr std::size_t cost(std::size_t bytes) {
  return bytes + kOverhead;
}

enum class Say : std::uint32_t {
  message = 1,  // of the control channel; opens the channels `channel`, `channel` + 1, …
  data = 2,     // bytes of a stream, or one message of a SEQPACKET
  credit = 3,   // `amount` of the window is free again
  end = 4,      // nothing more comes on this channel from here
  stop = 5,     // nothing more is taken on this channel here
};
struct Word {
  Say say = Say::end;
  std::uint32_t channel = 0;
  std::uint32_t amount = 0;  // of credit
  std::vector<Kind> opens;   // by a message
  std::string bytes;         // of a message or data
  bool operator==(const Word&) const = default;
};

// Appends the word to `out`.
void write(std::string& out, const Word& word);

struct Nonsense {};

// Cuts a stream into words. It holds at most one word and what is fed at once.
class Reader {
 public:
  void feed(std::string_view bytes);
  // The next whole word; nullopt until more has come.
  [[nodiscard]] std::expected<std::optional<Word>, Nonsense> next();

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace tunnel
