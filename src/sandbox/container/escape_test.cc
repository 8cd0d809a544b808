// Attempts to get out or to take too much, each with the same attempt where protections are taken
// out. Seccomp is not part of these sandboxes: what holds here holds without it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "sandbox/container/fixture.h"

namespace sandbox::testing {
namespace {

using enum plan::Protection;

struct Attempt {
  const char* id;
  std::string script;               // prints "out" when it worked
  std::set<plan::Protection> weak;  // without these it works …
  As weak_as = As::agent;           // … as this user
  const char* needs = nullptr;      // a file that a kernel may not have
};

const std::set<plan::Protection> kRoot = {user_namespace, drop_capabilities, landlock};

std::set<plan::Protection> root_and(plan::Protection more) {
  std::set<plan::Protection> all = kRoot;
  all.insert(more);
  return all;
}

// Scripts change nothing of the host where they work: they stay within namespaces of their own.
std::vector<Attempt> attempts() {
  return {
      {"E8", "ls /proc/1/root/ && echo out", kRoot, As::root_with_all},
      {"E20", "mount -t tmpfs none /tmp && echo out", kRoot, As::root_with_all},
      {"E20 bind", "mount --bind /usr /workspace && echo out", kRoot, As::root_with_all},
      {"E21", "umount /proc/interrupts && echo out", kRoot, As::root_with_all},
      {"E23", "python3 -c 'import os; os.chroot(\"/tmp\"); print(\"out\")'", kRoot,
       As::root_with_all},
      {"E24", "unshare -U true && echo out", {user_namespace}},
      {"E26", "nsenter -t 1 -m true && echo out", kRoot, As::root_with_all},
      {"E28", "mount -o remount,rw,bind /usr && echo out", kRoot, As::root_with_all},
      {"E28 write",
       "test -w /usr && echo out",
       {read_only_base, user_namespace, landlock},
       As::root},
      {"E31", "echo 1 > /proc/sys/net/ipv4/ip_forward && echo out", root_and(proc_masks),
       As::root_with_all},
      {"E33", "echo h > /proc/sysrq-trigger && echo out", root_and(proc_masks), As::root_with_all,
       "/proc/sysrq-trigger"},
      {"E34", "grep -q . /proc/interrupts && echo out", {proc_masks}},
      {"E35", "mkdir /tmp/c; mount -t cgroup -o memory x /tmp/c && echo out", kRoot,
       As::root_with_all},
      {"E38", "test $(hostname) = sandbox || echo out", {uts_namespace}},
      {"E38 uptime", "test $(cut -d. -f1 /proc/uptime) -lt 60 || echo out", {time_namespace}},
      {"E38 cgroup", "grep -q cerco- /proc/self/cgroup && echo out", {cgroup_namespace}},
      {"E40", "unshare -U --map-root-user true && echo out", {user_namespace}},
      {"dev", "test -e /dev/loop-control && echo out", {minimal_dev}},
      {"host root", "test -e /root && echo out", {mount_namespace, landlock}},
  };
}

TEST(Escape, EveryAttemptIsHeldAndWorksWithoutItsProtections) {
  const TempFolder state;
  const auto strong = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(strong);
  for (const auto& attempt : attempts()) {
    if (attempt.needs != nullptr && ::access(attempt.needs, F_OK) != 0) {
      std::printf("%s is not tried: this kernel has no %s\n", attempt.id, attempt.needs);
      continue;
    }
    SCOPED_TRACE(attempt.id);
    const std::string script = "(" + attempt.script + ") 2>/dev/null; true";
    EXPECT_EQ(run(*strong, script, As::agent).output, "");
    EXPECT_EQ(run(*strong, script, As::root).output, "") << "as root of the sandbox";
    const Outcome weak = run_in_new(without(whole_plan(state.path()), attempt.weak),
                                    "(" + attempt.script + ") 2>&1", attempt.weak_as);
    EXPECT_TRUE(weak.output.ends_with("out\n")) << weak.output;
  }
}

// Landlock is a second fence: it holds what owner and mode would allow.
TEST(Escape, LandlockHoldsWhatTheModeWouldAllow) {
  const TempFolder state;
  plan::Plan plan = whole_plan(state.path());
  for (auto& step : plan.steps) {
    if (auto* held = std::get_if<plan::Landlock>(&step)) held->write = {"/workspace", "/dev"};
  }
  const std::string script = "true > /workspace/x && true > /var/tmp/x && echo out; true";
  EXPECT_FALSE(run_in_new(plan, script, As::agent).output.contains("out"));
  EXPECT_EQ(run_in_new(without(plan, {landlock}), script, As::agent).output, "out\n");
}

// E38: nothing inside tells where the host keeps its things.
TEST(Escape, E38MountsNameNoPathOfTheHost) {
  const TempFolder state;
  const Outcome seen =
      run_in_new(whole_plan(state.path()),
                 "cat /proc/self/mountinfo /proc/self/cgroup /proc/mounts", As::agent);
  EXPECT_FALSE(seen.output.contains(state.path())) << seen.output;
  EXPECT_FALSE(seen.output.contains("cerco")) << seen.output;
}

// E36: no cgroup file system, and so no limit to lift.
TEST(Escape, E36NoCgroupFileIsInReach) {
  const TempFolder state;
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  const std::string script = "find / -name cgroup.procs 2>/dev/null | head -1";
  EXPECT_EQ(run(*sandbox, script, As::agent).output, "");
  EXPECT_EQ(run(*sandbox, script, As::root).output, "");
  plan::Plan weak = whole_plan(state.path());
  weak.steps.insert(std::ranges::find_if(weak.steps,
                                         [](const auto& step) {
                                           return std::holds_alternative<plan::MountDisk>(step);
                                         }),
                    plan::BindReadOnly{"/sys", "/sys"});
  EXPECT_FALSE(run_in_new(weak, script, As::agent).output.empty());
}

// E88
TEST(Escape, E88SharedMemoryOfTheHostIsNotThere) {
  const TempFolder state;
  const key_t key = 0x00CE0000 + ::getpid() % 0xFFFF;
  const int segment = ::shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_GE(segment, 0);
  char text[32];
  std::snprintf(text, sizeof text, "0x%08x", static_cast<unsigned>(key));
  const std::string script = "ipcs -m | grep -c " + std::string(text) + "; true";
  EXPECT_EQ(run_in_new(whole_plan(state.path()), script, As::agent).output, "0\n");
  EXPECT_EQ(
      run_in_new(without(whole_plan(state.path()), {ipc_namespace}), script, As::agent).output,
      "1\n");
  ::shmctl(segment, IPC_RMID, nullptr);
}

// E100: signals find nobody outside, and init ignores them.
TEST(Escape, E100SignalsStayInside) {
  const TempFolder state;
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  const std::string self = std::to_string(::getpid());
  EXPECT_EQ(run(*sandbox, "kill -0 " + self + " 2>/dev/null && echo out; true", As::agent).output,
            "");
  EXPECT_TRUE(run(*sandbox, "kill -KILL -1", As::agent).started);
  EXPECT_EQ(run(*sandbox, "kill -KILL 1; kill -STOP 1; echo alive", As::root).output, "alive\n");
  // Control: the same call does reach a process of the sandbox itself.
  EXPECT_TRUE(run(*sandbox, "sleep 100 & kill -KILL $! && wait $!; echo $?", As::agent)
                  .output.ends_with("137\n"));
}

// E89, E90
TEST(Limits, E89ProcessesAreCountedAndRefused) {
  const TempFolder state;
  const std::string script =
      "python3 -c 'import os, time, sys\nn = 0\ntry:\n  while n < 100:\n    if os.fork() == 0: "
      "time.sleep(30)\n    n += 1\nexcept BlockingIOError: pass\nprint(n)'";
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  const int count = std::stoi(run(*sandbox, script, As::agent).output);
  EXPECT_GT(count, 40);
  EXPECT_LT(count, 64);
  EXPECT_GE(sandbox->counters()->process_limit_hits, 1U);
  EXPECT_EQ(
      run_in_new(without(whole_plan(state.path()), {process_limit}), script, As::agent).output,
      "100\n");
}

// E91: the kernel's word, readable for whoever waits.
TEST(Limits, E91MemoryBeyondTheLimitEndsInAKillThatIsSeen) {
  const TempFolder state;
  const std::string script =
      "python3 -c 'x = bytearray(400 << 20); print(len(x))' 2>/dev/null; true";
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  EXPECT_EQ(sandbox->counters()->oom_kills, 0U);
  EXPECT_EQ(run(*sandbox, script, As::agent).output, "");
  EXPECT_GE(sandbox->counters()->oom_kills, 1U);
  EXPECT_GT(sandbox->counters()->memory_peak, 200U << 20);
  std::uint64_t count = 0;
  ASSERT_GE(sandbox->oom_fd(), 0);
  EXPECT_GT(::read(sandbox->oom_fd(), &count, sizeof count), 0);
  EXPECT_EQ(run_in_new(without(whole_plan(state.path()), {memory_limit}), script, As::agent).output,
            "419430400\n");
}

// E91: /dev/shm counts as memory, and is bounded by itself.
TEST(Limits, E91SharedMemoryIsBounded) {
  const TempFolder state;
  const Outcome filled =
      run_in_new(whole_plan(state.path()),
                 "head -c 64M /dev/zero > /dev/shm/x 2>/dev/null || echo full", As::agent);
  EXPECT_EQ(filled.output, "full\n");
}

// E93, E94
TEST(Limits, E93TheDiskIsFullInsideAndOnlyThere) {
  const TempFolder state;
  const std::string blocks = "head -c 80M /dev/zero > /workspace/x 2>/dev/null && echo out";
  const std::string inodes =
      "cd /tmp; for i in $(seq 3000); do true > f$i || break; done 2>/dev/null; ls | wc -l";
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  EXPECT_FALSE(sandbox->counters()->disk_full);
  EXPECT_EQ(run(*sandbox, blocks, As::agent).output, "");
  EXPECT_TRUE(sandbox->counters()->disk_full);
  EXPECT_GT(sandbox->counters()->disk_used, 50U << 20);
  // The folders share one disk: what fills one fills all.
  const std::string more = "head -c 4M /dev/zero > /home/agent/y 2>/dev/null || echo full";
  EXPECT_EQ(run(*sandbox, more, As::agent).output, "full\n");
  (void)run(*sandbox, "rm /workspace/x /home/agent/y", As::agent);
  EXPECT_FALSE(sandbox->counters()->disk_full);
  EXPECT_LT(std::stoi(run(*sandbox, inodes, As::agent).output), 2100);  // mkfs rounds up
  EXPECT_TRUE(sandbox->counters()->disk_full);
  const auto weak = start_ready(without(whole_plan(state.path()), {disk_limit}));
  ASSERT_TRUE(weak);
  EXPECT_EQ(run(*weak, blocks, As::agent).output, "out\n");
  EXPECT_EQ(run(*weak, inodes, As::agent).output, "3000\n");
}

TEST(Limits, FrozenNothingMovesAndThawedItGoesOn) {
  const TempFolder state;
  const auto sandbox = start_ready(whole_plan(state.path()));
  ASSERT_TRUE(sandbox);
  (void)run(*sandbox, "(while :; do echo x >> /tmp/log; done) >/dev/null 2>&1 &", As::agent);
  const auto used = [&] { return sandbox->counters()->cpu_ms; };
  ASSERT_TRUE(sandbox->freeze());
  const std::uint64_t at = used();
  ::usleep(100'000);
  EXPECT_LE(used(), at + 1);
  ASSERT_TRUE(sandbox->thaw());
  for (int i = 0; i < 500 && used() <= at + 20; ++i) ::usleep(10'000);
  EXPECT_GT(used(), at + 20);
  // Frozen as it is, it can be ended.
  ASSERT_TRUE(sandbox->freeze());
  ASSERT_TRUE(sandbox->destroy());
  EXPECT_EQ(processes_of(sandbox->host_uid(0)), 0U);
}

}  // namespace
}  // namespace sandbox::testing
