// The small world of the gateway's tests.
#include "gateway/testing.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <csignal>

#include "gateway/session.h"
#include "policy/policy.h"

namespace gateway::testing {
namespace {

os::Endpoint loopback(std::uint16_t port) {
  return {.v6 = false, .address = {127, 0, 0, 1}, .port = port};
}

void rethrow(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

std::string spell(const policy::Address& address, std::uint16_t port) {
  return policy::to_string(address) + ":" + std::to_string(port);
}

}  // namespace

Peer::Peer(base::Fd fd) : fd_(std::move(fd)) {
  const timeval patience = {.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

Peer Peer::connect(std::uint16_t port) {
  auto fd = os::start_connect(loopback(port));
  if (!fd) return {};
  pollfd wait = {.fd = fd->get(), .events = POLLOUT, .revents = 0};
  ::poll(&wait, 1, 10'000);
  ::fcntl(fd->get(), F_SETFL, 0);
  return Peer(std::move(*fd));
}

void Peer::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string Peer::read_some() const {
  char buffer[65536];
  const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

std::string Peer::read_until(std::string_view end) const {
  std::string all;
  while (!all.contains(end)) {
    const std::string some = read_some();
    if (some.empty()) break;
    all += some;
  }
  return all;
}

std::string Peer::read_all() const {
  std::string all;
  for (std::string some = read_some(); !some.empty(); some = read_some()) all += some;
  return all;
}

std::string Peer::read_exactly(std::size_t count) const {
  std::string all(count, '\0');
  const ssize_t got = ::recv(fd_.get(), all.data(), count, MSG_WAITALL);
  all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return all;
}

bool Peer::was_reset() const {
  char buffer[4096];
  ssize_t got = 0;
  do {
    got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  } while (got > 0);
  return got < 0 && errno == ECONNRESET;
}

void Peer::finish_sending() const {
  ::shutdown(fd_.get(), SHUT_WR);
}

TlsPeer::TlsPeer(const Peer& peer, const http::TlsContext& context, Side side,
                 const std::string& host, Speaks speaks)
    : ssl_(SSL_new(context.get())) {
  SSL_set_fd(ssl_, peer.fd());
  if (side == Side::client) {
    EXPECT_TRUE(http::expect_peer(ssl_, host));
    if (speaks == Speaks::http2) EXPECT_TRUE(http::offer_http2(ssl_));
    shook_hands_ = SSL_connect(ssl_) == 1;
  } else {
    shook_hands_ = SSL_accept(ssl_) == 1;
  }
}

TlsPeer::~TlsPeer() {
  SSL_free(ssl_);
}

void TlsPeer::send(std::string_view bytes) const {
  while (shook_hands_ && !bytes.empty()) {
    const int put = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    if (put <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

std::string TlsPeer::read_some() const {
  char buffer[16384];
  const int got = shook_hands_ ? SSL_read(ssl_, buffer, sizeof buffer) : 0;
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

std::string TlsPeer::read_until(std::string_view end) const {
  std::string all;
  while (!all.contains(end)) {
    const std::string some = read_some();
    if (some.empty()) break;
    all += some;
  }
  return all;
}

void TlsPeer::close() const {
  if (shook_hands_) SSL_shutdown(ssl_);
}

Upstream::Upstream(std::function<void(Peer)> each) {
  listener_ = std::move(*os::listen(loopback(0)));
  port_ = os::local_endpoint(listener_.get())->port;
  thread_ = std::thread([this, each = std::move(each)] {
    while (!ending_) {
      pollfd wait = {.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++connections_;
      serve(each, fd);
    }
  });
}

void Upstream::serve(const std::function<void(Peer)>& each, int fd) {
  {
    const std::scoped_lock lock(mutex_);
    serving_ = ending_ ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  }
  each(Peer(base::Fd(fd)));
  const std::scoped_lock lock(mutex_);
  if (serving_ >= 0) ::close(std::exchange(serving_, -1));
}

Upstream::~Upstream() {
  ending_ = true;
  {
    const std::scoped_lock lock(mutex_);
    if (serving_ >= 0) ::shutdown(serving_, SHUT_RDWR);
  }
  thread_.join();
}

class World::FakeResolver final : public Resolver {
 public:
  explicit FakeResolver(World& world) : world_(world) {}
  asio::awaitable<base::Result<std::vector<policy::Address>>> resolve(std::string name) override {
    world_.asked.push_back(name);
    // As with a real lookup, other connections go on meanwhile.
    co_await asio::post(world_.io_, asio::use_awaitable);
    if (world_.broken.contains(name)) {
      co_return base::fail(base::Kind::peer, "resolve", "no answer", {});
    }
    const auto found = world_.names.find(name);
    if (found == world_.names.end()) {
      co_return base::fail(base::Kind::not_found, "resolve", "no such name", {});
    }
    std::vector<policy::Address> addresses;
    for (const auto& text : found->second) addresses.push_back(*policy::parse_address(text));
    co_return addresses;
  }

 private:
  World& world_;
};

class World::FakeConnector final : public Connector {
 public:
  explicit FakeConnector(World& world) : world_(world) {}
  base::Result<base::Fd> start(const Passed& to, std::uint16_t port) override {
    const std::string where = spell(to.address(), port);
    world_.dialled.push_back(where);
    const auto found = world_.listening.find(where);
    if (found == world_.listening.end()) return base::system_error("connect", ECONNREFUSED);
    return os::start_connect(loopback(found->second));
  }

 private:
  World& world_;
};

World::World(const std::string& policy, const std::set<plan::Protection>& without) {
  auto effective =
      policy::parse(policy, "test.toml", {}, {.cpus_milli = 2000, .memory = 4ULL << 30});
  if (!effective) ADD_FAILURE() << effective.error().line();
  plan.run = "testtesttest";
  if (effective) plan.policy = effective->policy;
  for (int i = 0; i <= static_cast<int>(plan::Protection::last_); ++i) {
    const auto protection = static_cast<plan::Protection>(i);
    if (!without.contains(protection)) plan.protections.insert(protection);
  }
  for (const auto& credential : plan.policy.credentials) {
    plan.placeholders.push_back({.credential = credential.name,
                                 .field = "secret",
                                 .value = "cerco-placeholder-of-" + credential.name});
  }
  std::signal(SIGPIPE, SIG_IGN);
}

World::~World() {
  if (!core_) return;
  stop_all(*core_);
  for (int i = 0; i < 200 && !core_->connections.empty(); ++i) pump(5);
  EXPECT_TRUE(core_->connections.empty());
}

Core& World::core() {
  if (core_) return *core_;
  auto [ours, theirs] = std::move(*ipc::make_pair());
  recorder_ = std::make_unique<Recorder>(io_, std::move(ours));
  journal_ = std::move(theirs);
  auto [desk, broker_end] = std::move(*ipc::make_pair());
  broker_ = std::move(broker_end);
  (void)os::set_nonblocking(broker_.fd());
  names_.emplace(*Names::make("198.19.0.0/16", "fd63:6572:636f:1::/64", limits.names));
  guard_.emplace(plan, [this]() -> base::Result<const os::LocalNetworks*> { return &local; });
  resolver_ = std::make_unique<FakeResolver>(*this);
  connector_ = std::make_unique<FakeConnector>(*this);
  credentials_ =
      std::make_unique<Credentials>(plan, std::move(*LeaseDesk::make(io_, std::move(desk))));
  core_.reset(new Core{.io = io_,
                       .plan = plan,
                       .limits = limits,
                       .recorder = *recorder_,
                       .names = *names_,
                       .guard = *guard_,
                       .resolver = *resolver_,
                       .connector = *connector_,
                       .credentials = *credentials_});
  core_->destination_of = [this](int socket) -> base::Result<os::Endpoint> {
    return going_to_.at(os::peer_endpoint(socket)->port);
  };
  core_->authority = authority;
  const policy::UpstreamProxy& proxy = plan.policy.network.upstream_proxy;
  if (!proxy.url.empty()) {
    upstream_proxy_.emplace(proxy, *policy::proxy_place(proxy.url));
    upstream_proxy_->take_password(*base::Secret::hold(proxy_password));
    core_->upstream_proxy = &*upstream_proxy_;
  }
  core_->upstream_tls = [this] {
    const bool verify = plan.protections.contains(plan::Protection::upstream_verify);
    return http::client_context(roots,
                                verify ? http::Verification::required : http::Verification::off);
  };
  dns_ = std::make_unique<Dns>(*core_);
  listener_ = std::move(*os::listen(loopback(0)));
  port_ = os::local_endpoint(listener_.get())->port;
  return *core_;
}

Dns& World::dns() {
  core();
  return *dns_;
}

Peer World::connect(const std::string& host, std::uint16_t port) {
  core();
  Peer peer = Peer::connect(port_);
  os::Endpoint to;
  if (const auto address = policy::parse_address(host)) {
    to = to_endpoint(*address, port);
  } else {
    to = to_endpoint(names_->give(host)->place.v4, port);
  }
  going_to_[os::local_endpoint(peer.fd())->port] = to;
  while (true) {
    auto socket = os::accept(listener_.get());
    if (!socket) continue;
    asio::co_spawn(io_, serve_session(*core_, std::move(*socket)), rethrow);
    return peer;
  }
}

void World::pump(int ms) {
  sweep(*core_);
  io_.restart();
  io_.run_for(std::chrono::milliseconds(ms));
  answer_leases();
  read_journal();
}

void World::answer_leases() {
  os::PacketReader reader(65536, 0);
  while (broker_.open()) {
    const auto got = reader.next(broker_.fd());
    if (!got || *got != os::Got::message) return;
    const auto request = base::decode<plan::LeaseRequest>(reader.bytes(), "lease");
    leases.push_back(*request);
    if (!broker) {
      broker_ = ipc::Channel();
      return;
    }
    plan::LeaseAnswer answer = broker(*request);
    answer.id = request->id;
    (void)ipc::send_value(broker_, answer, {});
  }
}

void World::run(const std::function<void()>& client) {
  core();
  std::atomic<bool> done = false;
  std::thread thread([&] {
    client();
    done = true;
  });
  while (!done) pump(2);
  thread.join();
  for (int i = 0; i < 10; ++i) pump(2);
}

void World::settle() {
  for (int i = 0; i < 2000 && !core().connections.empty(); ++i) pump(2);
}

void World::read_journal() {
  if (!journal_.open()) return;
  os::PacketReader reader(ipc::kMaxMessage, 0);
  while (true) {
    const auto got = reader.next(journal_.fd());
    if (!got || *got != os::Got::message) return;
    const auto draft = base::decode<journal::Draft>(reader.bytes(), "draft");
    if (!draft) {
      ADD_FAILURE() << "malformed draft";
      return;
    }
    events_.push_back({draft->type, draft->members, draft->ref, draft->of});
  }
}

std::vector<Event> World::events() {
  (void)core().recorder.flush();
  read_journal();
  return events_;
}

std::vector<Event> World::decisions() {
  std::vector<Event> found;
  for (Event& event : events()) {
    if (event.type == "egress.decision") found.push_back(std::move(event));
  }
  return found;
}

void run_to_end(asio::io_context& io, asio::awaitable<void> work) {
  asio::co_spawn(io, std::move(work), rethrow);
  io.restart();
  io.run();
}

}  // namespace gateway::testing
