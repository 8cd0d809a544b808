// Credentials in the query, in a segment of the path and in a field of the body.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <atomic>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::TlsPeer;
using testing::Upstream;
using testing::World;

std::string policy_with(const std::string& inject, const std::string& more) {
  return R"(
version = 1
[[egress]]
name = "api"
host = "api.example.com"
methods = ["GET", "POST"]
paths = ["/**"]
[[credential]]
name = "api"
source = { env = "API_KEY" }
hosts = ["api.example.com"]
methods = ["GET", "POST"]
paths = ["/**"]
env = { API_KEY = "secret" }
inject = )" +
         inject + "\n" + more;
}

const std::string kSecret = "s3cr3t/of-the&api=\"0123456789";
const std::string kPlaceholder = "cerco-placeholder-of-api";
const std::string kHost = "api.example.com";

std::string post(const std::string& type, const std::string& body, const std::string& more = "") {
  return "POST /v1/a HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more + "\r\n" + body;
}

// One gateway with one credential, and a server that remembers each request as it came.
struct Stage {
  explicit Stage(const std::string& inject, const std::string& more = "",
                 const std::set<plan::Protection>& without = {})
      : world(policy_with(inject, more), without) {
    world.authority = &inside;
    world.roots = outside.pem();
    world.broker = [this](const plan::LeaseRequest&) {
      return refusal.empty() ? plan::LeaseAnswer{.secret = kSecret}
                             : plan::LeaseAnswer{.refusal = refusal};
    };
    world.names[kHost] = {"93.184.216.34"};
    world.listening["93.184.216.34:443"] = upstream.port();
  }
  static http::Authority authority(const std::string& run) {
    return std::move(*http::Authority::make(run, 3600, [] { return std::time(nullptr); }));
  }

  // Sends each text on one connection; what comes back up to a known end.
  std::vector<std::string> talk(const std::vector<std::string>& requests) {
    const Peer client = world.connect(kHost, 443);
    const auto roots = *http::client_context(inside.pem(), http::Verification::required);
    std::vector<std::string> answers;
    world.run([&] {
      const TlsPeer tls(client, roots, TlsPeer::Side::client, kHost);
      for (const std::string& request : requests) {
        tls.send(request);
        std::string answer;
        while (!answer.ends_with("ok") && !answer.ends_with("}\n") &&
               !answer.ends_with("\r\n0\r\n\r\n")) {
          const std::string some = tls.read_some();
          if (some.empty()) break;
          answer += some;
        }
        answers.push_back(answer);
      }
    });
    return answers;
  }
  std::string talk_one(const std::string& request) { return talk({request}).front(); }
  int count(const std::string& type) {
    return static_cast<int>(std::ranges::count(world.events(), type, &testing::Event::type));
  }

  std::string refusal;
  std::vector<std::string> seen;  // head and body of each request
  http::Authority inside = authority("inside");
  http::Authority outside = authority("outside");
  http::TlsContext context = *outside.server_context(kHost);
  Upstream upstream{[this](const Peer& peer) {
    const TlsPeer tls(peer, context, TlsPeer::Side::server, "");
    while (true) {
      std::string text = tls.read_until("\r\n\r\n");
      if (text.empty()) return;
      const auto length = text.find("Content-Length: ");
      const std::size_t body =
          length == std::string::npos ? 0 : std::stoul(text.substr(length + 16, 8));
      const std::size_t whole = text.find("\r\n\r\n") + 4 + body;
      while (text.size() < whole) text += tls.read_some();
      seen.push_back(text);
      tls.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  }};
  World world;
};

TEST(Inject, InTheQuery) {
  Stage stage(R"({ query = "key" })");
  const auto answers = stage.talk(
      {"GET /v1/a?x=1&key=" + kPlaceholder + " HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
       "GET /v1/a?x=1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"});
  EXPECT_TRUE(answers[0].contains("200 OK")) << answers[0];
  ASSERT_EQ(stage.seen.size(), 2U);
  EXPECT_TRUE(stage.seen[0].starts_with(
      "GET /v1/a?x=1&key=s3cr3t%2Fof-the%26api%3D%220123456789 HTTP/1.1\r\n"));
  EXPECT_TRUE(stage.seen[1].starts_with("GET /v1/a?x=1 HTTP/1.1\r\n"));
  EXPECT_EQ(stage.world.leases.size(), 1U);
  for (const auto& event : stage.world.events()) EXPECT_FALSE(event.has("s3cr3t")) << event.members;
}

TEST(Inject, InASegmentOfThePath) {
  Stage stage(R"({ path = 1, format = "bot{secret}" })");
  EXPECT_TRUE(stage
                  .talk_one("GET /bot" + kPlaceholder +
                            "/getMe?a=b HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
                  .contains("200 OK"));
  ASSERT_EQ(stage.seen.size(), 1U);
  EXPECT_TRUE(
      stage.seen[0].starts_with("GET /bots3cr3t%2Fof-the%26api%3D%220123456789/getMe?a=b "));
  for (const auto& event : stage.world.events()) EXPECT_FALSE(event.has("s3cr3t")) << event.members;
}

struct BodyRow {
  const char* what;
  std::string type;
  std::string body;
  std::string sent;  // what the server gets
};

TEST(Inject, InAFieldOfTheBody) {
  const std::string p = kPlaceholder;
  const BodyRow rows[] = {
      {"JSON", "application/json", R"({"a":1,"token":")" + p + R"("})",
       R"({"a":1,"token":"s3cr3t/of-the&api=\"0123456789"})"},
      {"a form", "application/x-www-form-urlencoded", "a=1&token=" + p,
       "a=1&token=s3cr3t%2Fof-the%26api%3D%220123456789"},
      {"another field as well", "application/json",
       R"({"said":")" + p + R"(","token":")" + p + R"("})",
       R"({"said":")" + p + R"(","token":"s3cr3t/of-the&api=\"0123456789"})"},
      {"another field alone", "application/json", R"({"said":")" + p + R"("})",
       R"({"said":")" + p + R"("})"},
      {"a field further in", "application/json", R"({"a":{"token":")" + p + R"("}})",
       R"({"a":{"token":")" + p + R"("}})"},
      {"no JSON", "application/json", R"({"token":")" + p + R"(")", R"({"token":")" + p + R"(")"},
      {"another type", "text/plain", "token=" + p, "token=" + p},
      {"no placeholder", "application/json", "{}", "{}"},
  };
  for (const BodyRow& row : rows) {
    Stage stage(R"({ body = "token" })");
    EXPECT_TRUE(stage.talk_one(post(row.type, row.body)).contains("200 OK")) << row.what;
    ASSERT_EQ(stage.seen.size(), 1U) << row.what;
    EXPECT_TRUE(stage.seen[0].ends_with("\r\n\r\n" + row.sent)) << row.what << stage.seen[0];
    EXPECT_TRUE(stage.seen[0].contains(fmt::format("Content-Length: {}\r\n", row.sent.size())));
    EXPECT_EQ(stage.world.leases.size(), row.sent.contains("s3cr3t") ? 1U : 0U) << row.what;
  }
}

// The body comes in pieces, in chunks, behind a 100, and with the next request at its heels.
TEST(Inject, BodiesHoweverTheyCome) {
  Stage stage(R"({ body = "token" })");
  const std::string body = "token=" + kPlaceholder;
  std::string chunked =
      "POST /v1/a HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: "
      "application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (char c : body) chunked += std::string("1\r\n") + c + "\r\n";
  chunked += "0\r\n\r\n";
  const std::string form = "application/x-www-form-urlencoded";
  const auto answers = stage.talk({chunked, post(form, body, "Expect: 100-continue\r\n"),
                                   post(form, body) + post(form, "a=b")});
  EXPECT_TRUE(answers[0].contains("200 OK"));
  EXPECT_TRUE(answers[1].starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")) << answers[1];
  ASSERT_GE(stage.seen.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(stage.seen[i].ends_with("token=s3cr3t%2Fof-the%26api%3D%220123456789")) << i;
    EXPECT_FALSE(stage.seen[i].contains("xpect:"));
  }
}

// A body that is awaited, to be looked into, counts from its head on; one that never comes does
// not.
TEST(Inject, RequestsWhoseBodiesAreAwaitedAreCountedTogether) {
  Stage stage(R"({ body = "token" })");
  stage.world.plan.policy.egress[0].max_requests = 1;
  const std::string form = "application/x-www-form-urlencoded";
  const std::string body = "token=" + kPlaceholder;
  const std::string whole = post(form, body, "Expect: 100-continue\r\n");
  const std::string head = whole.substr(0, whole.size() - body.size());
  const Peer clients[] = {stage.world.connect(kHost, 443), stage.world.connect(kHost, 443),
                          stage.world.connect(kHost, 443)};
  const auto roots = *http::client_context(stage.inside.pem(), http::Verification::required);
  const auto ask = [&](const TlsPeer& tls, const std::string& text) {
    tls.send(text);
    return tls.read_until("\r\n\r\n");
  };
  stage.world.run([&] {
    {
      const TlsPeer gone(clients[0], roots, TlsPeer::Side::client, kHost);
      EXPECT_TRUE(ask(gone, head).contains("100 Continue"));
      gone.close();
      EXPECT_EQ(gone.read_some(), "");  // the gateway has taken notice
    }
    const TlsPeer one(clients[1], roots, TlsPeer::Side::client, kHost);
    const TlsPeer other(clients[2], roots, TlsPeer::Side::client, kHost);
    EXPECT_TRUE(ask(one, head).contains("100 Continue"));
    EXPECT_TRUE(ask(other, head).contains("X-Cerco-Deny: max-requests"));
    EXPECT_TRUE(ask(one, body).contains("200 OK"));
  });
  EXPECT_EQ(stage.seen.size(), 1U);
}

// What is refused: nothing reaches the server, and no placeholder either.
TEST(Inject, WhatIsRefused) {
  struct Refused {
    const char* what;
    std::string inject;
    std::string request;
    std::string reason;
  };
  const std::string p = kPlaceholder;
  const std::string end = " HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
  const std::string form = "application/x-www-form-urlencoded";
  const Refused rows[] = {
      {"elsewhere in the query", R"({ query = "key" })", "GET /a?k=" + p + end, "credential-place"},
      {"there and elsewhere", R"({ query = "key" })", "GET /a?key=" + p + "&k=" + p + end,
       "credential-place"},
      {"in a header", R"({ query = "key" })",
       "GET /a HTTP/1.1\r\nHost: api.example.com\r\nX-Key: " + p + "\r\n\r\n", "credential-place"},
      {"N172 another key beside", R"({ query = "key" })", "GET /a?key=" + p + "&key=mine" + end,
       "own-credential"},
      {"N172 another's key in its place", R"({ query = "key" })", "GET /a?key=mine" + end,
       "own-credential"},
      {"N172 another place for keys", R"({ query = "key" })",
       "GET /a?key=" + p + "&Access_Token=mine" + end, "own-credential"},
      {"N172 a query beside a header",
       R"({ header = "Authorization", format = "Bearer {secret}" })",
       "GET /a?api_key=mine HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer " + p +
           "\r\n\r\n",
       "own-credential"},
      {"another segment", R"({ path = 2 })", "GET /" + p + "/x" + end, "credential-place"},
      {"N172 another's key in the field", R"({ body = "token" })", post(form, "token=mine"),
       "own-credential"},
      {"N172 both in the field", R"({ body = "token" })", post(form, "token=" + p + "&token=mine"),
       "own-credential"},
      {"too much to look into", R"({ body = "token" })",
       post(form, "token=" + p + "&a=" + std::string(1 << 20, 'x')), "credential-body-size"},
      {"a header where it is a field", R"({ body = "token" })",
       "GET /a HTTP/1.1\r\nHost: api.example.com\r\nX-Key: " + p + "\r\n\r\n", "credential-place"},
  };
  for (const Refused& row : rows) {
    Stage stage(row.inject);
    const std::string answer = stage.talk_one(row.request);
    EXPECT_TRUE(answer.contains("HTTP/1.1 403")) << row.what << answer;
    EXPECT_TRUE(answer.contains("X-Cerco-Deny: " + row.reason + "\r\n")) << row.what << answer;
    EXPECT_TRUE(stage.seen.empty()) << row.what;
    EXPECT_TRUE(stage.world.leases.empty()) << row.what;
  }
}

// N175 N176: what is handed out there would be a key that no binding covers.
TEST(Inject, N175N176WhereKeysAreHandedOutOnlyANamedBindingGoes) {
  const std::string request =
      "POST /app/installations/7/access_tokens HTTP/1.1\r\nHost: "
      "api.example.com\r\nX-Key: " +
      kPlaceholder + "\r\nContent-Length: 0\r\n\r\n";
  for (const bool named : {false, true}) {
    Stage stage(R"({ header = "X-Key" })");
    if (named) {
      stage.world.plan.policy.credentials[0].paths = {"/app/installations/*/access_tokens"};
    }
    const std::string answer = stage.talk_one(request);
    EXPECT_EQ(answer.contains("X-Cerco-Deny: credential-hands-out-keys\r\n"), !named) << answer;
    EXPECT_EQ(stage.seen.empty(), !named);
  }
  // The control.
  Stage stage(R"({ header = "X-Key" })", "", {plan::Protection::binding});
  (void)stage.talk_one(request);
  EXPECT_EQ(stage.seen.size(), 1U);
}

TEST(Inject, WithoutAPlaceholder) {
  Stage query(R"({ query = "key" })", "require = false\nown = \"strip\"");
  (void)query.talk_one("GET /a?b=1&key=mine&api_key=x HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
  ASSERT_EQ(query.seen.size(), 1U);
  EXPECT_TRUE(query.seen[0].starts_with("GET /a?b=1&key=s3cr3t%2F")) << query.seen[0];
  EXPECT_FALSE(query.seen[0].contains("api_key"));
  Stage body(R"({ body = "token" })", "require = false");
  (void)body.talk_one(post("application/json", R"({"a":1})"));
  ASSERT_EQ(body.seen.size(), 1U);
  EXPECT_TRUE(body.seen[0].ends_with(R"({"token":"s3cr3t/of-the&api=\"0123456789","a":1})"));
  // Where the secret has no place, the request does not go.
  EXPECT_TRUE(body.talk_one(post("text/plain", "a")).contains("X-Cerco-Deny: credential-body\r\n"));
  EXPECT_EQ(body.seen.size(), 1U);
}

// N200: a lease that is refused after the body was read; the connection goes on in step.
TEST(Inject, WithoutALeaseTheBodyGoesNowhere) {
  Stage stage(R"({ body = "token" })");
  stage.refusal = "expired";
  const std::string form = "application/x-www-form-urlencoded";
  const auto answers =
      stage.talk({post(form, "token=" + kPlaceholder), post(form, "a=" + kPlaceholder)});
  EXPECT_TRUE(answers[0].contains("X-Cerco-Deny: credential-expired\r\n")) << answers[0];
  EXPECT_TRUE(answers[1].contains("200 OK")) << answers[1];
  ASSERT_EQ(stage.seen.size(), 1U);
  EXPECT_TRUE(stage.seen[0].ends_with("a=" + kPlaceholder));
}

// N179: no connection is shared between credentials, nor between one and none.
TEST(Inject, N179AConnectionIsForOneSetOfCredentials) {
  Stage stage(R"({ query = "key" })");
  const std::string end = " HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
  const std::string with = "GET /v1?key=" + kPlaceholder + end;
  const std::string without = "GET /v1" + end;
  for (const std::string& answer : stage.talk({with, with, without, without, with})) {
    EXPECT_TRUE(answer.contains("200 OK")) << answer;
  }
  EXPECT_EQ(stage.seen.size(), 5U);
  EXPECT_EQ(stage.upstream.connections(), 3);
}

// --- Client certificates -----------------------------------------------------------------------

std::atomic<int> shown = 0;  // certificates that servers of these tests were shown

int take_any(X509_STORE_CTX*, void*) {
  ++shown;
  return 1;
}

std::string pem_of(const http::TlsContext& context) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> out(BIO_new(BIO_s_mem()), BIO_free_all);
  EXPECT_EQ(PEM_write_bio_PrivateKey(out.get(), SSL_CTX_get0_privatekey(context.get()), nullptr,
                                     nullptr, 0, nullptr, nullptr),
            1);
  EXPECT_EQ(PEM_write_bio_X509(out.get(), SSL_CTX_get0_certificate(context.get())), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

struct CertificateStage : Stage {
  CertificateStage() : Stage("{ header = \"X-Key\" }") {
    policy::Credential& credential = world.plan.policy.credentials[0];
    credential.inject = {.kind = policy::InjectKind::mtls};
    credential.require = false;
    credential.env.clear();
    credential.paths = {"/v1/**"};
    world.plan.placeholders.clear();
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(context.get(), take_any, nullptr);
    const std::string pem = pem_of(*outside.server_context("client.example.com"));
    world.broker = [this, pem](const plan::LeaseRequest&) {
      return refusal.empty() ? plan::LeaseAnswer{.secret = broken ? pem.substr(0, 100) : pem}
                             : plan::LeaseAnswer{.refusal = refusal};
    };
    shown = 0;
  }
  bool broken = false;
};

// N180: a connection that has shown a certificate serves its credential alone.
TEST(Inject, N180ACertificateIsShownForItsRequestsOnly) {
  CertificateStage stage;
  const std::string end = " HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
  const auto answers =
      stage.talk({"GET /v1/a" + end, "GET /v1/b" + end, "GET /open" + end, "GET /v1/c" + end});
  for (const std::string& answer : answers) EXPECT_TRUE(answer.contains("200 OK")) << answer;
  EXPECT_EQ(stage.seen.size(), 4U);
  EXPECT_EQ(stage.upstream.connections(), 3);
  EXPECT_EQ(shown, 2);
  EXPECT_EQ(stage.world.leases.size(), 3U);
  for (const std::string& text : stage.seen) EXPECT_FALSE(text.contains("PRIVATE KEY"));
}

TEST(Inject, WithoutItsCertificateNothingGoesOut) {
  CertificateStage stage;
  const std::string request = "GET /v1/a HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
  stage.refusal = "expired";
  EXPECT_TRUE(stage.talk_one(request).contains("X-Cerco-Deny: credential-expired\r\n"));
  stage.refusal.clear();
  stage.broken = true;
  EXPECT_TRUE(stage.talk_one(request).contains("X-Cerco-Deny: client_certificate\r\n"));
  EXPECT_TRUE(stage.seen.empty());
  EXPECT_EQ(shown, 0);
}

// The control: without the binding the place is not asked for its host, but stays the place.
TEST(Inject, WithoutTheBindingItGoesToOtherPaths) {
  for (const bool bound : {true, false}) {
    Stage stage(R"({ query = "key" })", "",
                bound ? std::set<plan::Protection>{} : std::set{plan::Protection::binding});
    stage.world.plan.policy.credentials[0].paths = {"/v1/**"};
    (void)stage.talk_one("GET /v2?key=" + kPlaceholder +
                         " HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    EXPECT_EQ(stage.seen.empty(), bound);
  }
}

}  // namespace
}  // namespace gateway
