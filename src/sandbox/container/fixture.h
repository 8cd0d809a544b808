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
// Runs `sh -c SCRIPT` as the workload's user in a sandbox whose init is ready, without seccomp
// (that is confine's to test), and waits for its end.
[[nodiscard]] Outcome run(Sandbox& sandbox, const std::string& script);
// Waits for init's Ready.
[[nodiscard]] base::Status wait_ready(Sandbox& sandbox);
// Starts, runs the script, destroys; an Error's line is the output where something failed.
[[nodiscard]] Outcome run_in_new(const plan::Plan& plan, const std::string& script);

// Everything outside that a sandbox could leave behind: mounts, loop devices in use, cerco-…
// cgroups, leases below `state_dir`, network namespaces and processes of this process's descent.
[[nodiscard]] std::set<std::string> traces(const plan::Plan& plan);

}  // namespace sandbox::testing
