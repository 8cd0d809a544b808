// Tunnels: raw connections and TLS that is not looked into.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "cdn"
host = "*.cdn.example.net"
[[egress]]
name = "ssh"
tcp = "ssh.example.com:22"
[[egress]]
name = "literal"
tcp = "93.184.216.40:5432"
[[egress]]
name = "small"
tcp = "small.example.com:7000"
[[egress]]
name = "inner"
host = "inner.example.com"
addresses = ["10.2.0.0/16"]
)";

void put(std::string& out, std::size_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
}
std::string sized(const std::string& body, int bytes) {
  std::string out;
  put(out, body.size(), bytes);
  return out + body;
}
std::string extension(std::size_t type, const std::string& body) {
  std::string out;
  put(out, type, 2);
  return out + sized(body, 2);
}

// A ClientHello as a client would send it, for a name; "" without one.
std::string hello(const std::string& name, const std::string& more = "") {
  std::string extensions = more;
  if (!name.empty()) extensions += extension(0, sized(std::string(1, '\0') + sized(name, 2), 2));
  extensions += extension(43, std::string("\x02\x03\x04", 3));
  const std::string body = std::string("\x03\x03") + std::string(32, 'r') + std::string(1, '\0') +
                           sized(std::string("\x13\x01", 2), 2) + std::string("\x01\0", 2) +
                           sized(extensions, 2);
  const std::string handshake = std::string(1, '\x01') + sized(body, 3);
  return std::string("\x16\x03\x01", 3) + sized(handshake, 2);
}

const std::string kAlert("\x15\x03\x03\0\x02\x02\x31", 7);
bool is_alert(const std::string& bytes) {
  return bytes.size() == 7 && bytes[0] == '\x15' && bytes.ends_with(std::string("\x02\x31", 2));
}

struct Seen {
  std::string bytes;
};

// N52 N54 N60: the name is checked and the bytes go on as they came.
TEST(Tunnel, TlsForTheNameGoesThroughAsItCame) {
  World world(kPolicy);
  std::string seen;
  Upstream upstream([&](Peer peer) {
    seen = peer.read_exactly(hello("a.CDN.example.net").size() + 4);
    peer.send("answer");
  });
  world.names["a.cdn.example.net"] = {"93.184.216.34"};
  world.listening["93.184.216.34:443"] = upstream.port();
  const Peer client = world.connect("a.cdn.example.net", 443);
  std::string answer;
  world.run([&] {
    client.send(hello("a.CDN.example.net") + "more");
    answer = client.read_exactly(6);
    client.finish_sending();
  });
  world.settle();
  EXPECT_EQ(answer, "answer");
  EXPECT_EQ(seen, hello("a.CDN.example.net") + "more");
  EXPECT_EQ(world.asked, std::vector<std::string>{"a.cdn.example.net"});  // one lookup (N79)
  const auto events = world.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[0].has(R"("verdict":"allow")"));
  EXPECT_TRUE(events[0].has(R"("rule":"cdn")"));
  EXPECT_TRUE(events[0].has(R"("tls":"opaque")"));
  EXPECT_TRUE(events[0].has(R"("address":"93.184.216.34")"));
  EXPECT_EQ(events[1].type, "egress.ended");
  EXPECT_EQ(events[1].of, events[0].ref);
  EXPECT_TRUE(events[1].has(R"("bytes_down":6)"));
}

struct Bad {
  const char* what;
  std::string bytes;
  const char* reason;
};

// N51 N52 N56 N57 N59 N64, N136, F9, F23
TEST(Tunnel, OtherNamesAndOtherProtocolsAreRefused) {
  const std::string ech = extension(0xfe0d, std::string(40, 'e'));
  const Bad table[] = {
      {"another name", hello("b.cdn.example.net"), "sni-mismatch"},
      {"a foreign name", hello("evil.test"), "sni-mismatch"},
      {"ECH under another outer name", hello("cloudflare-ech.com", ech), "sni-mismatch"},
      {"no name", hello(""), "sni-missing"},
      {"an address as the name", hello("93.184.216.34"), nullptr},
      {"a NUL in the name", hello(std::string("a.cdn.example.net\0.evil", 22)), nullptr},
      {"two dots at the end", hello("a.cdn.example.net.."), nullptr},
      {"ssh", "SSH-2.0-OpenSSH_9\r\n", "protocol"},
      {"http", "GET / HTTP/1.1\r\nHost: a.cdn.example.net\r\n\r\n", "protocol"},
      {"binary", std::string("\0\1\2\3", 4), "protocol"},
  };
  for (const Bad& bad : table) {
    World world(kPolicy);
    Upstream upstream([&](const Peer& peer) { (void)peer.read_some(); });
    world.names["a.cdn.example.net"] = {"93.184.216.34"};
    world.listening["93.184.216.34:443"] = upstream.port();
    const Peer client = world.connect("a.cdn.example.net", 443);
    std::string answer;
    world.run([&] {
      client.send(bad.bytes);
      answer = client.read_all();
    });
    EXPECT_EQ(upstream.connections(), 0) << bad.what;
    EXPECT_TRUE(world.dialled.empty()) << bad.what;
    EXPECT_TRUE(world.asked.empty()) << bad.what;
    if (bad.bytes[0] == '\x16') EXPECT_TRUE(is_alert(answer)) << bad.what;
    if (bad.bytes[0] == 'G') EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << bad.what;
    const auto decisions = world.decisions();
    ASSERT_EQ(decisions.size(), 1U) << bad.what;
    EXPECT_TRUE(decisions[0].has(R"("verdict":"deny")")) << bad.what;
    EXPECT_TRUE(decisions[0].has(R"("kind":"protocol")")) << bad.what;
    if (bad.reason != nullptr) EXPECT_TRUE(decisions[0].has(bad.reason)) << decisions[0].members;
  }
}

// The control of the above.
TEST(Tunnel, WithoutTheCheckAnotherNameGoesThrough) {
  World world(kPolicy, {plan::Protection::sni_check});
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_some();
    peer.send("fronted");
  });
  world.names["a.cdn.example.net"] = {"93.184.216.34"};
  world.listening["93.184.216.34:443"] = upstream.port();
  const Peer client = world.connect("a.cdn.example.net", 443);
  std::string answer;
  world.run([&] {
    client.send(hello("evil.test"));
    answer = client.read_exactly(7);
    client.finish_sending();
  });
  EXPECT_EQ(answer, "fronted");
}

// N61
TEST(Tunnel, AHelloMayComeByteByByte) {
  World world(kPolicy);
  Upstream upstream([](const Peer& peer) { peer.send(std::to_string(peer.read_all().size())); });
  world.names["a.cdn.example.net"] = {"93.184.216.34"};
  world.listening["93.184.216.34:443"] = upstream.port();
  const Peer client = world.connect("a.cdn.example.net", 443);
  const std::string bytes = hello("a.cdn.example.net");
  std::string answer;
  world.run([&] {
    for (const char c : bytes) {
      client.send({&c, 1});
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    client.finish_sending();
    answer = client.read_all();
  });
  EXPECT_EQ(answer, std::to_string(bytes.size()));
}

// N61, F33: who never says what it is does not stay.
TEST(Tunnel, SilenceHasAnEnd) {
  World world(kPolicy);
  world.limits.first_bytes = std::chrono::milliseconds(50);
  const Peer silent = world.connect("a.cdn.example.net", 443);
  const Peer half = world.connect("a.cdn.example.net", 443);
  world.run([&] {
    half.send(hello("a.cdn.example.net").substr(0, 20));
    EXPECT_TRUE(silent.was_reset());
    (void)half.read_all();
  });
  world.settle();
  EXPECT_EQ(world.decisions().size(), 2U);
  EXPECT_TRUE(world.decisions()[0].has("no-bytes") || world.decisions()[1].has("no-bytes"));
}

// N137: raw by rule, also where the server speaks first.
TEST(Tunnel, RawRulesAskForNoBytes) {
  World world(kPolicy);
  Upstream upstream([](const Peer& peer) {
    peer.send("SSH-2.0-server\r\n");
    (void)peer.read_some();
  });
  world.names["ssh.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:22"] = upstream.port();
  const Peer client = world.connect("ssh.example.com", 22);
  std::string banner;
  world.run([&] {
    banner = client.read_until("\n");
    client.send("bye");
    client.finish_sending();
  });
  EXPECT_EQ(banner, "SSH-2.0-server\r\n");
  EXPECT_TRUE(world.decisions()[0].has(R"("rule":"ssh")"));
}

// N14, F17: a literal address is dialled only where a rule names it, on that port.
TEST(Tunnel, LiteralsNeedARuleOfTheirOwn) {
  World world(kPolicy);
  Upstream upstream([](const Peer& peer) { peer.send("db"); });
  world.listening["93.184.216.40:5432"] = upstream.port();
  world.listening["93.184.216.40:22"] = upstream.port();
  world.listening["93.184.216.34:443"] = upstream.port();
  const Peer good = world.connect("93.184.216.40", 5432);
  const Peer port = world.connect("93.184.216.40", 22);
  const Peer other = world.connect("93.184.216.34", 443);
  const Peer metadata = world.connect("169.254.169.254", 80);
  world.run([&] {
    EXPECT_EQ(good.read_exactly(2), "db");
    for (const Peer* bad : {&port, &other, &metadata}) EXPECT_TRUE(bad->was_reset());
  });
  EXPECT_EQ(world.dialled, std::vector<std::string>{"93.184.216.40:5432"});
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 4U);
  EXPECT_EQ(std::ranges::count_if(decisions, [](const auto& d) { return d.has("\"deny\""); }), 3);
}

// F13, F16: a public literal without a rule is dialled, and is no way around what is said of names.
TEST(Tunnel, UnderPublicALiteralIsNoWayAroundNames) {
  constexpr const char* kOpen =
      "[network]\ndefault = \"public\"\n[[egress]]\nname = \"api\"\nhost = \"api.example.com\"\n"
      "methods = [\"GET\"]\n[[deny]]\nhost = \"**.evil.test\"\n";
  struct Row {
    std::string what, bytes, reason;
  };
  const Row rows[] = {{"no name", hello(""), ""},
                      {"a public name", hello("any.test"), ""},
                      {"a denied name", hello("a.evil.test"), "sni-mismatch"},
                      {"a name that is looked into", hello("api.example.com"), "sni-mismatch"},
                      {"a name of the host's network", hello("printer.local"), "sni-mismatch"},
                      {"no TLS", "SSH-2.0-OpenSSH_9\r\n", "protocol"}};
  for (const Row& row : rows) {
    World world(kOpen);
    Upstream upstream([](const Peer& peer) {
      (void)peer.read_some();
      peer.send("out");
    });
    world.listening["93.184.216.34:443"] = upstream.port();
    const Peer client = world.connect("93.184.216.34", 443);
    std::string answer;
    world.run([&] {
      client.send(row.bytes);
      answer = client.read_exactly(3);
      client.finish_sending();
    });
    EXPECT_EQ(answer == "out", row.reason.empty()) << row.what;
    const auto decisions = world.decisions();
    ASSERT_EQ(decisions.size(), 1U) << row.what;
    EXPECT_TRUE(decisions[0].has(row.reason.empty() ? R"("rule":"network.default")" : row.reason))
        << row.what << decisions[0].members;
    EXPECT_EQ(world.dialled.empty(), !row.reason.empty()) << row.what;
  }
}

// Any name resolves at once to an address that stands for it; what it leads to is judged as ever.
TEST(Tunnel, UnderPublicTheGuardJudgesWhatANameHas) {
  World world("[network]\ndefault = \"public\"\n[[deny]]\ncidr = \"93.184.216.0/24\"\n");
  Upstream upstream([](const Peer& peer) { peer.send("SSH-2.0-server\r\n"); });
  world.names = {{"git.test", {"93.184.217.7"}},
                 {"inner.test", {"10.2.0.1"}},
                 {"meta.test", {"169.254.169.254"}},
                 {"denied.test", {"93.184.216.34"}}};
  world.listening["93.184.217.7:22"] = upstream.port();
  const Peer good = world.connect("git.test", 22);
  const Peer inner = world.connect("inner.test", 22);
  const Peer meta = world.connect("meta.test", 22);
  const Peer denied = world.connect("denied.test", 22);
  world.run([&] {
    EXPECT_EQ(good.read_until("\n"), "SSH-2.0-server\r\n");  // the server speaks first
    good.finish_sending();
    for (const Peer* bad : {&inner, &meta, &denied}) EXPECT_TRUE(bad->was_reset());
  });
  EXPECT_EQ(world.dialled, std::vector<std::string>{"93.184.217.7:22"});
  EXPECT_EQ(world.decisions().size(), 4U);
}

// N46 N79 N80 N85, F7: the name is allowed, its address is not.
TEST(Tunnel, TheAddressThatANameHasIsJudged) {
  World world(kPolicy);
  world.names["a.cdn.example.net"] = {"169.254.169.254"};
  world.names["inner.example.com"] = {"10.3.0.1"};
  const Peer client = world.connect("a.cdn.example.net", 443);
  const Peer inner = world.connect("inner.example.com", 443);
  world.run([&] {
    client.send(hello("a.cdn.example.net"));
    inner.send(hello("inner.example.com"));
    EXPECT_TRUE(is_alert(client.read_all()));
    EXPECT_TRUE(is_alert(inner.read_all()));
  });
  EXPECT_TRUE(world.dialled.empty());
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 2U);
  for (const auto& decision : decisions) EXPECT_TRUE(decision.has(R"("kind":"range")"));
  const auto& metadata = decisions[decisions[0].has("a.cdn.example.net") ? 0 : 1];
  EXPECT_TRUE(metadata.has(R"("reason":"metadata")"));
  EXPECT_TRUE(metadata.has(R"("address":"169.254.169.254")"));
}

TEST(Tunnel, WithoutTheGuardTheAddressIsDialled) {
  World world(kPolicy, {plan::Protection::address_guard});
  Upstream upstream([](const Peer& peer) { peer.send("metadata"); });
  world.names["a.cdn.example.net"] = {"169.254.169.254"};
  world.listening["169.254.169.254:443"] = upstream.port();
  const Peer client = world.connect("a.cdn.example.net", 443);
  world.run([&] {
    client.send(hello("a.cdn.example.net"));
    EXPECT_EQ(client.read_exactly(8), "metadata");
  });
}

// N80 N81
TEST(Tunnel, OfAMixedAnswerOnlyTheGoodAddressIsDialled) {
  World world(kPolicy);
  Upstream upstream([](const Peer& peer) { peer.send("ok"); });
  world.names["a.cdn.example.net"] = {"::ffff:10.0.0.1", "10.0.0.5", "2606:4700::1",
                                      "93.184.216.34"};
  world.listening["2606:4700::1:443"] = upstream.port();
  const Peer client = world.connect("a.cdn.example.net", 443);
  world.run([&] {
    client.send(hello("a.cdn.example.net"));
    EXPECT_EQ(client.read_exactly(2), "ok");
  });
  // The first was refused by its host, the second answered.
  EXPECT_EQ(world.dialled, (std::vector<std::string>{"93.184.216.34:443", "2606:4700::1:443"}));
  EXPECT_TRUE(world.decisions()[0].has(R"("mixed":true)"));
}

// N55 N84: a new connection is a new lookup and a new judgement.
TEST(Tunnel, ARebindingNameIsJudgedAnew) {
  World world(kPolicy);
  Upstream upstream([](const Peer& peer) { peer.send("ok"); });
  world.names["a.cdn.example.net"] = {"93.184.216.34"};
  world.listening["93.184.216.34:443"] = upstream.port();
  const Peer first = world.connect("a.cdn.example.net", 443);
  world.run([&] {
    first.send(hello("a.cdn.example.net"));
    EXPECT_EQ(first.read_exactly(2), "ok");
  });
  world.names["a.cdn.example.net"] = {"127.0.0.1"};
  const Peer second = world.connect("a.cdn.example.net", 443);
  world.run([&] {
    second.send(hello("a.cdn.example.net"));
    EXPECT_TRUE(is_alert(second.read_all()));
  });
  EXPECT_EQ(world.dialled.size(), 1U);
}

TEST(Tunnel, AnAddressOfThePoolThatStandsForNothingIsRefused) {
  World world(kPolicy);
  const Peer client = world.connect("198.19.7.7", 443);
  world.run([&] { EXPECT_TRUE(client.was_reset()); });
  EXPECT_TRUE(world.decisions()[0].has("unknown-address"));
}

// N124, F33: one side's end is passed on and the other side keeps flowing.
TEST(Tunnel, HalfClosedConnectionsKeepFlowing) {
  World world(kPolicy);
  const std::string big(1 << 20, 'x');
  Upstream upstream([&](const Peer& peer) {
    const std::string all = peer.read_all();
    peer.send(all + big);
  });
  world.names["ssh.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:22"] = upstream.port();
  const Peer client = world.connect("ssh.example.com", 22);
  std::string answer;
  world.run([&] {
    client.send("request");
    client.finish_sending();
    answer = client.read_all();
  });
  world.settle();
  EXPECT_EQ(answer.size(), big.size() + 7);
  EXPECT_TRUE(answer.starts_with("requestxxx"));
}

// Much data both ways at once, past the point where splice takes over.
TEST(Tunnel, MovesMuchBothWaysUnchanged) {
  World world(kPolicy);
  std::string pattern;
  for (unsigned i = 0; i < (4U << 20); ++i) pattern += static_cast<char>((i * 7919U) >> 3);
  Upstream upstream([&](const Peer& peer) {
    std::thread sender([&] { peer.send(pattern); });
    EXPECT_TRUE(peer.read_exactly(pattern.size()) == pattern);
    sender.join();
  });
  world.names["ssh.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:22"] = upstream.port();
  const Peer client = world.connect("ssh.example.com", 22);
  world.run([&] {
    std::thread sender([&] {
      client.send(pattern);
      client.finish_sending();
    });
    EXPECT_TRUE(client.read_all() == pattern);
    sender.join();
  });
  world.settle();
  const auto events = world.events();
  EXPECT_TRUE(events[1].has(R"("bytes_up":4194304)")) << events[1].members;
  EXPECT_TRUE(events[1].has(R"("bytes_down":4194304)"));
}

TEST(Tunnel, IdleTunnelsEnd) {
  World world(kPolicy);
  world.limits.idle = std::chrono::milliseconds(60);
  Upstream upstream([](const Peer& peer) { (void)peer.read_all(); });
  world.names["ssh.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:22"] = upstream.port();
  const Peer client = world.connect("ssh.example.com", 22);
  world.run([&] { EXPECT_EQ(client.read_all(), ""); });
  world.settle();
  EXPECT_TRUE(world.events()[1].has("idle"));
}

// Without a journal nothing leaves.
TEST(Tunnel, WithoutAJournalNothingIsDialled) {
  World world(kPolicy);
  world.names["ssh.example.com"] = {"93.184.216.34"};
  const Peer client = world.connect("ssh.example.com", 22);
  world.close_journal();
  world.run([&] { EXPECT_TRUE(client.was_reset()); });
  EXPECT_TRUE(world.dialled.empty());
}

// N170, detector action cut-network
TEST(Tunnel, CutEndsWhatRunsAndRefusesWhatComes) {
  World world(kPolicy);
  Upstream upstream([](const Peer& peer) { (void)peer.read_all(); });
  world.names["ssh.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:22"] = upstream.port();
  const Peer running = world.connect("ssh.example.com", 22);
  world.run([&] {
    running.send("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  EXPECT_EQ(upstream.connections(), 1);
  world.core().cut = true;
  stop_all(world.core());
  const Peer late = world.connect("ssh.example.com", 22);
  world.run([&] {
    EXPECT_EQ(running.read_all(), "");
    EXPECT_TRUE(late.was_reset());
  });
  EXPECT_TRUE(world.decisions().back().has(R"("reason":"cut")"));
}

// How much of what a server sends is held for a client that reads fast at first and then stops.
std::size_t held_for_one_that_stops(std::size_t roomy) {
  constexpr std::size_t kFast = std::size_t{48} << 20;
  constexpr int kSmall = 64 << 10;
  World world(kPolicy);
  world.limits.roomy = roomy;
  std::atomic<std::size_t> held = 0;
  std::atomic<bool> stopped = false;
  std::atomic<bool> over = false;
  const auto small = [&](const Peer& peer, int which) {
    EXPECT_EQ(::setsockopt(peer.fd(), SOL_SOCKET, which, &kSmall, sizeof kSmall), 0);
  };
  Upstream upstream([&](const Peer& peer) {
    small(peer, SO_SNDBUF);
    peer.send(std::string(kFast, 'x'));
    while (!stopped) ::usleep(1000);
    const std::string more(std::size_t{64} << 10, 'y');
    for (int idle = 0; idle < 30; ++idle) {
      ssize_t sent = 0;
      while ((sent = ::send(peer.fd(), more.data(), more.size(), MSG_DONTWAIT)) > 0) {
        held += static_cast<std::size_t>(sent);
        idle = 0;
      }
      ::usleep(10'000);
    }
    over = true;
  });
  world.names["small.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:7000"] = upstream.port();
  Peer client = world.connect("small.example.com", 7000);
  small(client, SO_RCVBUF);
  world.run([&] {
    EXPECT_EQ(client.read_exactly(kFast).size(), kFast);
    stopped = true;
    for (int turn = 0; turn < 1000 && !over; ++turn) ::usleep(10'000);
    client.close();
  });
  return held;
}

// N125: what is not read is the kernel's to hold, and of many together that is little each.
TEST(Tunnel, WhereManyAreOneThatIsNotReadHoldsLittle) {
  const std::size_t tight = held_for_one_that_stops(0);
  EXPECT_GT(tight, 0U);
  EXPECT_LE(tight, std::size_t{3} << 20);
  EXPECT_GT(held_for_one_that_stops(8), tight) << "a control: where few are it may be more";
}

}  // namespace
}  // namespace gateway
