// The command line: one table of subcommands, one file each, and the world that main() hands in.
//
// A subcommand is `base::Result<int> NAME(const World&, const Parsed&)`; its row stands in
// commands.cc and its declaration at the end of this header. It returns the exit status of the
// contract; an Error becomes one line `cerco: …` on standard error and the status of `exit_status`.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "supervisor/supervisor.h"

namespace cli {

// What main() reads once and hands over; nothing below asks the process's surroundings for more.
struct World {
  std::vector<std::string> args;  // without the program's own name
  std::map<std::string, std::string> env;
  int in = 0;  // descriptors of the streams
  int out = 1;
  int err = 2;
  std::array<bool, 3> terminal{};  // whether standard input, output, error is one
  bool colour = false;             // standard output is a terminal and NO_COLOR is not set
  std::string helper_dir;          // where cerco-init, cerco-gateway … lie
  std::string state_dir;
  // Only tests/support/without_main.cc sets these: single protections are taken out of the plan.
  std::function<void(plan::Plan&)> edit_plan;
  supervisor::Verify verify = supervisor::Verify::plan;
};

// Kept equal to project(VERSION) of CMakeLists.txt by a test.
inline constexpr std::string_view kVersion = "0.1.0";

// --- Flags ---------------------------------------------------------------------------------------

enum class Built { yes, not_yet };  // not_yet: known to the contract, answers "not carried out yet"

struct Flag {
  std::string_view name;   // "--policy"
  char letter = 0;         // 't' for -t; 0: none
  std::string_view value;  // what `--help` calls the value; "": the flag takes none
  std::string_view about;
  Built built = Built::yes;
};

// A subcommand's arguments, flags in the order in which they were given.
struct Parsed {
  std::vector<std::pair<std::string, std::string>> flags;  // long name → value
  std::vector<std::string> words;                          // what is no flag, before `--`
  bool dashes = false;                                     // `--` was there
  std::vector<std::string> rest;                           // after `--`

  [[nodiscard]] bool has(std::string_view flag) const;
  // The last value given, nullopt when the flag is not there.
  [[nodiscard]] std::optional<std::string> value(std::string_view flag) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view flag) const;
};

enum class Words {
  anywhere,  // flags may follow words
  end_flags  // everything after the first word belongs to it (`cerco run FILE ARG…`)
};

struct Command {
  std::string_view name;   // "log verify"
  std::string_view usage;  // what follows the name in `--help`
  std::string_view about;  // one line
  std::vector<Flag> flags;
  Words words = Words::anywhere;
  int usage_status =
      2;  // exit status for bad input and for what is not built: 125 for run, exec, attach
  base::Result<int> (*act)(const World&, const Parsed&) = nullptr;  // nullptr: not carried out yet
};

// Every subcommand of the contract.
[[nodiscard]] const std::vector<Command>& commands();

// Reads `args` by the command's flags: `--name VALUE`, `--name=VALUE`, `-x VALUE`, `-xy`. bad_input
// for an unknown flag (with the closest one), a missing or needless value; unsupported for a flag
// that is not built.
[[nodiscard]] base::Result<Parsed> parse_flags(const Command& command,
                                               std::span<const std::string> args);

// Exactly `count` words and no `--`, or bad_input with the command's usage.
[[nodiscard]] base::Status want_words(std::string_view command, const Parsed& parsed,
                                      std::size_t count, std::string_view usage);

// The text of `--help`.
[[nodiscard]] std::string help(const Command& command);
[[nodiscard]] std::string help_all();

// --- The policy flags: run, start, check, why and policy show share them (policy_flags.cc)
// ---------

[[nodiscard]] std::vector<Flag> policy_flags();
// The flags of policy_flags() followed by `more`.
[[nodiscard]] std::vector<Flag> with_policy_flags(std::vector<Flag> more);

// bad_input when a policy flag stands beside a run, whose policy it cannot shape.
[[nodiscard]] base::Status want_no_policy_flags(const Parsed& parsed, std::string_view where);

// The policy file of `--policy` (else the defaults) with every policy flag applied in its order.
// Paths of
// `--ro` and filesystem.read_only come back absolute and without symbolic links.
[[nodiscard]] base::Result<policy::Effective> load_policy(const World& world, const Parsed& parsed,
                                                          const policy::HostSize& size);
// The text of a policy file; an error, bad_input, begins with `where`.
[[nodiscard]] base::Result<std::string> read_policy_file(const std::string& file,
                                                         std::string_view where);
// Makes the paths of filesystem.read_only absolute and without symbolic links.
[[nodiscard]] base::Status resolve_read_only(policy::Policy& policy);
// The values of environment.pass in the caller's environment; a name that is not set is left out,
// and a value that looks like a credential is bad_input unless environment.plain names it.
[[nodiscard]] base::Result<std::map<std::string, std::string>> passed_environment(
    const World& world, const policy::Policy& policy);
// What the host can give, for this caller.
[[nodiscard]] base::Result<plan::HostFacts> host_facts(const World& world);
enum class Kind { one_command, detached, session };
// The policy's plan for `argv` (of a session: none) as `cerco run` makes it, with what
// filesystem.hide names below the read-only paths of the host as it is now; edit_plan has been
// applied.
[[nodiscard]] base::Result<plan::Plan> make_plan(const World& world, const policy::Policy& policy,
                                                 const plan::HostFacts& host, std::string name,
                                                 std::vector<std::string> argv, Kind kind);

// --- Runs that are known (runs.cc)
// ------------------------------------------------------------------

struct KnownRun {
  std::string id;
  std::string name;
};
// Of every run that has a folder below runs/; none when no run was ever made.
[[nodiscard]] base::Result<std::vector<std::string>> run_ids(const World& world);
// RUN of the contract: an exact name (of several the run that lives, else the last one), else an
// exact id, else a unique prefix of an id. not_found else.
[[nodiscard]] base::Result<KnownRun> find_run(const World& world, std::string_view text);
// The id of RUN; also of a run of which only the journal is left.
[[nodiscard]] base::Result<std::string> find_journal(const World& world, const std::string& text);
// Whether text has the form of an id: 12 characters of a-z2-7.
[[nodiscard]] bool is_run_id(std::string_view text);

// --- Output
// ----------------------------------------------------------------------------------------

// Writes to standard output or error. An end that nobody reads is no error (a pager that was
// closed).
void print(const World& world, std::string_view text);
void print_error(const World& world, std::string_view text);
// `cerco: LINE` on standard error.
void print_error(const World& world, const base::Error& error);
// The exit status that an error stands for, where `usage_status` is the command's for bad input.
[[nodiscard]] int exit_status(const base::Error& error, int usage_status);

// Carries out the command line in `world.args`; returns the exit status of the process.
int main(const World& world);
// What both programs do first: reads environment, terminals and folders. Fails when /proc/self/exe
// is not there.
[[nodiscard]] base::Result<World> read_world(int argc, char** argv, char** environment);

// --- Subcommands, one file each
// ----------------------------------------------------------------------

base::Result<int> run(const World& world, const Parsed& parsed);
base::Result<int> start(const World& world, const Parsed& parsed);
base::Result<int> exec(const World& world, const Parsed& parsed);
base::Result<int> attach(const World& world, const Parsed& parsed);
base::Result<int> ps(const World& world, const Parsed& parsed);
base::Result<int> kill(const World& world, const Parsed& parsed);
base::Result<int> rm(const World& world, const Parsed& parsed);
base::Result<int> cp(const World& world, const Parsed& parsed);
base::Result<int> publish(const World& world, const Parsed& parsed);
base::Result<int> check(const World& world, const Parsed& parsed);
base::Result<int> gc(const World& world, const Parsed& parsed);
base::Result<int> report(const World& world, const Parsed& parsed);
base::Result<int> version(const World& world, const Parsed& parsed);
base::Result<int> log(const World& world, const Parsed& parsed);
base::Result<int> log_show(const World& world, const Parsed& parsed);
base::Result<int> log_verify(const World& world, const Parsed& parsed);
base::Result<int> credential_ls(const World& world, const Parsed& parsed);
base::Result<int> credential_show(const World& world, const Parsed& parsed);
base::Result<int> credential_revoke(const World& world, const Parsed& parsed);
base::Result<int> credential_test(const World& world, const Parsed& parsed);
base::Result<int> policy_show(const World& world, const Parsed& parsed);
base::Result<int> policy_apply(const World& world, const Parsed& parsed);
base::Result<int> policy_schema(const World& world, const Parsed& parsed);
base::Result<int> policy_suggest(const World& world, const Parsed& parsed);
base::Result<int> proxy(const World& world, const Parsed& parsed);
base::Result<int> doctor(const World& world, const Parsed& parsed);
base::Result<int> image_warm(const World& world, const Parsed& parsed);
base::Result<int> why(const World& world, const Parsed& parsed);

}  // namespace cli
