// Frames between the host side and cerco-init. The same frames travel over a Unix SEQPACKET socket
// and, in other tiers, a virtio port. A frame is base::encode(Variant); at most kMaxFrame bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/wire.h"

namespace frame {

inline constexpr std::size_t kMaxFrame = std::size_t{128} * 1024;
inline constexpr std::size_t kChunk = std::size_t{64} * 1024;
inline constexpr std::size_t kMaxGroups = 4;  // of one command
inline constexpr std::size_t kMaxPassed = 8;  // descriptors beside its streams

// --- Control channel: supervisor → init ------------------------------------------------------

// What a terminal shows, in characters; 0 for what is not known.
struct Window {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  bool operator==(const Window&) const = default;
  template <class W>
  void fields(W& w) {
    w(rows, columns);
  }
};
// Starts a command. Three descriptors come along: standard input, output, error; then `groups`
// more, into each of which the new process writes "0" before anything else, which is how it enters
// the control groups of its command; then `passed` more, which the command finds as 3, 4, …. With
// `terminal` it has a terminal of the sandbox's own as all three, and init copies between that one
// and the first two descriptors; the end of the first hangs it up, and Ended comes when what it
// showed has gone into the second.
struct Exec {
  std::uint64_t id = 0;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "K=V"
  std::string cwd;
  std::uint32_t uid = 1000;
  std::uint32_t gid = 1000;
  std::uint64_t files = 0;  // RLIMIT_NOFILE; 0: leave
  bool drop_capabilities = true;
  bool no_new_privs = true;
  std::string filter;  // sock_filter array as bytes; empty: no seccomp
  std::uint32_t groups = 0;
  std::uint32_t passed = 0;
  std::optional<Window> terminal = {};
  template <class W>
  void fields(W& w) {
    w(id, argv, env, cwd, uid, gid, files, drop_capabilities, no_new_privs, filter, groups, passed,
      terminal);
  }
};
// The host's terminal has another size now.
struct Resize {
  std::uint64_t id = 0;
  Window window;
  template <class W>
  void fields(W& w) {
    w(id, window);
  }
};
struct Signal {
  std::uint64_t id = 0;
  std::uint32_t number = 0;
  template <class W>
  void fields(W& w) {
    w(id, number);
  }
};
enum class Existing { keep, replace, last_ = replace };
// One descriptor comes along: a SEQPACKET socket on which a file session is served (FileFrame).
struct ServeFiles {
  std::uint32_t uid = 1000;
  std::uint32_t gid = 1000;
  std::string root;  // absolute folder inside; no path of the session leaves it
  Existing existing = Existing::keep;
  template <class W>
  void fields(W& w) {
    w(uid, gid, root, existing);
  }
};
// Kills every process inside but init itself, file sessions included, and reaps them; answered by
// AllDead.
struct KillAll {
  template <class W>
  void fields(W&) {}
};
// One connection to a server inside. One descriptor comes along, a stream socket: init's child
// connects to `port` of the sandbox's loopback, with the rights of the workload's user, says there
// by one byte how that went (0, or the errno) and copies both ways from then on. With Reach::look
// it finds out whether somebody listens, without a connection, and says that alone.
enum class Reach { look, connect, last_ = connect };
struct Connect {
  std::uint32_t uid = 1000;
  std::uint32_t gid = 1000;
  std::uint16_t port = 0;
  Reach reach = Reach::connect;
  template <class W>
  void fields(W& w) {
    w(uid, gid, port, reach);
  }
};
using ToInit = std::variant<Exec, Signal, ServeFiles, KillAll, Resize, Connect>;

// --- Control channel: init → supervisor ------------------------------------------------------

struct Ready {
  std::uint32_t version = 1;
  template <class W>
  void fields(W& w) {
    w(version);
  }
};
struct Started {
  std::uint64_t id = 0;
  template <class W>
  void fields(W& w) {
    w(id);
  }
};
// The command could not be started: at `step` ("execve", "chdir", "setuid", …) with `error`
// (errno).
struct NotStarted {
  std::uint64_t id = 0;
  std::string step;
  std::uint32_t error = 0;
  template <class W>
  void fields(W& w) {
    w(id, step, error);
  }
};
struct Ended {
  std::uint64_t id = 0;
  bool signalled = false;
  std::uint32_t code = 0;  // exit status, or the signal's number
  std::uint64_t cpu_ms = 0;
  template <class W>
  void fields(W& w) {
    w(id, signalled, code, cpu_ms);
  }
};
struct AllDead {
  template <class W>
  void fields(W&) {}
};
using FromInit = std::variant<Ready, Started, NotStarted, Ended, AllDead>;

// --- File sessions: both ways -----------------------------------------------------------------

// Host → init. Paths are relative to the session's root; files are made as the workload's user and
// replace nothing (EEXIST). Where the session was opened with Existing::replace, files and links go
// in the place of files and links, and a folder that is there stays. Data frames follow until
// `size` bytes have come. Each PutFile, PutFolder and PutLink is answered by exactly one Done or
// Refused, a PutFile after its last Data (the Data of a file that is refused is read and dropped);
// the host sends up to 16 of them before it reads the answers.
struct PutFile {
  std::string path;
  std::uint32_t mode = 0644;
  std::uint64_t size = 0;
  template <class W>
  void fields(W& w) {
    w(path, mode, size);
  }
};
struct PutFolder {
  std::string path;
  std::uint32_t mode = 0755;
  template <class W>
  void fields(W& w) {
    w(path, mode);
  }
};
struct PutLink {
  std::string path;
  std::string text;
  template <class W>
  void fields(W& w) {
    w(path, text);
  }
};
// Asks for everything below `path` ("" is the root itself, which has no entry; any other path has
// its own entry first): Entry frames, a folder before what is in it, files followed by exactly
// `size` bytes of Data (zeros where the file shrank meanwhile), then Done. Refused instead of Done
// means that all was sent but what it names: closed to the workload's user, changed while it was
// read, larger than its disk (an Entry of kind other), or with a path of more than 64 KiB. Paths of
// entries are relative to the session's root.
struct Fetch {
  std::string path;
  template <class W>
  void fields(W& w) {
    w(path);
  }
};
struct Data {
  std::string bytes;
  template <class W>
  void fields(W& w) {
    w(bytes);
  }
};
enum class EntryKind { file, folder, link, other, last_ = other };
struct Entry {
  std::string path;
  EntryKind kind = EntryKind::file;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;  // bytes of Data that follow, for files
  std::string text;        // of a link
  template <class W>
  void fields(W& w) {
    w(path, kind, mode, size, text);
  }
};
struct Done {
  template <class W>
  void fields(W&) {}
};
struct Refused {
  std::string what;
  std::uint32_t error = 0;
  template <class W>
  void fields(W& w) {
    w(what, error);
  }
};
using FileFrame = std::variant<PutFile, PutFolder, PutLink, Fetch, Data, Entry, Done, Refused>;

}  // namespace frame
