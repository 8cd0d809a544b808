// Notes of the start, over a SEQPACKET socket pair.
#include "sandbox/container/start_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/os.h"

namespace sandbox {

void Note::say(std::string_view what) {
  length = static_cast<std::uint32_t>(std::min(what.size(), sizeof text));
  std::memcpy(text, what.data(), length);
}

base::Status send_note(int channel, const Note& note, std::span<const int> fds) {
  if (fds.size() > kMostNoteFds) return base::system_error("start channel", E2BIG);
  iovec part = {const_cast<Note*>(&note), sizeof note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostNoteFds)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t put = -1;
  do {
    put = ::sendmsg(channel, &message, MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  if (put < 0) return base::system_error("start channel");
  return {};
}

base::Result<ReceivedNote> receive_note(int channel) {
  ReceivedNote received;
  iovec part = {&received.note, sizeof received.note};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostNoteFds)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = os::receive(channel, message, MSG_CMSG_CLOEXEC);
  if (got < 0) return base::system_error("start channel");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count && received.count < kMostNoteFds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      received.fds[received.count++] = base::Fd(fd);
    }
  }
  received.end = got == 0;
  if (!received.end && (got != sizeof received.note || received.note.length > sizeof(Note::text))) {
    return base::system_error("start channel", EPROTO);
  }
  return received;
}

void fail_start(int channel, const base::Error& error) {
  Note note;
  note.kind = NoteKind::failed;
  note.base_kind = static_cast<std::uint32_t>(error.kind);
  note.number = error.number;
  note.say(error.where);
  (void)send_note(channel, note, {});
  ::_exit(125);
}

}  // namespace sandbox
