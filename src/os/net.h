// Internet sockets without waiting: every call answers at once with what moved or EAGAIN.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/base.h"

namespace os {

// An IPv4 or IPv6 address and a port; the address in network order, IPv4 in the first four bytes.
struct Endpoint {
  bool v6 = false;
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // interface index of a link-local address
  bool operator==(const Endpoint&) const = default;
};

// What a call moved. `error` is 0, EAGAIN (wait and call again) or what went wrong; 0 bytes without
// an error is the end of the stream. No text is made, since this runs for every piece of traffic.
struct Moved {
  std::size_t bytes = 0;
  int error = 0;
  [[nodiscard]] bool end() const { return bytes == 0 && error == 0; }
  [[nodiscard]] bool failed() const { return error != 0; }
};

[[nodiscard]] Moved receive(int socket, std::span<char> into);
[[nodiscard]] Moved peek(int socket, std::span<char> into);  // the bytes stay in the socket
[[nodiscard]] Moved send(int socket, std::string_view bytes);
[[nodiscard]] Moved send(int socket, std::string_view first,
                         std::string_view second);  // one segment train
// splice(2) of at most `most` bytes; one side is a pipe.
[[nodiscard]] Moved splice(int from, int to, std::size_t most);

// A stream socket that connects without waiting; writable when it is decided, then
// connect_result().
[[nodiscard]] base::Result<base::Fd> start_connect(const Endpoint& to);
[[nodiscard]] int connect_result(int socket);  // 0, or the errno of the attempt
// accept4(2), non-blocking and close-on-exec. The Error's number is accept's errno (EAGAIN, EMFILE
// …).
[[nodiscard]] base::Result<base::Fd> accept(int listener);
// A listening stream socket on an address; port 0 for any.
[[nodiscard]] base::Result<base::Fd> listen(const Endpoint& at);
[[nodiscard]] base::Result<Endpoint> local_endpoint(int socket);
[[nodiscard]] base::Result<Endpoint> peer_endpoint(int socket);
[[nodiscard]] base::Status set_nonblocking(int fd);
[[nodiscard]] base::Status set_no_delay(int socket);
// What the kernel may hold for a TCP socket. `tuned`: what its own tuning comes to, megabytes for a
// peer that is far and fast; `tight`: about 256 KiB of what was not read. In both, a writer that
// waits is woken, and what was not sent is held, by a bound of its own (TCP_NOTSENT_LOWAT), since
// else a peer that takes nothing fills the whole send buffer.
enum class Queue { tuned, tight };
[[nodiscard]] base::Status bound_queue(int socket, Queue queue);
// Readable only once `bytes` are there (or the end is): SO_RCVLOWAT.
[[nodiscard]] base::Status set_low_mark(int socket, std::size_t bytes);
// close(2) will send a reset and throw away what was not sent: SO_LINGER of zero.
[[nodiscard]] base::Status reset_at_close(int socket);
[[nodiscard]] base::Status shut_down_write(int socket);
// On a Unix socket the peer's next send fails with EPIPE; what it sent before can still be read.
[[nodiscard]] base::Status shut_down_read(int socket);
[[nodiscard]] base::Status set_pipe_size(int pipe, std::size_t bytes);
[[nodiscard]] base::Result<std::pair<base::Fd, base::Fd>>
pipe_nonblocking();  // read end, write end

// A datagram with where it came from and where it was sent to (IP_PKTINFO).
struct Datagram {
  std::string bytes;
  Endpoint from;
  Endpoint to;  // port 0: the socket's own
};
[[nodiscard]] base::Status ask_for_destination(int socket, bool v6);
// nullopt when there is none to be had now.
[[nodiscard]] base::Result<std::optional<Datagram>> receive_datagram(int socket, std::size_t most);
// Sends `bytes` to datagram.from, with datagram.to as the source.
[[nodiscard]] base::Status answer_datagram(int socket, const Datagram& datagram,
                                           std::string_view bytes);

// Sends whole messages of a SEQPACKET or datagram socket in one call; the count that went, and why
// not more.
struct Sent {
  std::size_t count = 0;
  int error = 0;
};
[[nodiscard]] Sent send_messages(int socket, std::span<const std::string> messages);
// Waits until the descriptor can be written, at most `ms`; false when it cannot.
[[nodiscard]] bool wait_writable(int fd, int ms);

}  // namespace os
