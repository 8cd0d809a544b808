// What is asked of a living run over the socket in its folder: one connection a request.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/supervisor.h"

namespace supervisor {

inline constexpr std::uint64_t kNoTimeout = ~0ULL;

// --- client → supervisor -----------------------------------------------------------------------

// Starts one more command. Three descriptors come along: pipes for its standard input, output and
// error. Answered by StartFailed or, when it has ended, by Over. The end of the connection ends the
// command with every process of it.
struct Exec {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // beside and over the run's own
  std::string cwd;                         // "": the run's; relative: below it
  std::uint64_t timeout_ms = kNoTimeout;
  std::optional<frame::Window> terminal = {};  // as of Launch
  template <class W>
  void fields(W& w) {
    w(argv, env, cwd, timeout_ms, terminal);
  }
};
// Follow an Exec on its connection: Signal for the command's process group, End{"output_limit"},
// Resize.

// Asks for what a detached command has written and will write: Output and Lost until its end, then
// Over; before them Typing where the command has a terminal, whose size then follows the Resize of
// this connection. Answered by StartFailed where there is no such command.
struct Attach {
  template <class W>
  void fields(W&) {}
};
// Sends a signal to the run's command, or to every command of a session; answered by Done.
struct SendSignal {
  std::uint32_t number = 0;
  template <class W>
  void fields(W& w) {
    w(number);
  }
};
// Ends the run; answered by Done when nothing of it is left.
struct EndRun {
  template <class W>
  void fields(W&) {}
};
// One descriptor comes along: the far end of a file session (frame::FileFrame) on the folder
// `root` inside (relative: below the run's working folder), with the rights of the workload's user;
// what is put there replaces what is there. Answered by Done.
struct OpenFiles {
  std::string root;
  template <class W>
  void fields(W& w) {
    w(root);
  }
};
// Revokes one of the run's credentials ("" for all) for good, and closes the connections on which
// its secret went out. Answered by Done once the broker has forgotten it; by StartFailed where the
// run has no such credential.
struct RevokeCredential {
  std::string credential;
  template <class W>
  void fields(W& w) {
    w(credential);
  }
};
// One descriptor comes along: a TCP socket that listens on the host's loopback. What connects to it
// reaches the server on `port` of the sandbox's loopback, until the run ends. Answered by Done, or
// by StartFailed, with status 1 where nobody listens inside.
struct Publish {
  std::uint16_t port = 0;
  template <class W>
  void fields(W& w) {
    w(port);
  }
};
// Asks for the policy in force; answered by PolicyInForce.
struct ShowPolicy {
  template <class W>
  void fields(W&) {}
};
// Puts another policy in force; one descriptor comes along: a memfd with encode(policy::Policy).
// `instead_of` is the revision that it was made from. Answered by PolicyChanged once gateway,
// broker and kernel hold to it; by StartFailed, with the key concerned in `ending.step`, where it
// cannot be: the old one is in force then.
struct ApplyPolicy {
  std::uint64_t instead_of = 0;
  template <class W>
  void fields(W& w) {
    w(instead_of);
  }
};
using FromClient = std::variant<Exec, Signal, End, Attach, SendSignal, EndRun, OpenFiles,
                                RevokeCredential, Resize, Publish, ShowPolicy, ApplyPolicy>;

// --- supervisor → client -----------------------------------------------------------------------

enum class Stream { output, error, last_ = error };
struct Output {
  Stream stream = Stream::output;
  std::string bytes;
  template <class W>
  void fields(W& w) {
    w(stream, bytes);
  }
};
// That many bytes are no longer kept: they were written before the client came, or faster than it
// read.
struct Lost {
  std::uint64_t bytes = 0;
  template <class W>
  void fields(W& w) {
    w(bytes);
  }
};
struct Done {
  template <class W>
  void fields(W&) {}
};
// One descriptor comes along: the pipe into which goes what is typed at the command's terminal.
struct Typing {
  template <class W>
  void fields(W&) {}
};
// One descriptor comes along: a memfd with encode(policy::Policy).
struct PolicyInForce {
  std::uint64_t revision = 0;
  template <class W>
  void fields(W& w) {
    w(revision);
  }
};
struct PolicyChanged {
  std::uint64_t revision = 0;
  std::string policy_sha256;
  std::vector<std::string> retired;  // credentials that were revoked because it leaves them out
  template <class W>
  void fields(W& w) {
    w(revision, policy_sha256, retired);
  }
};
using ToClient =
    std::variant<StartFailed, Over, Output, Lost, Done, Typing, PolicyInForce, PolicyChanged>;

// --- The folder of a run -----------------------------------------------------------------------

// Names below STATE/runs/RUN.
inline constexpr const char* kLiveFile = "live";      // encode(LiveRun), locked while it lives
inline constexpr const char* kSocketFile = "socket";  // of the requests above
inline constexpr const char* kReportFile = "report.json";
inline constexpr const char* kOutputPrefix = "output.";  // and a number: what a detached run wrote

enum class RunKind { attached, detached, session, last_ = session };

// What is known of a run while it lives, and of one whose supervisor was killed.
struct LiveRun {
  std::string run;
  std::string name;
  RunKind kind = RunKind::attached;
  std::uint64_t started = 0;     // seconds since 1970
  std::uint64_t supervisor = 0;  // its pid
  std::vector<std::string> argv;
  std::string task;
  std::string tier;
  std::vector<std::string> below_advice;
  std::vector<std::string> unheld;
  std::string policy_sha256;
  // What whoever carries bytes in and out holds them to: limits.output, disk and inodes, and
  // filesystem.hide.
  std::uint64_t output = 0;
  std::uint64_t disk = 0;
  std::uint64_t inodes = 0;
  std::vector<std::string> hide;
  template <class W>
  void fields(W& w) {
    w(run, name, kind, started, supervisor, argv, task, tier, below_advice, unheld, policy_sha256,
      output, disk, inodes, hide);
  }
};

}  // namespace supervisor
