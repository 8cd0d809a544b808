// The journal: what producers hand in, the process that writes it, and what reads it back.
//
// A producer (supervisor, gateway, broker) holds one end of a SEQPACKET pair and sends Drafts; the
// journal process adds v, seq, id, time, run, task and prev, appends one line a Draft to RUN.jsonl,
// signs checkpoints, keeps the host chain, runs the detectors and tells the supervisor of alerts.
// A Draft counts as handed over when send() returned: the kernel holds it, whatever the producer
// does next. When the journal is gone send() fails with EPIPE, and the producer must refuse.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "ipc/ipc.h"
#include "os/os.h"

namespace journal {

// --- Producers -----------------------------------------------------------------------------

struct Draft {
  std::string type;       // "egress.decision", … (contract, Journal)
  std::string members;    // JSON members without braces (base::JsonObject::members())
  std::uint64_t ref = 0;  // the producer's own number for this event; 0: none
  std::uint64_t of = 0;   // an earlier ref of the same producer: written as "of": its id; 0: none
  template <class W>
  void fields(W& w) {
    w(type, members, ref, of);
  }
};

// Every type that an event may have (contract, Journal).
[[nodiscard]] std::span<const std::string_view> event_types();

// Texts that come from inside stand in the journal with their first kMostText bytes (to a whole
// character), followed by "…[N bytes, sha256 HEX]" of the whole. The journal cuts every string of
// an event so, and leaves out a `fix` that is longer; producers do it before, to send less.
inline constexpr std::size_t kMostText = 2048;
[[nodiscard]] std::string cut_text(std::string_view text);
// A list (argv) as a JSON array: each text cut, and behind 64 texts or 16 KiB "…[N more, sha256
// HEX]" of the rest, each with a NUL behind it.
[[nodiscard]] std::string cut_texts(std::span<const std::string> texts);

// Members longer than this are refused (an alert stands in the journal instead of the event).
inline constexpr std::size_t kMaxMembers = std::size_t{64} * 1024;  // gateway, broker
inline constexpr std::size_t kMaxMembersSupervisor = std::size_t{128} * 1024;

// Hands a Draft over on a producer's channel (gateway, broker). EPIPE when the journal is gone:
// refuse.
[[nodiscard]] base::Status hand_over(const ipc::Channel& channel, const Draft& draft);

// --- The supervisor's channel, supervisor → journal --------------------------------------------

// A run's file that has grown so far is followed by the next.
inline constexpr std::uint64_t kFileBytes = 64ULL << 20;
// When a run's journal has grown so far, gateway and broker are told no more: their channels close
// once what they had handed over is written, so both refuse from then on. One limit.hit says so.
// The supervisor's own events are still taken.
inline constexpr std::uint64_t kRunBytes = 256ULL << 20;

// First message; its descriptors are those of open_files(). `actions` are the detectors' actions by
// name
// ("blocked_range" → "kill"); a detector that is not named has the contract's default.
struct Open {
  std::string run;
  std::string task;
  std::map<std::string, std::string> actions;
  std::uint64_t file_bytes = kFileBytes;
  std::uint64_t run_bytes = kRunBytes;
  template <class W>
  void fields(W& w) {
    w(run, task, actions, file_bytes, run_bytes);
  }
};
// Another producer: its end of the pair comes along as a descriptor. `who` is "gateway", "broker".
struct AddProducer {
  std::string who;
  template <class W>
  void fields(W& w) {
    w(who);
  }
};
// The answer to NextFile; one descriptor: the file of open_next().
struct File {
  std::uint64_t number = 0;
  template <class W>
  void fields(W& w) {
    w(number);
  }
};
// Everything is over: drain the producers, write the last checkpoint and host line, answer Summary,
// end.
struct Finish {
  template <class W>
  void fields(W&) {}
};
// The detectors' actions from now on, by name; what was named before and is not named here stays.
struct Actions {
  std::map<std::string, std::string> actions;
  template <class W>
  void fields(W& w) {
    w(actions);
  }
};
using ToJournal = std::variant<Open, AddProducer, Draft, Finish, File, Actions>;

// --- journal → supervisor ----------------------------------------------------------------------

struct Opened {
  template <class W>
  void fields(W&) {}
};
// A detector fired and its action is more than note or alert.
struct Alarm {
  std::string detector;
  std::string action;      // "freeze", "revoke", "cut-network", "kill"
  std::string event;       // id of the alert event
  std::string credential;  // for revoke: the credential concerned, "" for all
  template <class W>
  void fields(W& w) {
    w(detector, action, event, credential);
  }
};
// What was refused, for the report and the block on standard error.
struct Refusal {
  std::string kind;  // host, port, method, path, range, credential, protocol
  std::string host;
  std::uint16_t port = 0;
  std::string method;
  std::string path;
  std::uint64_t count = 0;
  std::string rule;
  std::string fix;  // TOML, "" for none
  template <class W>
  void fields(W& w) {
    w(kind, host, port, method, path, count, rule, fix);
  }
};
// The file is full: RUN.`number`.jsonl is wanted. Until File comes the journal goes on with the old
// one.
struct NextFile {
  std::uint64_t number = 0;
  template <class W>
  void fields(W& w) {
    w(number);
  }
};
// The run's journal has reached run_bytes; once.
struct Full {
  template <class W>
  void fields(W&) {}
};
struct Summary {
  std::uint64_t events = 0;
  std::string head;          // SHA-256 of the last line
  std::uint64_t alerts = 0;  // alert events whose action is more than "note"
  std::vector<Refusal> refused;
  template <class W>
  void fields(W& w) {
    w(events, head, alerts, refused);
  }
};
using FromJournal = std::variant<Opened, Alarm, Summary, NextFile, Full>;

// Makes $STATE/journal and $STATE/keys (0700) where they are missing and opens what Open carries,
// in its order: RUN.jsonl (new, append), host.jsonl (append, read), keys/, journal/. EEXIST for a
// run that has a journal already: an id is never used again.
[[nodiscard]] base::Result<std::vector<base::Fd>> open_files(const std::string& state_dir,
                                                             const std::string& run);
// RUN.`number`.jsonl, new, for append.
[[nodiscard]] base::Result<base::Fd> open_next(const std::string& state_dir, const std::string& run,
                                               std::uint64_t number);

// --- The process ---------------------------------------------------------------------------

// Runs the journal process on its control channel until Finish or the supervisor's end (then it
// signs what it has and ends). Confines itself after Open. Returns the process's exit status.
int serve(ipc::Channel control);

// --- Readers -------------------------------------------------------------------------------

// "2026-01-02T03:04:05.123456789Z", as every event has it.
[[nodiscard]] std::string time_text(const os::Instant& wall);

// Which events to show; empty fields match everything.
struct Filter {
  std::string run;   // id
  std::string type;  // exact, or a prefix ending in "."
  std::string host;
  std::string verdict;
  std::string since;  // RFC 3339, lexicographic comparison; "" for all
};

// Lines that match, in order of the chain, for one run; `line` gets the raw JSON line.
[[nodiscard]] base::Status read(const std::string& journal_dir, const std::string& run,
                                const Filter& filter,
                                const std::function<void(std::string_view line)>& line);
// The same, and then what is written from now on, of one run or with "" of all, also of runs that
// are yet to start. Ends when `line` answers false.
[[nodiscard]] base::Status follow(const std::string& journal_dir, const std::string& run,
                                  const Filter& filter,
                                  const std::function<bool(std::string_view line)>& line);
// Runs that have a journal, oldest first.
[[nodiscard]] base::Result<std::vector<std::string>> runs(const std::string& journal_dir);
// What a run's journal tells of it as a whole; times of its events, zero where there is none.
struct Past {
  Summary summary;
  os::Instant planned;
  os::Instant started;
  os::Instant last;
};
[[nodiscard]] base::Result<Past> look_back(const std::string& journal_dir, const std::string& run);
// What a run's journal tells of one of its credentials; times as events have them, "" for never.
struct CredentialHistory {
  std::string name;
  std::string issued;  // JSON: the members of credential.issued behind the name
  std::string last_used;
  std::uint64_t uses = 0;
  std::uint64_t refused = 0;  // leases and misuses, folded ones counted
  std::string revoked;
  std::string why;
  bool operator==(const CredentialHistory&) const = default;
};
struct CredentialHistories {
  bool ended = false;                          // the run has
  std::vector<CredentialHistory> credentials;  // in the order in which they were issued
};
[[nodiscard]] base::Result<CredentialHistories> credentials(const std::string& journal_dir,
                                                            const std::string& run);
// One event as a line for people; what came from inside is made printable.
[[nodiscard]] std::string describe(std::string_view json_line);
// How a line may be coloured: an alert, something refused, something let through that enforcement
// would refuse, something allowed, anything else.
enum class Tone { alert, refused, audit, allowed, plain };
[[nodiscard]] Tone tone(std::string_view json_line);
// One event with a line for each of its members, for people.
[[nodiscard]] std::string describe_whole(std::string_view json_line);
// The event with this id ("RUN:12"), as its raw line; not_found when there is none.
[[nodiscard]] base::Result<std::string> event(const std::string& journal_dir,
                                              const std::string& id);

struct Verification {
  bool holds = false;
  std::uint64_t events = 0;
  std::uint64_t checkpoints = 0;
  std::string head;
  std::string problem;  // file, line and what does not hold
  std::vector<std::string>
      notes;  // what is true of a chain that holds: no signed end yet, an unfinished line
};
// Checks chains, sequence, checkpoints' signatures and the host chain. `run` empty: all. `key_file`
// empty: the public key in keys/. `head`, when not empty, must be the head of the run (of any, when
// `run` is empty). not_found when there is no such run, or no journal at all.
[[nodiscard]] base::Result<Verification> verify(const std::string& state_dir,
                                                const std::string& run, const std::string& key_file,
                                                const std::string& head);

}  // namespace journal
