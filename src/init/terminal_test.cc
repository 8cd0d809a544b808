// Commands with a terminal of their own: what they have, what is typed and shown, and who holds
// nobody up.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "init/inside_test.h"
#include "os/os.h"

namespace init {
namespace {

constexpr int kPatience = 20'000;

// A command at a terminal, with the host's ends of its pipes.
struct Seat {
  base::Fd typing;
  base::Fd showing;
};

class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto word = inside_.control.hear<frame::FromInit>();
    ASSERT_TRUE(word && std::holds_alternative<frame::Ready>(*word));
  }

  Seat sit_down(const std::string& script, std::uint64_t id, frame::Window window) {
    auto in = os::pipe();
    auto out = os::pipe();
    auto null = os::open("/dev/null", O_RDWR, 0);
    if (!in || !out || !null) std::abort();
    frame::Exec exec = shell(script);
    exec.id = id;
    exec.terminal = window;
    inside_.control.say(frame::ToInit(exec), {in->first.get(), out->second.get(), null->get()});
    return {std::move(in->second), std::move(out->first)};
  }

  // The next Ended; what comes before it is passed over.
  std::optional<frame::Ended> ended() {
    while (const auto word = inside_.control.hear<frame::FromInit>()) {
      if (const auto* end = std::get_if<frame::Ended>(&*word)) return *end;
      if (std::holds_alternative<frame::NotStarted>(*word)) return std::nullopt;
    }
    return std::nullopt;
  }

  static std::string rest(const Seat& seat) {
    return os::read_all(seat.showing.get(), 8 << 20, "shown").value_or("(error)");
  }

  // What is shown until `text` is there.
  static std::string until(const Seat& seat, const std::string& text) {
    std::string shown;
    while (!shown.contains(text)) {
      pollfd polled = {seat.showing.get(), POLLIN, 0};
      if (::poll(&polled, 1, kPatience) != 1) return shown + "(nothing more)";
      const auto more = os::read_some(seat.showing.get(), 4096, "shown");
      if (!more || more->empty()) return shown + "(end)";
      shown += *more;
    }
    return shown;
  }

  // What init has used, in hundredths of a second.
  [[nodiscard]] std::uint64_t processor_ticks() const {
    const auto stat = os::read_file("/proc/" + std::to_string(inside_.pid()) + "/stat", 4096);
    if (!stat) return 0;
    const auto fields = base::split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
    return base::parse_number(fields[11]).value_or(0) + base::parse_number(fields[12]).value_or(0);
  }
  static void type(const Seat& seat, std::string_view keys) {
    (void)os::write_all(seat.typing.get(), keys, "keys");
  }

  Inside inside_{Way::direct};
};

TEST_F(TerminalTest, all_three_streams_are_one_terminal_which_controls_the_session) {
  const Seat seat = sit_down(
      "test -t 0 && test -t 1 && test -t 2 && echo three; echo error >&2; echo again >/dev/tty; "
      "stty size; stty -a | grep -o ' iutf8'; exit 7",
      1, {41, 123});
  const std::string shown = rest(seat);
  EXPECT_EQ(shown, "three\r\nerror\r\nagain\r\n41 123\r\n iutf8\r\n");
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 7U);
}

TEST_F(TerminalTest, what_is_typed_is_echoed_and_read) {
  const Seat seat = sit_down("read -r line; echo \"<$line>\"", 1, {});
  type(seat, "hello\r");
  EXPECT_EQ(rest(seat), "hello\r\n<hello>\r\n");
}

TEST_F(TerminalTest, interrupts_are_keys) {
  const Seat seat = sit_down("echo ready; exec sleep 1000", 1, {});
  until(seat, "ready");
  type(seat, "\x03");
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->signalled);
  EXPECT_EQ(end->code, static_cast<std::uint32_t>(SIGINT));
}

TEST_F(TerminalTest, a_new_size_is_announced) {
  const Seat seat = sit_down(
      "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done", 1, {24, 80});
  until(seat, "ready");
  inside_.control.say(frame::ToInit(frame::Resize{1, {50, 200}}), {});
  inside_.control.say(frame::ToInit(frame::Resize{99, {50, 200}}), {});  // nobody's
  EXPECT_TRUE(until(seat, "50 200").contains("50 200"));
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 3U);
}

TEST_F(TerminalTest, the_end_of_what_is_typed_hangs_up) {
  Seat seat = sit_down("echo ready; exec sleep 1000", 1, {});
  until(seat, "ready");
  seat.typing.reset();
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, static_cast<std::uint32_t>(SIGHUP));
  EXPECT_EQ(rest(seat), "");
}

TEST_F(TerminalTest, whoever_shows_to_nobody_is_hung_up) {
  Seat seat = sit_down("exec yes", 1, {});
  until(seat, "y");
  seat.showing.reset();
  EXPECT_TRUE(ended());
}

// The kernel hands over late what was written last: the end is said behind it.
TEST_F(TerminalTest, the_last_words_come_before_the_end) {
  std::string expected;
  for (int i = 1; i <= 1500; ++i) expected += std::to_string(i) + "\r\n";
  for (std::uint64_t id = 1; id <= 20; ++id) {
    const Seat seat = sit_down("exec seq 1 1500", id, {});
    const auto end = ended();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->id, id);
    std::string shown(1 << 16, '\0');
    // All of it lies in the pipe by now.
    const ssize_t got = ::read(seat.showing.get(), shown.data(), shown.size());
    shown.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    ASSERT_EQ(shown, expected) << id;
  }
}

// It is not hung up for that, and init does not turn in circles meanwhile.
TEST_F(TerminalTest, a_command_may_let_its_terminal_go) {
  const Seat seat = sit_down("echo ready; exec 0<&- 1>&- 2>&-; sleep 0.5; exit 4", 1, {});
  until(seat, "ready\r\n");
  type(seat, "nobody reads this\r");
  const std::uint64_t before = processor_ticks();
  (void)rest(seat);
  EXPECT_LT(processor_ticks() - before, 30U);  // of the 50 that half a second has
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 4U);
}

TEST_F(TerminalTest, what_goes_on_behind_the_command_holds_no_end_up) {
  const Seat seat = sit_down("trap '' HUP; (yes >/dev/tty 2>/dev/null &) ; exit 6", 1, {});
  (void)rest(seat);
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 6U);
}

// E68: nobody reads and nobody's typing is read; init serves others meanwhile.
TEST_F(TerminalTest, a_stalled_end_holds_nobody_else_up) {
  const Seat flood = sit_down("exec yes", 1, {});
  until(flood, "y");
  const Seat deaf = sit_down("stty raw -echo; echo ready; exec sleep 1000", 2, {});
  until(deaf, "ready");
  ASSERT_TRUE(os::set_nonblocking(deaf.typing.get()));
  const std::string keys(1 << 16, 'k');
  while (os::write_some(deaf.typing.get(), keys, "keys")) {
    ::usleep(1000);
  }
  frame::Exec other = shell("echo fine");
  other.id = 3;
  EXPECT_EQ(run_to_end(inside_, other).output, "fine\n");
  inside_.control.say(frame::ToInit(frame::Signal{2, SIGKILL}), {});
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->id, 2U);
}

// Its end is said once the reader takes what is left, or goes.
TEST_F(TerminalTest, a_reader_that_stops_holds_up_its_own_end_alone) {
  Seat flood = sit_down("exec yes", 1, {});
  until(flood, "y");
  ::usleep(200'000);  // pipe and terminal are full
  inside_.control.say(frame::ToInit(frame::Signal{1, SIGKILL}), {});
  frame::Exec other = shell("echo fine");
  other.id = 3;
  EXPECT_EQ(run_to_end(inside_, other).ended.id, 3U);
  flood.showing.reset();
  const auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->id, 1U);
}

TEST_F(TerminalTest, what_cannot_start_says_so) {
  auto null = os::open("/dev/null", O_RDWR, 0);
  ASSERT_TRUE(null);
  frame::Exec exec = shell("true");
  exec.argv[0] = "no-such-command";
  exec.terminal = frame::Window{};
  inside_.control.say(frame::ToInit(exec), {null->get(), null->get(), null->get()});
  const auto word = inside_.control.hear<frame::FromInit>();
  ASSERT_TRUE(word && std::holds_alternative<frame::NotStarted>(*word));
  EXPECT_EQ(std::get<frame::NotStarted>(*word).error, static_cast<std::uint32_t>(ENOENT));
}

// None but its streams: neither the other side nor a pipe of the host's.
TEST_F(TerminalTest, the_command_has_nothing_else_open) {
  const Seat seat = sit_down("ls -l /proc/self/fd | grep -c -e ptmx -e pipe", 1, {});
  EXPECT_EQ(rest(seat), "1\r\n");  // the pipe to grep
}

}  // namespace
}  // namespace init
