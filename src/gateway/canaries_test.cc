// Canaries: a sight of one in whatever leaves is told, and it does not leave.
#include <gtest/gtest.h>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "web"
host = "web.example.org"
ports = [80]
max_requests = 100
[[egress]]
name = "raw"
tcp = "raw.example.org:4000"
)";

const plan::Canary kAws{.kind = "aws",
                        .id = "AKIAQWERTYUIOPASDF23",
                        .secret = "aBcDeFgHiJkLmNoPqRsTuVwXyZ234567aBcDeFgH"};

struct Asked {
  std::string answer;
  std::string seen;
  std::vector<std::string> sights;  // "canary:aws where"
};

std::string member(const testing::Event& event, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const auto at = event.members.find(key);
  if (at == std::string::npos) return {};
  const auto from = at + key.size();
  return event.members.substr(from, event.members.find('"', from) - from);
}

std::vector<std::string> sights(World& world) {
  std::vector<std::string> found;
  for (const auto& event : world.events()) {
    if (event.type == "credential.refused" && event.has(R"("reason":"canary")")) {
      found.push_back(member(event, "credential") + " " + member(event, "where"));
    }
  }
  return found;
}

enum class Planted { no, yes };

Asked ask(Planted planted, const std::string& request, const std::string& ends) {
  World world(kPolicy);
  if (planted == Planted::yes) world.plan.canaries = {kAws};
  Asked asked;
  Upstream server([&asked, &ends](const Peer& peer) {
    asked.seen = peer.read_until(ends);
    if (asked.seen.ends_with(ends)) {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  world.names["web.example.org"] = {"93.184.216.34"};
  world.listening["93.184.216.34:80"] = server.port();
  const Peer client = world.connect("web.example.org", 80);
  world.run([&] {
    client.send(request);
    asked.answer = client.read_all();
  });
  asked.sights = sights(world);
  return asked;
}

std::string get(const std::string& target, const std::string& fields) {
  return "GET " + target + " HTTP/1.1\r\nHost: web.example.org\r\nConnection: close\r\n" + fields +
         "\r\n";
}

std::string post(const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: web.example.org\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string escaped(const std::string& text) {  // each byte, as nobody has to
  std::string out;
  for (const char c : text) {
    out += '%';
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string hexadecimal(const std::string& text) {
  std::string out = escaped(text);
  std::erase(out, '%');
  return out;
}

TEST(Canaries, AHeadThatShowsOneIsRefused) {
  const std::pair<std::string, std::string> rows[] = {
      {get("/?k=" + kAws.secret, ""), "url"},
      {get("/" + escaped(kAws.id) + "/x", ""), "url"},
      {get("/?k=" + escaped(escaped(kAws.secret)), ""), "url"},
      {get("/?k=" + base::base64("key=" + kAws.secret + "&"), ""), "url"},
      {get("/", "X-Note: " + kAws.secret + "\r\n"), "header x-note"},
      {get("/", "Authorization: AWS4-HMAC-SHA256 Credential=" + kAws.id +
                    "/20260101/eu-central-1/s3/aws4_request, SignedHeaders=host, Signature=00\r\n"),
       "header authorization"},
      {get("/", "Authorization: Basic " + base::base64("deploy:" + kAws.secret) + "\r\n"),
       "header authorization"},
      {get("/", "Cookie: a=" + hexadecimal(kAws.secret) + "\r\n"), "header cookie"},
      // What does not go on anyway.
      {get("/", "Via: 1.1 " + kAws.secret + "\r\n"), "header via"},
      {get("/", "X-" + kAws.id + ": 1\r\n"), "name of a header"},
  };
  for (const auto& [request, where] : rows) {
    const Asked asked = ask(Planted::yes, request, "\r\n\r\n");
    EXPECT_TRUE(asked.answer.starts_with("HTTP/1.1 403 ")) << where << asked.answer;
    EXPECT_TRUE(asked.answer.contains("X-Cerco-Deny: canary")) << where;
    EXPECT_EQ(asked.seen, "") << where;
    EXPECT_EQ(asked.sights, std::vector<std::string>{"canary:aws " + where});
    // Nothing else refuses them.
    const Asked control = ask(Planted::no, request, "\r\n\r\n");
    EXPECT_TRUE(control.answer.starts_with("HTTP/1.1 200 ")) << where << control.answer;
  }
}

TEST(Canaries, ABodyThatShowsOneDoesNotEnd) {
  const std::string long_text(100'000, 'x');
  const std::string& secret = kAws.secret;
  const std::string whole = long_text + "&key=" + secret + "&end=1";
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: web.example.org\r\nConnection: close\r\nTransfer-Encoding: "
      "chunked\r\n\r\na\r\n" +
      secret.substr(0, 10) + "\r\n1e\r\n" + secret.substr(10) + "\r\n0\r\n\r\n";
  const std::pair<std::string, std::string> rows[] = {
      {post(whole), "&end=1"},
      {post(base::base64("a" + secret + "end")), "ZW5k"},
      {post("{\"key\":\"" + secret + "\"}end"), "end"},
      {post(hexadecimal(secret) + "end"), "end"},
      {chunked, "0\r\n\r\n"},
  };
  for (const auto& [request, end] : rows) {
    const Asked asked = ask(Planted::yes, request, end);
    EXPECT_TRUE(asked.answer.starts_with("HTTP/1.1 403 ")) << asked.answer;
    EXPECT_FALSE(asked.seen.contains(secret));
    EXPECT_FALSE(asked.seen.ends_with(end)) << end;
    EXPECT_EQ(asked.sights, std::vector<std::string>{"canary:aws body"}) << end;
  }
}

TEST(Canaries, ARefusedBodyIsLookedThroughAllTheSame) {
  World world(kPolicy);
  world.plan.canaries = {kAws};
  world.names["web.example.org"] = {"10.0.0.1"};  // a range that no rule opens
  const Peer client = world.connect("web.example.org", 80);
  std::string answer;
  world.run([&] {
    client.send(post("k=" + kAws.secret));
    answer = client.read_all();
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
}

TEST(Canaries, RawBytesThatShowOneAreCutOff) {
  for (const Planted planted : {Planted::yes, Planted::no}) {
    World world(kPolicy);
    if (planted == Planted::yes) world.plan.canaries = {kAws};
    std::string seen;
    Upstream server([&seen](const Peer& peer) {
      seen = peer.read_until("end");
      peer.send("bye");
    });
    world.names["raw.example.org"] = {"93.184.216.34"};
    world.listening["93.184.216.34:4000"] = server.port();
    const Peer client = world.connect("raw.example.org", 4000);
    world.run([&] {
      client.send("first ");
      client.send("PASS " + kAws.secret + " end");
      (void)client.read_all();
    });
    EXPECT_EQ(seen.contains(kAws.secret), planted == Planted::no) << seen;
    EXPECT_EQ(sights(world).size(), planted == Planted::yes ? 1U : 0U);
  }
}

TEST(Canaries, ANameThatShowsOneIsNotLookedUp) {
  World world(kPolicy);
  world.plan.canaries = {kAws};
  const auto question = [](const std::string& label) {
    std::string bytes("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
    for (const std::string& part : {label, std::string("evil"), std::string("org")}) {
      bytes += static_cast<char>(part.size());
      bytes += part;
    }
    return bytes + std::string("\0\0\x01\0\x01", 5);
  };
  for (int i = 0; i < 3; ++i) {
    const auto answer = world.dns().answer(question(base::to_lower(kAws.id)), 512);
    ASSERT_TRUE(answer);
    EXPECT_EQ(static_cast<unsigned char>((*answer)[3]) & 15, 3);
  }
  EXPECT_EQ(sights(world), std::vector<std::string>{"canary:aws name"});
}

}  // namespace
}  // namespace gateway
