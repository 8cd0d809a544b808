// Plans of the microVM tier: what they lack, their box, and what the guest is told.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/testing.h"

namespace plan {
namespace {

using testing::ask;
using testing::letters;

HostFacts host_with_machine() {
  HostFacts facts = testing::host();
  facts.machine.asked = true;
  facts.machine.vmm = "/usr/bin/qemu-system-x86_64";
  facts.machine.vmm_files = {"/lib64/ld-linux-x86-64.so.2", "/usr/bin/qemu-system-x86_64"};
  facts.machine.kernel = "/opt/cerco/guest/vmlinuz";
  facts.machine.modules = {"/opt/cerco/guest/modules/10-virtio_ring.ko"};
  facts.machine.base_image = "/var/lib/cerco/images/host-1.erofs";
  facts.machine.tun = true;
  return facts;
}

policy::Policy microvm_policy() {
  policy::Policy policy = testing::full_policy();
  policy.isolation.tier = policy::Tier::microvm;
  return policy;
}

template <class T>
bool has(const Plan& plan) {
  return step_of<T>(plan) != nullptr;
}

TEST(Machine, APlanHasOneAndIsVerified) {
  const auto plan = make(microvm_policy(), host_with_machine(), ask(), letters);
  ASSERT_TRUE(plan) << plan.error().line();
  ASSERT_TRUE(plan->machine);
  EXPECT_EQ(plan->machine->accelerator, Accelerator::kvm);
  EXPECT_EQ(plan->below_advice, std::vector<std::string>());
  EXPECT_GT(plan->machine->memory, plan->policy.limits.memory);
  EXPECT_TRUE(verify(*plan)) << verify(*plan).error().line();
  const auto again = base::decode<Plan>(base::encode(*plan), "plan");
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *plan);
}

struct Missing {
  void (*take)(HostFacts&);
  const char* says;
};

// E-issue 7: one clear message with the remedy, never a weaker tier.
TEST(Machine, EachThingThatIsMissingIsNamedWithItsRemedy) {
  const Missing all[] = {
      {[](HostFacts& f) { f.machine.vmm.clear(); }, "apt-get install --no-install-recommends"},
      {[](HostFacts& f) { f.machine.kernel.clear(); }, "tools/guest-kernel"},
      {[](HostFacts& f) { f.machine.tun = false; }, "/dev/net/tun"},
      {[](HostFacts& f) { f.machine.kvm_lack = "no /dev/kvm"; }, "isolation.allow_emulation"},
      {[](HostFacts& f) { f.machine.base_image.clear(); }, "cerco image warm host"},
  };
  for (const auto& [take, says] : all) {
    HostFacts facts = host_with_machine();
    take(facts);
    const auto plan = make(microvm_policy(), facts, ask(), letters);
    ASSERT_FALSE(plan) << says;
    EXPECT_EQ(plan.error().kind, base::Kind::missing);
    EXPECT_NE(plan.error().line().find(says), std::string::npos) << plan.error().line();
  }
}

TEST(Machine, EmulationIsTakenOnlyWhereItIsAllowedAndIsSaid) {
  HostFacts facts = host_with_machine();
  facts.machine.kvm_lack = "no /dev/kvm";
  policy::Policy policy = microvm_policy();
  policy.isolation.allow_emulation = true;
  auto plan = make(policy, facts, ask(), letters);
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_EQ(plan->machine->accelerator, Accelerator::emulation);
  ASSERT_EQ(plan->below_advice.size(), 1U);
  EXPECT_TRUE(plan->below_advice[0].starts_with("emulated: "));
  EXPECT_NE(explain(*plan).find("emulated"), std::string::npos);
  // A caller cannot say it in the policy's place.
  plan->policy.isolation.allow_emulation = false;
  plan->policy_sha256 = base::sha256(policy::to_json(plan->policy));
  EXPECT_FALSE(verify(*plan));
}

TEST(Machine, VerifyRefusesAnotherMachine) {
  const auto good = make(microvm_policy(), host_with_machine(), ask(), letters);
  ASSERT_TRUE(good);
  void (*const spoils[])(Plan&) = {
      [](Plan& p) { p.machine.reset(); },
      [](Plan& p) { p.tier = policy::Tier::container; },
      [](Plan& p) { p.machine->memory *= 2; },
      [](Plan& p) { p.machine->processors = 0; },
      [](Plan& p) { p.machine->base = "relative"; },
      [](Plan& p) { p.machine->files.emplace_back("/a/../etc/shadow"); },
      [](Plan& p) { p.machine->cgroup.groups.clear(); },
      [](Plan& p) { p.steps.insert(p.steps.begin(), MakeTap{}); },
  };
  for (const auto spoil : spoils) {
    Plan plan = *good;
    spoil(plan);
    EXPECT_FALSE(verify(plan)) << "spoil " << (&spoil - spoils);
  }
}

TEST(Machine, TheBoxHoldsTheVmmAndNothingOfTheSandbox) {
  const auto plan = make(microvm_policy(), host_with_machine(), ask(), letters);
  ASSERT_TRUE(plan);
  const Plan box = box_of(*plan);
  EXPECT_TRUE(has<Capture>(box));
  EXPECT_TRUE(has<MakeTap>(box));
  EXPECT_TRUE(has<Seccomp>(box));
  EXPECT_TRUE(has<Landlock>(box));
  EXPECT_TRUE(has<DropCapabilities>(box));
  EXPECT_FALSE(has<MountDisk>(box));
  EXPECT_FALSE(has<TrustBundle>(box));
  for (const Step& step : box.steps) {
    const auto* bind = std::get_if<BindReadOnly>(&step);
    if (bind == nullptr) continue;
    EXPECT_NE(std::ranges::find(plan->machine->files, bind->source), plan->machine->files.end())
        << bind->source;
  }
  EXPECT_EQ(step_of<Landlock>(box)->write, std::vector<std::string>{"/dev"});
}

TEST(Machine, TheGuestIsToldWhatItHoldsAndNoRuleOrPlaceholder) {
  const auto plan = make(microvm_policy(), host_with_machine(), ask(), letters);
  ASSERT_TRUE(plan);
  const Plan guest = inside_guest(*plan);
  EXPECT_FALSE(has<Capture>(guest));
  EXPECT_FALSE(has<MakeTap>(guest));
  EXPECT_TRUE(guest.policy.egress.empty());
  EXPECT_TRUE(guest.policy.credentials.empty());
  EXPECT_TRUE(guest.placeholders.empty());
  EXPECT_TRUE(guest.command.env.empty());
  EXPECT_EQ(step_of<MountDisk>(guest)->store, Store::device);
  for (const Step& step : guest.steps) {
    const auto* bind = std::get_if<BindReadOnly>(&step);
    if (bind != nullptr) EXPECT_TRUE(bind->source.starts_with("/base/")) << bind->source;
  }
  // All that holds the workload holds it inside as well.
  EXPECT_TRUE(has<Seccomp>(guest) && has<Landlock>(guest) && has<NoNewPrivs>(guest));
  const auto memory =
      std::ranges::find(guest.cgroup.groups, "memory", &CgroupPlan::Group::controller);
  ASSERT_NE(memory, guest.cgroup.groups.end());
  EXPECT_EQ(memory->limits[0],
            std::pair(std::string("memory.max"), std::to_string(plan->policy.limits.memory)));
}

TEST(Machine, HostPathsAreNotPassedOverInSilence) {
  policy::Policy policy = microvm_policy();
  policy.filesystem.read_only = {"/srv/data"};
  const auto plan = make(policy, host_with_machine(), ask(), letters);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().line().find("--in"), std::string::npos);
}

}  // namespace
}  // namespace plan
