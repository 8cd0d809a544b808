// make(): steps, limits, what is refused and why.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/parts.h"
#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::HostFacts;
using plan::Plan;
using policy::Policy;

Plan made(const Policy& policy, const HostFacts& host) {
  auto plan = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
  if (!plan) ADD_FAILURE() << plan.error().line();
  return plan ? *plan : Plan{};
}

std::vector<std::string> lines(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& step : plan.steps) out.push_back(plan::describe(step));
  return out;
}

template <class T>
const T& the_step(const Plan& plan) {
  if (const T* held = plan::step_of<T>(plan)) return *held;
  ADD_FAILURE() << "no such step";
  static const T kNone;
  return kNone;
}

using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings(const Plan& plan, std::string_view controller) {
  for (const auto& group : plan.cgroup.groups) {
    if (group.controller == controller) return group.limits;
  }
  ADD_FAILURE() << "no group " << controller;
  return {};
}

std::vector<std::string> controllers(const Plan& plan) {
  std::vector<std::string> names;
  for (const auto& group : plan.cgroup.groups) names.push_back(group.controller);
  return names;
}

TEST(Make, DefaultPolicyGivesTheStepsInTheirOrder) {
  const Plan plan = made(Policy{}, plan::testing::host());
  const std::vector<std::string> expected = {
      "enter_cgroup",
      "clone_namespaces user mount pid network ipc uts cgroup time",
      "map_users 0-65535 to a leased range of host ids that nothing else has",
      "set_hostname sandbox",
      "capture names to the gateway, refuse everything else",
      "mount_root tmpfs of 4MiB",
      "make_folder /etc",
      "make_folder /etc/ssl",
      "make_folder /run",
      "make_folder /var",
      "make_folder /home",
      "make_folder /sys",
      "make_folder /sys/fs",
      "make_link /bin -> usr/bin",
      "make_link /lib -> usr/lib",
      "make_link /lib64 -> usr/lib64",
      "make_link /sbin -> usr/sbin",
      "make_link /etc/localtime -> /usr/share/zoneinfo/Etc/UTC",
      "make_link /etc/mtab -> /proc/self/mounts",
      "make_link /var/run -> /run",
      "bind_read_only /usr",
      "bind_read_only /etc/alternatives",
      "bind_read_only /etc/ld.so.cache",
      "bind_read_only /etc/ssl/certs",
  };
  const auto got = lines(plan);
  ASSERT_GE(got.size(), expected.size());
  EXPECT_EQ(std::vector(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(expected.size())),
            expected);
  const std::vector<std::string> last = {
      "mount_disk 4GiB and 400000 inodes at /home/agent /tmp /var/tmp /workspace",
      "mount_dev null zero full random urandom tty, shm of 1GiB, 128 terminals",
      "mount_cgroups its own, read-only, at /sys/fs/cgroup",
      "mount_proc own, 18 masked, read-only /proc/bus /proc/fs /proc/irq /proc/sys, meminfo as "
      "limited",
      "pivot_root",
      "landlock read /, write /home/agent /tmp /var/tmp /workspace /dev /proc",
      "drop_capabilities all",
      "no_new_privs",
      "rlimits 65536 open files, no core, 2 processors to be seen",
      "seccomp profile default",
  };
  ASSERT_GE(got.size(), last.size());
  EXPECT_EQ(std::vector(got.end() - static_cast<std::ptrdiff_t>(last.size()), got.end()), last);
  EXPECT_FALSE(plan.terminates);
  EXPECT_TRUE(plan.unheld.empty());
  EXPECT_EQ(plan.command.cwd, "/workspace");
  EXPECT_EQ(plan.resolvers, std::vector<std::string>{"192.0.2.53:53"});
}

TEST(Make, EtcHoldsNothingOfTheHost) {  // E38
  const Plan plan = made(Policy{}, plan::testing::host());
  std::map<std::string, std::string> files;
  for (const auto& step : plan.steps) {
    if (const auto* file = std::get_if<plan::WriteFile>(&step)) files[file->target] = file->content;
  }
  EXPECT_EQ(files["/etc/resolv.conf"], "nameserver 198.18.0.1\n");
  EXPECT_EQ(files["/etc/hostname"], "sandbox\n");
  EXPECT_NE(files["/etc/passwd"].find("agent:x:1000:1000:agent:/home/agent:/bin/sh\n"),
            std::string::npos);
  EXPECT_NE(files["/etc/pip.conf"].find("break-system-packages = true"), std::string::npos);
  EXPECT_NE(files["/etc/gitconfig"].find("directory = *"), std::string::npos);
  for (const char* name : {"/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/profile"}) {
    EXPECT_TRUE(files.contains(name)) << name;
  }
}

TEST(Make, OnlyCuratedPiecesOfEtcComeIn) {
  for (const char* good :
       {"/etc/ld.so.cache", "/etc/ssl/certs", "/etc/python3.11", "/etc/java-17-openjdk"}) {
    EXPECT_TRUE(plan::is_curated_etc(good)) << good;
  }
  for (const char* bad : {"/etc/shadow", "/etc/ssl/private", "/etc/ssl", "/etc/passwd", "/etc/ssh",
                          "/etc/npmrc", "/etc/pip.conf", "/etc/python3/../shadow",
                          "/etc/javasecrets", "/etc/resolv.conf", "/etc"}) {
    EXPECT_FALSE(plan::is_curated_etc(bad)) << bad;
  }
  HostFacts host = plan::testing::host();
  host.etc_binds["/etc/shadow"] = "/etc/shadow";
  for (const auto& step : made(Policy{}, host).steps)
    EXPECT_EQ(plan::describe(step).find("shadow"), std::string::npos);
}

TEST(Make, AHostWithoutMergedUsrHasItsFoldersBound) {
  HostFacts host = plan::testing::host();
  host.base = {{"/usr", "dir"}, {"/bin", "dir"}, {"/lib", "dir"}};
  const auto got = lines(made(Policy{}, host));
  for (const char* line : {"bind_read_only /bin", "bind_read_only /lib", "bind_read_only /usr"}) {
    EXPECT_NE(std::ranges::find(got, line), got.end()) << line;
  }
}

// --- Limits ------------------------------------------------------------------------------------

TEST(Limits, AreFilesOfCgroupV1) {
  Policy policy;
  policy.limits.memory = 64ULL << 20;
  policy.limits.swap = 1ULL << 20;
  policy.limits.processes = 100;
  policy.limits.cpus_milli = 1500;
  const Plan plan = made(policy, plan::testing::host());
  EXPECT_EQ(settings(plan, "memory"), (Settings{{"memory.limit_in_bytes", "67108864"},
                                                {"memory.memsw.limit_in_bytes", "68157440"},
                                                {"memory.kmem.tcp.limit_in_bytes", "16777216"}}));
  EXPECT_EQ(settings(plan, "pids"), (Settings{{"pids.max", "101"}}));
  EXPECT_EQ(settings(plan, "cpu"),
            (Settings{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "150000"}}));
  EXPECT_EQ(controllers(plan), (std::vector<std::string>{"memory", "pids", "cpu", "unified"}));
}

TEST(Limits, AreFilesOfCgroupV2) {
  Policy policy;
  policy.limits.memory = 64ULL << 20;
  policy.limits.cpus_milli = 500;
  const Plan plan = made(policy, plan::testing::host_v2());
  EXPECT_EQ(
      settings(plan, "memory"),
      (Settings{{"memory.max", "67108864"}, {"memory.oom.group", "1"}, {"memory.swap.max", "0"}}));
  EXPECT_EQ(settings(plan, "cpu"), (Settings{{"cpu.max", "50000 100000"}}));
}

TEST(Limits, PureV1IsFrozenToBeKilled) {
  HostFacts host = plan::testing::host();
  host.controllers.erase("unified");
  EXPECT_EQ(controllers(made(Policy{}, host)),
            (std::vector<std::string>{"memory", "pids", "cpu", "cpuacct", "freezer"}));
}

TEST(Limits, UnlimitedWritesNothing) {
  Policy policy;
  policy.limits.memory = policy.limits.processes = policy.limits.cpus_milli = policy::kUnlimited;
  HostFacts host = plan::testing::host();
  host.controllers = {{"freezer", {plan::CgroupKind::v1, "/sys/fs/cgroup/freezer"}}};
  const Plan plan = made(policy, host);
  ASSERT_EQ(plan.cgroup.groups.size(), 1U);
  EXPECT_EQ(plan.cgroup.groups[0].controller, "freezer");
  EXPECT_FALSE(plan.protections.contains(plan::Protection::memory_limit));
  EXPECT_TRUE(plan::verify(plan));
}

TEST(Limits, AllThatCannotBeHeldAreNamedAtOnce) {
  HostFacts host = plan::testing::host();
  for (const char* gone : {"memory", "pids", "cpu"}) host.controllers.erase(gone);
  const auto plan = plan::make(Policy{}, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, base::Kind::missing);
  for (const char* name :
       {"limits.memory", "limits.processes", "limits.cpus", "limits.not_required", "delegate"}) {
    EXPECT_NE(plan.error().line().find(name), std::string::npos) << plan.error().line();
  }
}

TEST(Limits, NotRequiredOnesAreSaidToBeUnheld) {
  HostFacts host = plan::testing::host();
  for (const char* gone : {"memory", "pids", "cpu"}) host.controllers.erase(gone);
  Policy policy;
  policy.limits.not_required = {"memory", "processes", "cpus"};
  const Plan plan = made(policy, host);
  EXPECT_EQ(plan.unheld, (std::vector<std::string>{"memory", "processes", "cpus"}));
  EXPECT_FALSE(plan.protections.contains(plan::Protection::process_limit));
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
  EXPECT_NE(plan::explain(plan).find("NOT HELD on this host: memory"), std::string::npos);
}

TEST(Limits, SwapThatIsNotAccountedIsALackOnlyWhereThereIsSwap) {
  HostFacts host = plan::testing::host();
  host.swap_accounting = false;
  EXPECT_EQ(settings(made(Policy{}, host), "memory"),
            (Settings{{"memory.limit_in_bytes", "2147483648"},
                      {"memory.kmem.tcp.limit_in_bytes", "536870912"}}));
  host.swap_total = 1ULL << 30;
  const auto plan = plan::make(Policy{}, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().line().find("swap accounting"), std::string::npos);
}

TEST(Limits, SocketMemoryThatIsNotAccountedIsALackOnV1) {
  HostFacts host = plan::testing::host();
  host.socket_accounting = false;
  const auto plan = plan::make(Policy{}, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().line().find("socket memory"), std::string::npos) << plan.error().line();
  Policy policy;
  policy.limits.not_required = {"memory"};
  EXPECT_EQ(made(policy, host).unheld, std::vector<std::string>{"memory"});
  HostFacts v2 = plan::testing::host_v2();
  v2.socket_accounting = false;
  EXPECT_TRUE(plan::make(Policy{}, v2, plan::testing::ask(), plan::testing::letters));
}

TEST(Limits, AFullHostIsNamedWithBothNumbers) {
  HostFacts host = plan::testing::host();
  host.state_disk_total = 100ULL << 30;
  host.state_disk_free = 8ULL << 30;  // 5 of them are kept for the host
  Policy policy;
  const auto plan = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, base::Kind::missing);
  EXPECT_NE(plan.error().line().find("3GiB"), std::string::npos) << plan.error().line();
  EXPECT_NE(plan.error().line().find("4GiB"), std::string::npos) << plan.error().line();
  policy.limits.not_required = {"disk"};
  EXPECT_EQ(made(policy, host).unheld, std::vector<std::string>{"disk"});
}

// --- What the host lacks -------------------------------------------------------------------------

struct LackCase {
  const char* name;
  std::function<void(HostFacts&)> take;
  const char* what;
  const char* remedy;
};

TEST(Lacks, EachIsNamedWithWhatWouldDo) {
  const LackCase cases[] = {
      {"capability", [](HostFacts& h) { h.capabilities.erase("sys_admin"); }, "CAP_SYS_ADMIN",
       "--cap-add"},
      {"kernel", [](HostFacts& h) { h.kernel_major = 5, h.kernel_minor = 19, h.kernel = "5.19"; },
       "5.19", "6.1"},
      {"landlock", [](HostFacts& h) { h.landlock_abi = 0; }, "Landlock", "lsm="},
      {"seccomp", [](HostFacts& h) { h.seccomp = false; }, "seccomp", "CONFIG_SECCOMP_FILTER"},
      {"nf_tables", [](HostFacts& h) { h.nf_tables = false; }, "nf_tables", "modprobe"},
      {"loop", [](HostFacts& h) { h.loop_devices = false; }, "loop devices", "/dev/loop-control"},
      {"user namespaces", [](HostFacts& h) { h.user_namespaces = false; }, "user namespaces",
       "max_user_namespaces"},
      {"time namespaces", [](HostFacts& h) { h.time_namespaces = false; }, "time namespaces",
       "CONFIG_TIME_NS"},
      {"usr", [](HostFacts& h) { h.base.erase("/usr"); }, "/usr", "distribution"},
      {"helpers", [](HostFacts& h) { h.helper_dir.clear(); }, "cerco-init", "beside cerco"},
      {"kill group",
       [](HostFacts& h) { h.controllers.erase("unified"), h.controllers.erase("freezer"); },
       "freeze and kill", "cgroup2"},
  };
  for (const auto& one : cases) {
    HostFacts host = plan::testing::host();
    one.take(host);
    const auto plan = plan::make(Policy{}, host, plan::testing::ask(), plan::testing::letters);
    ASSERT_FALSE(plan) << one.name;
    EXPECT_EQ(plan.error().kind, base::Kind::missing) << one.name;
    EXPECT_NE(plan.error().what.find(one.what), std::string::npos) << plan.error().line();
    EXPECT_NE(plan.error().expected.find(one.remedy), std::string::npos) << plan.error().line();
  }
}

TEST(Lacks, ComeInOneError) {
  HostFacts host = plan::testing::host();
  host.landlock_abi = 0;
  host.nf_tables = false;
  host.controllers.erase("memory");
  const auto plan = plan::make(Policy{}, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(plan);
  for (const char* what : {"Landlock", "nf_tables", "memory controller"}) {
    EXPECT_NE(plan.error().what.find(what), std::string::npos) << plan.error().line();
  }
}

TEST(Lacks, NamesNeedAResolver) {
  HostFacts host = plan::testing::host();
  host.resolvers.clear();
  EXPECT_TRUE(plan::make(Policy{}, host, plan::testing::ask(), plan::testing::letters));
  Policy policy;
  policy.egress = {plan::testing::rule("a", "a.test", {443})};
  const auto plan = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().line().find("network.resolvers"), std::string::npos);
  policy.network.resolvers = {"2001:db8::53", "192.0.2.1:5353", "[2001:db8::1]:54"};
  EXPECT_EQ(made(policy, host).resolvers,
            (std::vector<std::string>{"[2001:db8::53]:53", "192.0.2.1:5353", "[2001:db8::1]:54"}));
  policy.network.resolvers = {"dns.test"};
  EXPECT_FALSE(plan::make(policy, host, plan::testing::ask(), plan::testing::letters));
}

TEST(Make, AScratchRootIsALayerOverEachPartOfTheBase) {
  Policy policy;
  policy.filesystem.root = policy::RootMode::scratch;
  policy.filesystem.read_only = {"/srv/data"};
  const Plan plan = made(policy, plan::testing::storage_host());
  std::vector<std::string> layered;
  std::vector<std::string> bound;
  for (const auto& step : plan.steps) {
    if (const auto* held = std::get_if<plan::LayScratch>(&step)) layered.push_back(held->target);
    if (const auto* held = std::get_if<plan::BindReadOnly>(&step)) bound.push_back(held->target);
  }
  EXPECT_EQ(layered, (std::vector<std::string>{"/usr", "/etc/alternatives", "/etc/ld.so.cache",
                                               "/etc/ssl/certs"}));
  EXPECT_EQ(bound, std::vector<std::string>{"/srv/data"});
  EXPECT_EQ(plan::step_of<plan::MountRoot>(plan)->store, plan::Store::image);
  EXPECT_EQ(plan::step_of<plan::Landlock>(plan)->write, std::vector<std::string>{"/"});
  EXPECT_TRUE(plan.protections.contains(plan::Protection::base_as_nobody));
  EXPECT_TRUE(plan::explain(plan).contains("everything inside, /usr and /etc too"));
}

TEST(Make, AScratchRootIsRefusedWhereItCannotBe) {
  struct Row {
    const char* said;
    std::function<void(Policy&, HostFacts&)> change;
  };
  const Row rows[] = {
      {"run cerco as root", [](Policy&, HostFacts& h) { h.root = false; }},
      {"modprobe overlay", [](Policy&, HostFacts& h) { h.overlays = false; }},
      {"an outer container", [](Policy&, HostFacts& h) { h.base_stacked = true; }},
      {"in tier gvisor: not carried out yet",
       [](Policy& p, HostFacts&) { p.isolation.tier = policy::Tier::gvisor; }},
  };
  for (const auto& row : rows) {
    Policy policy;
    policy.limits.not_required = {"memory", "cpus"};
    policy.filesystem.root = policy::RootMode::scratch;
    HostFacts host = plan::testing::storage_host();
    host.runsc = "/usr/bin/runsc";
    row.change(policy, host);
    const auto plan = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
    ASSERT_FALSE(plan) << row.said;
    EXPECT_TRUE(plan.error().line().contains(row.said)) << plan.error().line();
    policy.filesystem.root = policy::RootMode::read_only;
    EXPECT_TRUE(plan::make(policy, host, plan::testing::ask(), plan::testing::letters)) << row.said;
  }
}

// `auto` passes over tiers that cannot do what the policy asks for.
TEST(Make, AutoTakesTheTierThatHasAScratchRoot) {
  Policy policy;
  HostFacts host = plan::testing::storage_host();
  host.runsc = "/usr/bin/runsc";
  host.runsc_release = "20260101.0";
  host.runsc_platform = "systrap";
  EXPECT_EQ(made(policy, host).tier, policy::Tier::gvisor);
  policy.filesystem.root = policy::RootMode::scratch;
  EXPECT_EQ(made(policy, host).tier, policy::Tier::container);
}

TEST(Make, AReservedDiskTakesAnImage) {
  Policy policy;
  policy.filesystem.reserve = true;
  const Plan plan = made(policy, plan::testing::host());
  EXPECT_EQ(plan::step_of<plan::MountDisk>(plan)->blocks, plan::Blocks::reserved);
  policy.limits.not_required = {"memory", "cpus"};
  const auto user =
      plan::make(policy, plan::testing::user_host(), plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(user);
  EXPECT_TRUE(user.error().line().contains("filesystem.reserve")) << user.error().line();
}

TEST(Make, WhatIsNotBuiltSaysSo) {
  const std::function<void(Policy&)> cases[] = {
      [](Policy& p) { p.filesystem.base = {policy::BaseKind::image, "x"}; },
      [](Policy& p) { p.filesystem.workdir = {policy::WorkdirMode::overlay, "/x"}; },
  };
  for (const auto& change : cases) {
    Policy policy;
    change(policy);
    const auto plan =
        plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().kind, base::Kind::unsupported);
    EXPECT_NE(plan.error().line().find("not carried out yet"), std::string::npos)
        << plan.error().line();
  }
}

TEST(Make, LimitsThatCannotBeAreBadInput) {  // F100
  const std::function<void(Policy&)> cases[] = {
      [](Policy& p) { p.limits.memory = 0; },
      [](Policy& p) { p.limits.processes = 0; },
      [](Policy& p) { p.limits.cpus_milli = 0; },
      [](Policy& p) { p.limits.disk = 0; },
      [](Policy& p) { p.limits.wall_ms = 0; },
      [](Policy& p) { p.limits.disk = policy::kUnlimited; },
  };
  for (const auto& change : cases) {
    Policy policy;
    change(policy);
    const auto plan =
        plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().kind, base::Kind::bad_input);
  }
}

// --- Host paths ----------------------------------------------------------------------------------

TEST(ReadOnly, PathsOfTheHostAreBound) {
  Policy policy;
  policy.filesystem.read_only = {"/srv/data/deep", "/srv/data", "/usr/share/doc", "/opt/tool",
                                 "/tmp/shared/lib"};
  const Plan plan = made(policy, plan::testing::host());
  const auto got = lines(plan);
  const auto has = [&](const char* line) { return std::ranges::find(got, line) != got.end(); };
  EXPECT_TRUE(has("bind_read_only /srv/data"));
  EXPECT_TRUE(has("make_folder /srv"));
  EXPECT_TRUE(has("bind_read_only /opt/tool"));
  EXPECT_FALSE(has("bind_read_only /srv/data/deep")) << "it came in with /srv/data";
  EXPECT_FALSE(has("bind_read_only /usr/share/doc")) << "it came in with /usr";
  // On the working disk, so only after it.
  EXPECT_LT(std::ranges::find(
                got, "mount_disk 4GiB and 400000 inodes at /home/agent /tmp /var/tmp /workspace"),
            std::ranges::find(got, "bind_read_only /tmp/shared/lib"));
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
}

TEST(ReadOnly, WhatWouldOpenTheHostIsRefused) {  // E85 F67 F68
  for (const char* path : {"/",
                           "relative",
                           "/a/../b",
                           "/a//b",
                           "/a/./b",
                           "/a/",
                           "",
                           "/proc",
                           "/proc/1/root",
                           "/sys",
                           "/dev/sda",
                           "/run",
                           "/run/docker.sock",
                           "/var/run/docker.sock",
                           "/var/lib/cerco",
                           "/var/lib/cerco/keys",
                           "/var/lib",
                           "/var",
                           "/home",
                           "/tmp",
                           "/workspace",
                           "/home/agent",
                           "/etc",
                           "/etc/shadow",
                           "/etc/ssl/private",
                           "/etc/ssl",
                           "/etc/passwd",
                           "/etc/resolv.conf",
                           "/a\nb"}) {
    Policy policy;
    policy.filesystem.read_only = {path};
    const auto plan =
        plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters);
    ASSERT_FALSE(plan) << path;
    EXPECT_EQ(plan.error().kind, base::Kind::bad_input) << path;
    EXPECT_EQ(plan.error().where, "filesystem.read_only") << path;
  }
}

// --- Environment
// -----------------------------------------------------------------------------------

TEST(Environment, IsWhatTheContractSaysAndNothingOfTheCaller) {  // F31
  const Plan plan = made(Policy{}, plan::testing::host());
  const std::map<std::string, std::string> expected = {
      {"CERCO_RUN", plan.run},
      {"HOME", "/home/agent"},
      {"LANG", "C.UTF-8"},
      {"LOGNAME", "agent"},
      {"NPM_CONFIG_PREFIX", "/home/agent/.local"},
      {"PATH", "/home/agent/.local/bin:/usr/local/bin:/usr/bin:/bin"},
      {"SHELL", "/bin/sh"},
      {"TMPDIR", "/tmp"},
      {"USER", "agent"}};
  EXPECT_EQ(plan.command.env, expected);
}

TEST(Environment, SetAndPassComeInByName) {
  Policy policy;
  policy.environment.set = {{"MODE", "fast"}, {"LANG", "de_DE.UTF-8"}};
  policy.environment.pass = {"EDITOR", "NOT_SET"};
  plan::Ask ask = plan::testing::ask();
  ask.caller_env = {{"EDITOR", "vi"}, {"OTHER", "no"}};
  const auto plan = plan::make(policy, plan::testing::host(), ask, plan::testing::letters);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->command.env.at("MODE"), "fast");
  EXPECT_EQ(plan->command.env.at("LANG"), "de_DE.UTF-8");
  EXPECT_EQ(plan->command.env.at("EDITOR"), "vi");
  EXPECT_FALSE(plan->command.env.contains("NOT_SET"));
  EXPECT_FALSE(plan->command.env.contains("OTHER"));
}

TEST(Environment, MalformedAndReservedNamesAreRefused) {
  for (const char* name : {"", "A=B", "1A", "A B", "A-B", "CERCO_RUN"}) {
    Policy policy;
    policy.environment.set = {{name, "x"}};
    EXPECT_FALSE(
        plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters))
        << name;
  }
  Policy policy;
  policy.environment.set = {{"A", std::string("x\0y", 3)}};
  EXPECT_FALSE(
      plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters));
}

TEST(Placeholders, StandInTheEnvironmentForEachField) {
  const Plan plan = made(plan::testing::full_policy(), plan::testing::host());
  ASSERT_EQ(plan.placeholders.size(), 1U);
  const std::string& value = plan.placeholders[0].value;
  EXPECT_TRUE(value.starts_with("cerco_ph_"));
  EXPECT_EQ(value.size(), 9U + 26U);
  EXPECT_EQ(plan.command.env.at("API_KEY"), value);
}

// Programs look at the shape of a key; all have 128 random bits or more.
TEST(Placeholders, AreShapedByTheirVariable) {
  Policy policy = plan::testing::full_policy();
  const std::vector<std::tuple<std::string, std::string, std::size_t>> rows = {
      {"GITHUB_TOKEN", "ghp_aaaaa", 40},
      {"OPENAI_API_KEY", "sk-aaaaa", 51},
      {"AWS_ACCESS_KEY_ID", "AKIAAAAAA", 30},
      {"SOME_KEY", "cerco_ph_aaaaa", 35},
  };
  for (const auto& [variable, start, size] : rows) {
    policy.credentials[0].env = {{variable, "secret"}};
    const auto plan =
        plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters);
    ASSERT_TRUE(plan) << variable;
    const std::string& value = plan->command.env.at(variable);
    EXPECT_TRUE(value.starts_with(start)) << value;
    EXPECT_EQ(value.size(), size) << value;
    EXPECT_TRUE(plan::verify(*plan)) << plan::verify(*plan).error().line();
  }
  for (const plan::PlaceholderShape& shape : plan::placeholder_shapes()) {
    EXPECT_GE(shape.random * 5, 128U) << shape.prefix;
  }
}

TEST(Placeholders, AVariableHasOneSource) {
  Policy policy = plan::testing::full_policy();
  policy.environment.set = {{"API_KEY", "x"}};
  EXPECT_FALSE(
      plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters));
  policy.environment.set.clear();
  policy.credentials.push_back(plan::testing::credential("second", "api.test"));
  EXPECT_FALSE(
      plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters));
}

// --- Network -----------------------------------------------------------------------------------

TEST(Capture, SteersOnlyWhatSomeRuleCouldAllow) {
  Policy policy = plan::testing::full_policy();
  policy.egress.push_back(plan::testing::rule("plain", "web.test", {80, 8080}));
  policy::Egress named;
  named.tcp = "db.test:5433";
  policy::Egress six;
  six.tcp = "[2001:db8::1]:22";
  policy::Egress range;
  range.cidr = "203.0.113.0/24";
  range.ports = {8443};
  for (const auto& more : {named, six, range}) policy.egress.push_back(more);
  const auto capture = the_step<plan::Capture>(made(policy, plan::testing::host()));
  const std::vector<plan::Steered> expected = {{"198.19.0.0/16", {80, 443, 5433, 8080}},
                                               {"fd63:6572:636f:1::/64", {80, 443, 5433, 8080}},
                                               {"10.2.3.4/32", {5432}},
                                               {"2001:db8::1/128", {22}},
                                               {"203.0.113.0/24", {8443}},
                                               {"198.18.0.1/32", {3128}}};  // the explicit proxy
  EXPECT_EQ(capture.steered, expected);
}

TEST(Capture, SteersNothingWithoutRules) {  // F32
  EXPECT_TRUE(the_step<plan::Capture>(made(Policy{}, plan::testing::host())).steered.empty());
}

// F13: everything that the guard lets pass goes to the gateway, and what no rule could open stays
// with the kernel.
TEST(Capture, PublicSteersEveryPublicAddress) {
  for (const bool audit : {false, true}) {
    Policy policy;
    if (audit) {
      policy.network.mode = policy::NetworkMode::audit;
    } else {
      policy.network.fallback = policy::NetworkDefault::open_public;
    }
    policy.egress = {plan::testing::rule("tunnel", "a.test", {443})};
    policy.egress.push_back({.name = "lab", .cidr = "10.9.0.0/16", .ports = {8000}});
    const plan::Capture capture = plan::capture_for(policy);
    EXPECT_TRUE(capture.steer_public);
    const std::vector<plan::Steered> steered = {{"198.19.0.0/16", {}},
                                                {"fd63:6572:636f:1::/64", {}},
                                                {"10.9.0.0/16", {8000}},
                                                {"198.18.0.1/32", {3128}}};  // the explicit proxy
    EXPECT_EQ(capture.steered, steered);
    EXPECT_TRUE(plan::resolves_names(policy));
  }
  EXPECT_FALSE(plan::capture_for(Policy{}).steer_public);
}

void change(Plan& plan, const std::function<void(plan::Capture&)>& how) {
  for (plan::Step& step : plan.steps) {
    if (auto* capture = std::get_if<plan::Capture>(&step)) how(*capture);
  }
}

TEST(Capture, PublicMayNotBeTakenFromAPlanNorPutIntoOne) {
  Policy policy;
  policy.network.fallback = policy::NetworkDefault::open_public;
  Plan plan = made(policy, plan::testing::host());
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
  change(plan, [](plan::Capture& step) { step.steer_public = false; });
  EXPECT_FALSE(plan::verify(plan));
  plan = made(Policy{}, plan::testing::host());
  change(plan, [](plan::Capture& step) { step.steer_public = true; });
  EXPECT_FALSE(plan::verify(plan));
}

TEST(Terminates, WhereARuleLooksIntoTlsOrACredentialGoesOut) {
  const auto terminates = [](const Policy& policy) {
    return made(policy, plan::testing::host()).terminates;
  };
  Policy policy;
  policy.egress = {plan::testing::rule("tunnel", "a.test", {443})};
  EXPECT_FALSE(terminates(policy));
  policy.egress = {plan::testing::inspected("look", "a.test", {"GET"}, {})};
  EXPECT_TRUE(terminates(policy));
  policy.egress[0].ports = {80};
  EXPECT_FALSE(terminates(policy)) << "plain HTTP needs no authority";
  policy.egress = {plan::testing::rule("tunnel", "a.test", {443})};
  policy.credentials = {plan::testing::credential("c", "a.test")};
  EXPECT_TRUE(terminates(policy));
  policy.egress = {plan::testing::inspected("host", std::string(policy::kHostName), {"GET"}, {})};
  policy.egress[0].ports = {8080};
  policy.credentials = {plan::testing::credential("c", std::string(policy::kHostName))};
  EXPECT_FALSE(terminates(policy)) << "the host's own services are reached in the clear";
}

TEST(Terminates, TrustIsThereOnlyThen) {  // F36
  const Plan without = made(Policy{}, plan::testing::host());
  EXPECT_FALSE(without.command.env.contains("SSL_CERT_FILE"));
  const Plan with = made(plan::testing::full_policy(), plan::testing::host());
  EXPECT_EQ(with.command.env.at("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt");
  EXPECT_EQ(with.command.env.at("NODE_EXTRA_CA_CERTS"), "/etc/ssl/certs/ca-certificates.crt");
  EXPECT_EQ(the_step<plan::TrustBundle>(with).targets.front(),
            "/etc/ssl/certs/ca-certificates.crt");
  EXPECT_TRUE(plan::verify(with)) << plan::verify(with).error().line();
  HostFacts bare = plan::testing::host();
  bare.etc_binds.erase("/etc/ssl/certs");
  const auto got = lines(made(plan::testing::full_policy(), bare));
  EXPECT_NE(std::ranges::find(got, "make_folder /etc/ssl/certs"), got.end());
}

// --- Advice ------------------------------------------------------------------------------------

TEST(Advice, FollowsCodeAndSecrets) {
  struct Row {
    policy::Code code;
    bool secrets;
    policy::Tier advised;
  };
  for (const Row& row : {Row{policy::Code::tools_only, false, policy::Tier::container},
                         Row{policy::Code::reviewed, false, policy::Tier::container},
                         Row{policy::Code::tools_only, true, policy::Tier::gvisor},
                         Row{policy::Code::reviewed, true, policy::Tier::gvisor},
                         Row{policy::Code::unreviewed, false, policy::Tier::gvisor},
                         Row{policy::Code::unreviewed, true, policy::Tier::microvm}}) {
    Policy policy = row.secrets ? plan::testing::full_policy() : Policy{};
    policy.code = row.code;
    EXPECT_EQ(plan::advised_tier(policy), row.advised);
    EXPECT_EQ(made(policy, plan::testing::host()).below_advice.empty(),
              row.advised == policy::Tier::container);
  }
}

TEST(Advice, ARiskThatIsAcceptedIsStillRecorded) {
  Policy policy;
  Plan plan = made(policy, plan::testing::host());
  ASSERT_EQ(plan.below_advice.size(), 1U);
  EXPECT_TRUE(plan.below_advice[0].starts_with("shared-kernel: ")) << plan.below_advice[0];
  EXPECT_EQ(plan::not_accepted(plan), plan.below_advice);
  policy.isolation.accept = {"shared-kernel"};
  plan = made(policy, plan::testing::host());
  EXPECT_EQ(plan.below_advice.size(), 1U);
  EXPECT_TRUE(plan::not_accepted(plan).empty());
}

}  // namespace
