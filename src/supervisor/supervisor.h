// The supervisor: one table of requests, the children it starts, and one true ending a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/base.h"
#include "base/frame.h"
#include "ipc/ipc.h"
#include "journal/journal.h"
#include "plan/plan.h"

namespace supervisor {

// --- caller → supervisor -----------------------------------------------------------------------

// First message. Descriptors, in order: Plan (sealed memfd); unless `detach`, the command's
// standard input, output and error; the upstream roots (memfd); when `put`, the far end of a file
// session on the working folder (frame::FileFrame) that is served before the command starts; when
// `take`, the far end of another one that is served once the command and every process with it are
// gone; when `report`, the file that the report goes to; then one memfd a credential with its
// secret, in the policy's order.
struct Launch {
  bool put = false;  // the command starts at Go, when the caller has put its files
  bool take = false;
  bool detach = false;        // the run goes on without the caller from Begun on
  bool report = false;        // with `detach`
  std::string version;        // of the program, for a report that the supervisor writes
  std::uint64_t secrets = 0;  // how many memfds follow
  // The command has a terminal of the sandbox's own as its streams; the third descriptor is unused.
  std::optional<frame::Window> terminal = {};
  template <class W>
  void fields(W& w) {
    w(put, take, detach, report, version, secrets, terminal);
  }
};
struct Go {
  template <class W>
  void fields(W&) {}
};
struct Signal {
  std::uint32_t number = 0;
  template <class W>
  void fields(W& w) {
    w(number);
  }
};
// The command's output reached `limit`, say: the caller asks for the end with that reason.
struct End {
  std::string reason;  // "output_limit", "killed"
  template <class W>
  void fields(W& w) {
    w(reason);
  }
};
// The caller has fetched what it wants: tear down and report.
struct Finish {
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint64_t changes = 0;
  template <class W>
  void fields(W& w) {
    w(stdout_bytes, stderr_bytes, changes);
  }
};
// The caller's terminal has another size now.
struct Resize {
  frame::Window window;
  template <class W>
  void fields(W& w) {
    w(window);
  }
};
using FromCaller = std::variant<Launch, Go, Signal, End, Finish, Resize>;

// --- supervisor → caller -----------------------------------------------------------------------

enum class EndingKind {
  exited,
  signalled,
  timed_out,
  out_of_memory,
  process_limit,
  disk_full,
  output_limit,
  killed,
  start_failed,
  last_ = start_failed
};
[[nodiscard]] std::string_view to_string(EndingKind kind);

struct Ending {
  EndingKind kind = EndingKind::exited;
  std::uint32_t code = 0;  // the command's own exit status
  std::string signal;      // "SIGKILL", "" when it exited
  std::string by;          // "host", "operator", "detector:blocked_range", …
  std::string step;        // start_failed: which step
  std::string error;       // start_failed: errno name
  template <class W>
  void fields(W& w) {
    w(kind, code, signal, by, step, error);
  }
};
struct Usage {
  std::uint64_t wall_ms = 0, cpu_ms = 0, memory_peak_bytes = 0, processes_peak = 0,
                written_bytes = 0;
  template <class W>
  void fields(W& w) {
    w(wall_ms, cpu_ms, memory_peak_bytes, processes_peak, written_bytes);
  }
};
struct Ready {  // init is up; the first file session is served
  template <class W>
  void fields(W&) {}
};
// Of a detached run: its command has begun, or the session waits for some. The last message.
struct Begun {
  template <class W>
  void fields(W&) {}
};
struct StartFailed {
  std::uint32_t status = 125;  // cerco's exit status: 125, 126, 127
  std::string message;         // an error line
  Ending ending;
  template <class W>
  void fields(W& w) {
    w(status, message, ending);
  }
};
// The command has ended, and with `take` every process with it; the second file session is served
// until Finish.
struct Over {
  std::uint32_t status = 0;  // cerco's exit status
  Ending ending;
  Usage usage;
  std::vector<std::string> limits_hit;
  std::vector<std::string> notes;  // lines for standard error
  template <class W>
  void fields(W& w) {
    w(status, ending, usage, limits_hit, notes);
  }
};
struct Report {  // last message: everything is gone, the journal is closed
  journal::Summary summary;
  std::string problem;  // what could not be removed, "" when all is well
  template <class W>
  void fields(W& w) {
    w(summary, problem);
  }
};
using ToCaller = std::variant<Ready, Begun, StartFailed, Over, Report>;

// What the supervisor checks of a Plan that it is handed. Only the tests' program passes `nothing`.
enum class Verify { plan, nothing };

// Makes what such a plan's starts are copied from, in the microVM tier, and returns its path. Takes
// the rights that serve() takes; nothing of a task goes into it.
[[nodiscard]] base::Result<std::string> warm(const plan::Plan& plan);

// Runs one sandbox for the caller at the other end of `caller`, to its end; returns the exit status
// of the process. The caller's end of file ends the sandbox at once, until it was told Begun.
int serve(ipc::Channel caller, Verify verify);

}  // namespace supervisor
