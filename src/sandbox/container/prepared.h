// All that is worked out before a sandbox's first process exists, so that what runs between clone
// and exec only carries it out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "priv/priv.h"
#include "sandbox/sandbox.h"

namespace sandbox {

struct DiskFolder {
  std::string name;    // at the top of the disk
  std::string target;  // where it appears
  std::uint32_t mode = 0755;
};

// The names, at the top of the disk, of what a folder of the base with a layer over it is made of.
struct Layer {
  std::string upper;
  std::string work;
};
inline constexpr const char* kRootFolder = "root";  // with a scratch root, what becomes "/"
inline constexpr const char* kLower = "lower";  // where the host's folder is attached meanwhile,
inline constexpr const char* kSeen = "seen";    // and what is to be seen of it
inline constexpr const char* kNothing = "nothing";  // an empty folder

// A group of the sandbox as it sees it itself.
struct ShownGroup {
  std::string source;
  std::string target;
};
inline constexpr const char* kCgroups = "/sys/fs/cgroup";

struct Prepared {
  const plan::Plan* plan = nullptr;
  const Inputs* inputs = nullptr;
  std::uint64_t spaces = 0;  // CLONE_NEW… flags of the inner process
  bool user_space = false;   // of a lease: made and mapped from outside, entered last
  bool own_space = false;    // the caller's own: the outer process begins in it
  bool clocks = false;
  bool enters_cgroup = false;
  // Whom what is made inside belongs to: host uids of root inside and of the workload, and with
  // own_space its one uid, by its name inside.
  std::uint32_t owner = 0;
  std::uint32_t workload = 0;
  priv::Ids caller;  // with own_space
  priv::NamespaceNetwork network;
  std::string interface;  // rtnetlink messages
  std::string tap;        // and those once the tap is there; empty without one
  std::string rules;      // nf_tables batch
  std::string root_size;  // mount options as text
  std::string shm_size;
  std::string terminals;        // how many the sandbox may have
  std::string workload_option;  // `workload`, who owns them
  std::vector<DiskFolder> disk_folders;
  bool scratch = false;       // the root lies on the disk
  std::vector<Layer> layers;  // one for each LayScratch, in its order
  std::vector<ShownGroup> shown_groups;
  const plan::RunGvisor* gvisor = nullptr;
  const plan::MountDisk* disk = nullptr;
  std::string disk_size;  // of one in memory
  std::string disk_inodes;

  [[nodiscard]] bool has(plan::Protection protection) const {
    return plan->protections.contains(protection);
  }
  // Whether the starter makes the disk, and hands it in.
  [[nodiscard]] bool disk_from_outside() const {
    return disk != nullptr && disk->store != plan::Store::memory;
  }
};

inline constexpr std::uint32_t kWorkload = 1000;  // uid and gid of the commands inside

// The addresses and ports of a Capture step; bad_input for one that is no CIDR.
[[nodiscard]] base::Result<std::vector<priv::SteeredRange>> steered_ranges(
    const plan::Capture& capture);

// bad_input where the plan asks for something that has no meaning (packet rules without a network
// namespace, mounts without a mount namespace).
[[nodiscard]] base::Result<Prepared> prepare(const plan::Plan& plan, const Inputs& inputs);

// The cgroups of a plan, for priv.
[[nodiscard]] std::vector<priv::GroupSpec> group_specs(const plan::Plan& plan);

}  // namespace sandbox
