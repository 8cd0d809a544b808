// One table of hosts over all four ways in: whatever the way, the same engine decides.
#include <gtest/gtest.h>

#include "gateway/testing.h"
#include "policy/cases.h"

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
name = "cdn"
host = "*.cdn.example.net"
ports = [80]
[[egress]]
name = "literal"
tcp = "93.184.216.40:80"
)";

constexpr std::uint16_t kProxyPort = plan::kProxyPort;

std::string big_endian(std::uint16_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

std::string request(const std::string& host, std::uint16_t port, const std::string& target) {
  const std::string authority = port == 80 ? host : host + ":" + std::to_string(port);
  return "GET " + target + " HTTP/1.1\r\nHost: " + authority + "\r\nConnection: close\r\n\r\n";
}

// What the client was told: "" when its request was answered by the server, else the refusal: an
// HTTP status with its reason, or a SOCKS reply.
struct Told {
  bool served = false;
  std::string refusal;
};

Told told_by_http(const std::string& answer) {
  if (answer.contains("\r\n\r\nserved")) return {.served = true, .refusal = {}};
  const auto deny = answer.find("X-Cerco-Deny: ");
  if (!answer.starts_with("HTTP/1.1 ") || deny == std::string::npos) return {.refusal = answer};
  const auto from = deny + std::string_view("X-Cerco-Deny: ").size();
  return {.refusal =
              answer.substr(9, 3) + " " + answer.substr(from, answer.find("\r\n", from) - from)};
}

class Ways : public ::testing::Test {
 protected:
  Ways() {
    world.names = {{"files.example.org", {"93.184.216.34"}},
                   {"one.cdn.example.net", {"93.184.216.34"}},
                   {"api_example.cdn.example.net", {"93.184.216.34"}},
                   {"inner.cdn.example.net", {"10.0.0.5"}},
                   {"mapped.cdn.example.net", {"::ffff:169.254.169.254"}},
                   {"zero.cdn.example.net", {"0.0.0.0"}},
                   {"mixed.cdn.example.net", {"10.0.0.5", "93.184.216.34"}}};
    world.listening = {{"93.184.216.34:80", server.port()}, {"93.184.216.40:80", server.port()}};
  }

  // `talk` gets a connection and says what the client was told on it.
  Told with(const Peer& client, const std::function<Told(const Peer&)>& talk) {
    Told told;
    world.run([&] { told = talk(client); });
    return told;
  }
  Told by_http(const std::string& host, std::uint16_t port) {
    return with(world.connect("198.18.0.1", kProxyPort), [&](const Peer& client) {
      const std::string authority = port == 80 ? host : host + ":" + std::to_string(port);
      client.send(request(host, port, "http://" + authority + "/"));
      return told_by_http(client.read_all());
    });
  }
  Told by_connect(const std::string& host, std::uint16_t port) {
    return with(world.connect("198.18.0.1", kProxyPort), [&](const Peer& client) {
      const std::string authority = host + ":" + std::to_string(port);
      client.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
      const std::string answer = client.read_until("\r\n\r\n");
      if (!answer.starts_with("HTTP/1.1 200")) return told_by_http(answer + client.read_all());
      client.send(request(host, port, "/"));
      return told_by_http(client.read_all());
    });
  }
  // `address`: its kind, and its length where it has one, in front of its bytes.
  Told by_socks(const std::string& address, const std::string& host, std::uint16_t port) {
    return with(world.connect("198.18.0.1", kProxyPort), [&](const Peer& client) {
      client.send(std::string("\5\1\0", 3));
      EXPECT_EQ(client.read_exactly(2), std::string("\5\0", 2));
      client.send(std::string("\5\1\0", 3) + address + big_endian(port));
      const std::string reply = client.read_exactly(10);
      if (reply.size() != 10 || reply[1] != 0) {
        return Told{.refusal = reply.size() == 10 ? std::to_string(reply[1]) : "nothing"};
      }
      client.send(request(host, port, "/"));
      return told_by_http(client.read_all());
    });
  }

  // Refused, on record once, and nothing went out. Names that are allowed are looked up.
  void expect_refused(const Told& told, const std::string& verdict, const std::string& way) {
    EXPECT_FALSE(told.served);
    const auto decisions = world.decisions();
    ASSERT_EQ(decisions.size(), decisions_ + 1);
    decisions_ = decisions.size();
    EXPECT_TRUE(decisions.back().has(R"("way":")" + way + "\"")) << decisions.back().members;
    const bool denied = verdict.starts_with("deny ");
    EXPECT_TRUE(decisions.back().has(denied ? R"("verdict":"deny")" : R"("verdict":"reject")"))
        << decisions.back().members;
    if (denied) {
      EXPECT_TRUE(decisions.back().has(R"("reason":")" + verdict.substr(5) + "\""))
          << decisions.back().members;
    }
    EXPECT_EQ(world.dialled.size(), dialled_);
  }
  void expect_served(const Told& told, const std::string& way) {
    EXPECT_TRUE(told.served) << told.refusal;
    const auto decisions = world.decisions();
    ASSERT_GT(decisions.size(), decisions_);
    decisions_ = decisions.size();
    EXPECT_TRUE(decisions.back().has(R"("verdict":"allow")")) << decisions.back().members;
    EXPECT_TRUE(decisions.back().has(R"("way":")" + way + "\"")) << decisions.back().members;
    dialled_ = world.dialled.size();
  }
  void expect(const Told& told, const std::string& verdict, const std::string& way) {
    if (verdict == "allow") return expect_served(told, way);
    expect_refused(told, verdict, way);
    if (way == "tcp") return;
    if (way == "socks") {
      EXPECT_TRUE(told.refusal == "2" || (verdict == "reject" && told.refusal == "1"))
          << told.refusal;
    } else {
      EXPECT_TRUE(told.refusal.starts_with(verdict == "reject" ? "400 " : "403 ")) << told.refusal;
    }
  }

  Upstream server{[](const Peer& peer) {
    if (!peer.read_until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nserved");
    }
  }};
  World world{kPolicy};
  std::size_t decisions_ = 0;
  std::size_t dialled_ = 0;
};

struct Row {
  std::string id;
  std::string host;
  std::uint16_t port;
  std::string verdict;
};
std::vector<Row> table() {
  std::vector<Row> out;
  for (const auto& row : cases::rows("ways.txt")) {
    out.push_back({row.at(0), cases::unescape(row.at(1)),
                   static_cast<std::uint16_t>(std::stoi(row.at(2))), row.at(3)});
  }
  return out;
}

// The text without its brackets, as an address.
std::optional<policy::Address> literal(const std::string& host) {
  const auto canonical = policy::canonical_host(host);
  if (!canonical || !canonical->is_address) return std::nullopt;
  return *policy::parse_address(canonical->name);
}

std::string question(const std::string& host) {
  std::string out("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (const auto label : base::split(host, '.')) {
    if (label.empty()) continue;
    out += static_cast<char>(label.size());
    out += label;
  }
  return out + std::string("\0\0\1\0\1", 5);
}

TEST_F(Ways, Captured) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.id + " " + base::printable(row.host));
    const auto address = literal(row.host);
    if (!address) {
      const auto answer = world.dns().answer(question(row.host), 512);
      ASSERT_TRUE(answer);
      const bool found = (*answer)[7] != 0;
      const bool to_be_found = row.verdict != "reject" && row.verdict != "deny host" &&
                               row.verdict != "deny blocked-name";
      // A look-up leaves out the empty label at either end, and no more than the dots say.
      if (row.host.contains("..") || row.host.starts_with('.')) continue;
      EXPECT_EQ(found, to_be_found);
      if (!found) continue;
    }
    const std::string name =
        address ? policy::to_string(*address) : policy::canonical_host(row.host)->name;
    if (row.id == "N30" || row.id == "F29") continue;  // the proxy itself answers there
    const Told told = with(world.connect(name, row.port), [&](const Peer& client) {
      client.send(request(name, row.port, "/"));
      return told_by_http(client.read_all());
    });
    expect(told, row.verdict, "tcp");
  }
}

TEST_F(Ways, HttpForward) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.id + " " + base::printable(row.host));
    expect(by_http(row.host, row.port), row.verdict, "http");
  }
}

TEST_F(Ways, Connect) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.id + " " + base::printable(row.host));
    const Told told = by_connect(row.host, row.port);
    // A head that cannot be read is no CONNECT yet.
    const bool unread = row.verdict == "reject";
    expect(told, row.verdict, unread ? "http" : "connect");
  }
}

// N144, N145: names, literals as names, and addresses that the client resolved itself.
TEST_F(Ways, Socks) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.id + " " + base::printable(row.host));
    const std::string name = std::string(1, '\3') + static_cast<char>(row.host.size()) + row.host;
    expect(by_socks(name, row.host, row.port), row.verdict, "socks");
    const auto address = literal(row.host);
    if (!address) continue;
    const std::string bytes(reinterpret_cast<const char*>(address->bytes.data()),
                            address->v6 ? 16 : 4);
    expect(by_socks((address->v6 ? '\4' : '\1') + bytes, row.host, row.port), row.verdict, "socks");
  }
}

}  // namespace
}  // namespace gateway
