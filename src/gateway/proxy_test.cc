// The explicit proxy: HTTP, CONNECT and SOCKS5 at one port, told by the first byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::TlsPeer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "one"
host = "one.example.com"
ports = [80]
methods = ["GET"]
[[egress]]
name = "two"
host = "two.example.com"
ports = [80]
[[egress]]
name = "sealed"
host = "sealed.example.com"
[[egress]]
name = "seen"
host = "seen.example.com"
methods = ["GET"]
[[egress]]
name = "raw"
tcp = "raw.example.com:7000"
[[egress]]
name = "literal"
tcp = "93.184.216.40:5432"
[[egress]]
name = "wild"
host = "*.cdn.example.net"
)";

const std::string kGreeting("\5\1\0", 3);
const std::string kChosen("\5\0", 2);

std::string ask_socks(const std::string& host, std::uint16_t port) {
  return std::string("\5\1\0\3", 4) + static_cast<char>(host.size()) + host +
         static_cast<char>(port >> 8) + static_cast<char>(port & 0xff);
}
std::string ask_connect(const std::string& authority) {
  return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}
std::string get(const std::string& host, const std::string& method = "GET") {
  return method + " http://" + host + "/a HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
}
std::string reply(int code) {
  return std::string("\5", 1) + static_cast<char>(code) + std::string("\0\1\0\0\0\0\0\0", 8);
}

class Proxy : public ::testing::Test {
 protected:
  Proxy() {
    for (const char* name : {"one", "two", "sealed", "seen", "raw"}) {
      world.names[name + std::string(".example.com")] = {"93.184.216.34"};
    }
  }
  Peer client() { return world.connect(std::string(plan::kProxyAddress), plan::kProxyPort); }
  // What comes back, to the end, for bytes after which the client says no more.
  std::string talk(const std::string& bytes) {
    const Peer peer = client();
    std::string answer;
    world.run([&] {
      peer.send(bytes);
      answer = peer.read_all();
    });
    return answer;
  }
  void listen(const Upstream& upstream, const std::string& port) {
    world.listening["93.184.216.34:" + port] = upstream.port();
  }
  World world{kPolicy};
};

// A server that answers every request head.
struct Echo {
  std::vector<std::string> seen;
  Upstream upstream{[this](const Peer& peer) {
    while (true) {
      const std::string head = peer.read_until("\r\n\r\n");
      if (head.empty()) return;
      seen.push_back(head);
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  }};
};

// F5, F20: one kept connection, each request decided by itself, each to a place of its own.
TEST_F(Proxy, EachRequestOfAKeptConnectionGoesWhereItSays) {
  Echo echo;
  listen(echo.upstream, "80");
  const Peer peer = client();
  std::vector<std::string> answers;
  world.run([&] {
    for (const auto& request :
         {get("one.example.com"), get("one.example.com"), get("evil.test"), get("two.example.com"),
          get("one.example.com", "DELETE"), get("two.example.com", "DELETE")}) {
      peer.send(request);
      const std::string head = peer.read_until("\r\n\r\n");
      answers.push_back(head.substr(9, 3));
      if (!head.contains("}\n") && !head.ends_with("ok")) {
        (void)peer.read_until(head.contains("X-Cerco-Deny") ? "}\n" : "ok");
      }
    }
  });
  EXPECT_EQ(answers, (std::vector<std::string>{"200", "200", "403", "200", "403", "200"}));
  ASSERT_EQ(echo.seen.size(), 4U);
  EXPECT_TRUE(echo.seen[0].starts_with("GET /a HTTP/1.1\r\nHost: one.example.com\r\n"));
  EXPECT_TRUE(echo.seen[2].starts_with("GET /a HTTP/1.1\r\nHost: two.example.com\r\n"));
  EXPECT_TRUE(echo.seen[3].starts_with("DELETE /a HTTP/1.1\r\nHost: two.example.com\r\n"));
  // The second request to one place goes over the same connection; none goes to another's.
  EXPECT_EQ(world.dialled.size(), 3U);
  EXPECT_EQ(world.asked,
            (std::vector<std::string>{"one.example.com", "two.example.com", "two.example.com"}));
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 6U);
  for (const auto& decision : decisions) EXPECT_TRUE(decision.has(R"("way":"http")"));
  EXPECT_TRUE(decisions[2].has(R"("host":"evil.test")"));
  EXPECT_TRUE(decisions[4].has(R"("reason":"method")"));
}

// N106
TEST_F(Proxy, PipelinedRequestsAreDecidedOneByOne) {
  Echo echo;
  listen(echo.upstream, "80");
  const Peer peer = client();
  std::string answer;
  world.run([&] {
    peer.send(get("one.example.com") + get("evil.test") + get("two.example.com"));
    while (std::ranges::count(answer, 'k') < 2 && !answer.ends_with("ok")) {
      const std::string some = peer.read_some();
      if (some.empty()) break;
      answer += some;
    }
  });
  ASSERT_EQ(world.decisions().size(), 3U);
  EXPECT_TRUE(world.decisions()[1].has(R"("verdict":"deny")"));
  EXPECT_EQ(echo.seen.size(), 2U);
}

// F19: the refusal of a CONNECT says why and what would do.
TEST_F(Proxy, ARefusedConnectSaysWhy) {
  const std::string answer = talk(ask_connect("evil.test:443"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden\r\n")) << answer;
  EXPECT_TRUE(answer.contains("X-Cerco-Deny: host\r\n"));
  EXPECT_TRUE(answer.contains(R"("host":"evil.test","port":443,"method":"CONNECT")"));
  EXPECT_TRUE(answer.contains(R"(host = \"evil.test\")")) << answer;
  EXPECT_EQ(talk(kGreeting + ask_socks("evil.test", 443)), kChosen + reply(2));
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_TRUE(decisions[0].has(R"("way":"connect")"));
  EXPECT_TRUE(decisions[1].has(R"("way":"socks")"));
  EXPECT_TRUE(world.asked.empty());
}

TEST_F(Proxy, WhatCannotBeReachedIsSaidBeforeTheTunnelOpens) {
  EXPECT_TRUE(talk(ask_connect("raw.example.com:7000")).starts_with("HTTP/1.1 502 "));
  EXPECT_EQ(talk(kGreeting + ask_socks("raw.example.com", 7000)), kChosen + reply(4));
  world.names.erase("sealed.example.com");
  const std::string answer = talk(ask_connect("sealed.example.com:443"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
  EXPECT_TRUE(answer.contains("X-Cerco-Deny: no-such-name\r\n"));
  EXPECT_EQ(talk(kGreeting + ask_socks("sealed.example.com", 443)), kChosen + reply(4));
  EXPECT_EQ(world.decisions().size(), 4U);
  const auto events = world.events();
  EXPECT_EQ(std::ranges::count(events, "egress.ended", &testing::Event::type), 4);
}

// A server may speak first, and each side may end before the other (N124, F33).
TEST_F(Proxy, RawTunnelsOpenOnceTheyAreThere) {
  Upstream upstream([](const Peer& peer) {
    peer.send("hello");
    std::string all = peer.read_all();
    peer.send("got " + all);
  });
  listen(upstream, "7000");
  struct Entry {
    std::string way;
    std::string words;
    std::string opened;
  };
  const Entry entries[] = {
      {"connect", ask_connect("raw.example.com:7000"),
       "HTTP/1.1 200 Connection established\r\n\r\n"},
      {"socks", kGreeting + ask_socks("raw.example.com", 7000), kChosen + reply(0)}};
  for (const Entry& entry : entries) {
    const Peer peer = client();
    std::string answer;
    world.run([&] {
      // All at once, without waiting: what is the tunnel's reaches the server whole.
      peer.send(entry.words + "mine");
      peer.finish_sending();
      answer = peer.read_all();
    });
    EXPECT_EQ(answer, entry.opened + "hellogot mine") << entry.way;
    EXPECT_TRUE(world.decisions().back().has(R"("way":")" + entry.way + "\""));
  }
  EXPECT_EQ(world.decisions().size(), 2U);
}

// N144: an address of the pool is the name that it stands for, any other is itself.
TEST_F(Proxy, AnAddressThatTheClientResolvedIsOurOwnOrNobodys) {
  Upstream upstream([](const Peer& peer) { peer.send("hello"); });
  listen(upstream, "7000");
  world.listening["93.184.216.40:5432"] = upstream.port();
  world.core();
  const auto place = world.core().names.give("raw.example.com")->place.v4;
  const auto ask = [&](const policy::Address& address, std::uint16_t port) {
    const std::string bytes(reinterpret_cast<const char*>(address.bytes.data()), 4);
    return talk(kGreeting + std::string("\5\1\0\1", 4) + bytes + static_cast<char>(port >> 8) +
                static_cast<char>(port & 0xff));
  };
  EXPECT_EQ(ask(place, 7000), kChosen + reply(0) + "hello");
  EXPECT_TRUE(world.decisions().back().has(R"("host":"raw.example.com")"));
  EXPECT_EQ(ask(place, 7001), kChosen + reply(2));
  auto next = place;
  ++next.bytes[3];
  EXPECT_EQ(ask(next, 7000), kChosen + reply(2));
  EXPECT_TRUE(world.decisions().back().has(R"("reason":"unknown-address")"));
  EXPECT_EQ(ask(*policy::parse_address("93.184.216.40"), 5432), kChosen + reply(0) + "hello");
  EXPECT_EQ(ask(*policy::parse_address("93.184.216.34"), 7000), kChosen + reply(2));
}

// N146: whoever a client says that it is, it is this sandbox.
TEST_F(Proxy, ALoginIsTakenAndChangesNothing) {
  Upstream upstream([](const Peer& peer) { peer.send("hello"); });
  listen(upstream, "7000");
  const std::string chosen("\5\2\1\0", 4);
  const std::string longest =
      std::string("\1\xff") + std::string(255, 'u') + '\xff' + std::string(255, 'p');
  for (const std::string& login :
       {std::string("\1\5other\5token", 13), std::string("\1\0\0", 3), longest}) {
    EXPECT_EQ(talk(std::string("\5\1\2", 3) + login + ask_socks("raw.example.com", 7000)),
              chosen + reply(0) + "hello");
    EXPECT_EQ(talk(std::string("\5\1\2", 3) + login + ask_socks("evil.test", 7000)),
              chosen + reply(2));
  }
}

TEST_F(Proxy, WhatIsNoRequestIsToldSo) {
  struct Row {
    std::string what;
    std::string bytes;
    std::string answer;  // that it starts with
  };
  const std::string zeros("\0\0\0\0\0\x50", 6);
  const Row rows[] = {
      {"BIND", kGreeting + std::string("\5\2\0\1", 4) + zeros, kChosen + reply(7)},
      {"UDP", kGreeting + std::string("\5\3\0\1", 4) + zeros, kChosen + reply(7)},
      {"an unknown address", kGreeting + std::string("\5\1\0\2", 4) + zeros, kChosen + reply(8)},
      {"an empty name", kGreeting + std::string("\5\1\0\3\0\0\x50", 7), kChosen + reply(1)},
      {"port 0", kGreeting + std::string("\5\1\0\1\1\1\1\1\0\0", 10), kChosen + reply(1)},
      {"GSSAPI alone", std::string("\5\1\1", 3), std::string("\5\xff", 2)},
      {"no method", std::string("\5\0", 2), std::string("\5\xff", 2)},
      {"SOCKS4", std::string("\4\1\0\x50\1\1\1\1\0", 9), std::string("\0\x5b", 2)},
      {"TLS", std::string("\x16\3\1\0\1\1", 6), std::string("\x15\3", 2)},
      {"origin-form", "GET / HTTP/1.1\r\nHost: one.example.com\r\n\r\n", "HTTP/1.1 400 "},
      {"https", "GET https://one.example.com/ HTTP/1.1\r\nHost: one.example.com\r\n\r\n",
       "HTTP/1.1 400 "},
      {"another Host", "GET http://one.example.com/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
       "HTTP/1.1 400 "},
      {"a body",
       "CONNECT sealed.example.com:443 HTTP/1.1\r\nHost: sealed.example.com:443\r\n"
       "Content-Length: 3\r\n\r\nabc",
       "HTTP/1.1 400 "},
      {"user info", ask_connect("me:pw@sealed.example.com:443"), "HTTP/1.1 400 "},
      {"no port", ask_connect("sealed.example.com"), "HTTP/1.1 400 "},
      {"ftp", "GET ftp://one.example.com/ HTTP/1.1\r\nHost: one.example.com\r\n\r\n",
       "HTTP/1.1 400 "},
      {"h2c", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 505 "},
      {"binary", std::string("\0\1\2\3\r\n\r\n", 8), "HTTP/1.1 400 "}};
  std::size_t decisions = 0;
  for (const Row& row : rows) {
    EXPECT_TRUE(talk(row.bytes).starts_with(row.answer)) << row.what;
    const auto all = world.decisions();
    ASSERT_EQ(all.size(), ++decisions) << row.what;
    EXPECT_TRUE(all.back().has(R"("verdict":"reject")")) << row.what << all.back().members;
  }
  EXPECT_TRUE(world.asked.empty());
  EXPECT_TRUE(world.dialled.empty());
}

// F104: a connection that asks for nothing, or not to the end, is one decision as well.
TEST_F(Proxy, SilenceAndHalfAMessageEnd) {
  world.limits.first_bytes = std::chrono::milliseconds(50);
  world.limits.head = std::chrono::milliseconds(50);
  for (const std::string& bytes :
       {std::string(), std::string("\5", 1), std::string("\5\1", 2), kGreeting + "\5\1",
        kGreeting + std::string("\5\1\0\3\x0fone", 8), std::string("CONNECT sealed.exa")}) {
    const std::size_t before = world.decisions().size();
    (void)talk(bytes);
    EXPECT_EQ(world.decisions().size(), before + 1) << base::printable(bytes);
    EXPECT_TRUE(world.core().connections.empty());
  }
}

// N51, N52, N57: what a CONNECT names is what the ClientHello must name.
TEST_F(Proxy, TheNameInTheTunnelIsTheNameOfTheTunnel) {
  http::Authority outside = std::move(*http::Authority::make(
      "outside", 3600, [] { return static_cast<std::int64_t>(std::time(nullptr)); }));
  const auto server = *outside.server_context("sealed.example.com");
  Upstream upstream([&](const Peer& peer) {
    const TlsPeer tls(peer, server, TlsPeer::Side::server, "");
    tls.send("sealed");
  });
  listen(upstream, "443");
  const auto trust = *http::client_context(outside.pem(), http::Verification::off);
  for (const std::string& words :
       {ask_connect("sealed.example.com:443"), kGreeting + ask_socks("sealed.example.com", 443)}) {
    for (const bool same : {true, false}) {
      const Peer peer = client();
      std::string heard;
      bool shook_hands = false;
      world.run([&] {
        peer.send(words);
        const bool socks = words[0] == '\5';
        (void)(socks ? peer.read_exactly(12) : peer.read_until("\r\n\r\n"));
        const TlsPeer tls(peer, trust, TlsPeer::Side::client,
                          same ? "sealed.example.com" : "two.example.com");
        shook_hands = tls.shook_hands();
        heard = tls.read_until("sealed");
      });
      EXPECT_EQ(shook_hands, same);
      EXPECT_EQ(heard, same ? "sealed" : "");
      EXPECT_TRUE(
          world.decisions().back().has(same ? R"("tls":"opaque")" : R"("reason":"sni-mismatch")"));
    }
  }
  EXPECT_EQ(world.decisions().size(), 4U);
  EXPECT_EQ(upstream.connections(), 2);
}

// F20: where a rule looks inside, it does so in every tunnel. N76: there is no tunnel in a tunnel.
TEST_F(Proxy, TlsThatEndsHereIsLookedIntoInATunnel) {
  const auto now = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
  http::Authority inside = std::move(*http::Authority::make("inside", 3600, now));
  http::Authority outside = std::move(*http::Authority::make("outside", 3600, now));
  world.authority = &inside;
  world.roots = outside.pem();
  const auto server = *outside.server_context("seen.example.com");
  Upstream upstream([&](const Peer& peer) {
    const TlsPeer tls(peer, server, TlsPeer::Side::server, "");
    if (!tls.read_until("\r\n\r\n").empty()) {
      tls.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  listen(upstream, "443");
  const auto trust = *http::client_context(inside.pem(), http::Verification::required);
  const auto ask = [&](const std::string& request) {
    const Peer peer = client();
    std::string answer;
    world.run([&] {
      peer.send(ask_connect("seen.example.com:443"));
      (void)peer.read_until("\r\n\r\n");
      const TlsPeer tls(peer, trust, TlsPeer::Side::client, "seen.example.com");
      tls.send(request);
      answer = tls.read_some();
    });
    return answer.substr(0, 12);
  };
  const std::string rest = " / HTTP/1.1\r\nHost: seen.example.com\r\n\r\n";
  EXPECT_EQ(ask("GET" + rest), "HTTP/1.1 200");
  EXPECT_EQ(ask("POST" + rest), "HTTP/1.1 403");
  EXPECT_EQ(ask(ask_connect("one.example.com:80")), "HTTP/1.1 405");
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: one.example.com\r\n\r\n"), "HTTP/1.1 421");
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 4U);
  EXPECT_TRUE(decisions[0].has(R"("way":"connect")"));
  EXPECT_TRUE(decisions[0].has(R"("tls":"terminated")"));
  EXPECT_TRUE(decisions[1].has(R"("reason":"method")"));
  // One lookup a tunnel, before it opens (N79).
  EXPECT_EQ(world.asked.size(), 4U);
  EXPECT_EQ(upstream.connections(), 1);
}

TEST_F(Proxy, AConnectMayFollowARequestButStandsInNoPipeline) {
  Upstream upstream([](const Peer& peer) {
    if (!peer.read_until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  Upstream raw([](const Peer& peer) { peer.send("hello"); });
  listen(upstream, "80");
  listen(raw, "7000");
  const Peer peer = client();
  std::string answer;
  world.run([&] {
    peer.send(get("two.example.com"));
    (void)peer.read_until("ok");
    peer.send(ask_connect("raw.example.com:7000"));
    answer = peer.read_all();
  });
  EXPECT_TRUE(answer.ends_with("\r\n\r\nhello")) << answer;
  // Behind a body that was read ahead it cannot be told from what is the tunnel's.
  const std::string piped =
      "POST http://two.example.com/ HTTP/1.1\r\nHost: two.example.com\r\nContent-Length: "
      "1\r\n\r\nx" +
      ask_connect("raw.example.com:7000") + "for the tunnel";
  const Peer other = client();
  world.run([&] {
    other.send(piped);
    answer = other.read_all();
  });
  EXPECT_FALSE(answer.contains("established")) << answer;
  EXPECT_TRUE(answer.contains("HTTP/1.1 400 ")) << answer;
}

// N89: names that are told to the proxy count like names that are looked up.
TEST_F(Proxy, NamesOfAWildcardAreLimited) {
  world.limits.wildcard_names = 3;
  for (int i = 0; i < 5; ++i) {
    (void)talk(ask_connect("n" + std::to_string(i) + ".cdn.example.net:443"));
  }
  EXPECT_EQ(world.asked.size(), 3U);
  EXPECT_TRUE(world.decisions().back().has(R"("reason":"too-many-names")"));
  const auto events = world.events();
  EXPECT_EQ(std::ranges::count(events, "alert", &testing::Event::type), 1);
  const std::string last =
      "GET http://n9.cdn.example.net:443/ HTTP/1.1\r\nHost: n9.cdn.example.net:443\r\n"
      "Connection: close\r\n\r\n";
  EXPECT_TRUE(talk(last).starts_with("HTTP/1.1 403 "));
}

TEST_F(Proxy, ACutNetworkIsCutHereToo) {
  world.core().cut = true;
  EXPECT_EQ(talk(kGreeting + ask_socks("raw.example.com", 7000)), kChosen + reply(2));
  EXPECT_TRUE(talk(ask_connect("raw.example.com:7000")).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(world.asked.empty());
}

}  // namespace
}  // namespace gateway
