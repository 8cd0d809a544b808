// Both ends of a tunnel over two pipes, with the tests as supervisor and as cerco-init.
#include "tunnel/tunnel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <thread>

#include "base/frame.h"
#include "tunnel/words.h"

namespace tunnel {
namespace {

constexpr int kPatience = 20'000;  // milliseconds, far more than anything takes

bool becomes(int fd, short event) {
  pollfd polled = {fd, event, 0};
  return ::poll(&polled, 1, kPatience) == 1;
}

struct Pipe {
  base::Fd reads;
  base::Fd writes;
  Pipe() {
    auto ends = os::pipe();
    if (!ends) std::abort();
    reads = std::move(ends->first);
    writes = std::move(ends->second);
  }
};

struct Pair {
  base::Fd ours;
  base::Fd theirs;
  explicit Pair(int type) {
    auto ends = os::socket_pair(type);
    if (!ends) std::abort();
    ours = std::move(ends->first);
    theirs = std::move(ends->second);
  }
};

os::Received hear(int socket) {
  if (!becomes(socket, POLLIN)) return {.bytes = "(nothing)", .fds = {}, .end = true};
  auto message = os::receive_message(socket, kMostMessage, kMostFds);
  if (!message) return {.bytes = message.error().line(), .fds = {}, .end = true};
  return std::move(*message);
}

std::string read_for(int fd, std::size_t size) {
  std::string all;
  while (all.size() < size && becomes(fd, POLLIN)) {
    auto some = os::read_some(fd, size - all.size(), "bytes");
    if (!some || some->empty()) break;
    all += *some;
  }
  return all;
}

// Until a write would wait for longer than anything takes; how much went.
std::size_t fill(int fd, std::size_t most) {
  const std::string some(4096, 'f');
  std::size_t all = 0;
  while (all < most) {
    pollfd polled = {fd, POLLOUT, 0};
    if (::poll(&polled, 1, 300) != 1) break;
    auto put = os::write_some(fd, some, "bytes");
    if (!put) break;
    all += *put;
  }
  return all;
}

class TunnelTest : public testing::Test {
 public:
  TunnelTest() {
    (void)::signal(SIGPIPE, SIG_IGN);
    host_ = std::thread([this] {
      host_status_ =
          serve(Side::host, {up_.reads.get(), down_.writes.get(), host_end_.theirs.get()});
      host_end_.theirs.reset();
      down_.writes.reset();
    });
    inside_ = std::thread([this] {
      inside_status_ =
          serve(Side::inside, {down_.reads.get(), up_.writes.get(), inside_end_.theirs.get()});
      inside_end_.theirs.reset();
      up_.writes.reset();
    });
  }
  ~TunnelTest() override {
    supervisor_.reset();
    init_.reset();
    if (host_.joinable()) host_.join();
    if (inside_.joinable()) inside_.join();
  }

 protected:
  // What cerco-init would get for a message with these descriptors.
  os::Received send(const std::string& bytes, const std::vector<int>& fds) {
    if (!os::send_message(supervisor_.get(), bytes, fds)) std::abort();
    return hear(init_.get());
  }

  Pipe up_;
  Pipe down_;
  Pair host_end_{SOCK_SEQPACKET};
  Pair inside_end_{SOCK_SEQPACKET};
  base::Fd supervisor_ = std::move(host_end_.ours);
  base::Fd init_ = std::move(inside_end_.ours);
  int host_status_ = -1;
  int inside_status_ = -1;
  std::thread host_;
  std::thread inside_;
};

TEST_F(TunnelTest, messages_go_both_ways_as_they_are) {
  const std::string largest(frame::kMaxFrame, 'm');
  EXPECT_EQ(send("order", {}).bytes, "order");
  EXPECT_EQ(send(largest, {}).bytes, largest);
  ASSERT_TRUE(os::send_message(init_.get(), "answer", {}));
  EXPECT_EQ(hear(supervisor_.get()).bytes, "answer");
}

TEST_F(TunnelTest, bytes_flow_through_every_kind_of_descriptor) {
  Pipe in;
  Pipe out;
  Pair stream(SOCK_STREAM);
  const auto got = send("x", {in.reads.get(), out.writes.get(), stream.theirs.get()});
  in.reads.reset();
  out.writes.reset();
  stream.theirs.reset();
  ASSERT_EQ(got.fds.size(), 3U);
  const std::string text(3'000'000, 't');
  const auto carries = [&](int from, int to) {
    std::thread writer([&] { (void)os::write_all(from, text, "text"); });
    EXPECT_EQ(read_for(to, text.size()), text);
    writer.join();
  };
  carries(in.writes.get(), got.fds[0].get());
  carries(got.fds[1].get(), out.reads.get());
  carries(stream.ours.get(), got.fds[2].get());
  carries(got.fds[2].get(), stream.ours.get());
}

TEST_F(TunnelTest, a_session_keeps_its_messages_apart) {
  Pair session(SOCK_SEQPACKET);
  const auto got = send("x", {session.theirs.get()});
  session.theirs.reset();
  ASSERT_EQ(got.fds.size(), 1U);
  for (int i = 0; i < 40; ++i) {
    const std::string text(frame::kMaxFrame - static_cast<std::size_t>(i), 's');
    ASSERT_TRUE(os::send_message(session.ours.get(), text, {}));
    EXPECT_EQ(hear(got.fds[0].get()).bytes, text);
    ASSERT_TRUE(os::send_message(got.fds[0].get(), text, {}));
    EXPECT_EQ(hear(session.ours.get()).bytes, text);
  }
  session.ours.reset();
  EXPECT_TRUE(hear(got.fds[0].get()).end);
}

TEST_F(TunnelTest, each_way_ends_by_itself) {
  Pipe in;
  Pair stream(SOCK_STREAM);
  const auto got = send("x", {in.reads.get(), stream.theirs.get()});
  in.reads.reset();
  stream.theirs.reset();
  ASSERT_EQ(got.fds.size(), 2U);
  ASSERT_TRUE(os::write_all(in.writes.get(), "last", "text"));
  in.writes.reset();
  EXPECT_EQ(read_for(got.fds[0].get(), 100), "last");
  ASSERT_EQ(::shutdown(stream.ours.get(), SHUT_WR), 0);
  EXPECT_EQ(read_for(got.fds[1].get(), 100), "");
  ASSERT_TRUE(os::write_all(got.fds[1].get(), "still", "text"));
  EXPECT_EQ(read_for(stream.ours.get(), 5), "still");
}

// Who writes for nobody is told so, on either side.
TEST_F(TunnelTest, a_reader_that_goes_is_told) {
  Pipe in;
  Pipe out;
  auto got = send("x", {in.reads.get(), out.writes.get()});
  in.reads.reset();
  out.writes.reset();
  ASSERT_EQ(got.fds.size(), 2U);
  out.reads.reset();
  EXPECT_TRUE(becomes(got.fds[1].get(), 0));  // POLLERR
  EXPECT_EQ(os::write_some(got.fds[1].get(), "x", "text").error().number, EPIPE);
  got.fds[0].reset();
  EXPECT_TRUE(becomes(in.writes.get(), 0));
  EXPECT_EQ(os::write_some(in.writes.get(), "x", "text").error().number, EPIPE);
}

TEST_F(TunnelTest, a_stalled_stream_stalls_no_other_and_is_bounded) {
  Pipe stalled;
  Pipe out;
  const auto got = send("x", {stalled.writes.get(), out.writes.get()});
  stalled.writes.reset();
  out.writes.reset();
  ASSERT_EQ(got.fds.size(), 2U);
  const std::size_t put = fill(got.fds[0].get(), 64U << 20);
  EXPECT_GT(put, 64U << 10);
  EXPECT_LE(put, kWindow + (256U << 10));  // its window, and a pipe at each end
  ASSERT_TRUE(os::write_all(got.fds[1].get(), "on", "text"));
  EXPECT_EQ(read_for(out.reads.get(), 2), "on");
  EXPECT_EQ(send("order", {}).bytes, "order");
  EXPECT_EQ(read_for(stalled.reads.get(), put).size(), put);  // and goes on once it is read
  EXPECT_GT(fill(got.fds[0].get(), 64U << 10), 0U);
}

// What a command wrote can be read by the time that its end is told.
TEST_F(TunnelTest, the_end_of_a_command_comes_after_its_output) {
  for (std::uint64_t id = 1; id <= 20; ++id) {
    Pipe out;
    auto null = os::open("/dev/null", O_RDWR, 0);
    ASSERT_TRUE(null);
    frame::Exec exec;
    exec.id = id;
    auto got =
        send(base::encode(frame::ToInit(exec)), {null->get(), out.writes.get(), out.writes.get()});
    out.writes.reset();
    ASSERT_EQ(got.fds.size(), 3U);
    const std::string text(60'000, 'o');
    ASSERT_TRUE(os::write_all(got.fds[1].get(), text, "text"));
    ASSERT_TRUE(os::send_message(init_.get(),
                                 base::encode(frame::FromInit(frame::Ended{id, false, 0, 0})), {}));
    EXPECT_FALSE(hear(supervisor_.get()).end);
    int there = 0;
    ASSERT_EQ(::ioctl(out.reads.get(), FIONREAD, &there), 0);
    EXPECT_EQ(there, 60'000);
  }
}

// Somebody else who reads nothing does not hold it up.
TEST_F(TunnelTest, the_end_of_a_command_waits_for_its_own_output_only) {
  Pipe stalled;
  Pipe out;
  auto null = os::open("/dev/null", O_RDWR, 0);
  ASSERT_TRUE(null);
  frame::Exec exec;
  exec.id = 1;
  const auto other = send(base::encode(frame::ToInit(exec)),
                          {null->get(), stalled.writes.get(), stalled.writes.get()});
  exec.id = 2;
  const auto got =
      send(base::encode(frame::ToInit(exec)), {null->get(), out.writes.get(), out.writes.get()});
  ASSERT_EQ(other.fds.size() + got.fds.size(), 6U);
  (void)fill(other.fds[1].get(), 64U << 20);
  for (const std::uint64_t id : {1, 2}) {
    ASSERT_TRUE(os::send_message(init_.get(),
                                 base::encode(frame::FromInit(frame::Ended{id, false, 0, 0})), {}));
  }
  const auto first = base::decode<frame::FromInit>(hear(supervisor_.get()).bytes, "frame");
  ASSERT_TRUE(first);
  EXPECT_EQ(std::get<frame::Ended>(*first).id, 2U);
}

TEST_F(TunnelTest, the_end_of_one_side_is_the_end_of_the_other) {
  supervisor_.reset();
  EXPECT_TRUE(hear(init_.get()).end);
  host_.join();
  inside_.join();
  EXPECT_EQ(host_status_, 0);
  EXPECT_EQ(inside_status_, 0);
}

TEST_F(TunnelTest, the_end_of_init_ends_the_hosts_side) {
  init_.reset();
  EXPECT_TRUE(hear(supervisor_.get()).end);
}

// --- A side inside that lies ---------------------------------------------------------------------

class Liar {
 public:
  Liar() {
    (void)::signal(SIGPIPE, SIG_IGN);
    host_ = std::thread([this] {
      status_ = serve(Side::host, {up_.reads.get(), down_.writes.get(), pair_.theirs.get()});
      pair_.theirs.reset();
      up_.reads.reset();
    });
  }
  ~Liar() {
    pair_.ours.reset();
    up_.writes.reset();
    if (host_.joinable()) host_.join();
  }
  // Opens an output as channel 1, then says `bytes`.
  void say(const std::string& bytes) {
    if (!os::send_message(pair_.ours.get(), "x", std::vector<int>{out_.writes.get()})) std::abort();
    out_.writes.reset();
    (void)read_for(down_.reads.get(), kHead + 9);  // it is known by then
    (void)os::write_all(up_.writes.get(), bytes, "lies");
  }
  int wait() {
    host_.join();
    return status_;
  }
  void close() { up_.writes.reset(); }
  int supervisor() { return pair_.ours.get(); }
  int output() { return out_.reads.get(); }

 private:
  Pipe up_;
  Pipe down_;
  Pipe out_;
  Pair pair_{SOCK_SEQPACKET};
  int status_ = -1;
  std::thread host_;
};

std::string words(std::initializer_list<Word> list) {
  std::string out;
  for (const Word& word : list) write(out, word);
  return out;
}

// More than a window and what the kernel keeps behind it, while nobody reads.
std::string many(const Word& word) {
  std::string out;
  for (std::size_t size = 0; size < 2 * kWindow; size += word.bytes.size()) write(out, word);
  return out;
}

TEST(TunnelLies, nonsense_ends_the_hosts_side) {
  const Word flood = {Say::data, 1, 0, {}, std::string(100'000, 'f')};
  const Word flood_of_words = {Say::message, 1, 0, {}, std::string(100'000, 'f')};
  const std::string rows[] = {
      "nonsense that is long enough",
      words({{Say::data, 2, 0, {}, "x"}}),  // no such channel
      words({{Say::end, 2, 0, {}, {}}}),
      words({{Say::credit, 2, 1, {}, {}}}),
      words({{Say::message, 1, 0, {Kind::output}, "x"}}),  // descriptors come from the host alone
      words({{Say::credit, 1, 1, {}, {}}}),                // more credit than was used
      words({{Say::credit, 0, kWindow, {}, {}}}),
      words({{Say::data, 0, 0, {}, "x"}}),  // the control channel has messages only
      words({{Say::end, 1, 0, {}, {}}, {Say::data, 1, 0, {}, "x"}}),
      many(flood),
      many(flood_of_words)};  // more than their windows
  for (const std::string& row : rows) {
    Liar liar;
    liar.say(row);
    liar.close();  // so that what is taken for sense ends as well
    EXPECT_EQ(liar.wait(), 1) << testing::PrintToString(row.substr(0, 60));
  }
}

// A word that breaks off ends it as well, and what came before is not lost.
TEST(TunnelLies, a_stream_that_breaks_off_is_an_end) {
  Liar liar;
  liar.say(words({{Say::message, 1, 0, {}, "said"}, {Say::data, 1, 0, {}, "written"}}) + "tr");
  liar.close();
  EXPECT_EQ(read_for(liar.output(), 100), "written");
  EXPECT_EQ(hear(liar.supervisor()).bytes, "said");
  EXPECT_EQ(liar.wait(), 0);
}

// The supervisor's end is enough: nobody need read what is left.
TEST(TunnelLies, the_supervisors_end_ends_it_whatever_is_queued) {
  auto liar = std::make_unique<Liar>();
  const Word some = {Say::data, 1, 0, {}, std::string(100'000, 'f')};
  liar->say(words({some, some, some}));
  liar->close();
  liar.reset();  // joins
}

// As a process of its own: with nothing but its descriptors.
TEST(TunnelProcess, it_serves_confined) {
  Pipe up;
  Pipe down;
  auto started = start(CERCO_BUILD_DIR "/cerco-tunnel", up.reads.get(), down.writes.get());
  ASSERT_TRUE(started) << started.error().line();
  up.reads.reset();
  down.writes.reset();
  Pipe in;
  ASSERT_TRUE(started->control.send("x", std::vector<int>{in.reads.get()}));
  EXPECT_EQ(read_for(down.reads.get(), kHead + 9).size(), kHead + 9);
  const auto status = os::read_file("/proc/" + std::to_string(started->child.pid()) + "/status",
                                    std::size_t{1} << 16);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->contains("CapPrm:\t0000000000000000"));
  EXPECT_TRUE(status->contains("Seccomp:\t2"));
  EXPECT_TRUE(status->contains("NoNewPrivs:\t1"));
  if (::geteuid() == 0) {
    EXPECT_TRUE(status->contains("Uid:\t1879044099\t1879044099"));
  }
  up.writes.reset();
  const auto ended = started->child.wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, 0);
}

}  // namespace
}  // namespace tunnel
