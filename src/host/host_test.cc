// The readers of /proc and /etc text, and one gathering on the host that runs the tests.
#include "host/host.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "os/os.h"

namespace {

using host::Hierarchy;
using plan::CgroupKind;

bool forbid_namespaces() {
  const base::Fd file(::open("/proc/sys/user/max_user_namespaces", O_WRONLY));
  return file.open() && ::write(file.get(), "0", 1) == 1;
}

constexpr const char* kHybridGroups =
    "9:name=systemd:/\n"
    "8:pids:/\n"
    "4:memory:/outer/box\n"
    "2:cpu,cpuacct:/\n"
    "0::/\n";
constexpr const char* kHybridMounts =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids ro,relatime shared:7 - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(Hierarchies, HybridHost) {
  const std::vector<Hierarchy> expected = {
      {CgroupKind::v1,
       {"cpu", "cpuacct"},
       "/sys/fs/cgroup/cpu,cpuacct",
       "/sys/fs/cgroup/cpu,cpuacct",
       false},
      {CgroupKind::v1,
       {"memory"},
       "/sys/fs/cgroup/memory",
       "/sys/fs/cgroup/memory/outer/box",
       false},
      {CgroupKind::v1, {"pids"}, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids", true},
      {CgroupKind::v2, {}, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified", false},
  };
  EXPECT_EQ(host::hierarchies(kHybridGroups, kHybridMounts), expected);
}

TEST(Hierarchies, PureV2) {
  const auto found =
      host::hierarchies("0::/user.slice/user-0.slice/session-1.scope\n",
                        "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - "
                        "cgroup2 cgroup2 rw,nsdelegate\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, CgroupKind::v2);
  EXPECT_EQ(found[0].own, "/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope");
  EXPECT_EQ(found[0].mount, "/sys/fs/cgroup");
}

// Without a cgroup namespace a container sees the host's path, and a mount that starts at its own
// group.
TEST(Hierarchies, NestedContainerWithoutCgroupNamespace) {
  const auto found = host::hierarchies(
      "4:memory:/docker/0123\n0::/docker/0123/inner\n",
      "700 600 0:30 /docker/0123 /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n"
      "701 600 0:31 /docker/0123 /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup rw\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].own, "/sys/fs/cgroup/memory");
  EXPECT_TRUE(found[0].read_only);
  EXPECT_EQ(found[1].own, "/sys/fs/cgroup/unified/inner");
}

// A group outside of what the mount shows has no folder of its own there.
TEST(Hierarchies, GroupsOutsideOfTheMountAreItsTop) {
  for (const char* group : {"0::/docker/01234\n", "0::/../other\n", "0::/\n"}) {
    const auto found =
        host::hierarchies(group, "1 2 0:3 /docker/0123 /cg rw - cgroup2 cgroup2 rw\n");
    ASSERT_EQ(found.size(), 1U) << group;
    EXPECT_EQ(found[0].own, "/cg") << group;
  }
  const auto above =
      host::hierarchies("0::/../..\n", "1 2 0:3 /../.. /cg rw - cgroup2 cgroup2 rw\n");
  ASSERT_EQ(above.size(), 1U);
  EXPECT_EQ(above[0].own, "/cg");
}

TEST(Hierarchies, TheFirstMountOfAHierarchyCounts) {
  const auto found = host::hierarchies("0::/a\n",
                                       "1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n"
                                       "4 2 0:3 / /other rw - cgroup2 cgroup2 rw\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].own, "/cg/a");
}

TEST(Hierarchies, NamesWithSpacesAreUnescaped) {
  const auto found =
      host::hierarchies("0::/\n", "1 2 0:3 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].mount, "/my groups");
}

TEST(Hierarchies, NoiseIsPassedOver) {
  for (const char* mounts :
       {"", "\n\n", "- cgroup2", "1 2 3 - cgroup2 cgroup2 rw", " - cgroup - cgroup",
        "1 2 0:3 / /x rw - cgroup", "1 2 0:3 / /x rw shared:1 - tmpfs cgroup rw"}) {
    EXPECT_TRUE(host::hierarchies("0::/\n", mounts).empty()) << mounts;
  }
  for (const char* groups : {"", "x", ":", "::", "0:", "1:name=systemd:/\n", "0::relative\n"}) {
    EXPECT_TRUE(host::hierarchies(groups, kHybridMounts).empty()) << groups;
  }
}

TEST(Capabilities, AreReadByBit) {
  EXPECT_TRUE(host::capabilities("CapEff:\t0000000000000000\n").empty());
  EXPECT_EQ(host::capabilities("Name:\tx\nCapPrm:\tffffffff\nCapEff:\t0000000000201001\n"),
            (std::set<std::string>{"chown", "net_admin", "sys_admin"}));
  EXPECT_EQ(host::capabilities("CapEff:\t000001ffffffffff\n").size(), 41U);
  EXPECT_EQ(host::capabilities("CapEff:\t8000000000000000\n"), std::set<std::string>{"cap_63"});
  for (const char* bad : {"", "CapEff:", "CapEff:\txyz", "CapEff:\t1 2", "CapEff:\t0x1"}) {
    EXPECT_TRUE(host::capabilities(bad).empty()) << bad;
  }
}

TEST(KernelVersion, IsTwoNumbers) {
  EXPECT_EQ(host::kernel_version("6.1.0-13-amd64"), std::pair(6U, 1U));
  EXPECT_EQ(host::kernel_version("6.18.44-fc-v669"), std::pair(6U, 18U));
  EXPECT_EQ(host::kernel_version("10.0"), std::pair(10U, 0U));
  for (const char* bad : {"", "6", "6.", "x.y", ".1", "-6.1"}) {
    EXPECT_EQ(host::kernel_version(bad), std::pair(0U, 0U)) << bad;
  }
}

TEST(Nameservers, AreTheLinesThatSaySo) {
  EXPECT_EQ(
      host::nameservers(
          "# nameserver 1.1.1.1\nsearch x\nnameserver 192.0.2.1\n\tnameserver\t2001:db8::1 \r\n"
          ";nameserver 9.9.9.9\nnameserver\nnameservers 8.8.8.8\nnameserver fe80::1%eth0"),
      (std::vector<std::string>{"192.0.2.1", "2001:db8::1", "fe80::1%eth0"}));
}

// Folders that look like groups.
class Groups {
 public:
  Groups() {
    std::string name = "/tmp/cerco-groups-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    top = name;
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups() { std::filesystem::remove_all(top); }
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(top + path).parent_path());
    std::ofstream(top + path) << text;
  }
  [[nodiscard]] std::string path_of(const plan::HostFacts& facts,
                                    const std::string& controller) const {
    const auto found = facts.controllers.find(controller);
    if (found == facts.controllers.end()) return "none";
    return found->second.path.substr(top.size()) +
           (found->second.kind == CgroupKind::v1 ? " v1" : " v2");
  }
  [[nodiscard]] plan::HostFacts find(const std::vector<Hierarchy>& all) const {
    plan::HostFacts facts;
    facts.size.memory = 8ULL << 30;
    host::find_controllers(all, facts);
    return facts;
  }
  [[nodiscard]] Hierarchy v2(const std::string& own) const {
    return {CgroupKind::v2, {}, top, top + own, false};
  }
  std::string top;
};

TEST(Controllers, V2ComeFromTheNearestGroupThatHandsThemDown) {
  const Groups groups;
  groups.file("/cgroup.controllers", "cpuset cpu io memory pids\n");
  groups.file("/system.slice/cgroup.type", "domain\n");
  groups.file("/system.slice/cgroup.subtree_control", "cpu memory pids\n");
  groups.file("/system.slice/memory.max", "4294967296\n");
  groups.file("/system.slice/memory.swap.max", "max\n");
  groups.file("/system.slice/a.service/cgroup.type", "domain\n");
  groups.file("/system.slice/a.service/cgroup.subtree_control", "\n");
  groups.file("/system.slice/a.service/memory.max", "1073741824\n");
  const auto facts = groups.find({groups.v2("/system.slice/a.service")});
  for (const char* name : {"memory", "pids", "cpu", "unified"}) {
    EXPECT_EQ(groups.path_of(facts, name), "/system.slice v2") << name;
  }
  EXPECT_TRUE(facts.swap_accounting);
  EXPECT_EQ(facts.size.memory, 1ULL << 30) << "the caller's own group is the outer boundary";
}

TEST(Controllers, TheTrueRootOfV2GivesWhatItHas) {
  const Groups groups;
  groups.file("/cgroup.controllers", "cpu memory pids\n");
  groups.file("/cgroup.subtree_control", "\n");
  const auto facts = groups.find({groups.v2("")});
  EXPECT_EQ(groups.path_of(facts, "memory"), " v2");
  EXPECT_TRUE(facts.swap_accounting);
}

// The root that a container sees has processes and hands nothing down: only killing works there.
TEST(Controllers, ARootThatIsNoneIsNotToldAnything) {
  const Groups groups;
  groups.file("/cgroup.type", "domain\n");
  groups.file("/cgroup.controllers", "cpu memory pids\n");
  groups.file("/cgroup.subtree_control", "\n");
  const auto facts = groups.find({groups.v2("")});
  EXPECT_EQ(groups.path_of(facts, "memory"), "none");
  EXPECT_EQ(groups.path_of(facts, "unified"), " v2");
}

TEST(Controllers, OnlyWhatTheFolderHandsDownIsClaimed) {
  const Groups groups;
  groups.file("/cgroup.type", "domain\n");
  groups.file("/cgroup.subtree_control", "pids\n");
  groups.file("/a/cgroup.type", "domain\n");
  groups.file("/a/cgroup.subtree_control", "memory\n");
  const auto facts = groups.find({groups.v2("/a")});
  EXPECT_EQ(groups.path_of(facts, "memory"), "/a v2");
  EXPECT_EQ(groups.path_of(facts, "unified"), "/a v2");
  EXPECT_EQ(groups.path_of(facts, "pids"), "none");
}

TEST(Controllers, V1HasThemBelowTheOwnGroupAndV2TheRest) {
  const Groups groups;
  groups.file("/memory/box/memory.limit_in_bytes", "536870912\n");
  groups.file("/memory/box/memory.memsw.limit_in_bytes", "1\n");
  groups.file("/memory/box/memory.kmem.tcp.limit_in_bytes", "1\n");
  groups.file("/v2/cgroup.controllers", "pids cpu\n");
  const auto facts = groups.find({
      {CgroupKind::v1, {"memory"}, groups.top + "/memory", groups.top + "/memory/box", false},
      {CgroupKind::v1, {"cpu", "cpuacct"}, groups.top + "/cpu", groups.top + "/cpu", true},
      {CgroupKind::v2, {}, groups.top + "/v2", groups.top + "/v2", false},
  });
  EXPECT_EQ(groups.path_of(facts, "memory"), "/memory/box v1");
  EXPECT_EQ(groups.path_of(facts, "cpu"), "/v2 v2") << "the v1 mount is read-only";
  EXPECT_EQ(groups.path_of(facts, "pids"), "/v2 v2");
  EXPECT_TRUE(facts.swap_accounting);
  EXPECT_TRUE(facts.socket_accounting);
  EXPECT_EQ(facts.size.memory, 512ULL << 20);
}

TEST(Gather, FindsWhatThisHostHas) {
  const auto facts = host::gather(
      {.ssl_cert_file = "", .state_dir = "/var/lib/cerco/not-there", .helper_dir = "/x"});
  ASSERT_TRUE(facts) << facts.error().line();
  EXPECT_GE(facts->kernel_major, 5U);
  EXPECT_GE(facts->size.cpus_milli, 1000U);
  EXPECT_GT(facts->size.memory, 0U);
  EXPECT_GT(facts->state_disk_total, 0U);
  EXPECT_LE(facts->state_disk_free, facts->state_disk_total);
  EXPECT_EQ(facts->state_dir, "/var/lib/cerco/not-there");
  EXPECT_EQ(facts->base.at("/usr"), "dir");
  for (const auto& [name, controller] : facts->controllers) {
    EXPECT_TRUE(controller.path.starts_with('/')) << name;
    EXPECT_FALSE(controller.path.ends_with('/')) << name;
  }
  for (const auto& [target, source] : facts->etc_binds) {
    EXPECT_TRUE(plan::is_curated_etc(target)) << target;
    EXPECT_TRUE(source.starts_with('/')) << source;
  }
}

// F60: only trying tells what an ordinary user may; as root nothing is tried.
TEST(Gather, AnOrdinaryUserIsToldWhatIsRefused) {
  if (os::effective_uid() != 0) GTEST_SKIP() << "takes root, to be another user";
  const auto refused = [](bool limited) {
    auto child = os::fork_child({}, [limited] {
      // The limit of a namespace holds for all that are made in it.
      if (limited && (::unshare(CLONE_NEWUSER) != 0 || !forbid_namespaces())) return 99;
      if (!limited && ::setresuid(4321, 4321, 4321) != 0) return 98;
      const auto facts = host::gather({"", "/tmp/none", "/tmp"});
      return facts ? static_cast<int>(facts->refused) + (facts->user_namespaces ? 10 : 0) : 97;
    });
    if (!child) return -1;
    const auto status = child->wait();
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -2;
  };
  EXPECT_EQ(refused(true), static_cast<int>(plan::Refused::user_namespace));
  EXPECT_EQ(refused(false), 10 + static_cast<int>(plan::Refused::nothing));
}

TEST(Gather, ARootsFileThatIsNotThereIsAnError) {
  const auto facts = host::gather(
      {.ssl_cert_file = "/not/there.pem", .state_dir = "/var/lib/cerco", .helper_dir = ""});
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().kind, base::Kind::bad_input);
}

TEST(Runsc, ThePlatformIsTheBestThatItsFlagsName) {
  const char* old =
      "  -pcap-log string\n    \tlocation\n  -platform string\n    \tspecifies which platform to "
      "use: ptrace (default), kvm. (default \"ptrace\")\n  -platform_device_path string\n    "
      "\tsystrap\n";
  const char* current =
      "  -platform string\n    \tspecifies which platform to use: systrap (default), ptrace, "
      "kvm.\n";
  EXPECT_EQ(host::platform_in(old), "ptrace");
  EXPECT_EQ(host::platform_in(current), "systrap");
  EXPECT_EQ(host::platform_in("  -platform string\n    \tkvm\n"), "");
  EXPECT_EQ(host::platform_in(""), "");
}

TEST(Runsc, TheReleaseIsWhatItsVersionSays) {
  EXPECT_EQ(host::release_in("runsc version 0.0~20221219.0\nspec: 1.0.2-dev\n"), "0.0~20221219.0");
  EXPECT_EQ(host::release_in("something else"), "unknown");
}

TEST(Runsc, IsAskedOnceAsLongAsItIsTheSame) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("runsc-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  plan::HostFacts facts;
  facts.state_dir = folder;
  facts.runsc = folder / "runsc";
  const auto put = [&](const std::string& release) {
    std::ofstream(facts.runsc) << "#!/bin/sh\necho x >> " << folder / "asked"
                               << "\ncase $1 in flags) echo '  -platform string'; echo systrap;; "
                               << "*) echo runsc version " << release << ";; esac\n";
    std::filesystem::permissions(facts.runsc, std::filesystem::perms::owner_all);
  };
  const auto asked = [&] { return std::filesystem::file_size(folder / "asked") / 2; };
  put("one");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(host::ask_runsc(facts));
    EXPECT_EQ(facts.runsc_platform + facts.runsc_release, "systrapone");
  }
  EXPECT_EQ(asked(), 2U) << "its flags and its version";
  put("another");
  ASSERT_TRUE(host::ask_runsc(facts));
  EXPECT_EQ(facts.runsc_release, "another");
  EXPECT_EQ(asked(), 4U);
  std::filesystem::remove_all(folder);
}

TEST(Runsc, WhoDoesNotAnswerIsAnError) {
  plan::HostFacts facts;
  EXPECT_TRUE(host::ask_runsc(facts));  // none there: nothing to ask
  facts.runsc = "/bin/true";
  EXPECT_FALSE(host::ask_runsc(facts));
  facts.runsc = "/not/there";
  EXPECT_FALSE(host::ask_runsc(facts));
}

}  // namespace
