// Fetches from token endpoints: what is dialled, what is sent, and which answers are told.
#include "gateway/fetch.h"

#include <gtest/gtest.h>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::TlsPeer;
using testing::Upstream;

http::Authority& authority() {
  static http::Authority made = [] {
    return std::move(*http::Authority::make("fetchtests", 3600, [] { return std::time(nullptr); }));
  }();
  return made;
}

class OneAddress final : public Resolver {
 public:
  asio::awaitable<base::Result<std::vector<policy::Address>>> resolve(std::string name) override {
    asked.push_back(name);
    co_return std::vector{*policy::parse_address(address)};
  }
  std::string address = "93.184.216.34";
  std::vector<std::string> asked;
};

class ToLoopback final : public Connector {
 public:
  explicit ToLoopback(std::uint16_t port) : port_(port) {}
  base::Result<base::Fd> start(const Passed& to, std::uint16_t port) override {
    dialled.push_back(policy::to_string(to.address()) + ":" + std::to_string(port));
    return os::start_connect({.v6 = false, .address = {127, 0, 0, 1}, .port = port_});
  }
  std::vector<std::string> dialled;

 private:
  std::uint16_t port_;
};

// A token endpoint that answers every request with `answer`, and then closes.
class Fixture {
 public:
  explicit Fixture(std::string answer) : answer_(std::move(answer)) {
    policy::Egress rule;
    rule.host = "auth.test";
    rule.ports = {443};
    plan_.policy.egress = {rule};
    plan_.protections.insert(plan::Protection::address_guard);
  }
  plan::MintTold ask(const std::string& host = "auth.test") {
    Guard guard(plan_, [this] { return base::Result<const os::LocalNetworks*>(&local_); });
    FetchWorld world{
        .io = io_,
        .policy = plan_.policy,
        .guard = guard,
        .resolver = resolver,
        .connector = connector,
        .tls = [] { return http::client_context(authority().pem(), http::Verification::required); },
        .time = time};
    plan::MintAsk one{.id = 7,
                      .host = host,
                      .method = "POST",
                      .target = "/token",
                      .headers = {{"accept", "application/json"}},
                      .body = "grant_type=x",
                      .wanted = {"access_token", "expires_in"}};
    plan::MintTold told;
    testing::run_to_end(io_, run(world, one, told));
    return told;
  }
  OneAddress resolver;
  std::chrono::milliseconds time{5'000};
  std::atomic<int> requests = 0;
  std::string sent;  // the last request, once ask() has returned

 private:
  static asio::awaitable<void> run(FetchWorld& world, plan::MintAsk ask, plan::MintTold& told) {
    told = co_await fetch(world, std::move(ask));
  }
  void serve(const Peer& peer) {
    const TlsPeer tls(peer, *authority().server_context("auth.test"), TlsPeer::Side::server, "");
    if (!tls.shook_hands()) return;
    sent = tls.read_until("grant_type=x");
    ++requests;
    if (answer_ == "silence") return (void)tls.read_some();
    tls.send(answer_);
    if (!answer_.ends_with("(cut)")) tls.close();
  }

  std::string answer_;
  asio::io_context io_{1};
  plan::Plan plan_;
  os::LocalNetworks local_;
  Upstream upstream_{[this](Peer peer) { serve(peer); }};

 public:
  ToLoopback connector{upstream_.port()};
};

std::string with_length(const std::string& body, const std::string& more = "") {
  return "HTTP/1.1 200 OK\r\n" + more + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

constexpr std::string_view kToken =
    R"({"access_token":"t1","expires_in":60,"other":"not asked for"})";

TEST(Fetch, TellsWhatWasAskedFor) {
  Fixture f(with_length(std::string(kToken)));
  const auto told = f.ask();
  EXPECT_EQ(told.problem, "");
  EXPECT_EQ(told.id, 7U);
  EXPECT_EQ(told.status, 200U);
  EXPECT_EQ(told.found,
            (std::map<std::string, std::string>{{"access_token", "t1"}, {"expires_in", "60"}}));
  EXPECT_EQ(f.connector.dialled, std::vector<std::string>{"93.184.216.34:443"});
  EXPECT_TRUE(f.sent.starts_with("POST /token HTTP/1.1\r\nHost: auth.test\r\n")) << f.sent;
  EXPECT_TRUE(f.sent.contains("Content-Length: 12\r\n")) << f.sent;
}

TEST(Fetch, WhateverIsNoAnswerIsAProblem) {
  const std::string token(kToken);
  struct Row {
    std::string answer;
    std::string problem;
    std::uint64_t status = 0;
  };
  const Row rows[] = {
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n",
       "", 200},
      {"HTTP/1.1 100 Continue\r\n\r\n" + with_length(token), "", 200},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + token, "", 200},
      {"HTTP/1.1 307 See\r\nLocation: https://elsewhere.test/\r\nContent-Length: 0\r\n\r\n", "",
       307},
      {with_length(token, "Content-Encoding: gzip\r\n"), "encoding"},
      {with_length(std::string(kMostTold + 1, ' ')), "size"},
      {with_length(token).substr(0, 60), "answer"},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{(cut)", "answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + token,
       "answer"},
      {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "answer"},
      {"SSH-2.0-x\r\n\r\n", "answer"},
      {"", "answer"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(http::kMaxHead, 'x') + "\r\n\r\n", "answer"},
  };
  for (const Row& row : rows) {
    Fixture f(row.answer);
    const auto told = f.ask();
    EXPECT_EQ(told.problem, row.problem) << row.answer.substr(0, 80);
    EXPECT_EQ(told.status, row.status) << row.answer.substr(0, 80);
    if (!row.problem.empty()) EXPECT_TRUE(told.found.empty());
    EXPECT_EQ(f.requests, 1) << "nothing is followed or asked again";
  }
}

TEST(Fetch, SilenceEnds) {
  Fixture f("silence");
  f.time = std::chrono::milliseconds(300);
  EXPECT_EQ(f.ask().problem, "timeout");
}

TEST(Fetch, NobodyElseIsDialled) {
  Fixture f(with_length(std::string(kToken)));
  EXPECT_EQ(f.ask("other.test").problem, "address");
  EXPECT_TRUE(f.resolver.asked.empty());
  for (const char* inside : {"10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1"}) {
    f.resolver.address = inside;
    EXPECT_EQ(f.ask().problem, "address") << inside;
  }
  EXPECT_TRUE(f.connector.dialled.empty());
  EXPECT_EQ(f.requests, 0);
}

}  // namespace
}  // namespace gateway
