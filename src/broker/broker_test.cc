// The broker: what it lends to whom, and the process around it.
#include "broker/broker.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "confine/confine.h"
#include "journal/journal.h"
#include "os/os.h"

namespace {

constexpr std::string_view kSecret = "sk-live-0123456789";
constexpr std::string_view kPlaceholder = "phs7q2m4xk3n5v2ab";

policy::Credential credential(std::string name) {
  policy::Credential out;
  out.name = std::move(name);
  out.hosts = {"api.example.com"};
  out.ports = {443};
  out.methods = {"GET", "POST"};
  out.paths = {"/v1/**"};
  out.inject.format = "Bearer {secret}";
  return out;
}

plan::Plan plan_of(std::vector<policy::Credential> credentials) {
  plan::Plan plan;
  plan.run = "aaaaaaaaaaaa";
  plan.protections = {plan::Protection::binding, plan::Protection::upstream_verify};
  for (const auto& one : credentials) {
    plan.placeholders.push_back({one.name, "secret", std::string(kPlaceholder) + one.name});
  }
  plan.policy.credentials = std::move(credentials);
  return plan;
}

base::Fd memfd(std::string_view bytes) {
  base::Fd fd(::memfd_create("secret", MFD_CLOEXEC));
  EXPECT_TRUE(os::write_all(fd.get(), bytes, "secret"));
  return fd;
}

std::vector<base::Fd> memfds(std::initializer_list<std::string_view> secrets) {
  std::vector<base::Fd> out;
  for (auto secret : secrets) out.push_back(memfd(secret));
  return out;
}

plan::LeaseRequest request(std::string name) {
  plan::LeaseRequest out;
  out.host = "api.example.com";
  out.port = 443;
  out.method = "GET";
  out.path = "/v1/me";
  out.verified_tls = true;
  out.placeholder = std::string(kPlaceholder) + name;
  out.credential = std::move(name);
  return out;
}

// A vault of one credential `api`, with a clock of its own.
struct Fixture {
  explicit Fixture(policy::Credential one) : plan(plan_of({std::move(one)})) {
    vault.emplace(*broker::Vault::open(plan, memfds({kSecret}), [this] { return now; }));
  }
  std::string ask(const plan::LeaseRequest& asked) { return vault->decide(asked).refusal; }
  plan::Plan plan;
  std::uint64_t now = 1'000'000;
  std::optional<broker::Vault> vault;
};

// Cases: what is changed about a request that would be served, and the refusal.
struct Row {
  const char* what;
  void (*change)(plan::LeaseRequest&);
  const char* refusal;
};

const Row kRows[] = {
    {"as bound", [](plan::LeaseRequest&) {}, ""},
    {"HEAD goes with GET", [](plan::LeaseRequest& r) { r.method = "HEAD"; }, ""},
    {"N161 another host", [](plan::LeaseRequest& r) { r.host = "echo.example.com"; }, "host"},
    {"a host below", [](plan::LeaseRequest& r) { r.host = "x.api.example.com"; }, "host"},
    {"another port", [](plan::LeaseRequest& r) { r.port = 8443; }, "port"},
    {"another method", [](plan::LeaseRequest& r) { r.method = "DELETE"; }, "method"},
    {"another case of a method", [](plan::LeaseRequest& r) { r.method = "get"; }, "method"},
    {"another path", [](plan::LeaseRequest& r) { r.path = "/v2/me"; }, "path"},
    {"N182 in the clear", [](plan::LeaseRequest& r) { r.verified_tls = false; }, "tls"},
    {"no placeholder", [](plan::LeaseRequest& r) { r.placeholder.clear(); }, "placeholder"},
    {"N169 another run's placeholder", [](plan::LeaseRequest& r) { r.placeholder = "phother"; },
     "placeholder"},
    {"an unknown credential", [](plan::LeaseRequest& r) { r.credential = "other"; }, "unknown"},
    {"no credential", [](plan::LeaseRequest& r) { r.credential.clear(); }, "unknown"},
};

TEST(Vault, LendsOnlyWhatTheBindingCovers) {
  for (const Row& row : kRows) {
    Fixture fixture(credential("api"));
    auto asked = request("api");
    row.change(asked);
    EXPECT_EQ(fixture.ask(asked), row.refusal) << row.what;
    EXPECT_EQ(fixture.vault->uses(0), std::string_view(row.refusal).empty() ? 1U : 0U) << row.what;
  }
}

// Positive control: with the binding taken out of the plan, the same requests get the secret.
TEST(Vault, WithoutBindingEveryPlaceGetsTheSecret) {
  for (const Row& row : kRows) {
    Fixture fixture(credential("api"));
    fixture.plan.protections.clear();
    auto asked = request("api");
    row.change(asked);
    const std::string refusal = fixture.ask(asked);
    EXPECT_EQ(refusal, std::string_view(row.refusal) == "unknown" ? "unknown" : "") << row.what;
  }
}

TEST(Vault, LendsTheBareSecret) {
  Fixture fixture(credential("api"));
  const auto answer = fixture.vault->lend(fixture.vault->decide(request("api")), request("api"));
  EXPECT_EQ(answer.refusal, "");
  EXPECT_EQ(answer.secret, kSecret);
}

// F45: two bindings of one secret's kind on one host add up, each judged by itself.
TEST(Vault, F45BindingsAddUp) {
  auto first = credential("a");
  auto second = credential("b");
  second.hosts = {"api.example.com", "other.example.com"};
  const auto plan = plan_of({first, second});
  auto vault = broker::Vault::open(plan, memfds({"secret-a", "secret-b"}), [] { return 0; });
  ASSERT_TRUE(vault);
  auto asked = request("b");
  EXPECT_EQ(vault->lend(vault->decide(asked), asked).secret, "secret-b");
  asked.host = "other.example.com";
  EXPECT_EQ(vault->decide(asked).refusal, "");
  EXPECT_EQ(vault->lend(vault->decide(request("a")), request("a")).secret, "secret-a");
  // F44 N162: the other's placeholder is not this one's.
  asked = request("a");
  asked.placeholder = request("b").placeholder;
  EXPECT_EQ(vault->decide(asked).refusal, "placeholder");
}

TEST(Vault, WithoutRequireNoPlaceholderIsNeededButAWrongOneIsRefused) {
  auto open = credential("api");
  open.require = false;
  Fixture fixture(open);
  auto asked = request("api");
  asked.placeholder.clear();
  EXPECT_EQ(fixture.ask(asked), "");
  asked.placeholder = "phother";
  EXPECT_EQ(fixture.ask(asked), "placeholder");
}

TEST(Vault, HostsOwnServicesMayBeInTheClear) {
  auto own = credential("api");
  own.hosts = {std::string(policy::kHostName)};
  own.ports = {8080};
  Fixture fixture(own);
  auto asked = request("api");
  asked.host = policy::kHostName;
  asked.port = 8080;
  asked.verified_tls = false;
  EXPECT_EQ(fixture.ask(asked), "");
  asked.verified_tls = true;
  EXPECT_EQ(fixture.ask(asked), "");
}

TEST(Vault, UsesAndLifetimeEnd) {
  auto limited = credential("api");
  limited.uses = 2;
  limited.lifetime_ms = 5'000;
  Fixture fixture(limited);
  auto wrong = request("api");
  wrong.path = "/v2";
  EXPECT_EQ(fixture.ask(wrong), "path");  // is no use
  EXPECT_EQ(fixture.ask(request("api")), "");
  EXPECT_EQ(fixture.ask(request("api")), "");
  EXPECT_EQ(fixture.ask(request("api")), "uses");
  Fixture timed(limited);
  timed.now += 4'999;
  EXPECT_EQ(timed.ask(request("api")), "");
  timed.now += 1;
  EXPECT_EQ(timed.ask(request("api")), "expired");
}

// N170: for good, and the secret is gone.
TEST(Vault, N170Revoked) {
  const auto plan = plan_of({credential("a"), credential("b")});
  auto vault = broker::Vault::open(plan, memfds({"secret-a", "secret-b"}), [] { return 0; });
  ASSERT_TRUE(vault);
  EXPECT_EQ(vault->revoke("a"), std::vector<std::size_t>{0});
  EXPECT_EQ(vault->revoke("a"), std::vector<std::size_t>{});
  EXPECT_EQ(vault->decide(request("a")).refusal, "revoked");
  EXPECT_EQ(vault->decide(request("b")).refusal, "");
  EXPECT_EQ(vault->revoke(""), std::vector<std::size_t>{1});
  EXPECT_EQ(vault->decide(request("b")).refusal, "revoked");
}

// N111: a secret that would write header fields of its own is refused when it is loaded.
TEST(Vault, AChangeMovesTheReachAndNothingElse) {
  policy::Credential bound = credential("api");
  bound.uses = 2;
  Fixture fixture(bound);
  EXPECT_EQ(fixture.ask(request("api")), "");
  plan::Plan next = fixture.plan;
  next.policy.credentials[0].paths = {"/v2/**"};
  ASSERT_TRUE(fixture.vault->change(next));
  EXPECT_EQ(fixture.ask(request("api")), "path");
  plan::LeaseRequest elsewhere = request("api");
  elsewhere.path = "/v2/me";
  EXPECT_EQ(fixture.ask(elsewhere), "");
  EXPECT_EQ(fixture.ask(elsewhere), "uses") << "a change gives no use again";
  ASSERT_EQ(fixture.vault->revoke("api").size(), 1U);
  plan::Plan last = next;
  ASSERT_TRUE(fixture.vault->change(last));
  EXPECT_EQ(fixture.ask(elsewhere), "revoked");
  for (const auto& broken : {plan_of({}), plan_of({credential("other")}),
                             plan_of({credential("api"), credential("more")})}) {
    EXPECT_FALSE(fixture.vault->change(broken));
  }
  EXPECT_EQ(fixture.ask(elsewhere), "revoked") << "a plan that was refused is not kept";
}

TEST(Vault, N111SecretsWithControlCharacters) {
  const auto plan = plan_of({credential("api")});
  const auto open = [&](std::string_view secret) {
    const auto vault = broker::Vault::open(plan, memfds({secret}), [] { return 0; });
    return vault ? std::string() : vault.error().line();
  };
  EXPECT_EQ(open("plain"), "");
  EXPECT_EQ(open("p\xc3\xa4\x7e"), "");
  for (std::string_view bad :
       {std::string_view("a\r\nX: b"), std::string_view("a\nb"), std::string_view("a\n"),
        std::string_view("a\0b", 3), std::string_view("\x7f"), std::string_view("")}) {
    const std::string line = open(bad);
    EXPECT_TRUE(line.starts_with("api: ")) << line;
  }
  EXPECT_NE(open(std::string(broker::kMaxSecret + 1, 'x')), "");
  EXPECT_EQ(open("hush-hush\n").find("hush"), std::string::npos);
  EXPECT_FALSE(broker::Vault::open(plan, {}, [] { return 0; }));
}

// --- The process -------------------------------------------------------------------------------

// A broker in a child of its own, confined as it is in a run, and the three that speak to it.
class Process {
 public:
  explicit Process(plan::Plan plan) : plan_(std::move(plan)) {
    auto control = ipc::make_pair();
    auto journal = ipc::make_pair();
    auto gateway = ipc::make_pair();
    pid_ = ::fork();
    if (pid_ == 0) {
      control_ = ipc::Channel();
      broker::Channels channels{
          std::move(control->second), std::move(journal->second), std::move(gateway->second), {}};
      for (auto* pair : {&*control, &*journal, &*gateway}) pair->first = ipc::Channel();
      const std::uint32_t id = ::geteuid() == 0 ? confine::kBrokerId : 0;
      ::_exit(broker::serve(plan_, std::move(channels), id,
                            {[] { return std::uint64_t{0}; }, [] { return std::int64_t{0}; }}));
    }
    control_ = std::move(control->first);
    journal_ = std::move(journal->first);
    gateway_ = std::move(gateway->first);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    control_ = ipc::Channel();
    if (pid_ > 0) (void)end();
  }

  // Hands the secrets over in messages of `at_once`; the problem of BrokerReady.
  std::string hand_over(std::initializer_list<std::string_view> secrets, std::size_t at_once) {
    const auto fds = memfds(secrets);
    for (std::size_t i = 0; i < fds.size(); i += at_once) {
      std::vector<int> some;
      for (std::size_t j = i; j < std::min(i + at_once, fds.size()); ++j)
        some.push_back(fds[j].get());
      EXPECT_TRUE(ipc::send_value(control_, plan::ToBroker(plan::BrokerSecrets{fds.size()}), some));
    }
    const auto answer = receive<plan::FromBroker>(control_);
    for (const auto& fd : fds) left_ += *os::read_all(fd.get(), 1 << 20, "secret");
    const auto* ready = answer ? std::get_if<plan::BrokerReady>(&*answer) : nullptr;
    return ready != nullptr ? ready->problem : "no answer";
  }
  std::optional<plan::LeaseAnswer> lease(const plan::LeaseRequest& asked) {
    if (!ipc::send_value(gateway_, asked, {})) return std::nullopt;
    return receive<plan::LeaseAnswer>(gateway_);
  }
  bool revoke(const std::string& name) {
    return ipc::send_value(control_, plan::ToBroker(plan::BrokerRevoke{name, "operator"}), {}) &&
           receive<plan::FromBroker>(control_).has_value();
  }
  // "TYPE MEMBERS" of the next event.
  std::string event() {
    const auto draft = receive<journal::Draft>(journal_);
    return draft ? draft->type + " " + draft->members : "none";
  }
  int end() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  plan::Plan plan_;
  ipc::Channel control_;
  ipc::Channel journal_;
  ipc::Channel gateway_;
  std::string left_;  // what the memfds still held after the hand-over
  int pid_ = 0;

 private:
  template <class T>
  static std::optional<T> receive(const ipc::Channel& channel) {
    const auto message = channel.receive();
    if (!message || !*message) return std::nullopt;
    auto value = base::decode<T>((*message)->bytes, "message");
    return value ? std::optional<T>(std::move(*value)) : std::nullopt;
  }
};

TEST(Serve, LendsRecordsAndEndsWithItsSupervisor) {
  Process process(plan_of({credential("api")}));
  ASSERT_EQ(process.hand_over({kSecret}, 16), "");
  EXPECT_EQ(process.left_, "");  // the copies are emptied
  EXPECT_EQ(
      process.event(),
      R"(credential.issued "credential":"api","hosts":["api.example.com"],"methods":["GET","POST"],)"
      R"("paths":["/v1/**"])");
  const auto lease = process.lease(request("api"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->refusal, "");
  EXPECT_EQ(lease->secret, kSecret);
  EXPECT_EQ(
      process.event(),
      R"(credential.used "credential":"api","host":"api.example.com","port":443,"method":"GET",)"
      R"("path":"/v1/me","tls":true,"use":1)");
  auto wrong = request("api");
  wrong.path = "/v2/me";
  const auto refused = process.lease(wrong);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal, "path");
  EXPECT_EQ(refused->secret, "");
  EXPECT_EQ(
      process.event(),
      R"(credential.refused "credential":"api","host":"api.example.com","port":443,"method":"GET",)"
      R"("path":"/v2/me","reason":"path")");
  process.control_ = ipc::Channel();
  EXPECT_EQ(process.event(), R"(credential.revoked "credential":"api","why":"run ended","uses":1)");
  EXPECT_EQ(process.end(), 0);
}

TEST(Serve, N170RevokesAtOnce) {
  Process process(plan_of({credential("a"), credential("b")}));
  ASSERT_EQ(process.hand_over({"secret-a", "secret-b"}, 1), "");
  process.event();
  process.event();
  ASSERT_TRUE(process.revoke("a"));
  EXPECT_EQ(process.event(), R"(credential.revoked "credential":"a","why":"operator","uses":0)");
  EXPECT_EQ(process.lease(request("a"))->refusal, "revoked");
  EXPECT_EQ(process.lease(request("b"))->secret, "secret-b");
}

TEST(Serve, N111EndsWithAProblemThatDoesNotShowTheSecret) {
  Process process(plan_of({credential("api")}));
  const std::string problem = process.hand_over({"hush\r\nX: y"}, 16);
  EXPECT_TRUE(problem.starts_with("api: the secret has a line break")) << problem;
  EXPECT_EQ(problem.find("hush"), std::string::npos);
  EXPECT_EQ(process.end(), 125);
}

// A journal that is gone ends lending, but where the policy says it may be missing.
TEST(Serve, NoUseWithoutItsEvent) {
  for (const policy::Need need : {policy::Need::required, policy::Need::best}) {
    auto plan = plan_of({credential("api")});
    plan.policy.audit.journal = need;
    Process process(plan);
    ASSERT_EQ(process.hand_over({kSecret}, 16), "");
    process.journal_ = ipc::Channel();
    const auto lease = process.lease(request("api"));
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->refusal, need == policy::Need::required ? "journal" : "");
    EXPECT_EQ(lease->secret, need == policy::Need::required ? "" : kSecret);
  }
}

// A gateway that talks nonsense is cut off; the supervisor is still served.
TEST(Serve, MalformedRequestsEndTheGatewaysChannel) {
  Process process(plan_of({credential("api")}));
  ASSERT_EQ(process.hand_over({kSecret}, 16), "");
  ASSERT_TRUE(process.gateway_.send("nonsense", {}));
  const auto answer = process.gateway_.receive();
  EXPECT_TRUE(!answer || !*answer);
  EXPECT_TRUE(process.revoke(""));
  process.control_ = ipc::Channel();
  EXPECT_EQ(process.end(), 0);
}

TEST(Serve, TooFewSecretsAreAProblem) {
  Process process(plan_of({credential("a"), credential("b")}));
  EXPECT_NE(process.hand_over({"secret-a"}, 16), "");
  EXPECT_EQ(process.end(), 125);
}

// What confines the process that holds the secrets (N184).
TEST(Serve, N184IsConfined) {
  if (::geteuid() != 0) GTEST_SKIP() << "root only";
  Process process(plan_of({credential("api")}));
  ASSERT_EQ(process.hand_over({kSecret}, 16), "");
  std::ifstream file("/proc/" + std::to_string(process.pid_) + "/status");
  std::stringstream text;
  text << file.rdbuf();
  const std::string status = text.str();
  const std::string id = std::to_string(confine::kBrokerId);
  EXPECT_NE(status.find("Uid:\t" + id + "\t" + id + "\t" + id + "\t" + id), std::string::npos);
  for (const char* line : {"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000",
                           "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}) {
    EXPECT_NE(status.find(line), std::string::npos) << line;
  }
}

}  // namespace
