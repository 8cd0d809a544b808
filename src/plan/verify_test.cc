// verify(), take_out() and the codec.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::Plan;
using plan::Protection;
using policy::Policy;

Plan made(const Policy& policy) {
  auto plan = plan::make(policy, plan::testing::storage_host(), plan::testing::ask(),
                         plan::testing::letters);
  if (!plan) ADD_FAILURE() << plan.error().line();
  return plan ? *plan : Plan{};
}

std::vector<Protection> all_protections() {
  std::vector<Protection> all;
  for (int i = 0; i <= static_cast<int>(Protection::last_); ++i)
    all.push_back(static_cast<Protection>(i));
  return all;
}

template <class T>
std::size_t index_of(const Plan& plan) {
  const auto found = std::ranges::find_if(
      plan.steps, [](const auto& step) { return std::holds_alternative<T>(step); });
  return static_cast<std::size_t>(found - plan.steps.begin());
}

template <class T>
T& the_step(Plan& plan) {
  return std::get<T>(plan.steps[index_of<T>(plan)]);
}

void expect_refused(const Plan& plan, std::string_view what) {
  const auto status = plan::verify(plan);
  ASSERT_FALSE(status) << what;
  EXPECT_NE(status.error().line().find(what), std::string::npos) << status.error().line();
}

TEST(Protections, HaveNamesBothWays) {
  for (const Protection protection : all_protections()) {
    const auto name = plan::to_string(protection);
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(plan::protection_named(name), protection) << name;
  }
  EXPECT_EQ(plan::to_string(Protection::cgroup), "cgroup");
  EXPECT_EQ(plan::to_string(Protection::capture), "capture");
  EXPECT_EQ(plan::to_string(Protection::redaction), "redaction");
  EXPECT_EQ(plan::protection_named("nothing"), std::nullopt);
}

TEST(Verify, TakesWhatMakeGives) {
  for (const Policy& policy :
       {Policy{}, plan::testing::full_policy(), plan::testing::whole_policy()}) {
    const auto status = plan::verify(made(policy));
    EXPECT_TRUE(status) << status.error().line();
  }
}

TEST(Verify, NoticesEachProtectionThatWasTakenOut) {
  for (const Protection protection : all_protections()) {
    Plan plan = made(plan::testing::whole_policy());
    const Plan whole = plan;
    plan::take_out(plan, protection);
    EXPECT_NE(plan, whole) << plan::to_string(protection);
    EXPECT_FALSE(plan::verify(plan)) << plan::to_string(protection);
  }
}

// A plan that claims a protection and does not carry it out is as bad as one without the claim.
TEST(Verify, BelievesStepsAndNotClaims) {
  for (const Protection protection : all_protections()) {
    Plan plan = made(plan::testing::whole_policy());
    const auto steps = plan.steps;
    const auto cgroup = plan.cgroup;
    plan::take_out(plan, protection);
    if (plan.steps == steps && plan.cgroup == cgroup) continue;  // its flag is all there is
    plan.protections = plan::required(plan);
    EXPECT_FALSE(plan::verify(plan)) << plan::to_string(protection);
  }
}

TEST(TakeOut, TakesWhatWouldHarmTheHostAlong) {
  Plan plan = made(plan::testing::full_policy());
  plan::take_out(plan, Protection::network_namespace);
  EXPECT_EQ(index_of<plan::Capture>(plan), plan.steps.size()) << "packet rules would be the host's";
  plan = made(plan::testing::full_policy());
  plan::take_out(plan, Protection::uts_namespace);
  EXPECT_EQ(index_of<plan::SetHostname>(plan), plan.steps.size()) << "the name would be the host's";
  plan = made(plan::testing::full_policy());
  plan::take_out(plan, Protection::mount_namespace);
  EXPECT_EQ(index_of<plan::PivotRoot>(plan), plan.steps.size());
  for (const auto& step : plan.steps) {
    const std::string line = plan::describe(step);
    EXPECT_FALSE(line.starts_with("mount_") || line.starts_with("bind_") ||
                 line.starts_with("make_") || line.starts_with("write_"))
        << line;
  }
}

TEST(TakeOut, LimitsAreLiftedOneByOne) {
  Plan plan = made(Policy{});
  plan::take_out(plan, Protection::memory_limit);
  for (const auto& group : plan.cgroup.groups) {
    EXPECT_EQ(group.limits.empty(), group.controller != "pids" && group.controller != "cpu")
        << group.controller;
  }
  const std::uint64_t before = the_step<plan::MountDisk>(plan).size;
  plan::take_out(plan, Protection::disk_limit);
  EXPECT_GT(the_step<plan::MountDisk>(plan).size, before);
  plan::take_out(plan, Protection::wall_limit);
  EXPECT_EQ(plan.policy.limits.wall_ms, policy::kUnlimited);
}

TEST(Verify, WantsTheOrderOfTheStart) {
  Plan plan = made(plan::testing::full_policy());
  std::swap(plan.steps[index_of<plan::PivotRoot>(plan)], plan.steps[index_of<plan::Seccomp>(plan)]);
  expect_refused(plan, "out of order");
  plan = made(plan::testing::full_policy());
  std::swap(plan.steps[index_of<plan::EnterCgroup>(plan)],
            plan.steps[index_of<plan::CloneNamespaces>(plan)]);
  expect_refused(plan, "out of order");
  plan = made(plan::testing::full_policy());
  plan.steps.emplace_back(plan::Seccomp{});
  expect_refused(plan, "out of order");
  plan = made(plan::testing::full_policy());
  plan.steps.emplace_back(plan::BindReadOnly{"/usr", "/usr"});
  expect_refused(plan, "out of order");
}

TEST(Verify, RefusesStepsThatReachIntoTheHost) {
  struct Case {
    plan::Step step;
    const char* what;
  };
  const Case cases[] = {
      {plan::WriteFile{"/usr/bin/evil", "x"}, "no step made"},  // through the bind into the host
      {plan::MakeFolder{"/usr/evil"}, "no step made"},
      {plan::MakeLink{"/nowhere/evil", "/"}, "no step made"},
      {plan::WriteFile{"/bin/evil", "x"}, "no step made"},  // through a link
      {plan::WriteFile{"/etc/passwd", "x"}, "made twice"},
      {plan::WriteFile{"/etc/../usr/x", "x"}, "path"},
      {plan::WriteFile{"etc/x", "x"}, "path"},
      {plan::WriteFile{"/etc//x", "x"}, "path"},
      {plan::WriteFile{"/", "x"}, "path"},
      {plan::WriteFile{"/etc/su", "x", 04755}, "mode"},
      {plan::WriteFile{"/etc/long", std::string(70000, 'x')}, "64 KiB"},
      {plan::MakeFolder{"/etc/s", 01777}, "mode"},
      {plan::MakeLink{"/etc/l", ""}, "says"},
      {plan::BindReadOnly{"/", "/host"}, "whole host"},
      {plan::BindReadOnly{"/root", "/root"}, "bound to"},
      {plan::BindReadOnly{"/proc", "/host"}, "/proc"},
      {plan::BindReadOnly{"/dev", "/host"}, "/dev"},
      {plan::BindReadOnly{"/run", "/host"}, "/run"},
      {plan::BindReadOnly{"/etc/shadow", "/etc/fonts"}, "secrets"},
      {plan::BindReadOnly{"/etc/ssl/private", "/etc/fonts"}, "secrets"},
      {plan::BindReadOnly{"/var/lib/cerco/keys", "/etc/fonts"}, "own state"},
      {plan::BindReadOnly{"/home/user", "/etc/fonts"}, "bound to"},
      {plan::BindReadOnly{"/usr/share", "/bin2"}, "bound to"},
      {plan::BindReadOnly{"/etc/../root", "/etc/fonts"}, "source"},
  };
  for (const auto& one : cases) {
    Plan plan = made(plan::testing::full_policy());
    const auto at = index_of<plan::MountDisk>(plan);
    plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(at), one.step);
    expect_refused(plan, one.what);
  }
}

TEST(Verify, RefusesWhatDoesNotFollowFromThePolicy) {
  struct Case {
    std::function<void(Plan&)> change;
    const char* what;
  };
  const Case cases[] = {
      {[](Plan& p) { p.run = "../../etc/xx"; }, "run id"},
      {[](Plan& p) { p.run = "short"; }, "run id"},
      {[](Plan& p) { p.name = "a b"; }, "name"},
      {[](Plan& p) { p.name = "abcdefghijkl"; }, "name"},
      {[](Plan& p) { p.name = std::string(65, 'a'); }, "name"},
      {[](Plan& p) { p.tier = policy::Tier::microvm; }, "go together"},
      {[](Plan& p) { p.policy.limits.memory += 1; }, "policy_sha256"},
      {[](Plan& p) { p.state_dir = "relative"; }, "folder"},
      {[](Plan& p) { p.helper_dir = "/a/../b"; }, "folder"},
      {[](Plan& p) { p.terminates = false; }, "terminates"},
      {[](Plan& p) { p.unheld = {"memory"}; }, "not held"},
      {[](Plan& p) { p.command.argv.clear(); }, "no command"},
      {[](Plan& p) { p.session = true; }, "a command of a session"},
      {[](Plan& p) { p.command.argv = {std::string("a\0b", 3)}; }, "NUL"},
      {[](Plan& p) { p.command.argv.emplace_back(300'000, 'x'); }, "too long"},
      {[](Plan& p) { p.command.env["A=B"] = "x"; }, "name"},
      {[](Plan& p) { p.command.cwd = ".."; }, "working folder"},
      {[](Plan& p) { p.command.env["API_KEY"] = "the real one"; }, "placeholder"},
      {[](Plan& p) { p.placeholders[0].value = "cerco_ph_short"; }, "placeholder"},
      {[](Plan& p) { p.placeholders[0].value = "sk-" + std::string(26, 'a'); }, "placeholder"},
      {[](Plan& p) { p.placeholders[0].value = std::string(36, 'a'); }, "placeholder"},
      {[](Plan& p) { p.cgroup.groups[0].where.path = "/sys/fs/cgroup/../x"; }, "cgroup"},
      {[](Plan& p) { p.cgroup.groups[0].limits.emplace_back("../x", "1"); }, "cgroup file"},
      {[](Plan& p) { p.cgroup.groups[0].limits.emplace_back("pids.max", "1"); }, "cgroup file"},
      {[](Plan& p) { p.cgroup.groups[0].controller = "devices"; }, "memory_limit"},
      {[](Plan& p) { p.cgroup.groups[0].limits.pop_back(); }, "memory_limit"},
      {[](Plan& p) { the_step<plan::Capture>(p).steered.push_back({"0.0.0.0/0", {443}}); },
       "capture"},
      {[](Plan& p) { the_step<plan::Capture>(p).own_v4 = "10.0.0.1"; }, "capture"},
      {[](Plan& p) { the_step<plan::MountDisk>(p).targets = {"/etc"}; }, "disk_limit"},
      {[](Plan& p) { the_step<plan::MountProc>(p).masks.emplace_back("/etc/passwd"); }, "mask"},
      {[](Plan& p) { the_step<plan::MountProc>(p).masks.clear(); }, "proc_masks"},
      {[](Plan& p) { the_step<plan::MountDev>(p).terminals = 129; }, "terminals"},
      {[](Plan& p) { the_step<plan::Landlock>(p).write.emplace_back("/usr"); }, "Landlock"},
      {[](Plan& p) { the_step<plan::Rlimits>(p).files = 1 << 30; }, "rlimits"},
      {[](Plan& p) { the_step<plan::MapUsers>(p).count = 1; }, "user_namespace"},
      {[](Plan& p) { the_step<plan::TrustBundle>(p).targets = {"/usr/bin/sh"}; }, "trust bundle"},
  };
  for (const auto& one : cases) {
    Plan plan = made(plan::testing::full_policy());
    one.change(plan);
    expect_refused(plan, one.what);
  }
}

// What the policy wants planted is planted, where it was to be, and cannot be told from real ones.
TEST(Verify, CanariesAreThoseOfThePolicy) {
  const std::vector<std::pair<std::function<void(Plan&)>, std::string>> cases = {
      {[](Plan& p) { p.canaries.clear(); }, "other canaries"},
      {[](Plan& p) { p.canaries[0].id = "AKIA"; }, "other canaries"},
      {[](Plan& p) { p.canaries[1].secret = "ghp_short"; }, "other canaries"},
      {[](Plan& p) { p.canaries[2].secret = "with a space in it and long"; }, "other canaries"},
      {[](Plan& p) { std::swap(p.canaries[0], p.canaries[1]); }, "other canaries"},
      {[](Plan& p) { p.policy.filesystem.canaries.pop_back(); }, "policy_sha256"},
      {[](Plan& p) { p.canaries[2].secret[0] ^= 'a' ^ 'b'; }, "not planted"},
      {[](Plan& p) {
         std::erase_if(p.steps, [](const plan::Step& step) {
           const auto* file = std::get_if<plan::WriteFile>(&step);
           return file != nullptr && file->target == "/home/agent/.netrc";
         });
       },
       "not planted"}};
  Policy policy = plan::testing::full_policy();
  policy.filesystem.canaries = {"aws", "github", "netrc", "npm"};
  EXPECT_TRUE(plan::verify(made(policy)));
  for (const auto& [change, what] : cases) {
    Plan plan = made(policy);
    change(plan);
    expect_refused(plan, what);
  }
}

// filesystem.hide covers what lies below read-only paths of the policy, and nothing else.
// What a scratch root is made of comes in with it alone, and never more of the host.
TEST(Verify, AScratchRootIsAskedForOrNotThere) {
  Plan plan = made(plan::testing::whole_policy());
  plan.policy.filesystem.root = policy::RootMode::read_only;
  plan.policy_sha256 = base::sha256(policy::to_json(plan.policy));
  plan.protections = plan::required(plan);
  expect_refused(plan, "read_only_base");
  plan = made(plan::testing::full_policy());
  the_step<plan::MountRoot>(plan).store = plan::Store::image;
  expect_refused(plan, "read_only_base");
  plan = made(plan::testing::full_policy());
  plan.steps.insert(
      plan.steps.begin() + static_cast<std::ptrdiff_t>(index_of<plan::BindReadOnly>(plan)),
      plan::LayScratch{"/usr", "/usr"});
  EXPECT_FALSE(plan::verify(plan));
  for (const char* source : {"/home", "/usr/../home", "/etc/shadow", "/"}) {
    plan = made(plan::testing::whole_policy());
    the_step<plan::LayScratch>(plan) = {source, source};
    EXPECT_FALSE(plan::verify(plan)) << source;
  }
  plan = made(plan::testing::full_policy());
  the_step<plan::Landlock>(plan).write = {"/"};
  expect_refused(plan, "Landlock");
  plan = made(plan::testing::whole_policy());
  the_step<plan::MountDisk>(plan).blocks = plan::Blocks::as_written;
  expect_refused(plan, "disk_limit");
}

TEST(Verify, MasksOutsideOfProcLieBelowReadOnlyPaths) {
  Policy policy = plan::testing::full_policy();
  policy.filesystem.read_only = {"/srv/data"};
  Plan plan = made(policy);
  const std::size_t of_proc = the_step<plan::MountProc>(plan).masks.size();
  ASSERT_TRUE(plan::hide(plan, {"/srv/data/.env", "/srv/data/a/id_rsa"}));
  EXPECT_EQ(the_step<plan::MountProc>(plan).masks.size(), of_proc + 2);
  EXPECT_EQ(plan::hidden(plan), (std::vector<std::string>{"/srv/data/.env", "/srv/data/a/id_rsa"}));
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();

  for (const char* path : {"/srv/data", "/srv/data/../x", "/srv/database/.env", "/usr/bin/sh",
                           "/etc/passwd", "/srv/data/.env\n", "srv/data/.env"}) {
    Plan other = made(policy);
    EXPECT_FALSE(plan::hide(other, {path})) << path;
    the_step<plan::MountProc>(other).masks.emplace_back(path);
    expect_refused(other, "mask");
  }
  const std::vector<std::string> many(4097, "/srv/data/.env");
  Plan other = made(policy);
  EXPECT_FALSE(plan::hide(other, many));
  auto& masks = the_step<plan::MountProc>(other).masks;
  masks.insert(masks.end(), many.begin(), many.end());
  expect_refused(other, "masks");
}

TEST(Codec, GivesTheSamePlanBack) {
  for (const Policy& policy :
       {Policy{}, plan::testing::full_policy(), plan::testing::whole_policy()}) {
    const Plan plan = made(policy);
    const auto again = base::decode<Plan>(base::encode(plan), "plan");
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, plan);
  }
}

TEST(Codec, RefusesLessAndMore) {
  const std::string bytes = base::encode(made(Policy{}));
  EXPECT_FALSE(base::decode<Plan>(bytes + "x", "plan"));
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(base::decode<Plan>(std::string_view(bytes).substr(0, size), "plan"));
  }
}

}  // namespace
