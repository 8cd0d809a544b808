// The user namespace of an ordinary user: what is mapped into it, and who may not make one.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "priv/testing.h"

namespace {

using priv::testing::badge;

// What `body` says in a child that is the user 4321.
std::string as_user(const std::function<base::Result<std::string>()>& body) {
  return priv::testing::inside(0, [&](const priv::Inside&) -> base::Result<std::string> {
    if (::setresgid(4321, 4321, 4321) != 0 || ::setresuid(4321, 4321, 4321) != 0) {
      return base::system_error("become the user");
    }
    return body();
  });
}

// What `body` says in a process of the user's in a namespace of its own.
std::string in_own_space(const std::function<base::Result<std::string>(priv::Ids)>& body) {
  return as_user([&]() -> base::Result<std::string> {
    const priv::Ids ids = priv::own_ids();
    auto pipe = TRY(os::pipe());
    const priv::Cloned cloned = TRY(priv::clone_into_own_space(badge(), -1));
    if (cloned.pid == 0) {
      const auto text = body(ids);
      (void)os::write_all(pipe.second.get(), text ? *text : text.error().line(), "pipe");
      ::_exit(0);
    }
    pipe.second.reset();
    std::string text = TRY(os::read_all(pipe.first.get(), 4096, "pipe"));
    ::waitpid(cloned.pid, nullptr, 0);
    return text;
  });
}

class OwnSpace : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "takes root, to be two users";
  }
};

TEST_F(OwnSpace, RootMakesNone) {
  const auto cloned = priv::clone_into_own_space(badge(), -1);
  ASSERT_FALSE(cloned);
  EXPECT_EQ(cloned.error().number, EPERM);
}

TEST_F(OwnSpace, TheCallersIdsAreThereUnderTheirNewNameAndNoOthers) {
  EXPECT_EQ(in_own_space([](priv::Ids ids) -> base::Result<std::string> {
              TRY(priv::map_own_ids(badge(), ids, 1000));
              std::string said = std::to_string(::geteuid()) + " " + std::to_string(::getegid());
              for (const char* path : {"/proc/self/uid_map", "/proc/self/gid_map"}) {
                for (const auto word : base::split(TRY(os::read_file(path, 4096)), ' ')) {
                  if (!word.empty()) said += " " + std::string(word);
                }
              }
              return said;
            }),
            "1000 1000 1000 4321 1\n 1000 4321 1\n");
}

TEST_F(OwnSpace, GroupsCannotBeGivenUpInIt) {
  EXPECT_EQ(in_own_space([](priv::Ids ids) -> base::Result<std::string> {
              TRY(priv::map_own_ids(badge(), ids, 1000));
              return TRY(os::read_file("/proc/self/setgroups", 64));
            }),
            "deny\n");
}

TEST_F(OwnSpace, NobodyElsesIdIsMapped) {
  for (const priv::Ids ids : {priv::Ids{0, 4321}, priv::Ids{1, 4321}, priv::Ids{4321, 1}}) {
    const std::string said = in_own_space([&](priv::Ids) -> base::Result<std::string> {
      TRY(priv::map_own_ids(badge(), ids, 1000));
      return "mapped";
    });
    EXPECT_NE(said, "mapped") << ids.uid << ' ' << ids.gid;
  }
}

TEST_F(OwnSpace, ItOwnsTheNamespacesThatAreMadeInIt) {
  EXPECT_EQ(in_own_space([](priv::Ids ids) -> base::Result<std::string> {
              TRY(priv::map_own_ids(badge(), ids, 1000));
              TRY(priv::restart_clocks_for_children(badge()));
              return priv::testing::inside(
                  CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID,
                  [](const priv::Inside& in) -> base::Result<std::string> {
                    TRY(priv::make_private(badge(), in));
                    TRY(priv::set_hostname(badge(), in, "box"));
                    TRY(priv::new_mount(badge(), "proc", {}, priv::kNoSuid));
                    TRY(priv::new_mount(badge(), "tmpfs", {{"size", "65536"}}, priv::kNoSuid));
                    return "made";
                  });
            }),
            "made");
}

}  // namespace
