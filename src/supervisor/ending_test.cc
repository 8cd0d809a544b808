// Every ending, and the status that goes with it.
#include "supervisor/ending.h"

#include <gtest/gtest.h>

#include <cerrno>

#include <csignal>

namespace {

using supervisor::Cut;
using supervisor::EndingKind;
using supervisor::Facts;

Facts exited(std::uint32_t code) {
  Facts facts;
  facts.command_ended = true;
  facts.code = code;
  return facts;
}

Facts signalled(std::uint32_t number) {
  Facts facts = exited(number);
  facts.signalled = true;
  return facts;
}

struct Row {
  const char* name;
  Facts facts;
  EndingKind kind;
  std::uint32_t status;
};

std::vector<Row> rows() {
  Facts processor_time = exited(143);
  processor_time.cut = Cut::processor_time;
  std::vector<Row> all = {
      {"processor time", processor_time, EndingKind::timed_out, 124},
      {"success", exited(0), EndingKind::exited, 0},
      {"own status", exited(7), EndingKind::exited, 7},
      {"own status that looks like a time-out", exited(124), EndingKind::exited, 124},
      {"signal", signalled(SIGSEGV), EndingKind::signalled, 139},
  };
  const auto with = [](Facts facts, auto change) {
    change(facts);
    return facts;
  };
  all.push_back({"oom kill seen after the end",
                 with(signalled(SIGKILL), [](Facts& f) { f.counters.oom_kills = 1; }),
                 EndingKind::out_of_memory, 137});
  all.push_back({"oom of a child that the command survived",
                 with(exited(0), [](Facts& f) { f.counters.oom_kills = 1; }), EndingKind::exited,
                 0});
  all.push_back({"disk full and failed",
                 with(exited(1), [](Facts& f) { f.counters.disk_full = true; }),
                 EndingKind::disk_full, 1});
  all.push_back({"disk full and all the same well",
                 with(exited(0), [](Facts& f) { f.counters.disk_full = true; }), EndingKind::exited,
                 0});
  all.push_back({"process limit",
                 with(exited(2), [](Facts& f) { f.counters.process_limit_hits = 3; }),
                 EndingKind::process_limit, 2});
  all.push_back({"time", with(signalled(SIGTERM), [](Facts& f) { f.cut = Cut::timed_out; }),
                 EndingKind::timed_out, 124});
  all.push_back({"time, nothing seen", with(Facts{}, [](Facts& f) { f.cut = Cut::timed_out; }),
                 EndingKind::timed_out, 124});
  all.push_back({"host disk", with(Facts{}, [](Facts& f) { f.cut = Cut::host_disk_full; }),
                 EndingKind::disk_full, 137});
  all.push_back({"operator",
                 with(Facts{},
                      [](Facts& f) {
                        f.cut = Cut::killed;
                        f.by = "operator";
                      }),
                 EndingKind::killed, 137});
  all.push_back({"output", with(Facts{}, [](Facts& f) { f.cut = Cut::output_limit; }),
                 EndingKind::output_limit, 137});
  all.push_back(
      {"idle", with(Facts{}, [](Facts& f) { f.cut = Cut::idle; }), EndingKind::timed_out, 124});
  all.push_back({"init gone", Facts{}, EndingKind::killed, 137});
  all.push_back({"process limit that took init along",
                 with(Facts{}, [](Facts& f) { f.counters.process_limit_hits = 1; }),
                 EndingKind::process_limit, 137});
  all.push_back({"full disk that took init along",
                 with(Facts{}, [](Facts& f) { f.counters.disk_full = true; }),
                 EndingKind::disk_full, 137});
  return all;
}

TEST(Ending, IsTrue) {
  for (const Row& row : rows()) {
    const auto ending = supervisor::judge(row.facts);
    EXPECT_EQ(ending.kind, row.kind) << row.name;
    EXPECT_EQ(supervisor::status_of(ending, row.facts.code), row.status) << row.name;
  }
}

TEST(Ending, NamesTheLimitsThatWereHit) {
  Facts facts = exited(1);
  facts.counters.disk_full = true;
  facts.counters.process_limit_hits = 1;
  EXPECT_EQ(supervisor::limits_hit(facts), (std::vector<std::string>{"disk", "processes"}));
  Facts spun;
  spun.cut = Cut::processor_time;
  EXPECT_EQ(supervisor::limits_hit(spun), std::vector<std::string>{"cpu"});
  facts.journal_full = true;
  EXPECT_EQ(supervisor::limits_hit(facts),
            (std::vector<std::string>{"disk", "processes", "journal"}));
  EXPECT_EQ(supervisor::signal_name(9), "SIGKILL");
  Facts idle;
  idle.cut = Cut::idle;
  EXPECT_EQ(supervisor::limits_hit(idle), (std::vector<std::string>{"idle"}));
  EXPECT_EQ(supervisor::judge(idle).by, "idle");
}

TEST(NotStarted, HasTheStatusOfShells) {
  using supervisor::not_started;
  EXPECT_EQ(not_started("x", "execve", ENOENT, "/bin").status, 127U);
  EXPECT_EQ(not_started("x", "execve", EACCES, "").status, 126U);
  EXPECT_EQ(not_started("x", "chdir", ENOENT, "").status, 125U);
  EXPECT_EQ(not_started("x", "execve", EACCES, "").ending.error, "EACCES");
}

TEST(NotStarted, SaysWhatIsWrong) {
  using supervisor::not_started;
  EXPECT_EQ(not_started("x", "execve", ENOENT, "/a:/b").message,
            "x: command not found; inside, PATH is /a:/b");
  EXPECT_EQ(not_started("./x", "execve", ENOENT, "/a").message,
            "./x: no such file inside, or its interpreter is not");
  EXPECT_EQ(not_started("/etc/passwd", "execve", EACCES, "").message,
            "/etc/passwd: is not executable");
  EXPECT_TRUE(not_started("x", "execve", ENOEXEC, "").message.contains("ENOEXEC"));
  EXPECT_TRUE(not_started("x", "terminal", ENOSPC, "").message.contains("x: terminal"));
}

TEST(WhyEnded, NamesTheLimitOrWhoDidIt) {
  using supervisor::EndingKind;
  using supervisor::why_ended;
  const auto ending = [](EndingKind kind, std::string by) {
    supervisor::Ending made;
    made.kind = kind;
    made.by = std::move(by);
    return made;
  };
  EXPECT_EQ(why_ended(ending(EndingKind::exited, ""), {"disk"}), "");
  EXPECT_EQ(why_ended(ending(EndingKind::signalled, ""), {}), "");
  EXPECT_EQ(why_ended(ending(EndingKind::timed_out, ""), {"wall"}), "ended by limits.wall");
  EXPECT_EQ(why_ended(ending(EndingKind::timed_out, ""), {"memory", "cpu"}), "ended by limits.cpu");
  EXPECT_EQ(why_ended(ending(EndingKind::timed_out, "idle"), {"idle"}), "ended by limits.idle");
  EXPECT_EQ(why_ended(ending(EndingKind::out_of_memory, ""), {"memory"}), "ended by limits.memory");
  EXPECT_EQ(why_ended(ending(EndingKind::output_limit, ""), {"output"}), "ended by limits.output");
  EXPECT_EQ(why_ended(ending(EndingKind::killed, "operator"), {}), "killed by operator");
  EXPECT_EQ(why_ended(ending(EndingKind::killed, ""), {}), "killed");
  EXPECT_EQ(why_ended(ending(EndingKind::disk_full, "host"), {"disk"}),
            "ended: the host's disk is full");
}

}  // namespace
