// For the tests of module sandbox: a Plan by hand, commands inside, and an oracle for leaks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "sandbox/sandbox.h"

namespace sandbox::testing {

// A folder below /tmp that goes with its owner.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Every protection, the host's /usr, a disk of 64 MiB, 256 MiB of memory, 64 processes.
[[nodiscard]] plan::Plan whole_plan(const std::string& state_dir);
// Where this host has its cgroup hierarchies.
[[nodiscard]] std::map<std::string, plan::Controller> controllers();
[[nodiscard]] Inputs inputs();

struct Outcome {
  std::string output;  // standard output and error
  bool started = false;
  bool signalled = false;
  std::uint32_t code = 0;
  bool operator==(const Outcome&) const = default;
};
// Who runs a script: the workload's user, root of the sandbox without capabilities as every command
// is, or root with all that init has (only where a plan does not drop them).
enum class As { agent, root, root_with_all };
// Runs `sh -c SCRIPT` in a sandbox whose init is ready, without seccomp (that is confine's to
// test), and waits for its end.
[[nodiscard]] Outcome run(Sandbox& sandbox, const std::string& script, As who);
// Starts a sandbox and waits for its init; on a failure the error is a test's.
[[nodiscard]] std::unique_ptr<Sandbox> start_ready(const plan::Plan& plan);
// Starts, runs the script, destroys; an Error's line is the output where something failed.
[[nodiscard]] Outcome run_in_new(const plan::Plan& plan, const std::string& script, As who);
// The plan without these protections.
[[nodiscard]] plan::Plan without(plan::Plan plan, const std::set<plan::Protection>& protections);

// How many processes of this host have a uid of the sandbox's lease.
[[nodiscard]] std::size_t processes_of(std::uint32_t first_uid);

// Everything outside that a start of this Plan could leave behind: mounts, loop devices on files
// below the state folder, cgroups, leases, and children of this process.
[[nodiscard]] std::set<std::string> traces(const plan::Plan& plan);

}  // namespace sandbox::testing
