// The parts of make() and verify(), each a pure function; only module plan includes this.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace plan {

inline constexpr std::string_view kResolver = "198.18.0.1";  // where the sandbox's DNS answers
inline constexpr std::string_view kBundle = "/etc/ssl/certs/ca-certificates.crt";

inline constexpr std::uint64_t kLeasedUsers = 65536;  // one lease
inline constexpr std::uint64_t kOwnUser = 1;          // the caller's own uid alone

inline constexpr std::string_view kCgroups = "/sys/fs/cgroup";

// Something that was asked for and cannot be had here, and what would do.
struct Lack {
  std::string what;
  std::string remedy;
};

// --- requirements.cc -------------------------------------------------------------------------

// Rights and kernel features that the container tier stands on, as far as this host lacks them.
[[nodiscard]] std::vector<Lack> lacks_of_host(const HostFacts& host);
// What filesystem.root and filesystem.reserve take, as far as that tier or this host lacks it.
[[nodiscard]] std::vector<Lack> lacks_of_files(policy::Tier tier, const policy::Filesystem& files,
                                               const HostFacts& host);
// Parts of the contract that are known and not built: their error, or nothing.
[[nodiscard]] base::Status refuse_unbuilt(const policy::Policy& policy);
// All lacks as one error of kind missing.
[[nodiscard]] base::Error missing(const std::vector<Lack>& lacks);

// --- tier.cc ---------------------------------------------------------------------------------

// What this host lacks to start that policy in that tier; one that is not built says so.
[[nodiscard]] std::vector<Lack> lacks_of_tier(policy::Tier tier, const policy::Policy& policy,
                                              const HostFacts& host);
// What the host has to hold of the policy's limits in a tier: of an isolate no working disk, of a
// microVM those of the VMM's box.
[[nodiscard]] policy::Limits limits_of_host(policy::Tier tier, const policy::Limits& limits);
// The tier that isolation.tier names, whatever the host lacks for it; for `auto` the one that is
// advised, or the next stronger one that is here, else the strongest that is, and the container
// where none is. unsupported: a tier that is not carried out yet.
// For others than its caller, who may ask for further commands, there is no gVisor tier yet.
enum class Serves { its_caller, others };
[[nodiscard]] base::Result<policy::Tier> choose_tier(const policy::Policy& policy,
                                                     const HostFacts& host, Serves serves);

// --- machine.cc ------------------------------------------------------------------------------

// What of the microVM tier this host lacks for that policy.
[[nodiscard]] std::vector<Lack> lacks_of_machine(const policy::Policy& policy,
                                                 const HostFacts& host);
// The machine for the policy's limits, and what its box may use at most.
[[nodiscard]] Machine machine_for(const policy::Policy& policy, const HostFacts& host);
[[nodiscard]] policy::Limits limits_of_box(const policy::Limits& limits);
// What a plan says of its machine must fit the plan.
[[nodiscard]] base::Status check_machine(const Plan& plan);
// --- isolate.cc ------------------------------------------------------------------------------

// The script's own place, in memory.
inline constexpr std::uint64_t kIsolateDisk = 16ULL << 20;
inline constexpr std::uint64_t kIsolateInodes = 64;
[[nodiscard]] std::vector<Lack> lacks_of_engine(const HostFacts& host);
// bad_input for what a policy asks that an isolate does not have.
[[nodiscard]] base::Status refuse_for_isolate(const policy::Policy& policy, bool session);
// The limits that hold in a tier: an isolate has no working disk.
[[nodiscard]] policy::Limits limits_for(policy::Tier tier, policy::Limits limits);
// Whether a bind brings in the engine, what starts it, or a library of theirs.
[[nodiscard]] bool is_engine_bind(const Plan& plan, const BindReadOnly& bind);
// "workerd 1.20261117.1 of 2026-11-17, 13 days old"
[[nodiscard]] std::string engine_text(const Engine& engine);
[[nodiscard]] std::vector<std::string> engine_risks(const Engine& engine);

// --- limits.cc ---------------------------------------------------------------------------------

struct HeldLimits {
  CgroupPlan cgroup;
  std::vector<std::string> unheld;  // named in limits.not_required, and not to be held here
  std::vector<Lack> lacks;
};
[[nodiscard]] HeldLimits hold_limits(const policy::Limits& limits, const HostFacts& host);
// gVisor's kernel has threads of its own, and some for each process and thread inside: all of them
// count on the host.
void make_room_for_gvisor(CgroupPlan& cgroup);
// A disk in memory takes at most half of limits.memory, and a file for each of its blocks.
void fit_disk_into_memory(policy::Limits& limits, const HostFacts& host);
// /proc/meminfo as limits.memory and limits.swap make it; "" where they are not held.
[[nodiscard]] std::string meminfo_for(const Plan& plan, const HostFacts& host);
// The whole processors that limits.cpus comes to; 0 where it is not held.
[[nodiscard]] std::uint64_t processors_for(const Plan& plan);
// How many processes init's uid may have where no cgroup holds limits.processes; 0 where one does
// or where it is not to be held.
[[nodiscard]] std::uint64_t counted_by_uid(const Plan& plan);
// Whether a cgroup of the plan has a limit in that file, by the version of its hierarchy.
[[nodiscard]] bool has_setting(const Plan& plan, std::string_view controller, std::string_view v1,
                               std::string_view v2);

// --- tree.cc, etc.cc -----------------------------------------------------------------------------

// The steps from MountRoot to MountProc.
[[nodiscard]] base::Result<std::vector<Step>> tree_steps(const Plan& plan, const HostFacts& host);
// The files of /etc that we write ourselves: path → content.
[[nodiscard]] std::map<std::string, std::string> etc_files(std::string_view run);
// Where clients look for trusted roots, and the variables that name the bundle to those that do
// not.
[[nodiscard]] std::vector<std::string> trust_targets();
[[nodiscard]] std::map<std::string, std::string> trust_variables();
[[nodiscard]] const std::vector<std::string>& disk_targets();
// Those of them that a tier has.
[[nodiscard]] std::vector<std::string> disk_targets_of(policy::Tier tier);
inline constexpr std::size_t kMostHidden = 4096;  // each is a mount
// Whether a path lies below a path of filesystem.read_only, so that it may be covered.
[[nodiscard]] bool may_be_hidden(std::string_view path, const policy::Policy& policy);

// --- network.cc --------------------------------------------------------------------------------

// The Capture step for the policy's egress rules.
[[nodiscard]] Capture capture_for(const policy::Policy& policy);
// The upstream resolvers as IP:port. An entry that is no address is bad_input.
[[nodiscard]] base::Result<std::vector<std::string>> resolver_list(const policy::Policy& policy,
                                                                   const HostFacts& host);
// Whether some rule needs a name to be resolved.
[[nodiscard]] bool resolves_names(const policy::Policy& policy);
// Whether a credential is bound to a host that the egress rule's host reaches.
[[nodiscard]] bool bound_to(const policy::Credential& credential, const policy::Egress& rule);

// --- canaries.cc ---------------------------------------------------------------------------------

[[nodiscard]] std::vector<Canary> make_canaries(
    const policy::Policy& policy, const std::function<std::string(std::size_t)>& random);
// The files that they stand in, each the workload's own: path → content.
[[nodiscard]] std::map<std::string, std::string> canary_files(const std::vector<Canary>& canaries);
inline constexpr std::uint32_t kCanaryMode = 0600;
// Those that the policy asks for and no others, random, and each of their files planted.
[[nodiscard]] base::Status check_canaries(const Plan& plan);

// --- environment.cc ------------------------------------------------------------------------------

[[nodiscard]] std::vector<Placeholder> make_placeholders(
    const policy::Policy& policy, const std::function<std::string(std::size_t)>& random);
// What a placeholder looks like, by the variables that hold it: some programs look at the shape of
// a key before they use it. `random` characters of 5 bits each, 26 at least: none is guessed.
struct PlaceholderShape {
  std::string_view prefix;
  std::size_t random = 0;
  std::vector<std::string_view> variables;
};
[[nodiscard]] const std::vector<PlaceholderShape>& placeholder_shapes();
// The command's whole environment. Clashes and malformed names are bad_input.
[[nodiscard]] base::Result<std::map<std::string, std::string>> environment_for(
    const Plan& plan, const std::map<std::string, std::string>& caller);
[[nodiscard]] bool is_variable_name(std::string_view name);

// --- paths.cc ----------------------------------------------------------------------------------

// Absolute, without empty, "." and ".." parts, control characters or a slash at its end; at most
// 4095 bytes.
[[nodiscard]] bool is_clean_path(std::string_view path);
// Whether path is `folder` or lies below it.
using base::is_within;
[[nodiscard]] std::string parent_of(std::string_view path);
// Why no path of the host may be brought in from there, "" when it may: kernel file systems, the
// state folder, folders that hold the host's secrets or sockets whole.
[[nodiscard]] std::string refused_source(std::string_view path, std::string_view state_dir);

// --- verify_protections.cc, verify_steps.cc
// ----------------------------------------------------------

[[nodiscard]] base::Status check_protections(const Plan& plan);
[[nodiscard]] base::Status check_order(const Plan& plan);
[[nodiscard]] base::Status check_tree(const Plan& plan);

[[nodiscard]] inline std::unexpected<base::Error> refuse(std::string what, std::string expected) {
  return base::bad_input("plan", std::move(what), std::move(expected));
}
template <class T>
[[nodiscard]] const T* find_step(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (const T* held = std::get_if<T>(&step)) return held;
  }
  return nullptr;
}

// --- advice.cc ---------------------------------------------------------------------------------

// For the plan's policy, tier and rights, and the host's engine where the tier is an isolate.
[[nodiscard]] std::vector<std::string> below_advice(const Plan& plan, const Engine& engine);

}  // namespace plan
