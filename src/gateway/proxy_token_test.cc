// A proxy that stands alone serves whoever shows its token, and nobody else.
#include "gateway/proxy_token.h"

#include <gtest/gtest.h>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

const std::string kToken = "a-token-of-the-task-0123456789";
constexpr const char* kPolicy =
    "[[egress]]\nname = \"one\"\nhost = \"one.example.com\"\nports = [80]\n";

std::string get(const std::string& shown) {
  std::string out = "GET http://one.example.com/ HTTP/1.1\r\nHost: one.example.com\r\n";
  if (!shown.empty()) out += "Proxy-Authorization: " + shown + "\r\n";
  return out + "\r\n";
}

class ProxyToken : public ::testing::Test {
 protected:
  ProxyToken() {
    world.names["one.example.com"] = {"93.184.216.34"};
    world.listening["93.184.216.34:80"] = upstream.port();
    world.core().proxy_token = base::sha256(kToken);
  }
  // What the proxy answers to all of it, in order.
  std::string tell(const std::string& bytes, const std::string& until) {
    const Peer client = world.connect(std::string(plan::kProxyAddress), plan::kProxyPort);
    std::string answer;
    world.run([&] {
      client.send(bytes);
      answer = client.read_until(until);
    });
    return answer;
  }
  World world{kPolicy};
  std::string seen;
  Upstream upstream{[this](const Peer& peer) {
    while (true) {
      const std::string head = peer.read_until("\r\n\r\n");
      if (head.empty()) return;
      seen += head;
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  }};
};

TEST_F(ProxyToken, RequestsShowItAndItIsNotPassedOn) {
  for (const std::string& shown : {"Basic " + base::base64("task:" + kToken),
                                   "bAsIc  " + base::base64(":" + kToken), "Bearer " + kToken}) {
    EXPECT_TRUE(tell(get(shown), "ok").starts_with("HTTP/1.1 200")) << shown;
  }
  EXPECT_FALSE(seen.contains("Proxy-Authorization"));
  EXPECT_FALSE(seen.contains("proxy-authorization"));
}

TEST_F(ProxyToken, WithoutItNothingLeaves) {
  for (const std::string& shown :
       {std::string(), std::string("Basic"), std::string("Basic !!"),
        "Basic " + base::base64(kToken), "Basic " + base::base64("task:" + kToken + "x"),
        "Basic " + base::base64("task:"), "Digest " + kToken, std::string("Bearer  "),
        "Bearer " + kToken.substr(1), kToken}) {
    const std::string answer = tell(get(shown), "}");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 407")) << shown << answer;
    EXPECT_TRUE(answer.contains("\r\nProxy-Authenticate: Basic realm=\"cerco\"\r\n")) << answer;
  }
  const std::string tunnel =
      tell("CONNECT one.example.com:80 HTTP/1.1\r\nHost: one.example.com:80\r\n\r\n", "}");
  EXPECT_TRUE(tunnel.starts_with("HTTP/1.1 407")) << tunnel;
  EXPECT_TRUE(world.dialled.empty());
  EXPECT_TRUE(world.asked.empty());
  for (const auto& decision : world.decisions()) {
    EXPECT_TRUE(decision.has(R"("verdict":"reject")")) << decision.members;
    EXPECT_TRUE(decision.has(R"("reason":"proxy-token")")) << decision.members;
  }
}

// On a kept connection each request shows it anew.
TEST_F(ProxyToken, OneRequestsTokenIsNotTheNextOnes) {
  const std::string answer = tell(get("Bearer " + kToken) + get(""), "}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_TRUE(answer.contains("HTTP/1.1 407")) << answer;
}

std::string login(const std::string& password) {
  return std::string("\1\4task", 6) + static_cast<char>(password.size()) + password;
}
std::string ask_socks() {
  const std::string host = "one.example.com";
  return std::string("\5\1\0\3", 4) + static_cast<char>(host.size()) + host +
         std::string("\0\x50", 2);
}

TEST_F(ProxyToken, SocksShowsItAsThePassword) {
  const std::string greeting("\5\2\0\2", 4);
  const std::string request = "GET / HTTP/1.1\r\nHost: one.example.com\r\n\r\n";
  const std::string good = tell(greeting + login(kToken) + ask_socks() + request, "ok");
  EXPECT_TRUE(good.starts_with(std::string("\5\2\1\0\5\0", 6))) << good;
  EXPECT_EQ(tell(greeting + login("another"), std::string("\1\1", 2)), std::string("\5\2\1\1", 4));
  EXPECT_EQ(tell(greeting + login(""), std::string("\1\1", 2)), std::string("\5\2\1\1", 4));
  EXPECT_EQ(tell(std::string("\5\1\0", 3), "\xff"), std::string("\5\xff", 2));
  EXPECT_EQ(world.dialled.size(), 1U);
}

}  // namespace
}  // namespace gateway
