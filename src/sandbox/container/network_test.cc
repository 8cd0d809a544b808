// What becomes of packets in a sandbox's network: E80, E81, E84, E86 of the escape cases, and what
// the gateway is given.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "sandbox/container/fixture.h"

namespace sandbox::testing {
namespace {

// Text of an address with its port, from a socket address of either family.
std::string text_of(const sockaddr_storage& at) {
  char text[INET6_ADDRSTRLEN] = {};
  if (at.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(at);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(six.sin6_port));
  }
  const auto& four = reinterpret_cast<const sockaddr_in&>(at);
  ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(four.sin_port));
}

// Stands in for the gateway: says "hi" on every connection and keeps it open, answers every DNS
// datagram with "yes", and notes where each was going.
class Gateway {
 public:
  explicit Gateway(CaptureSockets& sockets) : sockets_(sockets), thread_([this] { serve(); }) {}
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void serve() {
    while (!stop_) {
      pollfd polled[] = {{sockets_.tcp4.get(), POLLIN, 0},     {sockets_.tcp6.get(), POLLIN, 0},
                         {sockets_.dns_tcp4.get(), POLLIN, 0}, {sockets_.dns_tcp6.get(), POLLIN, 0},
                         {sockets_.dns4.get(), POLLIN, 0},     {sockets_.dns6.get(), POLLIN, 0}};
      if (::poll(polled, std::size(polled), 20) <= 0) continue;
      for (std::size_t i = 0; i < std::size(polled); ++i) {
        if ((polled[i].revents & POLLIN) == 0) continue;
        i < 4 ? accept(polled[i].fd, i < 2 ? "tcp " : "dns-tcp ") : answer(polled[i].fd);
      }
    }
  }
  void accept(int listener, const std::string& what) {
    base::Fd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    sockaddr_storage to = {};
    socklen_t length = sizeof to;
    ::getsockname(connection.get(), reinterpret_cast<sockaddr*>(&to), &length);
    const std::lock_guard lock(mutex_);
    seen_.push_back(what + text_of(to));
    (void)!::write(connection.get(), "hi\n", 3);
    connections_.push_back(std::move(connection));
  }
  // Sends the answer with the control message that came along: its source is where the question
  // went.
  void answer(int socket) {
    char bytes[512];
    alignas(cmsghdr) char control[256];
    sockaddr_storage from = {};
    iovec part = {bytes, sizeof bytes};
    msghdr message = {&from, sizeof from, &part, 1, control, sizeof control, 0};
    const ssize_t got = ::recvmsg(socket, &message, 0);
    if (got < 0) return;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != IPPROTO_IP || head->cmsg_type != IP_PKTINFO) continue;
      auto* info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(head));
      char text[INET_ADDRSTRLEN] = {};
      ::inet_ntop(AF_INET, &info->ipi_addr, text, sizeof text);
      const std::lock_guard lock(mutex_);
      seen_.push_back("dns " + std::string(text));
      info->ipi_spec_dst = info->ipi_addr;
      info->ipi_ifindex = 0;
    }
    part = {const_cast<char*>("yes"), 3};
    (void)::sendmsg(socket, &message, 0);
  }

  CaptureSockets& sockets_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<std::string> seen_;
  std::vector<base::Fd> connections_;
  std::thread thread_;
};

// Prints, for each target, what the peer said or the errno's name.
const std::string kConnect = R"(
import socket, errno, sys
def go(host, port, bind=None):
  s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
  s.settimeout(5)
  try:
    if bind: s.bind((bind, 0))
    s.connect((host, port))
    return s.recv(10).decode().strip()
  except OSError as e:
    return errno.errorcode.get(e.errno, str(e))
)";

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string python(const std::string& script) {
  return "python3 - <<'END'\n" + kConnect + script + "\nEND\n";
}

class Network : public ::testing::Test {
 protected:
  void SetUp() override {
    sandbox_ = start_ready(whole_plan(state_.path()));
    ASSERT_TRUE(sandbox_);
  }
  std::string inside(const std::string& script) {
    return run(*sandbox_, python(script), As::agent).output;
  }
  Counters counters() {
    const auto counted = sandbox_->counters();
    EXPECT_TRUE(counted) << (counted ? "" : counted.error().line());
    return counted.value_or(Counters{});
  }

  TempFolder state_;
  std::unique_ptr<Sandbox> sandbox_;
};

TEST_F(Network, SteeredTcpReachesTheGatewayWithItsDestination) {
  Gateway gateway(sandbox_->capture());
  EXPECT_EQ(inside("for t in [('198.19.0.5', 443), ('198.19.255.255', 80),"
                   " ('fd63:6572:636f:1::9', 443)]: print(go(*t))"),
            "hi\nhi\nhi\n");
  EXPECT_EQ(gateway.seen(), (std::vector<std::string>{"tcp 198.19.0.5:443", "tcp 198.19.255.255:80",
                                                      "tcp [fd63:6572:636f:1::9]:443"}));
  EXPECT_EQ(counters().refused_in_kernel, 0U);
}

// E80, E81: the control is the test above, where the same program gets through.
TEST_F(Network, E81WhatNoRuleAllowsIsRefusedAtOnceCountedAndLogged) {
  Gateway gateway(sandbox_->capture());
  const std::string script =
      "for t in [('169.254.169.254', 80), ('10.0.0.1', 443), ('1.1.1.1', 443), ('198.19.0.5', 22),"
      " ('198.18.0.1', 65533), ('198.20.0.1', 443), ('0.0.0.1', 443), ('fd00:ec2::254', 80),"
      " ('2001:db8::1', 443), ('fd63:6572:636f:1::9', 80), ('::ffff:10.0.0.1', 443)]: "
      "print(go(*t))";
  std::string expected;
  for (int i = 0; i < 11; ++i) expected += "ECONNREFUSED\n";
  EXPECT_EQ(inside(script), expected);
  EXPECT_TRUE(gateway.seen().empty());
  EXPECT_EQ(counters().refused_in_kernel, 11U);
  EXPECT_EQ(counters().refused_logged, 11U);
  int logged = 0;
  char packet[4096];
  while (::recv(sandbox_->capture().refused.get(), packet, sizeof packet, MSG_DONTWAIT) > 0) {
    ++logged;
  }
  EXPECT_EQ(logged, 11);
}

TEST_F(Network, SourcesThatAreNotOwnAreRefused) {
  Gateway gateway(sandbox_->capture());
  EXPECT_EQ(inside("for b in ['127.0.0.1', '8.8.8.8', '198.18.0.1', '198.19.0.7', '198.18.0.2']:"
                   " print(go('198.19.0.5', 443, b))"),
            "ECONNREFUSED\nECONNREFUSED\nECONNREFUSED\nECONNREFUSED\nhi\n");
}

TEST_F(Network, ServersInsideWorkOnEveryPort) {
  EXPECT_EQ(inside(R"(
def served(family, kind, host, port):
  s = socket.socket(family, kind)
  s.bind((host, port))
  c = socket.socket(family, kind)
  c.settimeout(5)
  if kind == socket.SOCK_STREAM:
    s.listen()
    c.connect((host, port))
    s.accept()[0].send(b'own')
  else:
    c.sendto(b'x', (host, port))
    s.sendto(b'own', s.recvfrom(9)[1])
  return c.recv(9).decode()
for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
  for port in [22, 53, 80, 443, 8080, 65533]:
    for host in ['127.0.0.1', '127.8.8.8', '198.18.0.2']:
      assert served(socket.AF_INET, kind, host, port) == 'own'
    for host in ['::1', 'fd63:6572:636f::2']:
      assert served(socket.AF_INET6, kind, host, port) == 'own'
print('all')
)"),
            "all\n");
  EXPECT_EQ(counters().refused_in_kernel, 0U);
}

TEST_F(Network, DnsToAnyAddressReachesTheGatewayAndTheAnswerComesFromThere) {
  Gateway gateway(sandbox_->capture());
  EXPECT_EQ(inside(R"(
for to in ['198.18.0.1', '8.8.8.8', '169.254.169.254']:
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.settimeout(5)
  s.connect((to, 53))
  s.send(b'question')
  print(s.recv(9).decode())
print(go('9.9.9.9', 53))
)"),
            "yes\nyes\nyes\nhi\n");
  EXPECT_EQ(gateway.seen(),
            (std::vector<std::string>{"dns 198.18.0.1", "dns 8.8.8.8", "dns 169.254.169.254",
                                      "dns-tcp 9.9.9.9:53"}));
}

TEST_F(Network, OtherDatagramsAreRefusedAndCountedExactly) {
  EXPECT_EQ(inside(R"(
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('1.1.1.1', 443))
s.send(b'quic')
try: s.recv(9)
except ConnectionRefusedError: print('refused')
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(999): s.sendto(b'flood', ('10.1.2.3', 1000 + i))
)"),
            "refused\n");
  const Counters counted = counters();
  EXPECT_EQ(counted.refused_in_kernel, 1000U);
  EXPECT_LT(counted.refused_logged, 1000U);  // the log has a rate
  EXPECT_GE(counted.refused_logged, 200U);   // and a burst
}

// The control is the flood itself: most of it is not logged, and what goes to a guarded range while
// it lasts is logged all the same, whichever other range is flooded as well.
TEST_F(Network, E81AFloodElsewhereHidesNoGuardedRange) {
  const std::string script = R"(
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def flood(to):
  for i in range(3000): s.sendto(b'x', (to, 9))
for to in ['93.184.216.34', '198.51.100.7', '10.9.9.9']:
  flood(to)
  if to != '198.51.100.7': print(go('2001:db8::5', 80) if to[0] == '9' else go('169.254.169.254', 80))
  else: print(go('10.1.2.3', 80), go('fd00:ec2::254', 80))
)";
  EXPECT_EQ(inside(script), "ECONNREFUSED\nECONNREFUSED ECONNREFUSED\nECONNREFUSED\n");
  std::string logged;
  char packet[4096];
  ssize_t size = 0;
  int packets = 0;
  while ((size = ::recv(sandbox_->capture().refused.get(), packet, sizeof packet, MSG_DONTWAIT)) >
         0) {
    logged.append(packet, static_cast<std::size_t>(size));
    ++packets;
  }
  const auto holds = [&](const char* address, int family) {
    char bytes[16] = {};
    ::inet_pton(family, address, bytes);
    return logged.find(std::string_view(bytes, family == AF_INET ? 4 : 16)) != std::string::npos;
  };
  EXPECT_TRUE(holds("2001:db8::5", AF_INET6));
  EXPECT_TRUE(holds("10.1.2.3", AF_INET));
  EXPECT_TRUE(holds("fd00:ec2::254", AF_INET6));
  EXPECT_TRUE(holds("169.254.169.254", AF_INET));
  const Counters counted = counters();
  EXPECT_EQ(counted.refused_in_kernel, 9004U);
  EXPECT_EQ(counted.refused_ranges, 6004U);
  EXPECT_LT(counted.refused_logged, 6000U);
  EXPECT_EQ(counted.refused_logged, static_cast<std::uint64_t>(packets));
  EXPECT_LT(counted.logged_ranges, counted.refused_logged);
}

// The kernel's rules and the address guard's table say the same of every address of the table.
TEST_F(Network, GuardedRangesAreThoseOfTheAddressGuard) {
  const std::string table = slurp(CERCO_SOURCE_DIR "/tests/cases/addresses.txt");
  const auto send_to_all = [&](const std::string& guards) {
    const std::string script = "table = '''" + table + "'''\nguards = '" + guards + R"('.split()
import ipaddress
pools = [ipaddress.ip_network(n) for n in ('198.18.0.0/15', 'fd63:6572:636f::/48', '::ffff:0:0/96')]
for line in table.splitlines():
  parts = [part.strip() for part in line.split('|')]
  if line.startswith('#') or len(parts) != 3 or parts[2].split()[0] not in guards: continue
  if any(ipaddress.ip_address(parts[1]) in pool for pool in pools): continue
  s = socket.socket(socket.AF_INET6 if ':' in parts[1] else socket.AF_INET, socket.SOCK_DGRAM)
  try: s.sendto(b'x', (parts[1], 9))
  except OSError: pass
)";
    EXPECT_EQ(inside(script), "");
    return counters();
  };
  const Counters open = send_to_all("open");
  EXPECT_GT(open.refused_in_kernel, 40U);
  EXPECT_EQ(open.refused_ranges, 0U);
  const Counters guarded = send_to_all("private never");
  EXPECT_GT(guarded.refused_ranges, 100U);
  EXPECT_EQ(guarded.refused_in_kernel, open.refused_in_kernel + guarded.refused_ranges);
}

// network.default = "public": what the guard calls open reaches the gateway whatever its port, and
// all else is refused in the kernel as ever.
TEST_F(Network, PublicAddressesReachTheGatewayAndNoOthers) {
  plan::Plan open = whole_plan(state_.path());
  for (plan::Step& step : open.steps) {
    if (auto* capture = std::get_if<plan::Capture>(&step)) {
      capture->steer_public = true;
      capture->steered = {{capture->pool_v4, {}}, {capture->pool_v6, {}}};
    }
  }
  sandbox_ = start_ready(open);
  ASSERT_TRUE(sandbox_);
  Gateway gateway(sandbox_->capture());
  const std::string table = slurp(CERCO_SOURCE_DIR "/tests/cases/addresses.txt");
  EXPECT_EQ(inside("table = '''" + table + "'''" + R"(
import ipaddress
mapped = ipaddress.ip_network('::ffff:0:0/96')
pools = [ipaddress.ip_network(n) for n in ('198.19.0.0/16', 'fd63:6572:636f:1::/64')]
own = [ipaddress.ip_address(a) for a in ('127.0.0.1', '::1', '198.18.0.2', 'fd63:6572:636f::2')]
opened = closed = 0
for line in table.splitlines():
  parts = [part.strip() for part in line.split('|')]
  if line.startswith('#') or len(parts) != 3: continue
  address = ipaddress.ip_address(parts[1])
  if address in mapped or address in own or address.is_loopback: continue
  # What says that a range is left, as 0.0.0.0 does for this host, reaches our own loopback.
  if address.is_unspecified: continue
  want = 'hi' if parts[2].startswith('open') or any(address in pool for pool in pools) else 'no'
  got = go(parts[1], 8443)
  if (got == 'hi') != (want == 'hi'): print(parts, got)
  opened += want == 'hi'
  closed += want != 'hi'
print(opened > 40, closed > 100)
print(go('198.19.0.5', 22), go('198.18.0.1', 65533), go('198.18.9.9', 443), go('1.1.1.1', 53))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('1.1.1.1', 443))
s.send(b'quic')
try: s.recv(9)
except ConnectionRefusedError: print('refused')
)"),
            "True True\nhi ECONNREFUSED ECONNREFUSED hi\nrefused\n");
}

TEST_F(Network, CutEndsConnectionsAndLeavesLoopback) {
  Gateway gateway(sandbox_->capture());
  std::thread later([&] {
    while (gateway.seen().empty()) ::usleep(1000);
    EXPECT_TRUE(sandbox_->cut_network());
    ::close(::open((state_.path() + "/cut").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  });
  const std::string said = inside(R"(
import time
s = socket.socket()
s.settimeout(10)
s.connect(('198.19.0.5', 443))
s.recv(9)
end = time.time() + 10
try:
  while time.time() < end:
    s.send(b'more')
    time.sleep(0.01)
except OSError as e: print(errno.errorcode[e.errno])
print(go('198.19.0.5', 443))
l = socket.socket()
l.bind(('127.0.0.1', 8080))
l.listen()
c = socket.socket()
c.connect(('127.0.0.1', 8080))
l.accept()[0].send(b'own')
print(c.recv(9).decode())
)");
  later.join();
  EXPECT_TRUE(said == "ECONNRESET\nECONNREFUSED\nown\n" || said == "EPIPE\nECONNREFUSED\nown\n")
      << said;
}

TEST_F(Network, WithoutAGatewayTheKernelRefuses) {
  sandbox_->capture() = {};
  EXPECT_EQ(inside("print(go('198.19.0.5', 443)); print(go('9.9.9.9', 53))"),
            "ECONNREFUSED\nECONNREFUSED\n");
}

// Nobody inside has a right over the namespace, root of the sandbox included.
TEST_F(Network, RulesRoutesAndInterfaceAreOutOfReach) {
  const std::string script =
      "nft flush ruleset >/dev/null 2>&1 && echo flushed; ip link set lo down 2>/dev/null && echo "
      "down;"
      "ip addr add 10.0.0.1/8 dev lo 2>/dev/null && echo added;"
      "ip route add local 10.0.0.0/8 dev lo 2>/dev/null && echo routed; echo end";
  EXPECT_EQ(run(*sandbox_, script, As::agent).output, "end\n");
  EXPECT_EQ(run(*sandbox_, script, As::root).output, "end\n");
  // Control: where the namespace belongs to the user that the command runs as, all of it works.
  const auto weak =
      start_ready(without(whole_plan(state_.path()),
                          {plan::Protection::user_namespace, plan::Protection::drop_capabilities}));
  ASSERT_TRUE(weak);
  EXPECT_EQ(run(*weak, script, As::root_with_all).output, "flushed\ndown\nadded\nrouted\nend\n");
}

// E84: abstract sockets belong to a network namespace.
TEST_F(Network, E84AbstractSocketsOfTheHostAreNotThere) {
  const base::Fd host(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = "cerco-test-" + std::to_string(::getpid());
  text.copy(name.sun_path + 1, text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_EQ(::bind(host.get(), reinterpret_cast<const sockaddr*>(&name), length), 0);
  ASSERT_EQ(::listen(host.get(), 5), 0);
  const std::string script =
      "s = socket.socket(socket.AF_UNIX)\ntry:\n  s.connect('\\0" + text +
      "')\n  print('out')\nexcept OSError as e: print(errno.errorcode[e.errno])";
  EXPECT_EQ(inside(script), "ECONNREFUSED\n");
  const Outcome weak =
      run_in_new(without(whole_plan(state_.path()),
                         {plan::Protection::network_namespace, plan::Protection::landlock}),
                 python(script), As::agent);
  EXPECT_EQ(weak.output, "out\n");
}

// E86
TEST_F(Network, E86PortsInsideAreNotTheHosts) {
  const base::Fd host(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(host.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(host.get(), 5), 0);
  socklen_t length = sizeof at;
  ASSERT_EQ(::getsockname(host.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  const std::string script = "s = socket.socket(); s.settimeout(5)\ntry: s.connect(('127.0.0.1', " +
                             std::to_string(ntohs(at.sin_port)) +
                             ")); print('out')\nexcept OSError as e: print('held')";
  EXPECT_EQ(inside(script), "held\n");
  EXPECT_EQ(run_in_new(without(whole_plan(state_.path()), {plan::Protection::network_namespace}),
                       python(script), As::agent)
                .output,
            "out\n");
}

}  // namespace
}  // namespace sandbox::testing
