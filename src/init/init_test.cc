// cerco-init as the supervisor sees it: commands, their ends, signals, and what a command has and
// lacks.
#include "init/init.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "confine/confine.h"
#include "init/inside_test.h"
#include "os/os.h"

namespace init {
namespace {

bool is_ready(Inside& inside) {
  const auto word = inside.control.hear<frame::FromInit>();
  return word && std::holds_alternative<frame::Ready>(*word);
}

// An Inside that has said Ready.
class InitTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override { ASSERT_TRUE(is_ready(inside_)); }
  Inside inside_{GetParam()};
};

// The value of a line of /proc/…/status.
std::string field(const std::string& status, const std::string& name) {
  const std::size_t at = status.find("\n" + name + ":\t");
  if (at == std::string::npos) return "(none)";
  const std::size_t start = at + name.size() + 3;
  return status.substr(start, status.find('\n', start) - start);
}

TEST_P(InitTest, output_and_exit_status_are_the_commands_own) {
  const Outcome out = run_to_end(inside_, shell("echo out; echo err >&2; exit 7"));
  EXPECT_TRUE(out.started);
  EXPECT_EQ(out.output, "out\nerr\n");
  EXPECT_FALSE(out.ended.signalled);
  EXPECT_EQ(out.ended.code, 7U);
}

TEST_P(InitTest, death_by_a_signal_is_told_apart) {
  const Outcome out = run_to_end(inside_, shell("kill -SEGV $$"));
  EXPECT_TRUE(out.ended.signalled);
  EXPECT_EQ(out.ended.code, static_cast<std::uint32_t>(SIGSEGV));
}

TEST_P(InitTest, processor_time_is_counted) {
  const Outcome out =
      run_to_end(inside_, shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"));
  EXPECT_GT(out.ended.cpu_ms, 0U);
}

TEST_P(InitTest, what_cannot_start_says_why) {
  struct Row {
    std::string argv0, cwd, step;
    int error;
  };
  const Row rows[] = {{"no-such-command", "/", "execve", ENOENT},
                      {"/no/such/command", "/", "execve", ENOENT},
                      {"/etc/passwd", "/", "execve", EACCES},
                      {"/etc", "/", "execve", EACCES},
                      {"", "/", "execve", ENOENT},
                      {"/bin/sh", "/no/such/folder", "chdir", ENOENT},
                      {"/bin/sh", "/root", "chdir", EACCES}};
  for (const Row& row : rows) {
    frame::Exec exec = shell("true");
    exec.argv[0] = row.argv0;
    exec.cwd = row.cwd;
    const Outcome out = run_to_end(inside_, exec);
    EXPECT_FALSE(out.started) << row.argv0;
    EXPECT_EQ(out.not_started.step, row.step) << row.argv0 << row.cwd;
    EXPECT_EQ(out.not_started.error, static_cast<std::uint32_t>(row.error)) << row.argv0 << row.cwd;
  }
  // It still serves.
  EXPECT_EQ(run_to_end(inside_, shell("echo on")).output, "on\n");
}

TEST_P(InitTest, an_order_that_lacks_something_starts_nothing) {
  frame::Exec exec = shell("true");
  exec.argv.clear();
  EXPECT_EQ(run_to_end(inside_, exec).not_started.error, static_cast<std::uint32_t>(EINVAL));
  exec = shell("true");
  exec.filter = "seven by";  // one instruction that means nothing
  const Outcome out = run_to_end(inside_, exec);
  EXPECT_FALSE(out.started);
  EXPECT_EQ(out.not_started.step, "seccomp");
  inside_.control.say(frame::ToInit(shell("true")), {});  // no descriptors
  const auto word = inside_.control.hear<frame::FromInit>();
  EXPECT_TRUE(word && std::holds_alternative<frame::NotStarted>(*word));
}

TEST_P(InitTest, a_command_is_found_by_its_own_path_variable) {
  frame::Exec exec = shell("");
  exec.argv = {"hello"};
  std::ofstream(inside_.mnt() + "/hello") << "#!/bin/sh\necho found\n";
  std::filesystem::permissions(inside_.mnt() + "/hello", std::filesystem::perms(0755));
  exec.env = {"PATH=/nowhere:/mnt"};
  EXPECT_EQ(run_to_end(inside_, exec).output, "found\n");
  exec.env = {"PATH=/nowhere:"};  // an empty part is not the working folder
  exec.cwd = "/mnt";
  EXPECT_EQ(run_to_end(inside_, exec).not_started.error, static_cast<std::uint32_t>(ENOENT));
}

// What stands for a group here is a pipe: the process says who it is there, and takes it nowhere.
TEST_P(InitTest, a_command_enters_its_groups_before_anything_else) {
  auto group = os::pipe();
  auto null = os::open("/dev/null", O_RDWR, 0);
  ASSERT_TRUE(group && null);
  frame::Exec exec = shell("test ! -e /proc/self/fd/3 -a ! -e /proc/self/fd/4");
  exec.groups = 1;
  const std::vector<int> fds = {null->get(), null->get(), null->get(), group->second.get()};
  inside_.control.say(frame::ToInit(exec), fds);
  group->second.reset();
  EXPECT_TRUE(std::holds_alternative<frame::Started>(*inside_.control.hear<frame::FromInit>()));
  const auto ended = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(ended && std::holds_alternative<frame::Ended>(*ended));
  EXPECT_EQ(std::get<frame::Ended>(*ended).code, 0U);
  // Nobody holds it any more, or this would wait.
  EXPECT_EQ(os::read_all(group->first.get(), 64, "group").value_or(""), "0");
}

TEST_P(InitTest, a_group_that_cannot_be_entered_starts_nothing) {
  auto group = os::pipe();
  auto null = os::open("/dev/null", O_RDWR, 0);
  ASSERT_TRUE(group && null);
  frame::Exec exec = shell("true");
  exec.groups = 1;
  const std::vector<int> fds = {null->get(), null->get(), null->get(), group->first.get()};
  inside_.control.say(frame::ToInit(exec), fds);
  const auto word = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(word && std::holds_alternative<frame::NotStarted>(*word));
  EXPECT_EQ(std::get<frame::NotStarted>(*word).step, "cgroup");
  // Fewer descriptors than were announced.
  inside_.control.say(frame::ToInit(exec), {null->get(), null->get(), null->get()});
  const auto next = inside_.control.hear<frame::FromInit>();
  EXPECT_TRUE(next && std::holds_alternative<frame::NotStarted>(*next));
}

// E1, E3: nothing but the standard streams, which are the caller's.
TEST_P(InitTest, no_descriptor_but_the_standard_streams_is_open) {
  const Outcome out = run_to_end(inside_, shell("cd /proc/self/fd && echo *"));
  // dash itself holds the folder open for its glob as 3.
  EXPECT_TRUE(out.output == "0 1 2 3\n" || out.output == "0 1 2\n") << out.output;
  EXPECT_EQ(
      run_to_end(inside_, shell("for n in 3 4 5 6 7 8 9; do readlink /proc/self/fd/$n; done; true"))
          .output,
      "");
}

// E58, E59: the identity of a command, with the whole standard filter.
TEST_P(InitTest, a_command_has_no_right_and_a_filter) {
  frame::Exec exec = shell("cat /proc/self/status");
  exec.filter = confine::as_bytes(confine::filter(confine::Profile::standard));
  exec.files = 100;
  const std::string status = run_to_end(inside_, exec).output;
  EXPECT_EQ(field(status, "Uid"), "1000\t1000\t1000\t1000");
  EXPECT_EQ(field(status, "Gid"), "1000\t1000\t1000\t1000");
  EXPECT_EQ(field(status, "Groups"), " ");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(field(status, set), "0000000000000000") << set;
  }
  EXPECT_EQ(field(status, "NoNewPrivs"), "1");
  EXPECT_EQ(field(status, "Seccomp"), "2");
  EXPECT_EQ(field(status, "SigIgn"), "0000000000000000");
  EXPECT_EQ(field(status, "SigBlk"), "0000000000000000");
  exec.argv[2] = "ulimit -n; ulimit -Hn; ulimit -c; umask";
  EXPECT_EQ(run_to_end(inside_, exec).output, "100\n100\n0\n0022\n");  // -c in blocks of 512 bytes
}

// The same, each protection left out by the frame: the attack that it stops goes through.
TEST_P(InitTest, without_a_protection_the_right_is_there) {
  frame::Exec exec = shell("cat /proc/self/status");
  exec.drop_capabilities = false;
  exec.no_new_privs = false;
  const std::string status = run_to_end(inside_, exec).output;
  EXPECT_EQ(field(status, "Uid"), "1000\t1000\t1000\t1000");
  EXPECT_NE(field(status, "CapEff"), "0000000000000000");
  EXPECT_NE(field(status, "CapAmb"), "0000000000000000");
  EXPECT_EQ(field(status, "NoNewPrivs"), "0");
  EXPECT_EQ(field(status, "Seccomp"), "0");
}

// E59: a set-user-id program of root gives nothing, and would without no_new_privs.
TEST_P(InitTest, a_set_user_id_program_gives_nothing) {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("cerco-suid-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file("/usr/bin/id", folder / "id");
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  ASSERT_EQ(::chmod((folder / "id").c_str(), 04755), 0);
  frame::Exec exec = shell((folder / "id").string() + " -u");
  EXPECT_EQ(run_to_end(inside_, exec).output, "1000\n");
  exec.no_new_privs = false;
  EXPECT_EQ(run_to_end(inside_, exec).output, "0\n");
  std::filesystem::remove_all(folder);
}

TEST_P(InitTest, a_signal_reaches_the_command_and_its_group) {
  auto pipe = os::pipe();
  ASSERT_TRUE(pipe);
  start(inside_, shell(R"(trap 'echo got; exit 3' TERM
sh -c 'trap "echo child; exit" TERM; echo set; while :; do sleep 0.01; done' &
while :; do sleep 0.01; done)"),
        pipe->second.get());
  pipe->second.reset();
  // Its own trap was set before the child's.
  ASSERT_TRUE(os::read_some(pipe->first.get(), 4, "output").value_or("").starts_with("set"));
  inside_.control.say(frame::ToInit(frame::Signal{1, SIGTERM}), {});
  const auto word = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(word && std::holds_alternative<frame::Ended>(*word));
  EXPECT_EQ(std::get<frame::Ended>(*word).code, 3U);
  const auto said = os::read_all(pipe->first.get(), 1000, "output");
  ASSERT_TRUE(said);
  EXPECT_TRUE(said->contains("got\n")) << *said;
  EXPECT_TRUE(said->contains("child\n")) << *said;
}

TEST_P(InitTest, a_signal_to_what_is_not_there_does_nothing) {
  inside_.control.say(frame::ToInit(frame::Signal{77, SIGKILL}), {});
  inside_.control.say(frame::ToInit(frame::Signal{1, 9999}), {});
  EXPECT_EQ(run_to_end(inside_, shell("echo on")).output, "on\n");
}

TEST_P(InitTest, two_commands_at_once_end_by_their_own_ids) {
  frame::Exec slow = shell("sleep 0.3; exit 5");
  slow.id = 10;
  start(inside_, slow, -1);
  frame::Exec quick = shell("exit 4");
  quick.id = 11;
  EXPECT_EQ(run_to_end(inside_, quick).ended.id, 11U);
  const auto word = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(word && std::holds_alternative<frame::Ended>(*word));
  EXPECT_EQ(std::get<frame::Ended>(*word).id, 10U);
  EXPECT_EQ(std::get<frame::Ended>(*word).code, 5U);
}

// Processes that init has to reap one day, as the host sees them.
std::string children_of(int pid) {
  const std::string text = std::to_string(pid);
  std::ifstream children("/proc/" + text + "/task/" + text + "/children");
  return {std::istreambuf_iterator<char>(children), {}};
}

// E101, E90: what was left behind, in whatever session or group, dies at KillAll and leaves no
// zombie.
TEST_P(InitTest, kill_all_ends_every_process_but_init) {
  const Outcome out = run_to_end(inside_, shell(R"(exec >/dev/null 2>&1
for i in 1 2 3 4 5; do
  (setsid sh -c 'trap "" TERM HUP; sleep 1000' &)
  (setsid true &)
done
setsid sleep 1000 & exit 0)"));
  EXPECT_EQ(out.ended.code, 0U);
  EXPECT_NE(children_of(inside_.init_pid()), "");  // positive control: they survived their parent
  inside_.control.say(frame::ToInit(frame::KillAll{}), {});
  const auto word = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(word && std::holds_alternative<frame::AllDead>(*word));
  EXPECT_EQ(children_of(inside_.init_pid()), "");
  EXPECT_EQ(run_to_end(inside_, shell("echo on")).output, "on\n");
}

TEST_P(InitTest, kill_all_with_nobody_there_is_answered) {
  inside_.control.say(frame::ToInit(frame::KillAll{}), {});
  const auto word = inside_.control.hear<frame::FromInit>();
  EXPECT_TRUE(word && std::holds_alternative<frame::AllDead>(*word));
}

// The command's end comes before AllDead, also when KillAll is what ended it.
TEST_P(InitTest, kill_all_reports_the_end_of_a_command_first) {
  start(inside_, shell("sleep 1000"), -1);
  inside_.control.say(frame::ToInit(frame::KillAll{}), {});
  const auto first = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(first && std::holds_alternative<frame::Ended>(*first));
  EXPECT_EQ(std::get<frame::Ended>(*first).code, static_cast<std::uint32_t>(SIGKILL));
  const auto second = inside_.control.hear<frame::FromInit>();
  EXPECT_TRUE(second && std::holds_alternative<frame::AllDead>(*second));
}

// E100: pid 1 does not die by a signal from inside, even of uid 0 with every capability.
TEST_P(InitTest, a_signal_from_inside_does_not_reach_init) {
  frame::Exec exec =
      shell("kill -9 1; kill -STOP 1; kill -TERM 1; kill -SEGV 1; kill -CHLD 1; echo tried");
  exec.uid = exec.gid = 0;
  exec.drop_capabilities = false;
  EXPECT_EQ(run_to_end(inside_, exec).output, "tried\n");
  // As the workload's user it is not even allowed.
  EXPECT_TRUE(run_to_end(inside_, shell("kill -0 1 2>&1; true")).output.contains("not permitted"));
}

// E41: its memory, environment, descriptors and root are closed to the workload.
TEST_P(InitTest, init_cannot_be_looked_into) {
  const std::string proc = "/proc/" + std::to_string(inside_.init_pid()) + "/";
  const std::string first = "/proc/" + std::to_string(inside_.pid()) + "/";
  const std::string looks[] = {"head -c1 " + proc + "environ", "ls " + proc + "fd",
                               "ls " + proc + "root/",         "cat " + proc + "maps",
                               "exec 9<" + proc + "mem",       "ls " + first + "fd",
                               "exec 9<" + first + "mem"};
  for (const std::string& look : looks) {
    EXPECT_NE(run_to_end(inside_, shell(look)).ended.code, 0U) << look;
    // Positive control: with every capability of the host it is there to be read.
    frame::Exec mighty = shell(look);
    mighty.uid = mighty.gid = 0;
    mighty.drop_capabilities = false;
    EXPECT_EQ(run_to_end(inside_, mighty).ended.code, 0U) << look;
  }
}

// The order of things when its channel goes: it ends, and with it everything inside.
TEST_P(InitTest, the_end_of_the_control_channel_ends_everything) {
  auto pipe = os::pipe();
  ASSERT_TRUE(pipe);
  start(inside_, shell("setsid sleep 1000 & sleep 1000"), pipe->second.get());
  pipe->second.reset();
  inside_.control.close();
  EXPECT_EQ(inside_.wait(), 0);
  EXPECT_EQ(os::read_all(pipe->first.get(), 100, "output").value_or("?"),
            "");  // nobody holds its other end
}

TEST_P(InitTest, a_malformed_frame_ends_it) {
  inside_.control.say_bytes("nonsense", {});
  EXPECT_TRUE(WIFEXITED(inside_.wait()));
}

// In a namespace of the test's own, so that a mistake ends nobody else.
TEST(InitStart, kill_all_spares_others_unless_it_is_pid_1) {
  auto pair = os::socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair);
  const std::string script = "sleep 1000 & " CERCO_BUILD_DIR "/cerco-init; kill $!; wait $!";
  const std::string argv[] = {"/usr/bin/unshare", "--pid", "--fork", "--kill-child",
                              "/bin/sh",          "-c",    script};
  const std::pair<int, int> pairs[] = {{pair->second.get(), 3}};
  auto child = os::spawn(argv, {}, pairs);
  ASSERT_TRUE(child);
  pair->second.reset();
  HostEnd control(std::move(pair->first));
  auto null = os::open("/dev/null", O_RDWR, 0);
  ASSERT_TRUE(null);
  const auto ready = control.hear<frame::FromInit>();
  ASSERT_TRUE(ready && std::holds_alternative<frame::Ready>(*ready));
  control.say(frame::ToInit(shell("sleep 1000")), {null->get(), null->get(), null->get()});
  const auto started = control.hear<frame::FromInit>();
  ASSERT_TRUE(started && std::holds_alternative<frame::Started>(*started));
  control.say(frame::ToInit(frame::KillAll{}), {});
  const auto ended = control.hear<frame::FromInit>();
  EXPECT_TRUE(ended && std::holds_alternative<frame::Ended>(*ended));
  control.close();
  EXPECT_EQ(WEXITSTATUS(child->wait().value_or(0)), 128 + SIGTERM) << "the bystander lived on";
}

INSTANTIATE_TEST_SUITE_P(Ways, InitTest, testing::Values(Way::direct, Way::tunnelled),
                         [](const auto& way) {
                           return way.param == Way::direct ? "direct" : "tunnelled";
                         });

}  // namespace
}  // namespace init
