// Mounts, and paths within the tree that is built: E11, E16, E28 of the escape cases.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>

#include "priv/testing.h"

namespace {

using priv::testing::badge;
using priv::testing::inside;
using priv::testing::shell;

// A tmpfs over /mnt of a mount namespace of its own.
base::Result<base::Fd> new_root(const priv::Inside& in) {
  TRY(priv::make_private(badge(), in));
  base::Fd root = TRY(priv::new_mount(badge(), "tmpfs", {{"size", "1048576"}}, priv::kNoSuid));
  const base::Fd place = TRY(os::open("/", O_PATH, 0));
  TRY(priv::attach(badge(), in, root.get(), place.get()));
  return root;
}

TEST(Mount, KindsThatAreNotOnTheListAreRefused) {
  for (const char* kind : {"fuse", "cgroup2", "devtmpfs", "sysfs", "xfs"}) {
    const auto made = priv::new_mount(badge(), kind, {}, 0);
    ASSERT_FALSE(made) << kind;
    EXPECT_EQ(made.error().number, EPERM);
  }
}

TEST(Mount, NothingIsAttachedWithoutAMountNamespace) {
  EXPECT_EQ(inside(0,
                   [](const priv::Inside& in) -> base::Result<std::string> {
                     const base::Fd made = TRY(priv::new_mount(badge(), "tmpfs", {}, 0));
                     const base::Fd place = TRY(os::open("/mnt", O_PATH, 0));
                     const auto attached = priv::attach(badge(), in, made.get(), place.get());
                     const auto pivoted = priv::pivot_root(badge(), in, made.get());
                     const auto isolated = priv::make_private(badge(), in);
                     const auto detached = priv::detach(badge(), in, place.get(), ".");
                     return !attached && !pivoted && !isolated && !detached ? "refused" : "done";
                   }),
            "refused");
}

// E11: whatever links a tree holds, paths resolve within it, and through no magic link.
TEST(Tree, E11LinksLeadNowhereOutside) {
  EXPECT_EQ(inside(CLONE_NEWNS,
                   [](const priv::Inside& in) -> base::Result<std::string> {
                     const base::Fd root = TRY(new_root(in));
                     const int at = root.get();
                     TRY(priv::make_folder(badge(), in, at, "/proc", 0755, 0));
                     TRY(priv::make_link(badge(), in, at, "/up", "../../../../etc", 0));
                     TRY(priv::make_link(badge(), in, at, "/host", "/etc", 0));
                     const base::Fd proc = TRY(priv::new_mount(badge(), "proc", {}, 0));
                     const base::Fd place = TRY(priv::find_in(at, "/proc"));
                     TRY(priv::attach(badge(), in, proc.get(), place.get()));
                     TRY(priv::make_link(badge(), in, at, "/magic", "/proc/self/root", 0));
                     std::string said;
                     for (const char* path :
                          {"/up/passwd", "/host/passwd", "/magic/etc/passwd", "/up/new", "/../x/y",
                           "/proc/self/root/etc/passwd", "/proc/self/cwd", "/a/..", "/"}) {
                       const auto written = priv::write_file(badge(), in, at, path, "x", 0644, 0);
                       said += written ? "written " : std::to_string(written.error().number) + " ";
                     }
                     return said;
                   }),
            "2 2 40 2 2 40 17 22 22 ");
}

// E16: loops and names that are too long end in an error.
TEST(Tree, E16LoopsAndLongNamesAreErrors) {
  EXPECT_EQ(inside(CLONE_NEWNS,
                   [](const priv::Inside& in) -> base::Result<std::string> {
                     const base::Fd root = TRY(new_root(in));
                     TRY(priv::make_link(badge(), in, root.get(), "/a", "b", 0));
                     TRY(priv::make_link(badge(), in, root.get(), "/b", "a", 0));
                     const std::string name = "/" + std::string(256, 'n');
                     const std::string path = std::string(5000, '/') + "x/y";
                     std::string said;
                     for (const std::string& each : {std::string("/a/x"), name, path}) {
                       const auto made =
                           priv::make_folder(badge(), in, root.get(), each.c_str(), 0755, 0);
                       said += made ? "made " : std::to_string(made.error().number) + " ";
                     }
                     return said;
                   }),
            "40 36 36 ");
}

TEST(Tree, FilesAreNeverReplacedAndBelongToTheirOwner) {
  EXPECT_EQ(
      inside(CLONE_NEWNS,
             [](const priv::Inside& in) -> base::Result<std::string> {
               const base::Fd root = TRY(new_root(in));
               TRY(priv::write_file(badge(), in, root.get(), "/f", "one", 0640, 77));
               const auto again = priv::write_file(badge(), in, root.get(), "/f", "two", 0640, 77);
               const auto device = priv::make_device(badge(), in, root.get(), "/sda", 8, 0, 0);
               const base::Fd file = TRY(os::openat2(root.get(), "f", O_RDONLY, 0, 0));
               const struct stat status = TRY(os::fstat(file.get(), "f"));
               return TRY(os::read_all(file.get(), 100, "f")) + " " +
                      std::to_string(status.st_uid) + " " + std::to_string(again.error().number) +
                      " " + std::to_string(device.error().number);
             }),
      "one 77 17 1");
}

// E28: what was made read-only is, below mounts too, and the original is as it was.
TEST(Mount, E28ReadOnlyHoldsForTheWholeTree) {
  const priv::testing::TempFolder folder;
  EXPECT_EQ(
      inside(CLONE_NEWNS,
             [&](const priv::Inside& in) -> base::Result<std::string> {
               TRY(priv::make_private(badge(), in));
               const std::string& base = folder.path();
               TRY(shell("mkdir " + base + "/below; mount -t tmpfs none " + base + "/below"));
               const base::Fd source = TRY(os::open(base, O_PATH, 0));
               const base::Fd tree =
                   TRY(priv::clone_tree(badge(), in, source.get(), "", priv::Depth::whole));
               TRY(priv::set_attributes(badge(), in, tree.get(), priv::kReadOnly,
                                        priv::Depth::whole));
               const base::Fd mnt = TRY(os::open("/mnt", O_PATH, 0));
               TRY(priv::attach(badge(), in, tree.get(), mnt.get()));
               return shell("touch /mnt/x || echo held; touch /mnt/below/x || echo held; touch " +
                            base + "/x && touch " + base + "/below/x && echo written");
             }),
      "touch: cannot touch '/mnt/x': Read-only file system\nheld\n"
      "touch: cannot touch '/mnt/below/x': Read-only file system\nheld\nwritten\n");
}

TEST(Namespaces, FlagsBeyondTheListAndMapsOfTheHostsUidsAreRefused) {
  EXPECT_FALSE(priv::clone_process(badge(), CLONE_VM, 0, -1));
  EXPECT_FALSE(priv::clone_process(badge(), 0, CLONE_UNTRACED, -1));
  for (const std::uint32_t first : {0U, 1000U, priv::kFirstLease - 1}) {
    const auto written = priv::write_user_maps(badge(), ::getpid(), first, 65536);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().number, ERANGE);
  }
  EXPECT_FALSE(priv::write_user_maps(badge(), ::getpid(), priv::kFirstLease, 65537));
  EXPECT_FALSE(priv::leave_user_namespace(badge(), 0));
  EXPECT_FALSE(priv::leave_user_namespace(badge(), priv::kFirstLease - 1));
}

TEST(Namespaces, NamesAndClocksAreTheirOwn) {
  EXPECT_EQ(inside(CLONE_NEWUTS,
                   [](const priv::Inside& in) -> base::Result<std::string> {
                     TRY(priv::set_hostname(badge(), in, "sandbox"));
                     return shell("hostname; cat /proc/sys/kernel/domainname");
                   }),
            "sandbox\n\n");
  EXPECT_EQ(inside(0,
                   [](const priv::Inside& in) -> base::Result<std::string> {
                     const auto set = priv::set_hostname(badge(), in, "sandbox");
                     return set ? "set" : "refused";
                   }),
            "refused");
  EXPECT_EQ(inside(0,
                   [](const priv::Inside&) -> base::Result<std::string> {
                     TRY(priv::restart_clocks_for_children(badge()));
                     return shell("test $(cut -d. -f1 /proc/uptime) -lt 30 && echo young");
                   }),
            "young\n");
}

}  // namespace
