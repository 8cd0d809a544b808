// What this kernel, distribution and outer boundary can give, as plan::HostFacts.
//
// Every run waits for this, so it reads few files, starts nothing and changes nothing. What cannot
// be found out counts as not there: plan::make then names it and what would do.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"
#include "plan/plan.h"

namespace host {

// What main() read of the caller's surroundings.
struct Caller {
  std::string ssl_cert_file;  // SSL_CERT_FILE, "" when not set
  std::string state_dir;      // absolute; need not exist yet
  std::string helper_dir;     // where cerco-init, cerco-gateway … lie
};

// Asks the kernel and a few files below /proc and /etc. An error only where /proc itself cannot be
// read, or where SSL_CERT_FILE names a file that cannot be (bad_input).
[[nodiscard]] base::Result<plan::HostFacts> gather(const Caller& caller);

// Which release the runsc of `facts` is and which platform it has, asked of it by running it;
// nothing where there is none. `missing` where it does not run or has no platform that we use.
[[nodiscard]] base::Status ask_runsc(plan::HostFacts& facts);

// What filesystem.root = "scratch" and limits.io stand on: `disks`, `overlays`, `base_stacked`.
void look_at_storage(plan::HostFacts& facts);

// "systrap" where the text of `runsc flags` names it, else "ptrace"; "" where neither. Pure.
[[nodiscard]] std::string platform_in(std::string_view flags);
// The release in the text of `runsc --version`; "unknown" where there is none. Pure.
[[nodiscard]] std::string release_in(std::string_view version);

// --- Readers of /proc and /etc text: pure --------------------------------------------------------

// A cgroup hierarchy as this process sees it.
struct Hierarchy {
  plan::CgroupKind kind = plan::CgroupKind::v2;
  std::vector<std::string> controllers;  // of v1; of v2 always empty here
  std::string mount;                     // where it is mounted
  std::string own;                       // the folder of the caller's own group, absolute
  bool read_only = false;
  bool operator==(const Hierarchy&) const = default;
};
// /proc/self/cgroup and /proc/self/mountinfo, put together. Named v1 hierarchies are left out.
[[nodiscard]] std::vector<Hierarchy> hierarchies(std::string_view cgroup,
                                                 std::string_view mountinfo);
// CapEff of /proc/self/status: lower-case names without CAP_; unknown bits as "cap_NN".
[[nodiscard]] std::set<std::string> capabilities(std::string_view status);
// "6.1.0-13-amd64" → 6, 1; 0, 0 for what is no version.
[[nodiscard]] std::pair<unsigned, unsigned> kernel_version(std::string_view release);
// The nameserver lines of resolv.conf that are addresses, zones kept.
[[nodiscard]] std::vector<std::string> nameservers(std::string_view resolv_conf);

// --- The groups of this host ---------------------------------------------------------------------

// Fills `controllers`, `swap_accounting` and what an outer boundary leaves of `size.memory`, by
// asking the groups' folders. A v1 limit is held below the caller's own group; a v2 limit below the
// nearest group from there upward that hands its controllers down and may be written.
void find_controllers(const std::vector<Hierarchy>& all, plan::HostFacts& facts);

}  // namespace host
