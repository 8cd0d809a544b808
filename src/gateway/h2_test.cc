// HTTP/2 clients and servers through the gateway.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "gateway/h2_link.h"
#include "gateway/testing.h"

namespace gateway {
namespace {

using http::H2Side;
using testing::Peer;
using testing::TlsPeer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "api"
host = "api.example.com"
methods = ["GET", "POST"]
paths = ["/v1/**", "/pkg.Service/**"]
max_body = "1MiB"
[[credential]]
name = "api"
source = { env = "API_KEY" }
hosts = ["api.example.com"]
methods = ["GET", "POST"]
paths = ["/v1/secret/**"]
inject = { header = "Authorization", format = "Bearer {secret}" }
env = { API_KEY = "secret" }
)";

const std::string kHost = "api.example.com";
const std::string kSecret = "s3cr3t-of-the-api-0123456789";
const std::string kPlaceholder = "cerco-placeholder-of-api";

http::Authority make_authority(const std::string& run) {
  return std::move(*http::Authority::make(run, 3600, [] { return std::time(nullptr); }));
}

// A blocking end of an HTTP/2 connection, for the threads that play client and server.
class End {
 public:
  End(const TlsPeer& tls, H2Side side) : tls_(tls), framing_(make(side)) {}

  static std::unique_ptr<http::H2Connection> make(H2Side side) {
    return std::move(*http::H2Connection::make(side, {}));
  }
  void flush() {
    for (auto some = framing_->output(); !some.empty(); some = framing_->output()) tls_.send(some);
  }
  // False at the end of the connection.
  bool turn() {
    flush();
    if (framing_->over()) return false;
    const std::string some = tls_.read_some();
    if (some.empty()) return false;
    framing_->feed(some, 0);
    return true;
  }
  http::H2Connection& framing() { return *framing_; }

  std::shared_ptr<http::H2Stream> ask(std::string_view text) {
    auto stream = framing_->open();
    write(*stream, text);
    return stream;
  }
  void write(http::H2Stream& stream, std::string_view text) {
    while (!text.empty()) {
      const auto put = stream.write(text);
      if (put.state == http::H2Stream::State::broken) return;
      text.remove_prefix(put.bytes);
      if (put.bytes != 0) continue;
      flush();
      if (!stream.writable() && !turn()) return;
    }
    flush();
  }
  // What the stream says up to `until`, or to its end.
  std::string read(http::H2Stream& stream, const std::string& until = "") {
    std::string all;
    std::array<char, 4096> room{};
    while (until.empty() || !all.contains(until)) {
      const auto got = stream.read(room);
      if (got.state == http::H2Stream::State::moved) {
        all.append(room.data(), got.bytes);
      } else if (got.state == http::H2Stream::State::broken) {
        return all + "(broken)";
      } else if (got.state == http::H2Stream::State::end || !turn()) {
        break;
      }
    }
    flush();
    return all;
  }

 private:
  const TlsPeer& tls_;
  std::unique_ptr<http::H2Connection> framing_;
};

class H2Test : public ::testing::Test {
 protected:
  explicit H2Test(const std::set<plan::Protection>& without = {}) : world(kPolicy, without) {
    world.authority = &inside;
    world.roots = outside.pem();
    world.broker = [](const plan::LeaseRequest&) { return plan::LeaseAnswer{.secret = kSecret}; };
    world.names[kHost] = {"93.184.216.34"};
  }

  using Serve = std::function<void(End&, http::H2Stream&)>;
  // A server of HTTP/2 that does this with each of its streams, one after another.
  std::unique_ptr<Upstream> serve(Serve each) {
    auto upstream = std::make_unique<Upstream>(
        [this, each = std::move(each), context = *outside.server_context(kHost)](const Peer& peer) {
          const TlsPeer tls(peer, context, TlsPeer::Side::server, "");
          End end(tls, H2Side::server);
          while (end.turn()) {
            for (const auto& stream : end.framing().accept()) {
              kept.push_back(stream);
              each(end, *stream);
            }
          }
        });
    world.listening["93.184.216.34:443"] = upstream->port();
    return upstream;
  }
  // One that keeps what it was asked and answers.
  std::unique_ptr<Upstream> serve_answer(const std::string& answer) {
    return serve([this, answer](End& end, http::H2Stream& stream) {
      seen.push_back(end.read(stream));
      end.write(stream, answer);
    });
  }
  std::unique_ptr<Upstream> serve_http1(const std::string& answer) {
    auto upstream =
        std::make_unique<Upstream>([this, answer, context = without_alpn()](const Peer& peer) {
          const TlsPeer tls(peer, context, TlsPeer::Side::server, "");
          while (true) {
            const std::string head = tls.read_until("\r\n\r\n");
            if (head.empty()) return;
            seen.push_back(head);
            tls.send(answer);
          }
        });
    world.listening["93.184.216.34:443"] = upstream->port();
    return upstream;
  }

  http::TlsContext without_alpn() {
    const http::TlsContext context = *outside.server_context(kHost);
    http::TlsContext made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    EXPECT_EQ(SSL_CTX_use_certificate(made.get(), SSL_CTX_get0_certificate(context.get())), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(made.get(), SSL_CTX_get0_privatekey(context.get())), 1);
    return made;
  }

  void talk(const std::function<void(End&)>& client) {
    const Peer peer = world.connect(kHost, 443);
    const auto context = *http::client_context(inside.pem(), http::Verification::required);
    world.run([&] {
      const TlsPeer tls(peer, context, TlsPeer::Side::client, kHost, TlsPeer::Speaks::http2);
      ASSERT_EQ(tls.protocol(), "h2");
      End end(tls, H2Side::client);
      client(end);
      tls.close();
    });
    world.settle();
  }
  static std::string get(const std::string& path, const std::string& more = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: " + kHost + "\r\n" + more + "\r\n";
  }
  static std::string post(const std::string& path, const std::string& more = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: " + kHost + "\r\n" + more +
           "Transfer-Encoding: chunked\r\n\r\n";
  }
  std::string ask_one(const std::string& text) {
    std::string answer;
    talk([&](End& end) { answer = end.read(*end.ask(text)); });
    return answer;
  }

  http::Authority inside = make_authority("inside");
  http::Authority outside = make_authority("outside");
  World world;
  std::vector<std::string> seen;
  std::vector<std::shared_ptr<http::H2Stream>> kept;
};

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(H2Test, EachStreamIsARequestOnRecord) {
  const auto server = serve_answer(kOk);
  talk([&](End& end) {
    const auto first = end.ask(get("/v1/a?k=v"));
    const auto second = end.ask(post("/v1/b") + "3\r\nabc\r\n0\r\n\r\n");
    EXPECT_EQ(end.read(*first), "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok");
    EXPECT_EQ(end.read(*second), "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok");
    const auto denied = end.read(*end.ask(get("/elsewhere")));
    EXPECT_TRUE(denied.starts_with("HTTP/1.1 403 ")) << denied;
    EXPECT_TRUE(denied.contains("x-cerco-deny: path")) << denied;
  });
  EXPECT_EQ(server->connections(), 1);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(std::ranges::any_of(seen, [](const std::string& one) {
    return one.starts_with("GET /v1/a?k=v HTTP/1.1\r\nhost: api.example.com\r\n");
  }));
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 3U);
  std::map<std::string, int> ended;
  for (const auto& event : world.events()) {
    if (event.type == "egress.ended") ended[event.has(R"("status":200)") ? "ok" : "other"] += 1;
  }
  EXPECT_EQ(ended["ok"], 2);
  EXPECT_TRUE(decisions[2].has(R"("kind":"path")"));
  for (const auto& decision : decisions) {
    EXPECT_TRUE(decision.has(R"("conn":1,)")) << decision.members;
    EXPECT_TRUE(decision.has(R"("tls":"terminated")")) << decision.members;
  }
}

TEST_F(H2Test, AServerOfHttp1IsTranslatedFor) {
  const auto server = serve_http1(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\ngrpc-status: "
      "0\r\n\r\n");
  talk([&](End& end) {
    for (const char* path : {"/v1/a", "/v1/b"}) {
      EXPECT_EQ(end.read(*end.ask(get(path))),
                "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
                "grpc-status: 0\r\n\r\n");
    }
  });
  EXPECT_EQ(server->connections(), 1);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0],
            "GET /v1/a HTTP/1.1\r\nHost: api.example.com\r\naccept-encoding: identity\r\n\r\n");
}

TEST_F(H2Test, BothSidesStreamAtOnceAndTrailersArrive) {
  const auto server = serve([](End& end, http::H2Stream& stream) {
    EXPECT_TRUE(end.read(stream, "\r\n1\r\na\r\n").contains("te: trailers\r\n"));
    end.write(stream,
              "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\n"
              "Transfer-Encoding: chunked\r\n\r\n1\r\nA\r\n");
    EXPECT_TRUE(end.read(stream, "b").contains("b"));
    end.write(stream, "1\r\nB\r\n");
    EXPECT_TRUE(end.read(stream).ends_with("0\r\n\r\n"));
    end.write(stream, "0\r\ngrpc-status: 5\r\nx-mine-bin: aa\r\nset-cookie: a=1\r\n\r\n");
  });
  talk([&](End& end) {
    const auto stream = end.ask(post("/pkg.Service/Talk", "Content-Type: application/grpc\r\n"));
    end.write(*stream, "1\r\na\r\n");
    EXPECT_TRUE(end.read(*stream, "\r\nA\r\n").contains("application/grpc"));
    end.write(*stream, "1\r\nb\r\n");
    EXPECT_EQ(end.read(*stream, "\r\nB\r\n"), "1\r\nB\r\n");
    end.write(*stream, "0\r\n\r\n");
    EXPECT_EQ(end.read(*stream), "0\r\ngrpc-status: 5\r\nx-mine-bin: aa\r\n\r\n");
  });
}

TEST_F(H2Test, TrailersAloneAreAnAnswer) {
  const auto server = serve_answer(
      "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\ngrpc-status: 12\r\n"
      "Content-Length: 0\r\n\r\n");
  const std::string answer = ask_one(post("/pkg.Service/None") + "0\r\n\r\n");
  EXPECT_TRUE(answer.contains("grpc-status: 12\r\n")) << answer;
}

// N67
TEST_F(H2Test, AnotherAuthorityIsMisdirected) {
  const auto server = serve_answer(kOk);
  const std::string answer = ask_one("GET /v1/a HTTP/1.1\r\nHost: other.example.com\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 421 ")) << answer;
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(server->connections(), 0);
}

TEST_F(H2Test, SecretsGoInAndAreTakenOut) {
  const auto server = serve([this](End& end, http::H2Stream& stream) {
    seen.push_back(end.read(stream));
    end.write(stream,
              "HTTP/1.1 200 OK\r\nX-Echo: " + kSecret + "\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char c : kSecret) end.write(stream, std::string("1\r\n") + c + "\r\n");
    end.write(stream, "0\r\ngrpc-message: " + kSecret + "\r\n\r\n");
  });
  const std::string answer =
      ask_one(get("/v1/secret/a", "authorization: Bearer " + kPlaceholder + "\r\n"));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(seen[0].contains("authorization: Bearer " + kSecret + "\r\n")) << seen[0];
  EXPECT_FALSE(answer.contains(kSecret)) << answer;
  EXPECT_TRUE(answer.contains("x-echo: " + kPlaceholder)) << answer;
  EXPECT_TRUE(answer.contains("grpc-message: " + kPlaceholder)) << answer;
}

// N179, N180
TEST_F(H2Test, AConnectionIsForOneSetOfCredentials) {
  std::vector<std::jthread> connections;  // at once, each in a thread of its own
  Upstream server([&, context = *outside.server_context(kHost)](const Peer& peer) {
    connections.emplace_back([context, own = Peer(*os::duplicate(peer.fd()))] {
      const TlsPeer tls(own, context, TlsPeer::Side::server, "");
      End end(tls, H2Side::server);
      while (end.turn()) {
        for (const auto& stream : end.framing().accept()) end.write(*stream, kOk);
      }
    });
  });
  world.listening["93.184.216.34:443"] = server.port();
  talk([&](End& end) {
    const std::string bearer = "authorization: Bearer " + kPlaceholder + "\r\n";
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(end.read(*end.ask(get("/v1/secret/a", bearer))).contains("\r\nok"));
      EXPECT_TRUE(end.read(*end.ask(get("/v1/a"))).contains("\r\nok"));
    }
  });
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(H2Test, StreamsCountAsConnections) {
  world.limits.connections = 3;
  std::promise<void> refused;
  const std::shared_future<void> told = refused.get_future().share();
  const auto server = serve([this, told](End& end, http::H2Stream& stream) {
    if (kept.size() < 2) return;
    // Both are open until the third was refused.
    EXPECT_EQ(told.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    for (const auto& one : kept) end.write(*one, kOk);
    (void)stream;
  });
  talk([&](End& end) {
    std::vector<std::shared_ptr<http::H2Stream>> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(end.ask(get("/v1/a")));
    EXPECT_EQ(end.read(*streams[2]), "(broken)");
    EXPECT_TRUE(streams[2]->refused());
    refused.set_value();
    EXPECT_TRUE(end.read(*streams[0]).contains("\r\nok"));
    EXPECT_TRUE(end.read(*streams[1]).contains("\r\nok"));
  });
}

// F23: HTTP/2 is spoken where it was agreed on, and nowhere else.
TEST_F(H2Test, PriorKnowledgeWithoutAlpnIsRejected) {
  const Peer peer = world.connect(kHost, 443);
  const auto context = *http::client_context(inside.pem(), http::Verification::required);
  world.run([&] {
    const TlsPeer tls(peer, context, TlsPeer::Side::client, kHost);
    EXPECT_EQ(tls.protocol(), "http/1.1");
    tls.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    EXPECT_TRUE(tls.read_some().starts_with("HTTP/1.1 505 "));
  });
  EXPECT_TRUE(world.decisions().at(0).has(R"("reason":"h2c")"));
}

TEST_F(H2Test, AResetReachesTheOtherSide) {
  bool cut = false;
  const auto server = serve([&](End& end, http::H2Stream& stream) {
    if (end.read(stream, "\r\n\r\n").contains("/v1/server")) {
      end.write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegin");
      stream.abandon(http::H2Code::internal);
      end.flush();
      return;
    }
    cut = end.read(stream).ends_with("(broken)");
  });
  talk([&](End& end) {
    EXPECT_TRUE(end.read(*end.ask(get("/v1/server"))).ends_with("(broken)"));
    const auto stream = end.ask(post("/v1/client") + "1\r\na\r\n");
    EXPECT_TRUE(end.read(*end.ask(get("/elsewhere"))).contains("403"));
    stream->abandon(http::H2Code::cancel);
    end.flush();
    EXPECT_TRUE(end.read(*end.ask(get("/elsewhere"))).contains("403"));
  });
  EXPECT_TRUE(cut);
}

TEST_F(H2Test, ARefusedStreamMayBeTriedAgain) {
  const auto server = serve([](End& end, http::H2Stream& stream) {
    stream.abandon(http::H2Code::refused);
    end.flush();
  });
  talk([&](End& end) {
    const auto stream = end.ask(get("/v1/a"));
    EXPECT_EQ(end.read(*stream), "(broken)");
    EXPECT_TRUE(stream->refused());
  });
}

TEST_F(H2Test, ManyStreamsShareOneConnectionToTheServer) {
  const auto server = serve_answer(kOk);
  talk([&](End& end) {
    std::vector<std::shared_ptr<http::H2Stream>> streams;
    for (int i = 0; i < 100; ++i) streams.push_back(end.ask(get("/v1/" + std::to_string(i))));
    for (const auto& stream : streams) EXPECT_TRUE(end.read(*stream).contains("\r\nok"));
  });
  EXPECT_EQ(server->connections(), 1);
  EXPECT_EQ(world.decisions().size(), 100U);
}

TEST_F(H2Test, LargeBodiesGoBothWaysWithinBoundedMemory) {
  constexpr std::size_t kSize = std::size_t{900} * 1024;
  const auto server = serve([&](End& end, http::H2Stream& stream) {
    const std::string asked = end.read(stream);
    EXPECT_GT(asked.size(), kSize);
    end.write(stream, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kSize) + "\r\n\r\n" +
                          std::string(kSize, 'y'));
  });
  talk([&](End& end) {
    const auto stream = end.ask(post("/v1/a"));
    std::string chunks;
    for (std::size_t at = 0; at < kSize; at += 0x4000) {
      chunks += "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
    }
    end.write(*stream, chunks + "0\r\n\r\n");
    const std::string answer = end.read(*stream);
    EXPECT_TRUE(answer.ends_with("\r\n\r\n" + std::string(kSize, 'y')));
  });
  EXPECT_EQ(world.core().h2_room, std::int64_t{32} << 20);
}

// What peers may send ahead comes out of one room: whoever comes late gets the least, and what is
// over goes back.
TEST_F(H2Test, TheRoomForWhatIsSentAheadIsShared) {
  constexpr std::int64_t kRoom = std::int64_t{32} << 20;
  constexpr std::int64_t kLeast = 64 * 1024;
  constexpr int kMany = 300;
  std::int64_t last_given = 0;
  Core& core = world.core();
  Wake wake;
  std::vector<base::Fd> peers;
  std::vector<std::shared_ptr<H2Link>> links;
  std::int64_t last = kRoom;
  for (int i = 0; i < kMany; ++i) {
    auto [mine, theirs] = std::move(*os::socket_pair(SOCK_STREAM));
    peers.push_back(std::move(theirs));
    auto link = H2Link::make(core, http::H2Side::server,
                             std::make_shared<SocketStream>(core.io, std::move(mine), wake), wake);
    ASSERT_TRUE(link.has_value());
    links.push_back(std::move(*link));
    last_given = last - core.h2_room;
    last = core.h2_room;
    EXPECT_GE(last_given, kLeast);
    EXPECT_LE(last_given, kRoom / 2);
  }
  EXPECT_EQ(last_given, kLeast);
  EXPECT_GE(core.h2_room, -kMany * kLeast) << "never more than the least beyond it";
  for (const auto& link : links) link->detach();
  links.clear();
  EXPECT_EQ(core.h2_room, kRoom);
}

TEST_F(H2Test, TheRulesLimitsHold) {
  const auto server = serve([](End& end, http::H2Stream& stream) { (void)end.read(stream); });
  talk([&](End& end) {
    const auto stream = end.ask(post("/v1/a"));
    std::string chunks;
    for (int i = 0; i < 80; ++i) chunks += "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
    end.write(*stream, chunks);
    EXPECT_TRUE(end.read(*stream).starts_with("HTTP/1.1 413 "));
  });
}

// As over HTTP/1.1: a client that is cut off while it sends may never read why.
TEST_F(H2Test, ARefusedRequestMayStillBeSentForAWhile) {
  talk([&](End& end) {
    const auto stream = end.ask(post("/elsewhere") + "1\r\na\r\n");
    EXPECT_TRUE(end.read(*stream).starts_with("HTTP/1.1 403 "));
    EXPECT_TRUE(end.read(*end.ask(get("/elsewhere"))).starts_with("HTTP/1.1 403 "));
    EXPECT_EQ(stream->write("1\r\nb\r\n0\r\n\r\n").state, http::H2Stream::State::moved);
    end.flush();
  });
}

TEST_F(H2Test, AnUnreachableServerIsSaid) {
  world.listening.clear();
  talk([&](End& end) {
    const auto first = end.ask(get("/v1/a"));
    const auto second = end.ask(get("/v1/b"));
    EXPECT_TRUE(end.read(*first).starts_with("HTTP/1.1 502 "));
    EXPECT_TRUE(end.read(*second).starts_with("HTTP/1.1 502 "));
  });
}

TEST_F(H2Test, AConnectionWithoutARequestIsOnRecord) {
  talk([](End& end) { end.flush(); });
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_TRUE(decisions[0].has(R"("reason":"no-request")"));
}

TEST_F(H2Test, N115AFloodIsOnRecordAndEndsTheConnection) {
  world.limits.h2.resets = 20;
  world.limits.h2.resets_each_second = 0;
  const auto server = serve_answer(kOk);
  talk([](End& end) {
    for (int i = 0; i < 60 && end.framing().takes_more(); ++i) {
      end.ask(get("/elsewhere"))->abandon(http::H2Code::cancel);
    }
    while (end.turn()) {
    }
  });
  const auto decisions = world.decisions();
  EXPECT_TRUE(std::ranges::any_of(decisions, [](const testing::Event& one) {
    return one.has(R"("verdict":"reject")") && one.has(R"("reason":"h2-resets")");
  }));
  EXPECT_TRUE(seen.empty());
}

TEST_F(H2Test, N115AClientThatTakesNothingIsSentAway) {
  world.limits.idle = std::chrono::milliseconds(300);
  const auto server = serve_answer("HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n" +
                                   std::string(4'000'000, 'x'));
  talk([](End& end) {
    const auto stream = end.ask(get("/v1/a"));
    while (end.turn()) {
    }
  });
  EXPECT_TRUE(std::ranges::any_of(world.decisions(), [](const testing::Event& one) {
    return one.has(R"("reason":"h2-window")");
  }));
}

TEST_F(H2Test, RevokedSecretsEndTheConnection) {
  const auto server = serve_answer(kOk);
  // At the second lease the first one's users are stopped.
  world.broker = [&](const plan::LeaseRequest&) {
    if (world.leases.size() == 2) stop_users(world.core(), "api");
    return plan::LeaseAnswer{.secret = kSecret};
  };
  talk([&](End& end) {
    const std::string bearer = "authorization: Bearer " + kPlaceholder + "\r\n";
    EXPECT_TRUE(end.read(*end.ask(get("/v1/secret/a", bearer))).contains("\r\nok"));
    EXPECT_FALSE(end.read(*end.ask(get("/v1/secret/b", bearer))).contains("200"));
    EXPECT_FALSE(end.turn());
  });
  EXPECT_EQ(seen.size(), 1U);
}

}  // namespace
}  // namespace gateway
