// The processes in which gVisor's kernel has the sandbox's code run: whether somebody else killed
// one.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

namespace sandbox::gvisor {

// Whether a process is dead, or about to be, by its /proc/PID/status: a zombie, or SIGKILL is
// pending. Pure.
[[nodiscard]] bool is_dying(std::string_view status);

// Looked at now and then. Whom gVisor's kernel ends itself is gone by the next look, since it waits
// for that; whom another program killed stays, and what ran in it waits for ever.
class Stubs {
 public:
  // `processes` is the text of a cgroup.procs; `proc` where a procfs stands. The number of one that
  // was dying at the last look too, 0 when all is well.
  [[nodiscard]] std::uint64_t look(std::string_view processes, std::string_view proc);

 private:
  std::set<std::uint64_t> dying_;
};

}  // namespace sandbox::gvisor
