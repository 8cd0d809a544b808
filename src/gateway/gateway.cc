// From the descriptors that the supervisor gave to a process that serves: made, confined, ready.
#include "gateway/gateway.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include "confine/confine.h"
#include "gateway/change.h"
#include "gateway/core.h"
#include "gateway/credentials.h"
#include "gateway/dns.h"
#include "gateway/refused_log.h"
#include "gateway/servers.h"
#include "gateway/upstream_proxy.h"
#include "ipc/ipc.h"

namespace gateway {
namespace {

constexpr std::size_t kMostPlan = std::size_t{16} << 20;
constexpr std::size_t kMostRoots = std::size_t{8} << 20;
constexpr std::size_t kMostPassword = std::size_t{64} << 10;
constexpr int kResolveMs = 2500;
constexpr std::uint64_t kWeekSeconds = 7ULL * 24 * 3600;
constexpr std::chrono::seconds kPatience{2};  // for connections to end when everything is over

std::int64_t now_seconds() {
  return std::time(nullptr);
}

// Where the policy names hosts and nobody can be asked, every lookup fails; nothing else is weaker.
class NoResolver final : public Resolver {
 public:
  asio::awaitable<base::Result<std::vector<policy::Address>>> resolve(std::string name) override {
    co_return base::fail(base::Kind::peer, "resolve " + name, "this host has no resolver", {});
  }
};

base::Result<plan::Plan> read_plan() {
  const base::Fd fd(plan::kFdPlan);
  const std::string bytes = TRY(os::read_all(fd.get(), kMostPlan, "plan"));
  return base::decode<plan::Plan>(bytes, "plan");
}

base::Result<plan::Capture> capture_of(const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps) {
    if (const auto* capture = std::get_if<plan::Capture>(&step)) return *capture;
  }
  return plan::Capture{};
}

base::Result<http::Authority> make_authority(const plan::Plan& plan) {
  const std::uint64_t wall = plan.policy.limits.wall_ms;
  const std::uint64_t seconds =
      wall == policy::kUnlimited ? kWeekSeconds : std::min(wall / 1000 + 60, kWeekSeconds);
  return http::Authority::make(plan.run, seconds, now_seconds);
}

// Everything that the process is made of; made before it confines itself, in this order.
class Process {
 public:
  [[nodiscard]] base::Status make();
  [[nodiscard]] base::Status confine_and_serve();

 private:
  [[nodiscard]] base::Status make_room();
  [[nodiscard]] base::Status open_services();
  [[nodiscard]] base::Result<http::TlsContext> upstream_context();
  void watch_control();
  void take_control();
  void take(plan::ToGateway message, std::vector<base::Fd> fds);
  void start_serving(std::vector<base::Fd> fds);
  void start_listening(const plan::GatewayListen& listen, std::vector<base::Fd> fds);
  void take_proxy_password(std::vector<base::Fd> fds);
  void change(std::vector<base::Fd> fds);
  void cut();
  void drain();
  void finish_drain();
  void tick();
  void stop(int status);

  asio::io_context io_{1};
  plan::Plan plan_;
  Limits limits_;
  ipc::Channel control_;
  std::unique_ptr<asio::posix::stream_descriptor> control_watch_;
  std::unique_ptr<os::PacketReader> control_reader_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<Names> names_;
  std::optional<os::Interfaces> interfaces_;
  std::optional<Guard> guard_;
  std::unique_ptr<Resolver> resolver_;
  TcpConnector connector_;
  std::unique_ptr<Credentials> credentials_;
  std::optional<http::Authority> authority_;
  std::string roots_;
  http::TlsContext upstream_tls_;
  std::optional<UpstreamProxy> upstream_proxy_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Dns> dns_;
  std::unique_ptr<RefusedLog> refused_;
  std::unique_ptr<Servers> servers_;
  asio::steady_timer timer_{io_};
  bool ticking_ = false;
  bool draining_ = false;
  Clock::time_point drain_until_;
  int status_ = 0;

 public:
  [[nodiscard]] int status() const { return status_; }
};

// A tunnel takes two sockets and two pipes; some descriptors stay free for everything else, so that
// no number of connections keeps the gateway from hearing its supervisor.
base::Status Process::make_room() {
  constexpr std::uint64_t kMostFiles = 8192;
  constexpr std::uint64_t kSpare = 64;
  constexpr std::uint64_t kEach = 6;
  const std::uint64_t files = std::min(os::hard_limit_of_files(), kMostFiles);
  if (files < kSpare + kEach) {
    return base::fail(base::Kind::missing, "gateway", "too few open files are allowed here", {});
  }
  limits_.connections = std::min<std::size_t>(limits_.connections, (files - kSpare) / kEach);
  return confine::as_status(confine::rlimits(files), "gateway");
}

base::Status Process::make() {
  TRY(make_room());
  plan_ = TRY(read_plan());
  control_ = ipc::Channel(base::Fd(plan::kFdControl));
  recorder_ = std::make_unique<Recorder>(io_, ipc::Channel(base::Fd(plan::kFdJournal)));
  const plan::Capture capture = TRY(capture_of(plan_));
  names_.emplace(TRY(Names::make(capture.pool_v4, capture.pool_v6, limits_.names)));
  interfaces_.emplace(TRY(os::Interfaces::open()));
  guard_.emplace(plan_, [this] { return interfaces_->now(); });
  if (plan_.resolvers.empty()) {
    resolver_ = std::make_unique<NoResolver>();
  } else {
    resolver_ = TRY(make_resolver(io_, plan_.resolvers, kResolveMs));
  }
  return open_services();
}

base::Status Process::open_services() {
  std::unique_ptr<LeaseDesk> desk;
  if (!plan_.policy.credentials.empty()) {
    desk = TRY(LeaseDesk::make(io_, ipc::Channel(base::Fd(plan::kFdBroker))));
  }
  credentials_ = std::make_unique<Credentials>(plan_, std::move(desk));
  if (plan_.terminates) {
    authority_.emplace(TRY(make_authority(plan_)));
  }
  const base::Fd roots(plan::kFdRoots);
  roots_ = TRY(os::read_all(roots.get(), kMostRoots, "roots"));
  const policy::UpstreamProxy& proxy = plan_.policy.network.upstream_proxy;
  if (!proxy.url.empty()) upstream_proxy_.emplace(proxy, TRY(policy::proxy_place(proxy.url)));
  core_.reset(new Core{.io = io_,
                       .plan = plan_,
                       .limits = limits_,
                       .recorder = *recorder_,
                       .names = *names_,
                       .guard = *guard_,
                       .resolver = *resolver_,
                       .connector = connector_,
                       .credentials = *credentials_});
  core_->upstream_proxy = upstream_proxy_ ? &*upstream_proxy_ : nullptr;
  recorder_->change_policy(plan_.policy.revision);
  for (const std::string& name : plan_.retired) credentials_->revoke(name);
  core_->authority = authority_ ? &*authority_ : nullptr;
  core_->upstream_tls = [this] { return upstream_context(); };
  dns_ = std::make_unique<Dns>(*core_);
  refused_ = std::make_unique<RefusedLog>(*core_);
  servers_ = std::make_unique<Servers>(*core_, *dns_, *refused_, [this] { tick(); });
  return {};
}

// Parsing a host's roots takes a while, and many runs never need them.
base::Result<http::TlsContext> Process::upstream_context() {
  if (!upstream_tls_) {
    const bool verify = plan_.protections.contains(plan::Protection::upstream_verify);
    upstream_tls_ = TRY(http::client_context(
        roots_, verify ? http::Verification::required : http::Verification::off));
    roots_ = std::string();
  }
  return upstream_tls_;
}

base::Status Process::confine_and_serve() {
  const std::uint32_t id = ::geteuid() == 0 ? confine::kGatewayId : 0;
  TRY(confine::shut_in(confine::Own::gateway, id, {}));
  const plan::FromGateway ready =
      plan::GatewayReady{.authority = authority_ ? authority_->pem() : std::string()};
  TRY(ipc::send_value(control_, ready, {}));
  watch_control();
  io_.run();
  return {};
}

// --- The supervisor's word ---------------------------------------------------------------------

void Process::watch_control() {
  constexpr std::size_t kMost = 4096;
  control_reader_ = std::make_unique<os::PacketReader>(kMost, 7);
  auto copy = os::duplicate(control_.fd());
  if (!copy) return stop(1);
  control_watch_ = std::make_unique<asio::posix::stream_descriptor>(io_, copy->release());
  take_control();
}

void Process::take_control() {
  while (status_ == 0 && !io_.stopped()) {
    const auto got = control_reader_->next(control_.fd());
    if (!got || *got == os::Got::end) return stop(got && draining_ ? 0 : 1);
    if (*got == os::Got::nothing) break;
    auto message = base::decode<plan::ToGateway>(control_reader_->bytes(), "gateway control");
    if (!message) return stop(1);
    take(std::move(*message), std::exchange(control_reader_->fds(), {}));
  }
  control_watch_->async_wait(asio::posix::stream_descriptor::wait_read,
                             [this](const boost::system::error_code& error) {
                               if (!error) take_control();
                             });
}

void Process::take(plan::ToGateway message, std::vector<base::Fd> fds) {
  if (std::holds_alternative<plan::GatewayServe>(message)) return start_serving(std::move(fds));
  if (std::holds_alternative<plan::GatewayCut>(message)) return cut();
  if (std::holds_alternative<plan::GatewayDrain>(message)) return drain();
  if (std::holds_alternative<plan::GatewayChange>(message)) return change(std::move(fds));
  if (std::holds_alternative<plan::GatewayProxyPassword>(message)) {
    return take_proxy_password(std::move(fds));
  }
  if (const auto* listen = std::get_if<plan::GatewayListen>(&message)) {
    return start_listening(*listen, std::move(fds));
  }
  const std::string& name = std::get<plan::GatewayRevoke>(message).credential;
  credentials_->revoke(name);
  stop_users(*core_, name);
}

void Process::start_serving(std::vector<base::Fd> fds) {
  if (fds.size() != 7) return stop(1);
  const auto opened = servers_->open({.tcp4 = std::move(fds[0]),
                                      .tcp6 = std::move(fds[1]),
                                      .dns4 = std::move(fds[2]),
                                      .dns6 = std::move(fds[3]),
                                      .dns_tcp4 = std::move(fds[4]),
                                      .dns_tcp6 = std::move(fds[5]),
                                      .refused = std::move(fds[6])});
  if (!opened) stop(1);
}

// Without a token nobody is served.
void Process::start_listening(const plan::GatewayListen& listen, std::vector<base::Fd> fds) {
  core_->proxy_token = listen.token_sha256;
  if (listen.token_sha256.empty() || !servers_->open_proxy(std::move(fds))) stop(1);
}

// It stands in no plan, and is held in locked memory.
void Process::take_proxy_password(std::vector<base::Fd> fds) {
  if (fds.size() != 1 || !upstream_proxy_) return stop(1);
  auto bytes = os::read_at(fds[0].get(), kMostPassword, 0, "password");
  if (!bytes) return stop(1);
  auto password = base::Secret::hold(*bytes);
  base::wipe(*bytes);
  if (!password || password->empty()) return stop(1);
  upstream_proxy_->take_password(std::move(*password));
}

// A change that cannot be read would leave the old rules in force: better none at all.
void Process::change(std::vector<base::Fd> fds) {
  if (fds.size() != 1) return stop(1);
  auto bytes = os::read_all(fds[0].get(), kMostPlan, "plan");
  auto next = bytes ? base::decode<plan::Plan>(*bytes, "plan")
                    : base::Result<plan::Plan>(std::unexpected(bytes.error()));
  if (!next) return stop(1);
  put_in_force(*core_, plan_, std::move(*next));
  const plan::FromGateway changed = plan::GatewayChanged{};
  if (!ipc::send_value(control_, changed, {})) stop(1);
}

void Process::cut() {
  core_->cut = true;
  stop_all(*core_);
}

// --- Time --------------------------------------------------------------------------------------

// Time is kept only while there is something to keep it for: an idle gateway does not wake up.
void Process::tick() {
  if (ticking_) return;
  ticking_ = true;
  timer_.expires_after(limits_.sweep);
  timer_.async_wait([this](const boost::system::error_code& error) {
    ticking_ = false;
    if (error) return;
    sweep(*core_);
    refused_->tell(RefusedLog::Which::ripe);
    // Without a journal nothing may go on: the end of the gateway is the end of the network.
    if (recorder_->holds()) (void)recorder_->flush();
    if (recorder_->lost()) return stop(1);
    if (draining_) return finish_drain();
    if (!core_->connections.empty() || refused_->holds() || recorder_->holds()) tick();
  });
}

// --- The end -----------------------------------------------------------------------------------

void Process::drain() {
  draining_ = true;
  drain_until_ = Clock::now() + kPatience;
  servers_->drain_log();
  servers_->close();
  stop_all(*core_);
  finish_drain();
}

void Process::finish_drain() {
  if (!core_->connections.empty() && Clock::now() < drain_until_) {
    timer_.expires_after(std::chrono::milliseconds(5));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) finish_drain();
    });
    return;
  }
  refused_->tell(RefusedLog::Which::all);
  dns_->finish();
  const bool told = recorder_->flush().has_value();
  const plan::FromGateway drained = plan::GatewayDrained{.logged = refused_->read_so_far()};
  const bool answered = ipc::send_value(control_, drained, {}).has_value();
  stop(told && answered ? 0 : 1);
}

void Process::stop(int status) {
  status_ = status;
  io_.stop();
}

}  // namespace

int serve() {
  // A peer that is gone is an error of one write, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  // Never destroyed: connections that are still open at the end go with the process.
  Process& process = *new Process;
  auto made = process.make();
  if (made) made = process.confine_and_serve();
  if (!made) {
    fmt::print(stderr, "cerco-gateway: {}\n", made.error().line());
    return 1;
  }
  return process.status();
}

}  // namespace gateway
