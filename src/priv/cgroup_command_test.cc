// Groups of single commands: what one kill reaches, on each kind of hierarchy that this host has.
#include "priv/cgroup_command.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "priv/testing.h"

namespace priv {
namespace {

struct Place {
  Hierarchy kind;
  std::string controller;
  std::string parent;
};

// Where groups can be made here.
std::vector<Place> places() {
  std::vector<Place> all;
  for (const Place& place : {Place{Hierarchy::v2, "unified", "/sys/fs/cgroup/unified"},
                             Place{Hierarchy::v2, "unified", "/sys/fs/cgroup"},
                             Place{Hierarchy::v1, "freezer", "/sys/fs/cgroup/freezer"}}) {
    const std::string file =
        place.parent + (place.kind == Hierarchy::v2 ? "/cgroup.controllers" : "/tasks");
    if (::access(file.c_str(), F_OK) == 0 && ::access(place.parent.c_str(), W_OK) == 0) {
      all.push_back(place);
    }
  }
  return all;
}

Groups groups_at(const Place& place, const std::string& run) {
  auto made =
      make_groups(testing::badge(), {{place.kind, place.controller, place.parent, {}}}, run);
  EXPECT_TRUE(made) << made.error().line();
  return made ? std::move(*made) : Groups();
}

// A process in the groups that has forked twice, lost its parent, and leads a session of its own;
// its end is the end of `alive`'s other side.
void start_family(const CommandGroups& groups, int alive) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int entry : groups.entries()) {
      if (::write(entry, "0", 1) != 1) ::_exit(1);
    }
    // Nothing of the owner's stays open, or its locks would be held here.
    if (::dup2(alive, 0) != 0 || ::syscall(SYS_close_range, 1, ~0U, 0) != 0) ::_exit(1);
    ::signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < 2; ++i) {
      if (::fork() != 0) ::_exit(0);
      (void)::setsid();
    }
    (void)!::write(0, "x", 1);
    while (true) ::pause();
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct Family {
  base::Fd reader;
};
Family family(const CommandGroups& groups) {
  auto pipe = os::pipe();
  start_family(groups, pipe->second.get());
  pipe->second.reset();
  char byte = 0;
  EXPECT_EQ(::read(pipe->first.get(), &byte, 1), 1) << "it stands in its groups";
  return {std::move(pipe->first)};
}

bool alive(const Family& family) {
  pollfd polled = {family.reader.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 0;
}

void await_end(const Family& family) {
  pollfd polled = {family.reader.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 20'000), 1) << "somebody lives";
  char byte = 0;
  EXPECT_EQ(::read(family.reader.get(), &byte, 1), 0);
}

bool removed(CommandGroups& groups) {
  for (int i = 0; i < 2000; ++i) {
    if (groups.remove_empty()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(CommandGroups, one_kill_reaches_every_process_of_its_command_and_no_other) {
  for (const Place& place : places()) {
    Groups groups = groups_at(place, "unittest2a");
    auto one = make_command_groups(testing::badge(), groups, 1);
    auto two = make_command_groups(testing::badge(), groups, 2);
    ASSERT_TRUE(one && two) << one.error().line();
    const Family first = family(*one);
    const Family second = family(*two);
    ASSERT_TRUE(one->kill());
    await_end(first);
    EXPECT_TRUE(alive(second)) << place.parent;
    EXPECT_TRUE(removed(*one)) << place.parent;
    EXPECT_FALSE(two->remove_empty()) << place.parent;
    // The kill of the whole reaches what is left of the parts, and its folder goes with theirs.
    EXPECT_TRUE(groups.remove()) << place.parent;
    await_end(second);
    EXPECT_NE(::access((place.parent + "/cerco-unittest2a").c_str(), F_OK), 0) << place.parent;
  }
}

TEST(CommandGroups, what_a_killed_owner_left_is_emptied_with_its_commands) {
  for (const Place& place : places()) {
    const pid_t owner = ::fork();
    if (owner == 0) {
      auto* groups = new Groups(groups_at(place, "unittest2b"));  // never destroyed: as if killed
      auto commands = make_command_groups(testing::badge(), *groups, 1);
      if (!commands) ::_exit(1);
      const Family inside = family(*commands);
      ::_exit(alive(inside) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(owner, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << place.parent;
    const std::string path = place.parent + "/cerco-unittest2b";
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    const auto gone = remove_abandoned_group(path);
    EXPECT_TRUE(gone) << gone.error().line();
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << place.parent;
  }
}

TEST(CommandGroups, without_a_group_to_kill_by_there_are_none) {
  const Groups none;
  const auto made = make_command_groups(testing::badge(), none, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, base::Kind::missing);
}

TEST(CommandGroups, a_number_is_used_once) {
  for (const Place& place : places()) {
    Groups groups = groups_at(place, "unittest2c");
    const auto one = make_command_groups(testing::badge(), groups, 1);
    ASSERT_TRUE(one);
    EXPECT_FALSE(make_command_groups(testing::badge(), groups, 1));
  }
}

}  // namespace
}  // namespace priv
