// Frames of one file session, sent and received with a deadline.
#include "workspace/session.h"

#include <sodium.h>

#include <array>

#include "os/os.h"

namespace workspace {
namespace {

// Waits until the socket is ready for `event`, the other side stalls, or the caller wants to stop.
base::Status ready(const Session& session, short event) {
  std::array<pollfd, 2> watched = {{{session.socket, event, 0}, {session.stop, POLLIN, 0}}};
  const bool any = TRY(os::wait_for(watched, session.stall_ms));
  if (watched[1].revents != 0) {
    return base::fail(base::Kind::peer, "files", "stopped by a signal", {});
  }
  if (!any) return base::fail(base::Kind::peer, "files", "the sandbox does not answer", {});
  return {};
}

}  // namespace

base::Status send(const Session& session, const frame::FileFrame& value) {
  TRY(ready(session, POLLOUT));
  return os::send_message(session.socket, base::encode(value), {});
}

base::Result<frame::FileFrame> receive(const Session& session) {
  TRY(ready(session, POLLIN));
  auto received = TRY(os::receive_message(session.socket, frame::kMaxFrame, 0));
  if (received.end) return base::fail(base::Kind::peer, "files", "the session ended early", {});
  return base::decode<frame::FileFrame>(received.bytes, "files");
}

base::Result<bool> answer_is_there(const Session& session) {
  std::array<pollfd, 1> watched = {{{session.socket, POLLIN, 0}}};
  return os::wait_for(watched, 0);
}

static_assert(sizeof(crypto_hash_sha256_state) <= 128);

Digest::Digest() {
  crypto_hash_sha256_init(reinterpret_cast<crypto_hash_sha256_state*>(state_));
}

void Digest::add(std::string_view bytes) {
  crypto_hash_sha256_update(reinterpret_cast<crypto_hash_sha256_state*>(state_),
                            reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Digest::hex() {
  std::array<char, crypto_hash_sha256_BYTES> out{};
  crypto_hash_sha256_final(reinterpret_cast<crypto_hash_sha256_state*>(state_),
                           reinterpret_cast<unsigned char*>(out.data()));
  return base::hex({out.data(), out.size()});
}

}  // namespace workspace
