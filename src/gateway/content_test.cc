// What requests and answers carry: passed on as it is, looked at only to refuse.
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
name = "files"
host = "files.example.org"
ports = [80]
[[egress]]
name = "api"
host = "api.example.org"
ports = [80]
methods = ["GET", "POST"]
paths = ["/v1/messages", "/repos/**"]
[[egress]]
name = "bound"
host = "bound.example.org"
methods = ["GET"]
)";

constexpr const char* kCredential = R"(
[[credential]]
name = "key"
source = { env = "KEY" }
hosts = ["bound.example.org"]
methods = ["GET"]
paths = ["/**"]
inject = { header = "Authorization", format = "Bearer {secret}" }
env = { KEY = "secret" }
)";

// A server that keeps the whole request, up to what ends it, and gives one answer.
struct Server {
  std::string ends_with = "\r\n\r\n";
  std::string answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
  std::string seen;
  Upstream upstream{[this](const Peer& peer) {
    seen = peer.read_until(ends_with);
    if (!seen.empty()) peer.send(answer);
  }};
};

std::string ask(World& world, Server& server, const std::string& host, const std::string& bytes) {
  world.names[host] = {"93.184.216.34"};
  world.listening["93.184.216.34:80"] = server.upstream.port();
  const Peer client = world.connect(host, 80);
  std::string answer;
  world.run([&] {
    client.send(bytes);
    answer = client.read_all();
  });
  return answer;
}
std::string head(const std::string& host, const std::string& start, const std::string& fields) {
  return start + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + fields + "\r\n";
}

// N94: a name in a message to an allowed host would be looked up by nobody's leave.
TEST(Content, DnsOverHttpIsRefusedWhereItShows) {
  struct Row {
    std::string start;
    std::string fields;
    bool refused;
  };
  const Row rows[] = {
      {"POST /dns-query", "Content-Type: application/dns-message\r\nContent-Length: 0\r\n", true},
      {"GET /dns-query?dns=AAAB", "Accept: application/dns-message\r\n", true},
      {"GET /resolve?name=a.test", "Accept: text/html, Application/DNS-JSON;q=0.9\r\n", true},
      {"POST /", "Content-Type: application/oblivious-dns-message\r\nContent-Length: 0\r\n", true},
      {"GET /dns-query", "Accept: application/json\r\n", false},
      {"GET /", "X-Accept: application/dns-message\r\n", false}};
  for (const Row& row : rows) {
    World world(kPolicy);
    Server server;
    const std::string answer =
        ask(world, server, "files.example.org", head("files.example.org", row.start, row.fields));
    EXPECT_EQ(answer.contains("X-Cerco-Deny: dns-over-https"), row.refused) << answer;
    EXPECT_EQ(server.seen.empty(), row.refused) << row.start;
  }
  // A server that answers so unasked.
  World world(kPolicy);
  Server server;
  server.answer =
      "HTTP/1.1 200 OK\r\nContent-Type: application/dns-message\r\nContent-Length: 2\r\n\r\nok";
  const std::string answer =
      ask(world, server, "files.example.org", head("files.example.org", "GET /", ""));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
  EXPECT_FALSE(answer.ends_with("ok"));
}

// N126: what is packed is not unpacked, so it cannot grow.
TEST(Content, WhatIsPackedPassesAsItIs) {
  const std::string bomb = "\x1f\x8b\x08" + std::string(4000, '\0') + "end of it";
  World world(kPolicy);
  Server server;
  server.ends_with = "end of it";
  server.answer =
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\nContent-Length: " +
      std::to_string(bomb.size()) + "\r\n\r\n" + bomb;
  const std::string request =
      head("files.example.org", "POST /",
           "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(bomb.size()) + "\r\n") +
      bomb;
  const std::string answer = ask(world, server, "files.example.org", request);
  EXPECT_TRUE(server.seen.ends_with("\r\n\r\n" + bomb));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + bomb));
  EXPECT_TRUE(answer.contains("Content-Encoding: gzip\r\n"));
}

// N126: where answers may have to be searched for a secret, packed ones are not asked for.
TEST(Content, WhereSecretsAreAnAnswerIsAskedForUnpacked) {
  World world(std::string(kPolicy) + kCredential);
  Server server;
  server.answer =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: "
      "2\r\n\r\nok";
  const std::string answer = ask(world, server, "files.example.org",
                                 head("files.example.org", "GET /", "Accept-Encoding: gzip\r\n"));
  EXPECT_TRUE(server.seen.contains("accept-encoding: identity\r\n") ||
              server.seen.contains("Accept-Encoding: identity\r\n"))
      << server.seen;
  EXPECT_TRUE(answer.contains("200 OK"));
}

// N129: parts, boundaries and file names are the server's to read; a placeholder in them is noted.
TEST(Content, MultipartIsNeitherReadNorRewritten) {
  const std::string placeholder = "cerco-placeholder-of-key";
  const std::string body =
      "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"; "
      "filename=\"../b\"\r\n\r\n" +
      placeholder + "\r\n--b\r\nContent-Type: text/x\r\nContent-Type: text/y\r\n\r\n--b--\r\n--b--";
  World world(std::string(kPolicy) + kCredential);
  Server server;
  server.ends_with = "--b--\r\n--b--";
  const std::string request =
      head("files.example.org", "POST /",
           "Content-Type: multipart/form-data; boundary=b; boundary=c\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n") +
      body;
  EXPECT_TRUE(ask(world, server, "files.example.org", request).contains("200 OK"));
  EXPECT_TRUE(server.seen.ends_with("\r\n\r\n" + body));
  int noted = 0;
  for (const auto& event : world.events()) {
    noted += event.type == "credential.refused" && event.has("placeholder_in_body") ? 1 : 0;
  }
  EXPECT_EQ(noted, 1);
}

// N166: what a service does with a credential is told by method and path, and by nothing else.
TEST(Content, WhatAServiceWouldDoIsToldByMethodAndPath) {
  for (const char* start : {"POST /user/keys", "POST /applications/x/token", "PUT /repos/a/b/hooks",
                            "POST /v1/files", "POST /v1/messages/batches", "DELETE /repos/a/b"}) {
    World world(kPolicy);
    Server server;
    const std::string answer = ask(world, server, "api.example.org",
                                   head("api.example.org", start, "Content-Length: 0\r\n"));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << start;
    EXPECT_TRUE(server.seen.empty()) << start;
  }
  World world(kPolicy);
  Server server;
  EXPECT_TRUE(ask(world, server, "api.example.org",
                  head("api.example.org", "POST /v1/messages", "Content-Length: 0\r\n"))
                  .contains("200 OK"));
}

}  // namespace
}  // namespace gateway
