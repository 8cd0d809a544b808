// A container from start to end: what it leaves, and what a start that fails says.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "os/os.h"
#include "sandbox/container/fixture.h"

namespace sandbox::testing {
namespace {

template <class T>
T& step(plan::Plan& plan) {
  for (auto& each : plan.steps) {
    if (T* held = std::get_if<T>(&each)) return *held;
  }
  ADD_FAILURE() << "no such step";
  std::abort();
}

TEST(Container, RunsACommandAndLeavesNothing) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const auto before = traces(plan);
  const Outcome outcome =
      run_in_new(plan, "id -u; hostname; echo hello > /tmp/x; cat /tmp/x; exit 7", As::agent);
  EXPECT_EQ(outcome.output, "1000\nsandbox\nhello\n");
  EXPECT_EQ(outcome.code, 7U);
  EXPECT_EQ(traces(plan), before);
}

TEST(Container, TheOracleSeesARunningSandbox) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const auto before = traces(plan);
  const auto sandbox = start_ready(plan);
  ASSERT_TRUE(sandbox);
  const auto during = traces(plan);
  for (const char* kind : {"loop ", "lease ", "process ", "/sys/fs/cgroup/"}) {
    EXPECT_TRUE(std::ranges::any_of(during, [&](const auto& trace) {
      return trace.starts_with(kind) && !before.contains(trace);
    })) << kind;
  }
  EXPECT_GE(processes_of(sandbox->host_uid(0)), 1U);
  ASSERT_TRUE(sandbox->destroy());
  ASSERT_TRUE(sandbox->destroy());  // again: nothing to do
  EXPECT_EQ(processes_of(sandbox->host_uid(0)), 0U);
  EXPECT_EQ(traces(plan), before);
}

TEST(Container, TwentyRunsLeaveNothing) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const auto before = traces(plan);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(run_in_new(plan, "setsid sleep 100 >/dev/null 2>&1 & exit 3", As::agent).code, 3U);
  }
  EXPECT_EQ(traces(plan), before);
}

// E101: double forks, new sessions, stopped processes.
TEST(Container, E101NothingOutlivesTheEnd) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const auto sandbox = start_ready(plan);
  ASSERT_TRUE(sandbox);
  const Outcome outcome = run(*sandbox,
                              "for i in 1 2 3; do (setsid sh -c 'sleep 1000 & sleep 1001' "
                              ">/dev/null 2>&1 &); done; sleep 1000 & kill -STOP $!",
                              As::agent);
  EXPECT_TRUE(outcome.started);
  EXPECT_GE(processes_of(sandbox->host_uid(0)), 5U);  // control: they are there until the end
  ASSERT_TRUE(sandbox->destroy());
  EXPECT_EQ(processes_of(sandbox->host_uid(0)), 0U);
}

// E105
TEST(Container, E105TheNextRunFindsNothingOfTheLast) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const std::string look = "cat /tmp/secret /workspace/secret /dev/shm/secret 2>/dev/null";
  const auto first = start_ready(plan);
  ASSERT_TRUE(first);
  const std::uint32_t uid = first->host_uid(0);
  (void)run(*first, "echo s > /tmp/secret; echo s > /workspace/secret; echo s > /dev/shm/secret",
            As::agent);
  EXPECT_EQ(run(*first, look, As::agent).output, "s\ns\ns\n");  // control
  ASSERT_TRUE(first->destroy());
  const auto second = start_ready(plan);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->host_uid(0), uid);
  EXPECT_EQ(run(*second, look, As::agent).output, "");
}

// E96: inotify, queued signals and messages are counted for the owner of the user namespace as
// well.
TEST(Container, E96WhatTheKernelCountsPerUserIsNotCountedForRoot) {
  const TempFolder state;
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  const auto about =
      os::read_file(fmt::format("/proc/self/fdinfo/{}", sandbox->init_pidfd()), 4096);
  ASSERT_TRUE(about);
  const auto at = about->find("Pid:\t");
  ASSERT_NE(at, std::string::npos) << *about;
  const int pid = std::stoi(about->substr(at + 5));
  const auto space = os::open(fmt::format("/proc/{}/ns/user", pid), O_RDONLY, 0);
  ASSERT_TRUE(space);
  uid_t owner = 0;
  ASSERT_EQ(::ioctl(space->get(), NS_GET_OWNER_UID, &owner), 0);
  EXPECT_EQ(owner, sandbox->host_uid(0));
}

TEST(Container, SandboxesAtTheSameTimeHaveUidsOfTheirOwn) {
  const TempFolder state;
  const plan::Plan one = whole_plan(state.path());
  const plan::Plan two = whole_plan(state.path());
  const auto first = start_ready(one);
  const auto second = start_ready(two);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(first->host_uid(0), second->host_uid(0));
  EXPECT_EQ(run(*second, "echo alive", As::agent).output, "alive\n");
}

TEST(Container, AfterKillOfItsOwnerOnlyGroupsAndLeaseAreLeftAndTheNextStartTakesThem) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const auto before = traces(plan);
  auto ready = os::pipe();
  ASSERT_TRUE(ready);
  const int owner = ::fork();
  if (owner == 0) {
    const auto sandbox = start_ready(plan);
    (void)run(*sandbox, "setsid sleep 1000 >/dev/null 2>&1 &", As::agent);
    const std::string uid = std::to_string(sandbox->host_uid(0));
    (void)os::write_all(ready->second.get(), uid + "\n", "pipe");
    while (true) ::pause();
  }
  const auto told = os::read_some(ready->first.get(), 32, "pipe");
  ASSERT_TRUE(told);
  const auto uid = static_cast<std::uint32_t>(std::stoul(*told));
  EXPECT_GE(processes_of(uid), 2U);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  for (int i = 0; i < 500 && processes_of(uid) > 0; ++i) ::usleep(10'000);
  EXPECT_EQ(processes_of(uid), 0U);
  for (const auto& trace : traces(plan)) {
    if (before.contains(trace)) continue;
    EXPECT_TRUE(trace.starts_with("lease ") || trace.starts_with("/sys/fs/cgroup/")) << trace;
  }
  const plan::Plan next = whole_plan(state.path());
  EXPECT_EQ(run_in_new(next, "echo next", As::agent).output, "next\n");
  EXPECT_EQ(traces(plan), before);
}

TEST(Container, GarbageOfTheDeadGoesAndTheLivingStay) {
  const TempFolder state;
  const plan::Plan living = whole_plan(state.path());
  const plan::Plan dead = whole_plan(state.path());
  const auto sandbox = start_ready(living);
  ASSERT_TRUE(sandbox);
  const auto before = traces(dead);
  const int owner = ::fork();
  if (owner == 0) {
    const auto other = start_ready(dead);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(owner, nullptr, 0);
  EXPECT_NE(traces(dead), before);
  plan::HostFacts host;
  host.controllers = controllers();
  const auto removed = collect_garbage(state.path(), host);
  ASSERT_TRUE(removed) << removed.error().line();
  EXPECT_GE(*removed, 1U);
  EXPECT_EQ(traces(dead), before);
  EXPECT_EQ(run(*sandbox, "echo alive", As::agent).output, "alive\n");
}

// --- Starts that fail ---------------------------------------------------------------------------

struct Failure {
  const char* name;
  std::function<void(plan::Plan&, Inputs&)> spoil;
  const char* says;  // within the error's line
};

const Failure kFailures[] = {
    {"no such cgroup", [](auto& plan, auto&) { plan.cgroup.groups[0].where.path = "/nowhere"; },
     "EnterCgroup: cgroup memory: mkdir /nowhere/cerco-"},
    {"limit that the kernel refuses",
     [](auto& plan, auto&) { plan.cgroup.groups[1].limits = {{"pids.max", "many"}}; },
     "EnterCgroup: cgroup pids: write many into pids.max: EINVAL"},
    {"unknown namespace",
     [](auto& plan, auto&) { step<plan::CloneNamespaces>(plan).kinds.emplace_back("moon"); },
     "CloneNamespaces: unknown namespace moon"},
    {"rules without a network namespace",
     [](auto& plan, auto&) { std::erase(step<plan::CloneNamespaces>(plan).kinds, "network"); },
     "Capture: no network namespace"},
    {"bad range",
     [](auto& plan, auto&) { step<plan::Capture>(plan).steered = {{"1.2.3.4/99", {443}}}; },
     "Capture: "},
    {"source that is not there",
     [](auto& plan, auto&) { step<plan::BindReadOnly>(plan).source = "/nonexistent"; },
     "BindReadOnly: host: open /nonexistent: ENOENT"},
    {"mount over a link that leads out",
     [](auto& plan, auto&) {
       step<plan::MakeLink>(plan) = {"/trap", "/proc/self/root/tmp"};
       step<plan::MountDev>(plan) = {};
       step<plan::WriteFile>(plan).target = "/trap/file";
     },
     "WriteFile: open /trap: ENOENT"},
    {"folder without a parent",
     [](auto& plan, auto&) { step<plan::MakeFolder>(plan).target = "/a/b/c"; },
     "MakeFolder: open /a/b: ENOENT"},
    {"file that exists",
     [](auto& plan, auto&) {
       plan.steps.insert(plan.steps.end() - 5, plan::WriteFile{"/etc/passwd", ""});
     },
     "WriteFile: create /etc/passwd: EEXIST"},
    {"target that is the root", [](auto& plan, auto&) { step<plan::WriteFile>(plan).target = "/"; },
     "WriteFile: /: EINVAL"},
    {"trust bundle nowhere",
     [](auto& plan, auto&) {
       plan.steps.insert(plan.steps.end() - 5, plan::TrustBundle{{"/nowhere/ca.crt"}});
     },
     "TrustBundle: /nowhere/ca.crt: open /nowhere: ENOENT"},
    {"state folder that is a file",
     [](auto& plan, auto&) {
       plan.state_dir += "/file";
       ASSERT_TRUE(os::open(plan.state_dir, O_CREAT | O_WRONLY, 0600));
     },
     "MapUsers: "},
    {"patterns that cannot be written",
     [](auto& plan, auto&) {
       ASSERT_TRUE(os::open(plan.state_dir + "/patterns", O_CREAT | O_WRONLY, 0600));
     },
     "MountDisk: "},
    {"a user's plan that root starts",
     [](auto& plan, auto&) {
       plan.rights = plan::Rights::user;
       step<plan::MapUsers>(plan).count = 1;
     },
     "MapUsers: a plan for user is started by root"},
    {"a map of one id with root's rights",
     [](auto& plan, auto&) { step<plan::MapUsers>(plan).count = 1; },
     "MapUsers: a plan for root is started by root"},
    {"landlock path that is not there",
     [](auto& plan, auto&) { step<plan::Landlock>(plan).read = {"/nowhere"}; },
     "Landlock: landlock: open: ENOENT"},
    {"no init", [](auto&, auto& inputs) { inputs.init_path = "/nonexistent"; },
     "open /nonexistent: ENOENT"},
    {"init that is no program", [](auto&, auto& inputs) { inputs.init_path = "/etc/passwd"; },
     "execute cerco-init: ENOEXEC"},
};

TEST(Start, AFailureNamesItsStepAndLeavesNothing) {
  for (const auto& failure : kFailures) {
    SCOPED_TRACE(failure.name);
    const TempFolder state;
    plan::Plan plan = whole_plan(state.path());
    Inputs with = inputs();
    failure.spoil(plan, with);
    const auto before = traces(plan);
    const auto sandbox = start_container(plan, with);
    ASSERT_FALSE(sandbox);
    EXPECT_TRUE(sandbox.error().line().contains(failure.says)) << sandbox.error().line();
    EXPECT_EQ(traces(plan), before);
  }
}

}  // namespace
}  // namespace sandbox::testing
