// Inside init only: file sessions.
#pragma once

#include "base/base.h"
#include "base/frame.h"
#include "confine/confine.h"

namespace init {

// Forks a process that becomes serve.uid and serve.gid, gives up all else, and serves the session
// on `socket`. It says Refused there when it cannot. Returns its number, or -1 where no process
// could be had.
pid_t begin_session(const frame::ServeFiles& serve, int socket);

// What a child of init keeps nothing of: every capability, other ids, core dumps, new privileges.
[[nodiscard]] confine::Outcome give_up_all(std::uint32_t uid, std::uint32_t gid);

// The other end of a session. The words of the session are sent whole or the process ends.
class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  // The next frame; nullopt at the end, or when it is malformed.
  [[nodiscard]] std::optional<frame::FileFrame> hear();
  // False when the peer is gone.
  [[nodiscard]] bool say(const frame::FileFrame& word) const;

 private:
  int socket_;
  std::string buffer_;
};

// A relative path whose parts are names: not empty, not "." or "..", at most 255 bytes, no NUL.
[[nodiscard]] bool is_plain(std::string_view path);
// Opens `path`, of any length, below the folder `dir`; no link is followed, and none of the
// kernel's magic ones.
[[nodiscard]] std::expected<base::Fd, confine::Failure> open_below(int dir, std::string_view path,
                                                                   int flags, unsigned mode);

// Everything below `path` to the peer: entries, data, then Done, or Refused naming the first thing
// that could not be sent. False when the peer is gone.
[[nodiscard]] bool fetch(const Peer& peer, int root, const std::string& path);

}  // namespace init
