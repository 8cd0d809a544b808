// Any bytes as what an HTTP/2 peer sends, to a server and to a client, in pieces of any size: what
// comes out as text is admitted or rejected like any other, and no more is held than was allowed.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t kMostHeld = std::size_t{4} << 20;

std::string read_some(http::H2Stream& stream) {
  std::string out;
  std::array<char, 100> room{};
  while (true) {
    const auto got = stream.read(room);
    if (got.bytes > room.size()) __builtin_trap();
    if (got.state != http::H2Stream::State::moved) return out;
    out.append(room.data(), got.bytes);
  }
}

// A head is written once: what was admitted is what its fields said.
void admit(const std::string& text) {
  std::size_t seen = 0;
  const auto end = http::find_head_end(text, seen);
  if (!end || *end == 0) return;
  const auto head = http::parse_request(text.substr(0, *end), {.leg = http::Leg::tls});
  if (!head) return;
  if (head->method == "CONNECT" || head->websocket || head->minor != 1) __builtin_trap();
  const auto again = http::parse_request(http::write_request(*head), {.leg = http::Leg::tls});
  if (!again || again->host != head->host || again->target != head->target) __builtin_trap();
}

void take_output(http::H2Connection& connection) {
  std::size_t held = 0;
  for (auto some = connection.output(); !some.empty(); some = connection.output()) {
    held += some.size();
    if (held > kMostHeld) __builtin_trap();
  }
}

void serve(std::string_view bytes, std::size_t step) {
  auto made = http::H2Connection::make(http::H2Side::server, {});
  http::H2Connection& server = **made;
  server.feed(kPreface, 0);
  std::uint64_t now = 0;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    server.feed(bytes.substr(0, step), now++);
    for (const auto& stream : server.accept()) {
      admit(read_some(*stream));
      (void)stream->write(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
      if (now % 3 == 0) stream->abandon(http::H2Code::internal);
    }
    (void)server.take_malformed();
    take_output(server);
  }
}

void ask(std::string_view bytes, std::size_t step) {
  auto made = http::H2Connection::make(http::H2Side::client, {});
  http::H2Connection& client = **made;
  const auto stream = client.open();
  (void)stream->write("POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc");
  take_output(client);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    client.feed(bytes.substr(0, step), 0);
    const std::string text = read_some(*stream);
    const auto end = http::find_head_end(text, 0);
    if (end && *end != 0) (void)http::parse_response(text.substr(0, *end), {.method = "POST"});
    take_output(client);
  }
  stream->abandon(http::H2Code::cancel);
  take_output(client);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::size_t step = 1 + bytes[0] % 64;
  bytes[0] % 2 == 0 ? serve(text, step * 16) : ask(text, step * 16);
  return 0;
}
