// Plain HTTP: each request is decided, recorded and carried out by itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "files"
host = "files.example.org"
ports = [80, 443]
[[egress]]
name = "reader"
host = "read.example.org"
ports = [80]
methods = ["GET"]
paths = ["/v1/**"]
[[egress]]
name = "small"
host = "small.example.org"
ports = [80]
max_body = "1KiB"
[[egress]]
name = "few"
host = "few.example.org"
ports = [80]
max_requests = 2
[[egress]]
name = "heads"
host = "heads.example.org"
ports = [80]
headers = { require = { x-team = "blue" }, forbid = ["x-debug", "Content-Length", "Via", "Upgrade"] }
)";

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string get(const std::string& host, const std::string& path = "/") {
  return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
}

// Answers every request that has no body, the last answer again and again, and keeps what it saw.
// The answers are not changed while it runs, since another thread sends them.
struct Echo {
  std::vector<std::string> seen;
  std::vector<std::string> answers = {kOk};
  Upstream upstream{[this](const Peer& peer) {
    while (true) {
      const std::string head = peer.read_until("\r\n\r\n");
      if (head.empty()) return;
      seen.push_back(head);
      peer.send(answers[std::min(seen.size(), answers.size()) - 1]);
    }
  }};
};

class HttpTest : public ::testing::Test {
 protected:
  void serve(const std::string& host, const Upstream& upstream, std::uint16_t port = 80) {
    world.names[host] = {"93.184.216.34"};
    world.listening["93.184.216.34:" + std::to_string(port)] = upstream.port();
  }
  // Sends and reads until the connection ends or `end` has come.
  std::string talk(const std::string& host, const std::string& bytes, const std::string& end = "",
                   std::uint16_t port = 80) {
    const Peer client = world.connect(host, port);
    std::string answer;
    world.run([&] {
      client.send(bytes);
      if (end.empty()) client.finish_sending();
      answer = end.empty() ? client.read_all() : client.read_until(end);
    });
    return answer;
  }
  World world{kPolicy};
};

TEST_F(HttpTest, ARequestGoesThroughRewritten) {
  Echo echo;
  serve("files.example.org", echo.upstream);
  const std::string answer =
      talk("files.example.org",
           "GET /a?key=1 HTTP/1.1\r\nHost: FILES.example.org\r\nX-One: 1\r\n\r\n", "ok");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  ASSERT_EQ(echo.seen.size(), 1U);
  EXPECT_TRUE(echo.seen[0].starts_with("GET /a?key=1 HTTP/1.1\r\nHost: files.example.org\r\n"));
  EXPECT_TRUE(echo.seen[0].contains("X-One: 1"));
  const auto events = world.events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_TRUE(events[0].has(R"("way":"tcp")"));
  EXPECT_TRUE(events[0].has(R"("rule":"files")"));
  EXPECT_TRUE(events[0].has(R"("url":"http://files.example.org/a?[redacted]")"));
  EXPECT_FALSE(events[0].has("key=1"));
  EXPECT_TRUE(events[1].has(R"("status":200)"));
  EXPECT_EQ(events[1].of, events[0].ref);
}

// N84: ten requests on one kept connection are ten decisions over one connection to the outside.
TEST_F(HttpTest, TenRequestsAreTenDecisions) {
  Echo echo;
  serve("files.example.org", echo.upstream);
  const Peer client = world.connect("files.example.org", 80);
  world.run([&] {
    for (int i = 0; i < 10; ++i) {
      client.send(get("files.example.org", "/" + std::to_string(i)));
      EXPECT_TRUE(client.read_until("ok").contains("200 OK"));
    }
  });
  EXPECT_EQ(echo.seen.size(), 10U);
  EXPECT_EQ(echo.upstream.connections(), 1);
  EXPECT_EQ(world.decisions().size(), 10U);
  EXPECT_EQ(world.asked.size(), 1U);
}

// N106
TEST_F(HttpTest, PipelinedRequestsAreDecidedOneByOne) {
  Echo echo;
  serve("read.example.org", echo.upstream);
  const std::string answer =
      talk("read.example.org", get("read.example.org", "/v1/a") +
                                   "DELETE /v1/b HTTP/1.1\r\nHost: read.example.org\r\n\r\n" +
                                   get("read.example.org", "/v1/c"));
  EXPECT_EQ(echo.seen.size(), 2U);
  EXPECT_TRUE(echo.seen[1].contains("/v1/c"));
  const std::size_t refused = answer.find("403 Forbidden");
  EXPECT_NE(refused, std::string::npos);
  EXPECT_NE(answer.find("200 OK", refused), std::string::npos);  // and the connection went on
  EXPECT_EQ(world.decisions().size(), 3U);
}

// F19 F20 F21 F24, N50
TEST_F(HttpTest, RefusalsSayWhyAndWhatWouldDo) {
  Echo echo;
  serve("read.example.org", echo.upstream);
  const std::string answer =
      talk("read.example.org",
           "POST /v1/a HTTP/1.1\r\nHost: read.example.org\r\nContent-Length: 3\r\n\r\nabc" +
               get("read.example.org", "/v2/a") +
               "HEAD /v1/x HTTP/1.1\r\nHost: read.example.org\r\n\r\n");
  EXPECT_TRUE(answer.contains("X-Cerco-Deny: method"));
  EXPECT_TRUE(answer.contains("X-Cerco-Deny: path"));
  EXPECT_TRUE(
      answer.contains(R"("host":"read.example.org","port":80,"method":"POST","path":"/v1/a")"));
  EXPECT_TRUE(answer.contains("[[egress]]"));
  ASSERT_EQ(echo.seen.size(), 1U);
  EXPECT_TRUE(echo.seen[0].starts_with("HEAD /v1/x"));
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_TRUE(decisions[0].has(R"("kind":"method")"));
  EXPECT_TRUE(decisions[1].has(R"("kind":"path")"));
}

struct Case {
  const char* what;
  std::string bytes;
  const char* status;
};

// N69 N70 N71 N77 N97 N99 N100 N101 N102 N109 N110 N112 N116 N119 N120, F21 F23: nothing of it goes
// on.
TEST_F(HttpTest, WhatCouldBeReadInTwoWaysIsRejected) {
  Echo echo;
  serve("files.example.org", echo.upstream);
  const std::string host = "Host: files.example.org\r\n";
  const Case table[] = {
      {"CL and TE",
       "POST / HTTP/1.1\r\n" + host +
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"xchunked", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n", "501"},
      {"two Hosts", "GET / HTTP/1.1\r\n" + host + host + "\r\n", "400"},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"a space before the colon", "GET / HTTP/1.1\r\n" + host + "X : y\r\n\r\n", "400"},
      {"a folded line", "GET / HTTP/1.1\r\n" + host + "X: y\r\n z\r\n\r\n", "400"},
      {"a bare LF", "GET / HTTP/1.1\n" + host + "\n", "400"},
      {"h2c", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", nullptr},
      {"TRACE", "TRACE / HTTP/1.1\r\n" + host + "\r\n", "405"},
      {"CONNECT", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", "405"},
      {"another scheme", "GET https://files.example.org/ HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"user info", "GET http://a@files.example.org/ HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"dots", "GET /a/../b HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"encoded dots", "GET /a/%2e%2e/b HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"an encoded NUL", "GET /a%00 HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"a fragment", "GET /a#b HTTP/1.1\r\n" + host + "\r\n", "400"},
  };
  for (const Case& one : table) {
    const std::string answer = talk("files.example.org", one.bytes);
    if (one.status != nullptr) {
      EXPECT_TRUE(answer.starts_with(std::string("HTTP/1.1 ") + one.status)) << one.what << answer;
    }
  }
  EXPECT_TRUE(echo.seen.empty());
  EXPECT_TRUE(world.dialled.empty());
  const auto decisions = world.decisions();
  EXPECT_EQ(decisions.size(), std::size(table));
  for (const auto& decision : decisions) EXPECT_TRUE(decision.has(R"("verdict":"reject")"));
}

// The control: a careless proxy sends both lengths on.
TEST(Http, WithoutStrictnessBothLengthsGoThrough) {
  World world(kPolicy, {plan::Protection::strict_http});
  std::string seen;
  Upstream upstream([&](const Peer& peer) {
    seen = peer.read_until("\r\n\r\n");
    peer.send(kOk);
  });
  world.names["files.example.org"] = {"93.184.216.34"};
  world.listening["93.184.216.34:80"] = upstream.port();
  const Peer client = world.connect("files.example.org", 80);
  world.run([&] {
    client.send(
        "POST / HTTP/1.1\r\nHost: files.example.org\r\nContent-Length: 3\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    (void)client.read_until("ok");
  });
  EXPECT_TRUE(seen.contains("Content-Length: 3"));
  EXPECT_TRUE(seen.contains("ransfer-"));
}

// N14 N67: a Host that is not what was looked up is another origin.
TEST_F(HttpTest, AnotherHostIsMisdirected) {
  Echo echo;
  serve("files.example.org", echo.upstream);
  const std::string answer = talk("files.example.org", get("read.example.org", "/v1/a"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 421")) << answer;
  EXPECT_TRUE(talk("files.example.org", get("files.example.org:8080")).starts_with("HTTP/1.1 421"));
  EXPECT_TRUE(echo.seen.empty());
  EXPECT_TRUE(world.decisions()[0].has("misdirected"));
}

TEST_F(HttpTest, HeadersMaxBodyAndMaxRequestsAreHeld) {
  Echo echo;
  for (const char* host : {"heads.example.org", "few.example.org", "small.example.org"}) {
    serve(host, echo.upstream);
  }
  EXPECT_TRUE(talk("heads.example.org", get("heads.example.org")).contains("X-Cerco-Deny: header"));
  EXPECT_TRUE(
      talk("heads.example.org",
           "GET / HTTP/1.1\r\nHost: heads.example.org\r\nX-Team: blue\r\nX-Debug: 1\r\n\r\n")
          .contains("X-Cerco-Deny: header"));
  EXPECT_TRUE(talk("heads.example.org",
                   "GET / HTTP/1.1\r\nHost: heads.example.org\r\nX-Team: blue\r\n\r\n", "ok")
                  .contains("200 OK"));
  const std::string three =
      get("few.example.org") + get("few.example.org") + get("few.example.org");
  EXPECT_TRUE(talk("few.example.org", three).contains("X-Cerco-Deny: max-requests"));
  EXPECT_EQ(echo.seen.size(), 3U);
  EXPECT_TRUE(talk("small.example.org",
                   "POST / HTTP/1.1\r\nHost: small.example.org\r\nContent-Length: 1025\r\n\r\n" +
                       std::string(1025, 'x'))
                  .contains("X-Cerco-Deny: max-body"));
  EXPECT_EQ(echo.seen.size(), 3U);
}

// N127: the length is not known beforehand.
// Also by fields that the gateway takes off or writes anew; what is required must be sent on.
TEST_F(HttpTest, HeadersAreJudgedAsTheyCameIn) {
  Echo echo;
  serve("heads.example.org", echo.upstream);
  serve("read.example.org", echo.upstream);
  const std::string head = "GET / HTTP/1.1\r\nHost: heads.example.org\r\nX-Team: blue\r\n";
  for (const char* more : {"Content-Length: 0\r\n", "Via: 1.1 a\r\n", "Upgrade: h2c\r\n",
                           "Connection: X-Debug\r\nX-Debug: 1\r\n", "Connection: X-Team\r\n"}) {
    EXPECT_TRUE(talk("heads.example.org", head + more + "\r\n").contains("X-Cerco-Deny: header"))
        << more;
  }
  EXPECT_TRUE(talk("read.example.org",
                   "GET /v1/x HTTP/1.1\r\nHost: read.example.org\r\n"
                   "X-HTTP-Method-Override: DELETE\r\n\r\n")
                  .contains("X-Cerco-Deny: method"));
  EXPECT_EQ(echo.seen.size(), 0U);
  EXPECT_TRUE(
      talk("heads.example.org", head + "Forwarded: for=1.2.3.4\r\n\r\n", "ok").contains("200 OK"));
}

TEST_F(HttpTest, AChunkedBodyIsCutAtTheLimit) {
  std::string seen;
  Upstream upstream([&](const Peer& peer) { seen = peer.read_all(); });
  serve("small.example.org", upstream);
  std::string body =
      "POST / HTTP/1.1\r\nHost: small.example.org\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) body += "64\r\n" + std::string(100, 'x') + "\r\n";
  const std::string answer = talk("small.example.org", body + "0\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413")) << answer;
  EXPECT_LE(std::ranges::count(seen, 'x'), 1024);
}

TEST_F(HttpTest, BodiesOfBothKindsGoBothWays) {
  const std::string big(300'000, 'b');
  std::string seen;
  Upstream upstream([&](const Peer& peer) {
    seen = peer.read_until("\r\n\r\n");
    seen += peer.read_exactly(big.size() - (seen.size() - seen.find("\r\n\r\n") - 4));
    peer.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n"
        "Authorization: x\r\n\r\n");
    const std::string second = peer.read_until("0\r\n\r\n");
    EXPECT_TRUE(second.contains("ransfer-"));
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(big.size()) + "\r\n\r\n" +
              big);
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  std::string first;
  std::string second;
  world.run([&] {
    client.send("PUT /x HTTP/1.1\r\nHost: files.example.org\r\nContent-Length: 300000\r\n\r\n" +
                big);
    first = client.read_until("0\r\n\r\n");
    client.send(
        "PUT /y HTTP/1.1\r\nHost: files.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\n\r\n");
    second = client.read_until("\r\n\r\n");
    second += client.read_exactly(big.size() - (second.size() - second.find("\r\n\r\n") - 4));
  });
  EXPECT_TRUE(seen.ends_with(big));
  EXPECT_TRUE(first.contains("hello"));
  EXPECT_TRUE(first.contains(" world"));
  EXPECT_FALSE(first.contains("Authorization"));  // N104
  EXPECT_TRUE(second.ends_with(big));
  EXPECT_EQ(upstream.connections(), 1);
}

// An old client (ab -k, say) that asks for it keeps its connection; of chunks it gets the content.
TEST_F(HttpTest, Http10ClientsAreServedInTheirWay) {
  Echo echo{
      .answers = {kOk, kOk,
                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}};
  serve("files.example.org", echo.upstream);
  const std::string old =
      "GET / HTTP/1.0\r\nHost: files.example.org\r\nConnection: Keep-Alive\r\n\r\n";
  const Peer client = world.connect("files.example.org", 80);
  std::string chunked;
  world.run([&] {
    for (int i = 0; i < 2; ++i) {
      client.send(old);
      EXPECT_TRUE(client.read_until("ok").contains("onnection: keep-alive"));
    }
    client.send(old);
    chunked = client.read_all();
  });
  EXPECT_TRUE(chunked.ends_with("\r\n\r\nhello")) << chunked;
  EXPECT_TRUE(chunked.contains("onnection: close"));
  EXPECT_FALSE(chunked.contains("ransfer-"));
}

// N105
TEST_F(HttpTest, ExpectIsTheServersToAnswer) {
  Upstream upstream([](const Peer& peer) {
    const std::string head = peer.read_until("\r\n\r\n");
    EXPECT_TRUE(head.contains("100-continue"));
    peer.send("HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(peer.read_exactly(4), "body");
    peer.send(kOk);
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  std::string answer;
  world.run([&] {
    client.send(
        "PUT / HTTP/1.1\r\nHost: files.example.org\r\nContent-Length: 4\r\n"
        "Expect: 100-continue\r\n\r\n");
    EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 100"));
    client.send("body");
    answer = client.read_until("ok");
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
}

// An answer that comes before the request has ended, to a client that goes on sending.
TEST_F(HttpTest, AnEarlyAnswerArrives) {
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    (void)peer.read_all();
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  std::string answer;
  world.run([&] {
    client.send("PUT / HTTP/1.1\r\nHost: files.example.org\r\nContent-Length: 999999\r\n\r\nfirst");
    answer = client.read_until("\r\n\r\n");
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413"));
  EXPECT_TRUE(answer.contains("onnection: close"));
}

// N135
TEST_F(HttpTest, AFloodOfInterimAnswersEnds) {
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    for (int i = 0; i < 20; ++i) peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    peer.send(kOk);
  });
  serve("files.example.org", upstream);
  const std::string answer = talk("files.example.org", get("files.example.org"));
  EXPECT_FALSE(answer.contains("200 OK"));
}

// N156 N157
TEST_F(HttpTest, BadAnswersAreNotPassedOn) {
  for (const char* bad :
       {"HTTP/1.1 099 No\r\n\r\n", "HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "garbage\r\n\r\n"}) {
    Upstream upstream([&](const Peer& peer) {
      (void)peer.read_until("\r\n\r\n");
      peer.send(bad);
    });
    serve("files.example.org", upstream);
    EXPECT_TRUE(
        talk("files.example.org", get("files.example.org"), "}\n").starts_with("HTTP/1.1 502"))
        << bad;
  }
}

TEST_F(HttpTest, ACutAnswerIsNotTakenForWhole) {
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  world.run([&] {
    client.send(get("files.example.org"));
    EXPECT_TRUE(client.was_reset());
  });
}

constexpr const char* kUpgrade =
    "GET /ws HTTP/1.1\r\nHost: files.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// N130
TEST_F(HttpTest, AWebSocketIsRelayedAfterATrueSwitch) {
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nframe");
    EXPECT_EQ(peer.read_exactly(4), "ping");
    peer.send("pong");
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  world.run([&] {
    client.send(kUpgrade);
    EXPECT_TRUE(client.read_until("frame").starts_with("HTTP/1.1 101"));
    client.send("ping");
    EXPECT_EQ(client.read_exactly(4), "pong");
  });
}

// What goes up in it counts as the body of its request, whether it comes at once or later.
TEST_F(HttpTest, AWebSocketCarriesNoMoreUpThanABody) {
  for (const std::size_t early : {0U, 1000U, 1024U, 1025U, 5000U}) {
    std::string got;
    Upstream upstream([&](const Peer& peer) {
      (void)peer.read_until("\r\n\r\n");
      peer.send(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nframe");
      got = peer.read_all();
    });
    serve("small.example.org", upstream);
    std::string upgrade = kUpgrade;
    upgrade.replace(upgrade.find("files"), 5, "small");
    const Peer client = world.connect("small.example.org", 80);
    world.run([&] {
      client.send(upgrade + std::string(early, 'x'));
      (void)client.read_until("frame");
      client.send(std::string(1024 - std::min<std::size_t>(early, 1024), 'y'));
      client.send("z");
      (void)client.read_all();
    });
    world.settle();
    EXPECT_LE(got.size(), 1024U) << early;
    EXPECT_FALSE(got.contains('z'));
    EXPECT_TRUE(world.events().back().has(R"("problem":"max-body")"))
        << world.events().back().members;
  }
}

// N131 N134: without one, what follows is a request like any other.
TEST_F(HttpTest, AFakeUpgradeStaysHttp) {
  Echo echo;
  serve("read.example.org", echo.upstream);
  std::string upgrade = kUpgrade;
  upgrade.replace(upgrade.find("/ws"), 3, "/v1/ws");
  upgrade.replace(upgrade.find("files"), 5, "read");
  const Peer client = world.connect("read.example.org", 80);
  std::string answer;
  world.run([&] {
    client.send(upgrade);
    (void)client.read_until("ok");
    client.send("DELETE /v1/x HTTP/1.1\r\nHost: read.example.org\r\n\r\n");
    answer = client.read_until("}\n");
  });
  EXPECT_TRUE(answer.contains("403 Forbidden"));
  EXPECT_EQ(echo.seen.size(), 1U);
}

TEST_F(HttpTest, HostGoesOutAsItWasJudged) {
  Echo echo;
  serve("files.example.org", echo.upstream);
  for (const char* host : {"files.example.org.", "FILES.example.org:80", "files.example.org.:80"}) {
    (void)talk("files.example.org", get(host), "ok");
    ASSERT_FALSE(echo.seen.empty());
    EXPECT_TRUE(echo.seen.back().contains("\r\nHost: files.example.org\r\n")) << echo.seen.back();
  }
  EXPECT_EQ(echo.seen.size(), 3U);
}

// N107 N149
TEST_F(HttpTest, HopByHopAndForwardingFieldsEndHere) {
  Echo echo;
  serve("files.example.org", echo.upstream);
  (void)talk("files.example.org",
             "GET / HTTP/1.1\r\nHost: files.example.org\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
             "X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nProxy-Authorization: x\r\n\r\n",
             "ok");
  ASSERT_EQ(echo.seen.size(), 1U);
  for (const char* gone : {"Hop", "Forwarded", "Proxy"}) EXPECT_FALSE(echo.seen[0].contains(gone));
}

// A kept connection that its server has closed is made anew, with a new lookup and judgement.
TEST_F(HttpTest, AClosedUpstreamIsDialledAgain) {
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send(kOk);
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  world.run([&] {
    for (int i = 0; i < 3; ++i) {
      client.send(get("files.example.org"));
      EXPECT_TRUE(client.read_until("ok").contains("200 OK"));
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  });
  EXPECT_EQ(upstream.connections(), 3);
  EXPECT_EQ(world.asked.size(), 3U);
}

TEST_F(HttpTest, WhatCannotBeReachedIs502) {
  world.names["files.example.org"] = {"93.184.216.34"};
  EXPECT_TRUE(talk("files.example.org", get("files.example.org"), "}\n")
                  .contains("X-Cerco-Deny: unreachable"));
  world.names.clear();
  EXPECT_TRUE(talk("files.example.org", get("files.example.org"), "}\n")
                  .contains("X-Cerco-Deny: no-such-name"));
  world.names["files.example.org"] = {"10.0.0.1"};
  EXPECT_TRUE(talk("files.example.org", get("files.example.org"), "}\n").contains("HTTP/1.1 403"));
  EXPECT_TRUE(world.decisions().back().has(R"("kind":"range")"));
}

TEST_F(HttpTest, AConnectionWithoutARequestIsOneDecision) {
  const Peer client = world.connect("files.example.org", 80);
  world.run([&] { client.finish_sending(); });
  world.settle();
  EXPECT_EQ(world.decisions().size(), 1U);
}

// N125, F35: a slow reader holds no more than buffers.
TEST_F(HttpTest, ALargeBodyStreams) {
  constexpr std::size_t kSize = 64U << 20;
  Upstream upstream([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kSize) + "\r\n\r\n");
    const std::string piece(1 << 20, 'p');
    for (std::size_t sent = 0; sent < kSize; sent += piece.size()) peer.send(piece);
  });
  serve("files.example.org", upstream);
  const Peer client = world.connect("files.example.org", 80);
  std::size_t got = 0;
  world.run([&] {
    client.send(get("files.example.org"));
    got = client.read_until("\r\n\r\n").size();
    for (std::string some = client.read_some(); !some.empty(); some = client.read_some()) {
      got += some.size();
      if (got > kSize) break;
    }
  });
  EXPECT_GT(got, kSize);
}

}  // namespace
}  // namespace gateway
