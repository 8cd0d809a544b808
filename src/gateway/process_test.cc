// The whole process: cerco-gateway started as the supervisor starts it, confined, serving, drained.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "gateway/testing.h"
#include "ipc/ipc.h"
#include "os/os.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;

os::Endpoint at(std::uint8_t last, std::uint16_t port) {
  return {.v6 = false, .address = {127, 0, 0, last}, .port = port};
}

base::Fd connected(std::uint16_t port) {
  auto fd = os::start_connect(at(2, port));
  if (!fd || !os::wait_writable(fd->get(), 10'000)) {
    ADD_FAILURE() << "cannot connect";
    return {};
  }
  ::fcntl(fd->get(), F_SETFL, 0);
  return std::move(*fd);
}

// A gateway whose pool of addresses is 127.0.0.0/8, so that a test needs no network namespace: the
// listening socket is bound to the second address of the pool, which the second name gets.
class Gateway {
 public:
  explicit Gateway(std::uint16_t port) {
    const std::string text =
        "version = 1\n[[egress]]\nhost = \"first.example.com\"\n"
        "[[egress]]\nhost = \"host.cerco.internal\"\nports = [" +
        std::to_string(port) + "]\nmethods = [\"GET\"]\n";
    auto policy = policy::parse(text, "t", {}, {.cpus_milli = 1000, .memory = 1 << 30});
    if (!policy) ADD_FAILURE() << policy.error().line();
    plan::Plan plan;
    plan.run = "processtests";
    plan.policy = policy->policy;
    for (int i = 0; i <= static_cast<int>(plan::Protection::last_); ++i) {
      plan.protections.insert(static_cast<plan::Protection>(i));
    }
    plan.terminates = true;
    plan.steps.emplace_back(plan::Capture{.pool_v4 = "127.0.0.0/8"});
    auto [control, control_end] = std::move(*ipc::make_pair());
    auto [journal, journal_end] = std::move(*ipc::make_pair());
    control_ = std::move(control);
    journal_ = std::move(journal);
    const base::Fd file = std::move(*os::sealed_memfd("plan", base::encode(plan)));
    const base::Fd roots = std::move(*os::sealed_memfd("roots", ""));
    const std::string program = std::string(CERCO_BUILD_DIR) + "/cerco-gateway";
    const std::vector<std::string> argv = {program};
    const std::vector<std::pair<int, int>> pairs = {{file.get(), plan::kFdPlan},
                                                    {control_end.fd(), plan::kFdControl},
                                                    {journal_end.fd(), plan::kFdJournal},
                                                    {roots.get(), plan::kFdRoots}};
    auto child = os::spawn(argv, {}, pairs);
    if (child) {
      child_ = std::move(*child);
    } else {
      ADD_FAILURE() << child.error().line();
    }
    dns_ = base::Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in any = {
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(::bind(dns_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    EXPECT_TRUE(os::ask_for_destination(dns_.get(), false));
    tcp_ = std::move(*os::listen(at(2, port)));
  }

  plan::FromGateway next() {
    const auto message = control_.receive();
    if (!message || !*message) {
      ADD_FAILURE() << "the gateway has ended";
      return {};
    }
    return *base::decode<plan::FromGateway>((*message)->bytes, "from gateway");
  }
  void say(const plan::ToGateway& message) { EXPECT_TRUE(ipc::send_value(control_, message, {})); }
  void serve() {
    auto spare = [] { return base::Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); };
    const base::Fd tcp6 = std::move(*os::listen(at(3, 0)));
    const base::Fd dns6 = spare();
    const base::Fd stream4 = std::move(*os::listen(at(3, 0)));
    const base::Fd stream6 = std::move(*os::listen(at(3, 0)));
    const base::Fd log = spare();
    const int fds[] = {tcp_.get(),    tcp6.get(),    dns_.get(), dns6.get(),
                       stream4.get(), stream6.get(), log.get()};
    const plan::ToGateway message = plan::GatewayServe{};
    EXPECT_TRUE(ipc::send_value(control_, message, fds));
  }
  // The last byte of the address that a name gets.
  int ask(const std::string& name) {
    std::string query("\0\1\1\0\0\1\0\0\0\0\0\0", 12);
    for (const auto& label : base::split(name, '.')) {
      query += static_cast<char>(label.size());
      query += label;
    }
    query += std::string("\0\0\1\0\1", 5);
    const base::Fd client(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(os::local_endpoint(dns_.get())->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    (void)::send(client.get(), query.data(), query.size(), 0);
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char answer[512];
    const ssize_t got = ::recv(client.get(), answer, sizeof answer, 0);
    return got > 0 && answer[7] != 0 ? static_cast<unsigned char>(answer[got - 1]) : -1;
  }
  std::vector<journal::Draft> events() {
    std::vector<journal::Draft> all;
    os::PacketReader reader(ipc::kMaxMessage, 0);
    while (true) {
      const auto got = reader.next(journal_.fd());
      if (!got || *got != os::Got::message) return all;
      all.push_back(*base::decode<journal::Draft>(reader.bytes(), "draft"));
    }
  }
  // What a client is answered on a connection of its own to the host's service.
  static std::string request(std::uint16_t port, const std::string& method) {
    const Peer client(connected(port));
    client.send(method + " /a HTTP/1.1\r\nHost: host.cerco.internal:" + std::to_string(port) +
                "\r\nConnection: close\r\n\r\n");
    return client.read_until(method == "GET" ? "ok" : "}\n");
  }
  int wait() { return *child_.wait(); }
  int pid() const { return child_.pid(); }
  void hang_up() { control_ = ipc::Channel(); }

 private:
  ipc::Channel control_;
  ipc::Channel journal_;
  os::Child child_;
  base::Fd dns_;
  base::Fd tcp_;
};

std::string status_line(int pid, const std::string& key) {
  const auto text = os::read_file("/proc/" + std::to_string(pid) + "/status", 1 << 16);
  const std::size_t found = text->find(key + ":\t");
  if (found == std::string::npos) return {};
  return text->substr(found, text->find('\n', found) - found);
}

TEST(Process, ServesDnsAndHttpAndDrains) {
  std::string seen;
  Upstream upstream([&](const Peer& peer) {
    seen = peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  Gateway gateway(upstream.port());
  const auto ready = std::get<plan::GatewayReady>(gateway.next());
  EXPECT_TRUE(ready.authority.starts_with("-----BEGIN CERTIFICATE-----"));
  gateway.serve();
  EXPECT_EQ(gateway.ask("first.example.com"), 1);
  EXPECT_EQ(gateway.ask("host.cerco.internal"), 2);
  EXPECT_EQ(gateway.ask("evil.test"), -1);
  EXPECT_TRUE(gateway.request(upstream.port(), "GET").contains("200 OK"));
  EXPECT_TRUE(gateway.request(upstream.port(), "POST").contains("403 Forbidden"));
  EXPECT_TRUE(seen.starts_with("GET /a"));
  // N184: nobody reads its memory, and it has nothing left.
  EXPECT_EQ(status_line(gateway.pid(), "NoNewPrivs"), "NoNewPrivs:\t1");
  EXPECT_EQ(status_line(gateway.pid(), "CapEff"), "CapEff:\t0000000000000000");
  EXPECT_EQ(status_line(gateway.pid(), "Seccomp"), "Seccomp:\t2");
  gateway.say(plan::GatewayDrain{});
  EXPECT_EQ(std::get<plan::GatewayDrained>(gateway.next()).logged, 0U);
  EXPECT_EQ(gateway.wait(), 0);
  int decisions = 0;
  int ended = 0;
  int names = 0;
  for (const auto& draft : gateway.events()) {
    decisions += draft.type == "egress.decision" ? 1 : 0;
    ended += draft.type == "egress.ended" ? 1 : 0;
    names += draft.type == "dns.decision" ? 1 : 0;
  }
  EXPECT_EQ(decisions, 2);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(names, 3);
}

TEST(Process, EndsWithItsSupervisor) {
  Gateway gateway(1);
  (void)gateway.next();
  gateway.hang_up();
  EXPECT_NE(gateway.wait(), 0);
}

TEST(Process, DoesNotServeWithoutItsSockets) {
  Gateway gateway(1);
  (void)gateway.next();
  gateway.say(plan::GatewayServe{});
  EXPECT_NE(gateway.wait(), 0);
}

}  // namespace
}  // namespace gateway
