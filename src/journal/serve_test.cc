// Tests of the journal process as a process: frames in, files and answers out, also when it is
// killed.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "journal/fixture.h"

namespace journal {
namespace {

using namespace fixture;

// serve() in a child, as the supervisor starts it.
class Process {
 public:
  explicit Process(const State& state, const std::string& run,
                   std::map<std::string, std::string> actions,
                   std::uint64_t run_bytes = kRunBytes) {
    auto [ours, theirs] = *ipc::make_pair();
    pid_ = ::fork();
    if (pid_ == 0) {
      ours = ipc::Channel();
      ::_exit(serve(std::move(theirs)));
    }
    control_ = std::move(ours);
    auto files = open_files(state.path(), run);
    EXPECT_TRUE(files);
    std::vector<int> fds;
    for (const base::Fd& fd : *files) fds.push_back(fd.get());
    EXPECT_TRUE(ipc::send_value(
        control_, ToJournal(Open{run, "task", std::move(actions), kFileBytes, run_bytes}), fds));
    EXPECT_TRUE(std::holds_alternative<Opened>(answer()));
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ > 0) kill();
  }

  void send(const ToJournal& message) { EXPECT_TRUE(ipc::send_value(control_, message, {})); }
  ipc::Channel producer(const std::string& who) {
    auto [ours, theirs] = *ipc::make_pair();
    const std::array<int, 1> fds = {theirs.fd()};
    EXPECT_TRUE(ipc::send_value(control_, ToJournal(AddProducer{who}), fds));
    return std::move(ours);
  }
  FromJournal answer() {
    const auto message = control_.receive();
    if (!message || !*message) {
      ADD_FAILURE() << "the journal ended";
      return Opened{};
    }
    const auto decoded = base::decode<FromJournal>((*message)->bytes, "answer");
    EXPECT_TRUE(decoded);
    return *decoded;
  }
  Summary finish() {
    send(Finish{});
    while (true) {
      const FromJournal message = answer();
      if (const auto* summary = std::get_if<Summary>(&message)) return *summary;
      if (std::holds_alternative<Opened>(message)) return {};
    }
  }
  void abandon() { control_ = ipc::Channel(); }
  void kill() {
    ::kill(pid_, SIGKILL);
    end();
  }
  int end() {
    int status = -1;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  [[nodiscard]] int pid() const { return pid_; }

 private:
  ipc::Channel control_;
  int pid_ = 0;
};

Draft decision(const std::string& members) {
  return draft("egress.decision", members);
}

std::string must_hold(const State& state) {
  const auto checked = verify(state.path(), "", "", "");
  if (!checked) return checked.error().line();
  return checked->problem;
}

TEST(Serve, WritesWhatProducersHandInAndLinksEndsToTheirDecisions) {
  const State state;
  Process process(state, kRun, {});
  const ipc::Channel gateway = process.producer("gateway");
  process.send(Draft{"run.started", R"("host_uid":7)", 0, 0});
  ASSERT_TRUE(hand_over(
      gateway, {"egress.decision", R"("verdict":"allow","host":"a.test","port":443)", 5, 0}));
  ASSERT_TRUE(hand_over(gateway, {"egress.ended", R"("status":200)", 0, 5}));
  const Summary summary = process.finish();
  EXPECT_EQ(process.end(), 0);
  const std::string text = slurp(state.journal(kRun));
  EXPECT_NE(text.find(R"("type":"run.started")"), std::string::npos);
  const std::size_t decided = text.find(R"("type":"egress.decision")");
  ASSERT_NE(decided, std::string::npos);
  const std::size_t id = text.rfind(R"("id":")", decided) + 6;
  EXPECT_NE(text.find(R"("of":")" + text.substr(id, text.find('"', id) - id) + R"(","status":200)"),
            std::string::npos);
  EXPECT_EQ(must_hold(state), "");
  EXPECT_EQ(verify(state.path(), kRun, "", summary.head)->events, summary.events);
}

// The next file is asked for once it is due, and the chain goes on across both.
TEST(Serve, AFileThatIsFullIsFollowedByTheNext) {
  const State state;
  auto [ours, theirs] = *ipc::make_pair();
  const int pid = ::fork();
  if (pid == 0) {
    (void)ours.release();
    ::_exit(serve(std::move(theirs)));
  }
  theirs = ipc::Channel();
  const auto files = open_files(state.path(), kRun);
  ASSERT_TRUE(files);
  std::vector<int> fds;
  for (const base::Fd& file : *files) fds.push_back(file.get());
  ASSERT_TRUE(ipc::send_value(ours, ToJournal(Open{kRun, "task", {}, 4096}), fds));
  std::uint64_t wished = 0;
  std::uint64_t sent = 0;
  Summary summary;
  while (summary.events == 0) {
    const auto message = ours.receive();
    ASSERT_TRUE(message && *message);
    const auto answer = base::decode<FromJournal>((*message)->bytes, "answer");
    ASSERT_TRUE(answer);
    if (const auto* last = std::get_if<Summary>(&*answer)) summary = *last;
    if (const auto* wish = std::get_if<NextFile>(&*answer)) {
      wished = wish->number;
      const auto next = open_next(state.path(), kRun, wished);
      ASSERT_TRUE(next);
      const std::array<int, 1> fd = {next->get()};
      ASSERT_TRUE(ipc::send_value(ours, ToJournal(File{wished}), fd));
      ASSERT_TRUE(ipc::send_value(ours, ToJournal(draft("exec", R"("argv":["after"])")), {}));
      ASSERT_TRUE(ipc::send_value(ours, ToJournal(Finish{}), {}));
    }
    if (!std::holds_alternative<Opened>(*answer)) continue;
    for (; sent < 20; ++sent) {
      ASSERT_TRUE(ipc::send_value(
          ours, ToJournal(draft("exec", R"("argv":[")" + std::string(300, 'x') + R"("])")), {}));
    }
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(wished, 2U);
  EXPECT_NE(slurp(state.of("journal/" + std::string(kRun) + ".2.jsonl")).find("after"),
            std::string::npos);
  EXPECT_EQ(must_hold(state), "");
}

TEST(Serve, AnAlarmReachesTheSupervisorAtOnceAndItsEventStandsInTheFile) {
  const State state;
  Process process(state, kRun, {{"blocked_range", "kill"}});
  const ipc::Channel gateway = process.producer("gateway");
  ASSERT_TRUE(hand_over(
      gateway,
      decision(
          R"("verdict":"deny","kind":"range","reason":"metadata","address":"169.254.169.254","port":80)")));
  const FromJournal message = process.answer();
  const auto* alarm = std::get_if<Alarm>(&message);
  ASSERT_NE(alarm, nullptr);
  EXPECT_EQ(alarm->action, "kill");
  EXPECT_EQ(alarm->detector, "blocked_range");
  const auto line = event(state.of("journal"), alarm->event);
  ASSERT_TRUE(line) << line.error().line();
  EXPECT_NE(line->find(R"("evidence":["aaaaaaaaaaaa:1"],"action":"kill")"), std::string::npos)
      << *line;
  EXPECT_EQ(process.finish().alerts, 1U);
}

TEST(Serve, ItIsShutIn) {
  const State state;
  Process process(state, kRun, {});
  const std::string status = slurp("/proc/" + std::to_string(process.pid()) + "/status");
  EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(status.find("Seccomp:\t2"), std::string::npos);
  EXPECT_NE(status.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_EQ(status.find("Uid:\t0"), std::string::npos);
  // The folders that it was handed are closed: nothing but files, sockets and the streams is open.
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process.pid()) + "/fd")) {
    EXPECT_FALSE(std::filesystem::is_directory(entry.path()))
        << std::filesystem::read_symlink(entry.path());
  }
  process.finish();
}

TEST(Serve, ASupervisorThatDiesLeavesASignedChain) {
  const State state;
  Process process(state, kRun, {});
  ipc::Channel gateway = process.producer("gateway");
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(hand_over(gateway, decision(R"("verdict":"allow","host":"a","port":1)")));
  process.abandon();
  EXPECT_EQ(process.end(), 0);
  EXPECT_EQ(must_hold(state), "");
  EXPECT_NE(slurp(state.host()).find(R"("at":"abandoned")"), std::string::npos);
  const std::string text = slurp(state.journal(kRun));
  EXPECT_NE(text.find(R"("type":"egress.decision")"), std::string::npos);
  // The producer sees that nobody records any more.
  const base::Status sent = hand_over(gateway, decision(R"("verdict":"allow")"));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().number, EPIPE);
}

// F104 F107: what cannot be taken is told, and so is what was dropped.
TEST(Serve, HostileProducersGetAnAlertAndNeverBreakTheChain) {
  const State state;
  Process process(state, kRun, {});
  const ipc::Channel gateway = process.producer("gateway");
  const std::vector<Draft> hostile = {
      {"egress.decision", R"("seq":1)", 0, 0},
      {"egress.decision", "\"a\":1}\n{\"v\":1", 0, 0},
      {"egress.decision", R"("a":1,"a":2)", 0, 0},
      {"egress.decision", R"("prev":"0")", 0, 0},
      {"egress.decision", "}", 0, 0},
      {"checkpoint", R"("sig":"0")", 0, 0},
      {"run.ended", "", 0, 0},
      {"alert", R"("detector":"blocked_range")", 0, 0},
      {"egress.decision\",\"x\":\"", "", 0, 0},
      {"egress.decision", R"("a":")" + std::string(70000, 'x') + '"', 0, 0},
  };
  for (const Draft& one : hostile) ASSERT_TRUE(hand_over(gateway, one));
  ASSERT_TRUE(gateway.send("no frame", {}));
  ASSERT_TRUE(gateway.send(std::string(ipc::kMaxMessage, 'x'), {}));
  const std::array<int, 2> fds = {0, 1};
  ASSERT_TRUE(gateway.send(base::encode(decision(R"("verdict":"allow","host":"good.test")")), fds));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(gateway.send("no frame", {}));
  const Summary summary = process.finish();
  EXPECT_EQ(summary.alerts, Producer::kMostMalformed);
  EXPECT_EQ(must_hold(state), "");
  const std::string text = slurp(state.journal(kRun));
  EXPECT_NE(text.find("good.test"), std::string::npos);
  EXPECT_NE(text.find(R"("producer":"gateway")"), std::string::npos);
  EXPECT_NE(text.find(R"("counts":{"malformed":96})"), std::string::npos);
}

// N205: nothing is lost silently: a producer waits while the journal is stopped, and what is
// allowed is never dropped.
TEST(Serve, AProducerWaitsForAJournalThatIsBehind) {
  const State state;
  Process process(state, kRun, {});
  ipc::Channel gateway = process.producer("gateway");
  ::kill(process.pid(), SIGSTOP);
  std::thread producer([&] {
    for (int i = 0; i < 3000; ++i) {
      ASSERT_TRUE(hand_over(
          gateway, decision(R"("verdict":"allow","host":"a","port":)" + std::to_string(i))));
    }
  });
  ::kill(process.pid(), SIGCONT);
  producer.join();
  process.finish();
  std::size_t decisions = 0;
  for (const std::string& line : lines_of(state.journal(kRun))) {
    if (line.find(R"("type":"egress.decision")") != std::string::npos) ++decisions;
  }
  EXPECT_EQ(decisions, 3000U);
}

// The code inside cannot fill the host's disk: at the bound the producers that it can move are shut
// off, after what they had handed over, and the supervisor's events still come in.
TEST(Serve, AtItsBoundTheJournalShutsTheProducersOffAndSaysSo) {
  const State state;
  constexpr std::uint64_t kBound = 100'000;
  Process process(state, kRun, {}, kBound);
  const ipc::Channel gateway = process.producer("gateway");
  const ipc::Channel broker = process.producer("broker");
  std::size_t handed = 0;
  base::Status sent;
  while (handed < 20'000) {
    sent = hand_over(
        gateway, decision(R"("verdict":"allow","host":"a.test","n":)" + std::to_string(handed)));
    if (!sent) break;
    ++handed;
  }
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().number, EPIPE);
  FromJournal message = process.answer();
  EXPECT_TRUE(std::holds_alternative<Full>(message));
  EXPECT_EQ(hand_over(broker, {"credential.used", "", 0, 0}).error().number, EPIPE);
  process.send(draft("exec", R"("argv":["after"])"));
  const ipc::Channel late = process.producer("gateway");
  const Summary summary = process.finish();
  EXPECT_FALSE(hand_over(late, decision(R"("verdict":"allow")")));
  const std::string text = slurp(state.journal(kRun));
  std::size_t written = 0;
  std::size_t told = 0;
  for (const std::string& line : lines_of(state.journal(kRun))) {
    written += line.find(R"("verdict":"allow","host":"a.test")") != std::string::npos ? 1 : 0;
    told += line.find(R"("type":"limit.hit")") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(written, handed);  // what was handed over was allowed to happen, so it stands
  EXPECT_EQ(told, 1U);
  EXPECT_NE(text.find(R"("limit":"journal","bytes":100000)"), std::string::npos);
  EXPECT_NE(text.find("after"), std::string::npos);
  EXPECT_GT(text.size(), kBound);
  EXPECT_LT(text.size(), kBound + 2'000'000);  // what a socket holds
  EXPECT_EQ(must_hold(state), "");
  EXPECT_EQ(verify(state.path(), kRun, "", summary.head)->events, summary.events);
}

TEST(Serve, TwoJournalsShareTheHostChain) {
  const State state;
  std::vector<std::unique_ptr<Process>> processes;
  for (const char* run : {"aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"}) {
    processes.push_back(
        std::make_unique<Process>(state, run, std::map<std::string, std::string>()));
  }
  for (int i = 0; i < 2000; ++i) {
    for (auto& process : processes)
      process->send(Draft{"exec", R"("n":)" + std::to_string(i), 0, 0});
  }
  for (auto& process : processes) process->finish();
  EXPECT_EQ(must_hold(state), "");
  // At least one start, seven checkpoints and an end each.
  EXPECT_GE(lines_of(state.host()).size(), 3U * 9U);
}

// Killed at any moment: what stands in the files still verifies, but for a last line that is
// unfinished.
TEST(Serve, SurvivesKillsAtAnyMoment) {
  const char* wish = std::getenv("CERCO_JOURNAL_KILLS");     // NOLINT(concurrency-mt-unsafe)
  const int kills = wish != nullptr ? std::atoi(wish) : 15;  // NOLINT(cert-err34-c)
  const State state;
  std::size_t unfinished = 0;
  std::uint64_t events = 0;
  for (int i = 0; i < kills; ++i) {
    std::string run = kRun;
    for (int digits = i, at = 0; digits > 0; digits /= 26)
      run[static_cast<std::size_t>(at++)] = static_cast<char>('a' + digits % 26);
    Process process(state, run, {});
    ipc::Channel gateway = process.producer("gateway");
    std::thread producer([&] {
      const Draft one =
          decision(R"("verdict":"allow","host":"a.test","x":")" + std::string(900, 'x') + '"');
      while (hand_over(gateway, one)) continue;
    });
    ::usleep(static_cast<useconds_t>(500 + i * 7919 % 30000));
    process.kill();
    producer.join();
    const auto checked = verify(state.path(), run, "", "");
    ASSERT_TRUE(checked) << checked.error().line();
    ASSERT_TRUE(checked->holds) << checked->problem;
    ASSERT_FALSE(checked->notes.empty());  // it says that there is no signed end
    for (const std::string& note : checked->notes) {
      if (note.find("unfinished") != std::string::npos) ++unfinished;
    }
    events += checked->events;
  }
  EXPECT_EQ(must_hold(state), "");
  EXPECT_GT(events, 0U);
  RecordProperty("unfinished", static_cast<int>(unfinished));
}

TEST(Serve, RefusesASupervisorThatDoesNotOpenProperly) {
  for (const std::string& run :
       {std::string("../../../etc"), std::string("short"), std::string()}) {
    const State state;
    auto [ours, theirs] = *ipc::make_pair();
    const int pid = ::fork();
    if (pid == 0) {
      ours = ipc::Channel();
      ::close(2);
      ::_exit(serve(std::move(theirs)));
    }
    auto files = open_files(state.path(), kRun);
    std::vector<int> fds;
    for (const base::Fd& fd : *files) fds.push_back(fd.get());
    ASSERT_TRUE(ipc::send_value(ours, ToJournal(Open{run, "", {}}), fds));
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 125);
  }
}

}  // namespace
}  // namespace journal
