// What the starting process and the processes that it forks say to each other, until cerco-init is
// executed. Nothing here allocates, so that it may run between clone and exec.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/base.h"

namespace sandbox {

enum class NoteKind : std::uint32_t {
  cloned,      // from outer.cc: `number` is the pid of what will be init
  user_space,  // from outer.cc: it has left for a user namespace of its own
  sockets,  // from inner.cc: descriptors of the capture sockets, then of the packet rules' socket
  disk,     // from inner.cc: a descriptor of the disk in memory
  tap,      // from inner.cc: a descriptor of the tap
  failed,   // from either: `number` is an errno, `text` says where
  parts,    // to inner.cc: descriptors of cerco-init, the user namespace and the disk
};

struct Note {
  NoteKind kind = NoteKind::failed;
  std::uint32_t base_kind = 0;  // base::Kind of a failure
  std::int32_t number = 0;
  std::uint32_t length = 0;
  char text[480] = {};

  void say(std::string_view what);
  [[nodiscard]] std::string_view said() const { return {text, length}; }
};

inline constexpr std::size_t kMostNoteFds = 8;

struct ReceivedNote {
  Note note;
  base::Fd fds[kMostNoteFds];
  std::size_t count = 0;
  bool end = false;  // nobody holds the other end any more
};

[[nodiscard]] base::Status send_note(int channel, const Note& note, std::span<const int> fds);
[[nodiscard]] base::Result<ReceivedNote> receive_note(int channel);
// Tells the other end of an error and ends the process.
[[noreturn]] void fail_start(int channel, const base::Error& error);

}  // namespace sandbox
