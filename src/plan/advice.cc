// Which tier is advised for which code, and what stands below it.
#include <fmt/format.h>

#include <algorithm>

#include "plan/parts.h"

namespace plan {

policy::Tier advised_tier(const policy::Policy& policy) {
  const bool secrets = !policy.credentials.empty();
  if (policy.code == policy::Code::unreviewed) {
    return secrets ? policy::Tier::microvm : policy::Tier::gvisor;
  }
  return secrets ? policy::Tier::gvisor : policy::Tier::container;
}

namespace {

std::vector<std::string> below_advised_tier(const policy::Policy& policy, policy::Tier tier) {
  const policy::Tier advised = advised_tier(policy);
  // An isolate stands in the same box as a container does, and on the same kernel.
  if (std::max(tier, policy::Tier::container) >= advised) return {};
  const std::string_view secrets = policy.credentials.empty() ? "" : " with credentials";
  const std::string_view best =
      advised == policy::Tier::gvisor && policy.code == policy::Code::unreviewed
          ? "gvisor is advised at least, microvm at best"
          : (advised == policy::Tier::gvisor ? "gvisor is advised at least" : "microvm is advised");
  return {fmt::format("shared-kernel: {} code{} in {} {} stands on the host's own kernel; {}",
                      policy::to_string(policy.code), secrets,
                      tier == policy::Tier::isolate ? "an" : "a", policy::to_string(tier), best)};
}

// What a run as an ordinary user gives less than one as root.
std::string rootless(const policy::Limits& limits) {
  return fmt::format(
      "rootless: the workload, cerco-init, gateway, broker and journal share the caller's uid, and "
      "the workload keeps the caller's supplementary groups; namespaces, Landlock and seccomp "
      "alone "
      "keep them apart; the working disk is memory, {} of it",
      policy::size_text(limits.disk));
}

}  // namespace

std::vector<std::string> below_advice(const Plan& plan, const Engine& engine) {
  std::vector<std::string> all = below_advised_tier(plan.policy, plan.tier);
  if (plan.machine && plan.machine->accelerator == Accelerator::emulation) {
    all.emplace_back(
        "emulated: the guest's processor is a program (QEMU's TCG), many times slower than "
        "hardware "
        "and never meant as a boundary; the VMM's box is what holds");
  }
  if (plan.tier == policy::Tier::isolate) {
    std::ranges::move(engine_risks(engine), std::back_inserter(all));
  }
  if (plan.rights == Rights::user) all.push_back(rootless(plan.policy.limits));
  return all;
}

std::vector<std::string> not_accepted(const Plan& plan) {
  std::vector<std::string> rest;
  for (const auto& entry : plan.below_advice) {
    const std::string risk = entry.substr(0, entry.find(':'));
    const auto& accepted = plan.policy.isolation.accept;
    if (std::ranges::find(accepted, risk) == accepted.end()) rest.push_back(entry);
  }
  return rest;
}

}  // namespace plan
