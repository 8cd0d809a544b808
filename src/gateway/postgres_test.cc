// Sessions with PostgreSQL: the gateway proves the password, and servers that prove nothing get
// nothing.
#include "gateway/postgres.h"

#include <gtest/gtest.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include "gateway/postgres_message.h"
#include "gateway/testing.h"

namespace gateway {
namespace {

using postgres::Startup;
using testing::Peer;
using testing::TlsPeer;
using testing::Upstream;
using testing::World;
using namespace std::string_literals;

constexpr const char* kHost = "db.example.org";
constexpr const char* kPassword = "pencil of the database";
constexpr const char* kPlaceholder = "cerco-placeholder-of-waiting";

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "db"
tcp = "db.example.org:5432"
[[credential]]
name = "app"
source = { env = "PW" }
hosts = ["db.example.org"]
ports = [5432]
inject = { postgres = "app" }
require = false
[[credential]]
name = "waiting"
source = { env = "PW2" }
hosts = ["db.example.org"]
ports = [5432]
inject = { postgres = "waiting" }
env = { PGPASSWORD = "secret" }
)";

std::string hmac(std::string_view key, std::string_view text) {
  std::string digest(32, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &size);
  return digest;
}

// What a server may do instead of what it should.
enum class Does {
  right,
  no_tls,
  asks_plain,
  asks_md5,
  trusts,
  wrong_proof,
  no_proof,
  weak,
  no_plus
};

class Server {
 public:
  Server(http::Authority& authority, const std::string& name, Does does) : does_(does) {
    const auto leaf = *authority.server_context(name);
    context_ = http::TlsContext(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    certificate_ = SSL_CTX_get0_certificate(leaf.get());
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), certificate_), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), SSL_CTX_get0_privatekey(leaf.get())), 1);
    leaf_ = leaf;
  }
  [[nodiscard]] std::uint16_t port() const { return upstream_.port(); }

  std::vector<std::string> seen;  // in order, what the client said
  std::string cancelled;

 private:
  static std::string exactly(const TlsPeer& tls, std::string& held, std::size_t count) {
    while (held.size() < count) {
      const std::string some = tls.read_some();
      if (some.empty()) return {};
      held += some;
    }
    std::string taken = held.substr(0, count);
    held.erase(0, count);
    return taken;
  }
  static std::string hear(const TlsPeer& tls, std::string& held) {
    const std::string head = exactly(tls, held, 5);
    return head.empty() ? "" : exactly(tls, held, postgres::length_of(head.substr(1)) - 4);
  }

  void serve(const Peer& peer) {
    seen.push_back("asked " + std::to_string(peer.read_exactly(8).size()));
    if (does_ == Does::no_tls) return peer.send("N");
    peer.send("S");
    const TlsPeer tls(peer, context_, TlsPeer::Side::server, "");
    std::string held;
    const std::string length = exactly(tls, held, 4);
    if (length.empty()) return;
    const auto startup =
        postgres::parse_startup(exactly(tls, held, postgres::length_of(length) - 4));
    if (!startup) return;
    cancelled += startup->key;
    if (startup->kind == Startup::Kind::cancel) return;
    seen.push_back("user " + startup->user());
    if (does_ == Does::asks_plain) tls.send(postgres::write_authentication(3, ""));
    if (does_ == Does::asks_md5) tls.send(postgres::write_authentication(5, "salt"));
    if (does_ == Does::trusts) tls.send(postgres::write_authentication(0, "") + ready());
    if (does_ == Does::asks_plain || does_ == Does::asks_md5 || does_ == Does::trusts) {
      seen.push_back("then " + hear(tls, held));
      return;
    }
    if (prove(tls, held)) tls.send(postgres::write_authentication(0, "") + ready());
    const std::string query = hear(tls, held);
    if (query.empty()) return;
    seen.push_back("query " + query.substr(0, query.size() - 1));
    tls.send("row");
  }

  static std::string ready() {
    return postgres::message('K', "\0\0\0\x07\1\2\3\4"s) + postgres::message('Z', "I");
  }

  bool prove(const TlsPeer& tls, std::string& held) {
    const std::string offers =
        does_ == Does::no_plus ? "SCRAM-SHA-256\0\0"s : "SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"s;
    tls.send(postgres::write_authentication(10, offers));
    const std::string initial = hear(tls, held);
    if (initial.empty()) return false;
    const std::string mechanism = initial.substr(0, initial.find('\0'));
    const std::string first = initial.substr(mechanism.size() + 5);
    seen.push_back(mechanism + " " + first.substr(0, first.find("n=,")));
    const std::string bare = first.substr(first.find("n=,"));
    const std::string rounds = does_ == Does::weak ? "1" : "4096";
    const std::string server_first =
        bare.substr(3) + "SERVER,s=" + base::base64("salt of sixteen ") + ",i=" + rounds;
    tls.send(postgres::write_authentication(11, server_first));
    const std::string last = hear(tls, held);
    if (last.empty()) return false;
    const std::string without = last.substr(0, last.find(",p="));
    const std::string words = bare + "," + server_first + "," + without;
    EXPECT_TRUE(
        without.starts_with("c=" + base::base64(first.substr(0, first.find("n=,")) +
                                                (mechanism.ends_with("PLUS") ? digest() : ""))));
    const std::string salted =
        *http::scram_salted(kPassword, {.salt = "salt of sixteen ", .rounds = 4096});
    std::string key = hmac(salted, "Client Key");
    std::string stored(32, '\0');
    EVP_Digest(key.data(), key.size(), reinterpret_cast<unsigned char*>(stored.data()), nullptr,
               EVP_sha256(), nullptr);
    const std::string signature = hmac(stored, words);
    for (std::size_t i = 0; i < 32; ++i) key[i] = static_cast<char>(key[i] ^ signature[i]);
    const bool knows = last.ends_with(",p=" + base::base64(key));
    seen.emplace_back(knows ? "knows the password" : "does not know it");
    if (!knows) return false;
    const std::string proof =
        hmac(hmac(salted, does_ == Does::wrong_proof ? "?" : "Server Key"), words);
    if (does_ != Does::no_proof) {
      tls.send(postgres::write_authentication(12, "v=" + base::base64(proof)));
    }
    return true;
  }

  [[nodiscard]] std::string digest() const {
    std::string bytes(32, '\0');
    unsigned size = 0;
    X509_digest(certificate_, EVP_sha256(), reinterpret_cast<unsigned char*>(bytes.data()), &size);
    return bytes;
  }

  Does does_;
  http::TlsContext leaf_;
  http::TlsContext context_;
  X509* certificate_ = nullptr;
  Upstream upstream_{[this](const Peer& peer) { serve(peer); }};
};

std::int64_t now() {
  return std::time(nullptr);
}

class PostgresTest : public ::testing::Test {
 protected:
  PostgresTest() : world(kPolicy) {
    world.authority = &inside;
    world.roots = outside.pem();
    world.names[kHost] = {"93.184.216.34"};
    world.broker = [this](const plan::LeaseRequest& request) {
      plan::LeaseAnswer answer;
      answer.refusal = refusal;
      if (refusal.empty()) {
        answer.secret = *http::scram_salted(kPassword, {request.salt, request.iterations});
      }
      return answer;
    };
  }

  static std::string start_of(const std::string& user) {
    return postgres::write_startup({.kind = Startup::Kind::session,
                                    .key = {},
                                    .parameters = {{"user", user}, {"database", "some"}}});
  }

  // What the client reads when it begins with `first` and then, when it is let in, asks a query.
  std::string talk(Server& server, const std::string& first, const std::string& password = "") {
    world.listening["93.184.216.34:5432"] = server.port();
    const Peer client = world.connect(kHost, 5432);
    std::string answer;
    world.run([&] {
      client.send(first);
      if (!password.empty()) {
        answer = client.read_exactly(9);
        client.send(postgres::message('p', password + '\0'));
      }
      std::string last;
      while (!(last = client.read_some()).empty()) {
        answer += last;
        if (answer.ends_with(postgres::message('Z', "I"))) {
          client.send(postgres::message('Q', "select 1\0"s));
        }
        if (answer.ends_with("row")) break;
      }
    });
    return answer;
  }

  std::string problem() {
    for (const auto& event : world.events()) {
      const auto at = event.members.find(R"("problem":")");
      if (event.type != "egress.ended" || at == std::string::npos) continue;
      return event.members.substr(at + 11, event.members.find('"', at + 11) - at - 11);
    }
    return {};
  }

  http::Authority inside = std::move(*http::Authority::make("inside", 3600, now));
  http::Authority outside = std::move(*http::Authority::make("outside", 3600, now));
  std::string refusal;
  World world;
};

using Lines = std::vector<std::string>;

TEST_F(PostgresTest, N139AClientWithoutAPasswordIsLetIn) {
  Server server(outside, kHost, Does::right);
  const std::string answer = talk(server, start_of("app"));
  EXPECT_TRUE(answer.starts_with(postgres::write_authentication(0, "")));
  EXPECT_TRUE(answer.ends_with("row"));
  EXPECT_EQ(server.seen,
            (Lines{"asked 8", "user app", "SCRAM-SHA-256-PLUS p=tls-server-end-point,,",
                   "knows the password", "query select 1"}));
  ASSERT_EQ(world.leases.size(), 1U);
  EXPECT_EQ(world.leases[0].credential, "app");
  EXPECT_TRUE(world.leases[0].verified_tls);
  EXPECT_EQ(world.leases[0].iterations, 4096U);
}

TEST_F(PostgresTest, N139WithoutPlusTheServerIsToldThatItCouldHave) {
  Server server(outside, kHost, Does::no_plus);
  EXPECT_TRUE(talk(server, start_of("app")).ends_with("row"));
  EXPECT_EQ(server.seen[2], "SCRAM-SHA-256 y,,");
}

TEST_F(PostgresTest, N139WhoAsksForTlsOrGssFirst) {
  Server server(outside, kHost, Does::right);
  const std::string gss =
      postgres::write_startup({.kind = Startup::Kind::gss, .key = {}, .parameters = {}});
  EXPECT_TRUE(
      talk(server, gss + start_of("app")).starts_with("N" + postgres::write_authentication(0, "")));

  const std::string tls =
      postgres::write_startup({.kind = Startup::Kind::tls, .key = {}, .parameters = {}});
  const Peer client = world.connect(kHost, 5432);
  const auto context = *http::client_context(inside.pem(), http::Verification::required);
  std::string answer;
  world.run([&] {
    client.send(tls);
    ASSERT_EQ(client.read_exactly(1), "S");
    const TlsPeer inner(client, context, TlsPeer::Side::client, kHost);
    ASSERT_TRUE(inner.shook_hands());
    inner.send(start_of("app"));
    answer = inner.read_until(postgres::message('Z', "I"));
  });
  EXPECT_TRUE(answer.ends_with(postgres::message('Z', "I")));
}

// CVE-2021-23214: what was sent in the clear is never taken for what came through TLS.
TEST_F(PostgresTest, WhatComesBehindTheAskingIsNotReadAsASession) {
  Server server(outside, kHost, Does::right);
  const std::string tls =
      postgres::write_startup({.kind = Startup::Kind::tls, .key = {}, .parameters = {}});
  EXPECT_FALSE(talk(server, tls + start_of("app")).contains("row"));
  EXPECT_EQ(server.seen, Lines{});
  EXPECT_EQ(problem(), "client-handshake");
}

TEST_F(PostgresTest, N139ServersThatWouldBeGivenThePasswordOrProveNothing) {
  const std::pair<Does, std::string> rows[] = {
      {Does::no_tls, "upstream-tls"},       {Does::asks_plain, "postgres-auth"},
      {Does::asks_md5, "postgres-auth"},    {Does::trusts, "postgres-auth"},
      {Does::wrong_proof, "postgres-auth"}, {Does::no_proof, "postgres-auth"},
      {Does::weak, "postgres-auth"}};
  for (const auto& [does, why] : rows) {
    World fresh(kPolicy);
    fresh.authority = &inside;
    fresh.roots = outside.pem();
    fresh.names[kHost] = {"93.184.216.34"};
    fresh.broker = world.broker;
    Server server(outside, kHost, does);
    fresh.listening["93.184.216.34:5432"] = server.port();
    const Peer client = fresh.connect(kHost, 5432);
    std::string answer;
    fresh.run([&] {
      client.send(start_of("app"));
      answer = client.read_all();
    });
    EXPECT_TRUE(answer.starts_with("E")) << why;
    EXPECT_TRUE(answer.contains("cerco: " + why)) << answer;
    EXPECT_FALSE(answer.contains(postgres::write_authentication(0, ""))) << why;
    for (const std::string& line : server.seen) EXPECT_FALSE(line.contains(kPassword)) << line;
  }
}

TEST_F(PostgresTest, N139AnImpostorIsNotAsked) {
  Server server(inside, kHost, Does::right);  // by an authority that upstream does not have
  EXPECT_TRUE(talk(server, start_of("app")).contains("cerco: upstream-certificate"));
  Server other(outside, "other.example.org", Does::right);
  EXPECT_TRUE(talk(other, start_of("app")).contains("cerco: upstream-certificate"));
  EXPECT_EQ(server.seen, Lines{"asked 8"});
  EXPECT_TRUE(world.leases.empty());
}

TEST_F(PostgresTest, AnotherUserOrAnotherPasswordGoesNowhere) {
  Server server(outside, kHost, Does::right);
  EXPECT_TRUE(talk(server, start_of("postgres")).contains("cerco: postgres-user"));
  EXPECT_TRUE(talk(server, start_of("waiting"), "my own").contains("cerco: own-credential"));
  EXPECT_EQ(server.seen, Lines{});
  EXPECT_TRUE(talk(server, start_of("waiting"), kPlaceholder).ends_with("row"));
  EXPECT_EQ(world.leases.back().placeholder, kPlaceholder);
}

TEST_F(PostgresTest, ARefusedLeaseIsToldAndNothingIsProven) {
  refusal = "uses";
  Server server(outside, kHost, Does::right);
  EXPECT_TRUE(talk(server, start_of("app")).contains("cerco: credential-uses"));
  EXPECT_EQ(server.seen.back(), "SCRAM-SHA-256-PLUS p=tls-server-end-point,,");
}

TEST_F(PostgresTest, N139OnlyOwnQueriesAreCancelled) {
  Server server(outside, kHost, Does::right);
  const auto cancel = [](const std::string& key) {
    return postgres::write_startup({.kind = Startup::Kind::cancel, .key = key, .parameters = {}});
  };
  const std::string own = "\0\0\0\x07\1\2\3\4"s;
  EXPECT_EQ(talk(server, cancel(own)), "");
  EXPECT_EQ(server.cancelled, "") << "before there was such a session";
  EXPECT_TRUE(talk(server, start_of("app")).ends_with("row"));
  EXPECT_EQ(talk(server, cancel("\0\0\0\x08\1\2\3\4"s)), "");
  EXPECT_EQ(server.cancelled, "");
  EXPECT_EQ(talk(server, cancel(own)), "");
  EXPECT_EQ(server.cancelled, own);
}

TEST_F(PostgresTest, ARevocationEndsTheSession) {
  Server server(outside, kHost, Does::right);
  world.listening["93.184.216.34:5432"] = server.port();
  const Peer client = world.connect(kHost, 5432);
  std::string rest = "not read";
  world.run([&] {
    client.send(start_of("app"));
    (void)client.read_until(postgres::message('Z', "I"));
    asio::post(world.core().io, [&] { stop_users(world.core(), "app"); });
    rest = client.read_all();
  });
  EXPECT_EQ(rest, "");
}

}  // namespace
}  // namespace gateway
