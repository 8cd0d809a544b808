// Files into a sandbox and out of it, over a file session that cerco-init serves (base/frame.h).
//
// The host never opens a path inside. What comes out is hostile: names, link texts, sizes and the
// order of the frames are judged here, and everything is written below one folder by descriptor.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "base/frame.h"

namespace workspace {

// The host's end of a file session.
struct Session {
  int socket = -1;
  int stop = -1;          // readable: give up (a signal came); -1: nothing can stop it
  int stall_ms = 30'000;  // how long the other side may be silent; -1: no limit
  // How much longer than that all may take that comes out: for each 256 KiB and each 64 entries.
  int pace_ms = 1'000;
  std::string_view what;  // how errors call it; "": --in and --out
};

// What was put in, by path: so that take() knows what came out unchanged.
struct Known {
  frame::EntryKind kind = frame::EntryKind::file;
  std::string content;  // SHA-256 of a file in hex, the text of a link, "" for a folder
  bool executable = false;
  bool operator==(const Known&) const = default;
};
using Manifest = std::map<std::string, Known>;

// `--in SRC[:DEST]`: `path` is where it goes, relative to the session's root.
struct Incoming {
  std::string source;
  std::string path;
  bool executable = false;  // a file is made executable inside, whatever it is here
  bool operator==(const Incoming&) const = default;
};
// `root` is the working folder inside. Without `dest` the source keeps its base name; one that ends
// in "/" is a folder that the source goes into; an absolute one must lie below `root`. bad_input
// for a path that leaves it.
[[nodiscard]] base::Result<Incoming> incoming(std::string_view source, std::string_view dest,
                                              std::string_view root);

// Copies a file or a whole folder of the host in. Files of a folder that match a `hide` pattern
// come in empty; links inside of a folder are copied as links; a socket, pipe or device is an error
// that names it, and so is a path that is already there. A file that says no size (as those of
// /proc) is read to its end, up to 16 MiB. Returns what was hidden. Adds what was put to
// `manifest`.
[[nodiscard]] base::Result<std::vector<std::string>> put(const Session& session,
                                                         const Incoming& incoming,
                                                         std::span<const std::string> hide,
                                                         Manifest& manifest);
// The same for one file that is held in memory.
[[nodiscard]] base::Status put_bytes(const Session& session, const std::string& path,
                                     std::string_view bytes, std::uint32_t mode,
                                     Manifest& manifest);

// What matches a `hide` pattern below the `folders` (absolute, without links), which are shown
// inside at their own paths: sorted, folders whole. A link stands for what it leads to. A folder
// that is itself in `folders` was named by the caller and counts as meant. bad_input when more than
// `most` entries would have to be looked at; an error too for a folder that cannot be read.
inline constexpr std::uint64_t kMostSearched = 500'000;
[[nodiscard]] base::Result<std::vector<std::string>> hidden_below(
    std::span<const std::string> folders, std::span<const std::string> hide, std::uint64_t most);

// How much may come out, together.
struct Caps {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};
struct Taken {
  std::uint64_t changes = 0;  // made, changed or deleted, compared with the manifest
  std::uint64_t left_out_count = 0;
  std::vector<std::string>
      left_out;  // the first of them, "PATH: why", as they came (not printable)
};
// Fetches all that the session's root holds and writes what was not put in unchanged below the open
// folder `dir`: replaces files and links of the same name, follows no link, never sets set-id bits.
// Links that point out of the folder, special files, paths too long or deep and what the host does
// not give its place up to (a folder where a file comes) are left out and counted. An error for
// every frame that does not fit, a path that leaves the folder, and more than `caps`; what was
// written until then stays.
[[nodiscard]] base::Result<Taken> take(const Session& session, int dir, const Manifest& manifest,
                                       const Caps& caps);

// Fetches the one file or folder at `path` (relative to the session's root, clean) and writes it
// below `dir` under the name `as`, by the same rules; links count as leaving when they point out of
// the copied folder.
[[nodiscard]] base::Result<Taken> take_one(const Session& session, const std::string& path, int dir,
                                           const std::string& as, const Caps& caps);

// Whether a link at `path` (relative, clean) with this text can only lead to places below the
// folder.
[[nodiscard]] bool link_stays_inside(std::string_view path, std::string_view text);

}  // namespace workspace
