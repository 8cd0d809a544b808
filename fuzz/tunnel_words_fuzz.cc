// Any bytes as what a sandbox says: the host's end of a tunnel ends by itself, and writes nothing
// that it was not told.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/frame.h"
#include "os/os.h"
#include "tunnel/tunnel.h"
#include "tunnel/words.h"

namespace {

void read_words(std::string_view text) {
  tunnel::Reader reader;
  reader.feed(text);
  std::string again;
  while (true) {
    const auto word = reader.next();
    if (!word || !*word) break;
    tunnel::write(again, **word);
  }
  // There is one way to write a word.
  if (!text.starts_with(again)) __builtin_trap();
}

void serve(std::string_view text) {
  auto up = os::pipe();
  auto out = os::pipe();
  auto control = os::socket_pair(SOCK_SEQPACKET);
  auto session = os::socket_pair(SOCK_SEQPACKET);
  auto null = os::open("/dev/null", O_RDWR, 0);
  if (!up || !out || !control || !session || !null) __builtin_trap();
  frame::Exec exec;
  exec.id = 1;
  const std::array<int, 4> fds = {null->get(), out->second.get(), out->second.get(),
                                  session->second.get()};
  const bool told =
      os::send_message(control->first.get(), base::encode(frame::ToInit(exec)), fds).has_value();
  out->second.reset();
  // All of it fits into the pipe, and what comes of it into the sinks.
  if (!told || !os::write_all(up->second.get(), text, "bytes")) __builtin_trap();
  up->second.reset();
  (void)tunnel::serve(tunnel::Side::host, {up->first.get(), null->get(), control->second.get()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto kIgnored = ::signal(SIGPIPE, SIG_IGN);
  (void)kIgnored;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (size > 8192) return 0;
  read_words(text);
  serve(text);
  return 0;
}
