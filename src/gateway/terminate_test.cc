// TLS that ends at the gateway, and the credentials that go in there.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>

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
name = "api"
host = "api.example.com"
methods = ["GET", "POST", "DELETE"]
paths = ["/v1/**", "/open"]
[[egress]]
name = "echo"
host = "echo.example.com"
methods = ["GET", "POST"]
[[egress]]
name = "stripped"
host = "stripped.example.com"
methods = ["GET"]
own = "strip"
[[egress]]
name = "local"
host = "host.cerco.internal"
ports = [8080]
methods = ["GET"]
[[credential]]
name = "api"
source = { env = "API_KEY" }
hosts = ["api.example.com"]
methods = ["GET", "POST"]
paths = ["/v1/**"]
inject = { header = "Authorization", format = "Bearer {secret}" }
env = { API_KEY = "secret" }
[[credential]]
name = "basic"
source = { env = "GIT_KEY" }
hosts = ["api.example.com"]
methods = ["GET"]
paths = ["/v1/git/**"]
inject = { basic = "git" }
env = { GIT_KEY = "secret" }
[[credential]]
name = "here"
source = { env = "HERE" }
hosts = ["host.cerco.internal"]
ports = [8080]
methods = ["GET"]
paths = ["/**"]
inject = { header = "X-Key", format = "{secret}" }
env = { HERE = "secret" }
)";

const std::string kSecret = "s3cr3t-of-the-api-0123456789";
const std::string kPlaceholder = "cerco-placeholder-of-api";

std::int64_t now() {
  return std::time(nullptr);
}

http::Authority make_authority(const std::string& run) {
  return std::move(*http::Authority::make(run, 3600, now));
}

// The same leaf in a context that shows it whatever name is asked for.
http::TlsContext whatever_name(const http::TlsContext& context) {
  http::TlsContext made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  EXPECT_EQ(SSL_CTX_use_certificate(made.get(), SSL_CTX_get0_certificate(context.get())), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(made.get(), SSL_CTX_get0_privatekey(context.get())), 1);
  return made;
}

class TerminateTest : public ::testing::Test {
 protected:
  explicit TerminateTest(const std::set<plan::Protection>& without = {}) : world(kPolicy, without) {
    world.authority = &inside;
    world.roots = outside.pem();
    world.broker = [](const plan::LeaseRequest&) { return plan::LeaseAnswer{.secret = kSecret}; };
  }

  // A TLS server for that name which answers each request with what `answer` makes of its head.
  struct Server {
    http::TlsContext context;
    std::function<std::string(const std::string&)> answer;
    std::vector<std::string> seen;
    Upstream upstream{[this](const Peer& peer) {
      const TlsPeer tls(peer, context, TlsPeer::Side::server, "");
      while (true) {
        const std::string head = tls.read_until("\r\n\r\n");
        if (head.empty()) return;
        seen.push_back(head);
        tls.send(answer(head));
      }
    }};
  };
  std::unique_ptr<Server> serve(const std::string& host, http::Authority& by) {
    auto server = std::make_unique<Server>();
    server->context = *by.server_context(host);
    server->answer = [](const std::string&) {
      return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    };
    world.names[host] = {"93.184.216.34"};
    world.listening["93.184.216.34:443"] = server->upstream.port();
    return server;
  }
  std::unique_ptr<Server> serve(const std::string& host) { return serve(host, outside); }

  // One TLS connection of a client that trusts the run's authority; sends each text and reads up to
  // an "ok" or the end of a JSON body.
  std::vector<std::string> talk(const std::string& host, const std::vector<std::string>& requests,
                                const std::string& until = "") {
    const Peer client = world.connect(host, 443);
    const auto context = *http::client_context(inside.pem(), http::Verification::required);
    std::vector<std::string> answers;
    world.run([&] {
      const TlsPeer tls(client, context, TlsPeer::Side::client, host);
      for (const std::string& request : requests) {
        tls.send(request);
        std::string answer;
        while (true) {
          const std::string some = tls.read_some();
          answer += some;
          if (some.empty() || (until.empty() ? answer.ends_with("ok") || answer.ends_with("}\n") ||
                                                   answer.ends_with("\r\n0\r\n\r\n")
                                             : answer.ends_with(until))) {
            break;
          }
        }
        answers.push_back(answer);
      }
    });
    return answers;
  }
  std::string talk_one(const std::string& host, const std::string& request,
                       const std::string& until = "") {
    return talk(host, {request}, until).front();
  }
  static std::string get(const std::string& host, const std::string& path,
                         const std::string& fields = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n";
  }
  int count(const std::string& type, const std::string& text = "") {
    int found = 0;
    for (const auto& event : world.events()) found += event.type == type && event.has(text) ? 1 : 0;
    return found;
  }

  http::Authority inside = make_authority("inside");
  http::Authority outside = make_authority("outside");
  World world;
};

const std::string kBearer = "Authorization: Bearer " + kPlaceholder + "\r\n";

TEST_F(TerminateTest, RequestsInsideTlsAreDecidedOneByOne) {
  const auto server = serve("echo.example.com");
  std::vector<std::string> requests(10, get("echo.example.com", "/a?k=v"));
  requests.emplace_back("DELETE / HTTP/1.1\r\nHost: echo.example.com\r\n\r\n");
  const auto answers = talk("echo.example.com", requests);
  EXPECT_TRUE(answers[9].contains("200 OK")) << answers[9];
  EXPECT_TRUE(answers[10].contains("403 Forbidden"));
  EXPECT_EQ(server->seen.size(), 10U);
  EXPECT_EQ(server->upstream.connections(), 1);
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 11U);
  EXPECT_TRUE(decisions[0].has(R"("tls":"terminated")"));
  EXPECT_TRUE(decisions[0].has(R"("url":"https://echo.example.com/a?[redacted]")"));
  EXPECT_TRUE(decisions[10].has(R"("kind":"method")"));
}

// N67
TEST_F(TerminateTest, AnotherHostInsideIsMisdirected) {
  const auto server = serve("echo.example.com");
  EXPECT_TRUE(
      talk_one("echo.example.com", get("api.example.com", "/v1/a")).starts_with("HTTP/1.1 421"));
  EXPECT_TRUE(server->seen.empty());
}

// N181
TEST_F(TerminateTest, AnUpstreamThatCannotProveItsNameIs502) {
  auto other = make_authority("other");
  const auto server = serve("api.example.com", other);
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/a", kBearer))
                  .contains("X-Cerco-Deny: upstream_certificate"));
  const auto wrong = serve("api.example.com");
  wrong->context = whatever_name(*outside.server_context("evil.test"));
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/a", kBearer))
                  .contains("X-Cerco-Deny: upstream_certificate"));
  EXPECT_TRUE(server->seen.empty());
  EXPECT_TRUE(wrong->seen.empty());
  EXPECT_TRUE(world.leases.empty());  // no secret was even asked for
}

class UnverifiedTest : public TerminateTest {
 protected:
  UnverifiedTest() : TerminateTest({plan::Protection::upstream_verify}) {}
};

// The control of the above.
TEST_F(UnverifiedTest, WithoutVerificationItGoesThrough) {
  auto other = make_authority("other");
  const auto server = serve("api.example.com", other);
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/open")).contains("200 OK"));
  EXPECT_EQ(server->seen.size(), 1U);
}

TEST_F(TerminateTest, ASecretTakesThePlaceOfItsPlaceholder) {
  const auto server = serve("api.example.com");
  const auto answers = talk("api.example.com", {get("api.example.com", "/v1/me?x=1", kBearer),
                                                get("api.example.com", "/v1/me", kBearer)});
  EXPECT_TRUE(answers[0].contains("200 OK")) << answers[0];
  ASSERT_EQ(server->seen.size(), 2U);
  EXPECT_TRUE(server->seen[0].contains("Bearer " + kSecret));
  EXPECT_FALSE(server->seen[0].contains(kPlaceholder));
  EXPECT_TRUE(server->seen[0].contains("ccept-") && server->seen[0].contains("identity"));
  ASSERT_EQ(world.leases.size(), 2U);
  EXPECT_EQ(world.leases[0].host, "api.example.com");
  EXPECT_EQ(world.leases[0].path, "/v1/me");
  EXPECT_EQ(world.leases[0].placeholder, kPlaceholder);
  EXPECT_TRUE(world.leases[0].verified_tls);
  EXPECT_TRUE(world.decisions()[0].has(R"("credential":"api")"));
  for (const auto& event : world.events()) {
    EXPECT_FALSE(event.has(kSecret));
    EXPECT_FALSE(event.has("x=1"));
  }
}

// N167
TEST_F(TerminateTest, BasicIsDecodedAndEncodedAgain) {
  const auto server = serve("api.example.com");
  (void)talk_one(
      "api.example.com",
      get("api.example.com", "/v1/git/info",
          "Authorization: Basic " + base::base64("git:cerco-placeholder-of-basic") + "\r\n"));
  ASSERT_EQ(server->seen.size(), 1U);
  EXPECT_TRUE(server->seen[0].contains(base::base64("git:" + kSecret)));
}

struct Misuse {
  const char* what;
  std::string host;
  std::string request;
};

// N151 N152 N159 N160 N161 N162 N169, F44: nothing reaches a server, and it is told.
TEST_F(TerminateTest, APlaceholderAnywhereElseIsRefused) {
  const std::string api = "api.example.com";
  const std::string echo = "echo.example.com";
  const Misuse table[] = {
      {"another host", echo, get(echo, "/", kBearer)},
      {"another path", api, get(api, "/open", kBearer)},
      {"another method", api,
       "DELETE /v1/a HTTP/1.1\r\nHost: api.example.com\r\n" + kBearer + "\r\n"},
      {"another header", api, get(api, "/v1/a", "X-Debug: " + kPlaceholder + "\r\n")},
      {"another shape", api, get(api, "/v1/a", "Authorization: Token " + kPlaceholder + "\r\n")},
      {"a cookie", api, get(api, "/v1/a", "Cookie: a=" + kPlaceholder + "\r\n")},
      {"the user agent", echo, get(echo, "/", "User-Agent: " + kPlaceholder + "\r\n")},
      {"the query", api, get(api, "/v1/a?k=" + kPlaceholder)},
      {"the path", echo, get(echo, "/" + kPlaceholder)},
      {"percent signs", echo, get(echo, "/?k=cerco%2Dplaceholder%2dof-api")},
      {"Basic to another host", echo,
       get(echo, "/", "Authorization: Basic " + base::base64("x:" + kPlaceholder) + "\r\n")},
      {"the other credential's", api,
       get(api, "/v1/a", "Authorization: Bearer cerco-placeholder-of-basic\r\n")},
  };
  const auto one = serve(api);
  const auto two = serve(echo);
  for (const Misuse& misuse : table) {
    const std::string answer = talk_one(misuse.host, misuse.request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << misuse.what << answer;
    EXPECT_TRUE(world.decisions().back().has(R"("kind":"credential")")) << misuse.what;
  }
  EXPECT_TRUE(one->seen.empty());
  EXPECT_TRUE(two->seen.empty());
  EXPECT_TRUE(world.leases.empty());
  EXPECT_EQ(count("credential.refused"), static_cast<int>(std::size(table)));
}

class UnboundTest : public TerminateTest {
 protected:
  UnboundTest() : TerminateTest({plan::Protection::binding}) {}
};

// The control of the above.
TEST_F(UnboundTest, WithoutTheBindingTheSecretGoesAnywhere) {
  const auto server = serve("echo.example.com");
  (void)talk_one("echo.example.com", get("echo.example.com", "/", kBearer));
  ASSERT_EQ(server->seen.size(), 1U);
  EXPECT_TRUE(server->seen[0].contains(kSecret));
}

// N182: in the clear, a placeholder is refused; the host's own services are the one exception.
TEST_F(TerminateTest, TheHostsOwnServicesMayGetItInTheClear) {
  std::string seen;
  Upstream upstream([&](const Peer& peer) {
    seen = peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  world.listening["127.0.0.1:8080"] = upstream.port();
  const Peer client = world.connect("host.cerco.internal", 8080);
  const Peer wrong = world.connect("host.cerco.internal", 8080);
  world.run([&] {
    client.send(get("host.cerco.internal:8080", "/", "X-Key: cerco-placeholder-of-here\r\n"));
    EXPECT_TRUE(client.read_until("ok").contains("200 OK"));
    wrong.send(get("host.cerco.internal:8080", "/", kBearer));
    EXPECT_TRUE(wrong.read_until("}\n").contains("403"));
  });
  EXPECT_TRUE(seen.contains(kSecret));
  EXPECT_FALSE(world.leases[0].verified_tls);
}

// N154: what a server sends back of the secret becomes the placeholder again.
TEST_F(TerminateTest, TheSecretIsTakenOutOfAnswers) {
  const auto server = serve("api.example.com");
  server->answer = [](const std::string&) {
    const std::string body =
        "you sent " + kSecret + " and " + base::base64("git:" + kSecret) + " ok";
    return "HTTP/1.1 200 OK\r\nX-Echo: " + kSecret +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const std::string answer =
      talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer), "0\r\n\r\n");
  EXPECT_TRUE(answer.contains("200 OK"));
  EXPECT_FALSE(answer.contains(kSecret));
  EXPECT_TRUE(answer.contains("X-Echo: " + kPlaceholder)) << answer;
  EXPECT_TRUE(answer.contains("you sent " + kPlaceholder));
}

// And out of everything else that a head or the end of a body can say.
TEST_F(TerminateTest, TheSecretIsTakenOutOfPhrasesNamesAndTrailers) {
  const auto server = serve("api.example.com");
  const std::string lower = base::to_lower(kSecret);
  server->answer = [lower](const std::string&) {
    return "HTTP/1.1 103 Early " + kSecret + "\r\nLink: " + kSecret + "\r\n" + lower +
           ": 1\r\n\r\nHTTP/1.1 200 Fine " + kSecret + "\r\nX-" + lower +
           ": 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\ngrpc-message: " + kSecret +
           "\r\n\r\n";
  };
  const std::string answer =
      talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer), "\r\n\r\n\r\n");
  EXPECT_TRUE(answer.contains("103 Early " + kPlaceholder)) << answer;
  EXPECT_TRUE(answer.contains("200 Fine " + kPlaceholder));
  EXPECT_TRUE(answer.contains("grpc-message: " + kPlaceholder));
  EXPECT_FALSE(base::to_lower(answer).contains(lower));
}

// Hosts share what is behind them: after a use no inspected answer tells it, from wherever.
TEST_F(TerminateTest, TheSecretIsTakenOutOfAnswersOfOtherHosts) {
  const auto server = serve("api.example.com");
  (void)talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer));
  const auto other = serve("echo.example.com");
  other->answer = [](const std::string& head) -> std::string {
    if (head.contains("/packed")) {
      return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok";
    }
    return "HTTP/1.1 200 OK\r\nX-Last: " + kSecret +
           "\r\nContent-Length: " + std::to_string(kSecret.size()) + "\r\n\r\n" + kSecret;
  };
  const std::string answer = talk_one(
      "echo.example.com", get("echo.example.com", "/", "Range: bytes=0-4\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(answer.contains("X-Last: " + kPlaceholder)) << answer;
  EXPECT_FALSE(answer.contains(kSecret));
  EXPECT_FALSE(other->seen[0].contains("ange:"));
  EXPECT_TRUE(talk_one("echo.example.com", get("echo.example.com", "/packed"))
                  .contains("X-Cerco-Deny: encoded-response"));
}

// An answer that was under way before the first use must not tell it either.
class OpenAnswerTest : public TerminateTest {
 protected:
  explicit OpenAnswerTest(const std::set<plan::Protection>& without = {})
      : TerminateTest(without) {}
  // What a client gets of an answer with that head field: "one", then the secret, which another
  // connection has used meanwhile.
  std::string stream(const std::string& field, const std::string& one, const std::string& rest) {
    std::atomic<bool> used = false;
    auto context = *outside.server_context("echo.example.com");
    Upstream echo([&](const Peer& peer) {
      const TlsPeer tls(peer, context, TlsPeer::Side::server, "");
      (void)tls.read_until("\r\n\r\n");
      tls.send("HTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + one);
      for (int i = 0; i < 10'000 && !used; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      tls.send(rest);
    });
    const auto server = serve("api.example.com");
    world.names["echo.example.com"] = {"93.184.216.35"};
    world.listening["93.184.216.35:443"] = echo.port();
    const Peer first = world.connect("echo.example.com", 443);
    const Peer second = world.connect("api.example.com", 443);
    const auto trusting = *http::client_context(inside.pem(), http::Verification::required);
    std::string answer;
    world.run([&] {
      const TlsPeer open(first, trusting, TlsPeer::Side::client, "echo.example.com");
      open.send(get("echo.example.com", "/"));
      answer = open.read_until("one");
      const TlsPeer tls(second, trusting, TlsPeer::Side::client, "api.example.com");
      tls.send(get("api.example.com", "/v1/me", kBearer));
      (void)tls.read_until("ok");
      used = true;
      answer += open.read_until("end");
    });
    return answer;
  }
  static std::string chunk(const std::string& text) {
    return http::chunk_head(text.size()) + text + "\r\n";
  }
};

TEST_F(OpenAnswerTest, TheSecretIsTakenOutOfWhatFollows) {
  const std::string answer =
      stream("Transfer-Encoding: chunked", chunk("one"), chunk(kSecret + " end"));
  EXPECT_TRUE(answer.contains(kPlaceholder + " end")) << answer;
  EXPECT_FALSE(answer.contains(kSecret));
}

TEST_F(OpenAnswerTest, ALengthThatCannotBeKeptBreaksTheAnswerOff) {
  const std::string rest = kSecret + "end";
  const std::string answer =
      stream("Content-Length: " + std::to_string(3 + rest.size()), "one", rest);
  EXPECT_TRUE(answer.ends_with("one")) << answer;
}

TEST_F(OpenAnswerTest, WhatIsPackedIsBrokenOff) {
  const std::string answer = stream("Content-Encoding: gzip\r\nTransfer-Encoding: chunked",
                                    chunk("one"), chunk(kSecret + " end"));
  EXPECT_TRUE(answer.contains("one"));
  EXPECT_FALSE(answer.contains(kSecret)) << answer;
}

class OpenUnredactedTest : public OpenAnswerTest {
 protected:
  OpenUnredactedTest() : OpenAnswerTest({plan::Protection::redaction}) {}
};

// The control of the three above.
TEST_F(OpenUnredactedTest, WithoutRedactionItFollows) {
  EXPECT_TRUE(stream("Transfer-Encoding: chunked", chunk("one"), chunk(kSecret + " end"))
                  .contains(kSecret));
}

constexpr const char* kWebSocket =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

// The server of the following: opens a WebSocket and sends these bytes after its head.
std::string switched(const std::string& more, const std::string& frames) {
  return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" +
         more + "\r\n" + frames;
}
std::string text_frame(const std::string& text) {
  return "\x81" + std::string(1, static_cast<char>(text.size())) + text;
}

// The secret goes in with the handshake, and comes back in no frame, of whatever host.
TEST_F(TerminateTest, TheSecretIsTakenOutOfWebSockets) {
  const auto api = serve("api.example.com");
  api->answer = [](const std::string&) {
    return switched("", text_frame("key " + kSecret) + text_frame("ok"));
  };
  const std::string answer =
      talk_one("api.example.com",
               get("api.example.com", "/v1/ws",
                   kBearer + kWebSocket + "Sec-WebSocket-Extensions: permessage-deflate\r\n"));
  ASSERT_EQ(api->seen.size(), 1U);
  EXPECT_TRUE(api->seen[0].contains("Bearer " + kSecret));
  EXPECT_FALSE(api->seen[0].contains("permessage-deflate"));
  EXPECT_FALSE(answer.contains(kSecret));
  EXPECT_TRUE(answer.ends_with(text_frame("key " + kPlaceholder) + text_frame("ok"))) << answer;
}

TEST_F(TerminateTest, WhatIsNoFrameEndsAWebSocket) {
  const auto api = serve("api.example.com");
  api->answer = [](const std::string&) { return switched("", "\xc1\x02ok"); };
  const std::string request = get("api.example.com", "/v1/ws", kBearer + kWebSocket);
  EXPECT_FALSE(talk_one("api.example.com", request).ends_with("ok"));
  api->answer = [](const std::string&) {
    return switched("Sec-WebSocket-Extensions: permessage-deflate\r\n", "ok");
  };
  EXPECT_TRUE(talk_one("api.example.com", request).starts_with("HTTP/1.1 502"));
}

class UnredactedTest : public TerminateTest {
 protected:
  UnredactedTest() : TerminateTest({plan::Protection::redaction}) {}
};

// The control of the above.
TEST_F(UnredactedTest, WithoutRedactionItComesBack) {
  const auto server = serve("api.example.com");
  server->answer = [](const std::string&) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kSecret.size() + 2) + "\r\n\r\n" +
           kSecret + "ok";
  };
  EXPECT_TRUE(
      talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer)).contains(kSecret));
}

TEST_F(UnredactedTest, WithoutRedactionItComesBackInAFrame) {
  const auto server = serve("api.example.com");
  server->answer = [](const std::string&) { return switched("", text_frame(kSecret + "ok")); };
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/ws", kBearer + kWebSocket))
                  .contains(kSecret));
}

// N164
TEST_F(TerminateTest, AnswersOfBoundHostsAreWholeAndReadable) {
  const auto server = serve("api.example.com");
  const std::string range = "Range: bytes=3-9\r\nAccept-Encoding: gzip, br\r\n";
  (void)talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer + range));
  EXPECT_FALSE(server->seen[0].contains("ange:"));
  EXPECT_FALSE(server->seen[0].contains("gzip"));
  server->answer = [](const std::string&) {
    return std::string("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok");
  };
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer))
                  .starts_with("HTTP/1.1 502"));
}

// N111
TEST_F(TerminateTest, ASecretWithALineBreakGoesNowhere) {
  world.broker = [](const plan::LeaseRequest&) { return plan::LeaseAnswer{.secret = "a\r\nX: b"}; };
  const auto server = serve("api.example.com");
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer))
                  .contains("X-Cerco-Deny: credential-value"));
  EXPECT_TRUE(server->seen.empty());
}

// N170 N200, F39: no lease, no request.
TEST_F(TerminateTest, WithoutALeaseNothingGoesOut) {
  world.broker = [](const plan::LeaseRequest&) { return plan::LeaseAnswer{.refusal = "expired"}; };
  const auto server = serve("api.example.com");
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer))
                  .contains("X-Cerco-Deny: credential-expired"));
  world.broker = nullptr;  // the broker hangs up
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer))
                    .contains("X-Cerco-Deny: broker"));
  }
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/open")).contains("200 OK"));
  ASSERT_EQ(server->seen.size(), 1U);
  EXPECT_TRUE(server->seen[0].contains("/open"));
}

// N170
TEST_F(TerminateTest, ARevokedCredentialEndsItsConnections) {
  const auto server = serve("api.example.com");
  const Peer client = world.connect("api.example.com", 443);
  const auto context = *http::client_context(inside.pem(), http::Verification::required);
  std::atomic<int> step = 0;
  std::string after = "unread";
  std::thread thread;
  world.run([&] {
    thread = std::thread([&] {
      const TlsPeer tls(client, context, TlsPeer::Side::client, "api.example.com");
      tls.send(get("api.example.com", "/v1/me", kBearer));
      (void)tls.read_until("ok");
      step = 1;
      after = tls.read_some();
      step = 2;
    });
    while (step < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  world.core().credentials.revoke("api");
  stop_users(world.core(), "api");
  world.run([&] {
    while (step < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  thread.join();
  EXPECT_EQ(after, "");
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer))
                  .contains("X-Cerco-Deny: credential-revoked"));
  EXPECT_EQ(server->seen.size(), 1U);
}

// N171 N172: keys that the agent brought itself.
TEST_F(TerminateTest, OwnKeysAreRefusedAtBoundPlacesWhateverTheirField) {
  const auto server = serve("api.example.com");
  EXPECT_TRUE(talk_one("api.example.com",
                       get("api.example.com", "/v1/me", "Authorization: Bearer mine\r\n"))
                  .contains("X-Cerco-Deny: own-credential"));
  EXPECT_TRUE(server->seen.empty());
  for (const char* field : {"X-Api-Key", "X-Goog-Api-Key", "Private-Token", "Cookie"}) {
    const std::string own = std::string(field) + ": s=attacker\r\n";
    for (const std::string& fields : {own, kBearer + own}) {
      EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/v1/me", fields))
                      .contains("X-Cerco-Deny: own-credential"))
          << fields;
    }
  }
  EXPECT_TRUE(server->seen.empty());
  EXPECT_TRUE(world.leases.empty());
  (void)talk_one("api.example.com", get("api.example.com", "/open",
                                        "Authorization: Bearer mine\r\nCookie: mine=1\r\n"));
  ASSERT_EQ(server->seen.size(), 1U);
  EXPECT_TRUE(server->seen[0].contains("Bearer mine"));  // not a bound place
  EXPECT_TRUE(server->seen[0].contains("mine=1"));
}

// Clients that keep cookies would send them with their next request and be refused.
TEST_F(TerminateTest, BoundPlacesSetNoCookies) {
  const auto server = serve("api.example.com");
  server->answer = [](const std::string&) {
    return std::string("HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 2\r\n\r\nok");
  };
  EXPECT_FALSE(
      talk_one("api.example.com", get("api.example.com", "/v1/me", kBearer)).contains("a=1"));
  EXPECT_TRUE(talk_one("api.example.com", get("api.example.com", "/open")).contains("a=1"));
}

class OwnStrippedTest : public TerminateTest {
 protected:
  OwnStrippedTest() { world.plan.policy.credentials[0].own = policy::Own::strip; }
};

// The strictest of those that cover a place decides.
TEST_F(OwnStrippedTest, ACredentialMayStripOwnKeys) {
  const auto server = serve("api.example.com");
  (void)talk_one("api.example.com", get("api.example.com", "/v1/me",
                                        kBearer + "Cookie: s=attacker\r\nX-Key: attacker\r\n"));
  ASSERT_EQ(server->seen.size(), 1U);
  EXPECT_TRUE(server->seen[0].contains(kSecret));
  EXPECT_FALSE(server->seen[0].contains("attacker"));
  EXPECT_TRUE(talk_one("api.example.com",
                       get("api.example.com", "/v1/git/a", kBearer + "Cookie: s=attacker\r\n"))
                  .contains("X-Cerco-Deny: own-credential"));
}

TEST_F(TerminateTest, ARuleMayStripOwnKeys) {
  const auto server = serve("stripped.example.com");
  (void)talk_one("stripped.example.com",
                 get("stripped.example.com", "/",
                     "Authorization: Bearer mine\r\nX-Api-Key: k\r\nCookie: mine=1\r\n"));
  ASSERT_EQ(server->seen.size(), 1U);
  EXPECT_FALSE(server->seen[0].contains("mine"));
  EXPECT_FALSE(server->seen[0].contains("-Key"));
}

// The contract: in a body it passes as it is, and is noted.
TEST_F(TerminateTest, APlaceholderInABodyPassesAndIsNoted) {
  std::string body;
  auto context = *outside.server_context("echo.example.com");
  Upstream upstream([&](const Peer& peer) {
    const TlsPeer tls(peer, context, TlsPeer::Side::server, "");
    body = tls.read_until(kPlaceholder + "}");
    tls.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  world.names["echo.example.com"] = {"93.184.216.34"};
  world.listening["93.184.216.34:443"] = upstream.port();
  const std::string text = "{" + kPlaceholder + "}";
  const std::string answer =
      talk_one("echo.example.com", "POST / HTTP/1.1\r\nHost: echo.example.com\r\nContent-Length: " +
                                       std::to_string(text.size()) + "\r\n\r\n" + text);
  EXPECT_TRUE(answer.contains("200 OK"));
  EXPECT_TRUE(body.ends_with(text));
  EXPECT_EQ(count("credential.refused", "placeholder_in_body"), 1);
}

// N136 inside a terminated connection, and a client that does not trust the authority.
TEST_F(TerminateTest, AClientThatDoesNotShakeHandsIsOneDecision) {
  const Peer client = world.connect("api.example.com", 443);
  const auto context = *http::client_context(outside.pem(), http::Verification::required);
  world.run([&] {
    const TlsPeer tls(client, context, TlsPeer::Side::client, "api.example.com");
    EXPECT_FALSE(tls.shook_hands());
  });
  world.settle();
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 1U);
}

}  // namespace
}  // namespace gateway
