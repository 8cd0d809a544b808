// The upstream resolver against a name server of the test's own.
#include "gateway/resolver.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "gateway/dns_message.h"
#include "gateway/testing.h"

namespace gateway {
namespace {

// Answers each question with the addresses that `answer` gives; nullopt: not at all.
class NameServer {
 public:
  using Addresses = std::optional<Answer>;
  explicit NameServer(std::function<Addresses(const Question&)> answer) {
    socket_ = base::Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    EXPECT_TRUE(os::ask_for_destination(socket_.get(), false));
    thread_ = std::thread([this, answer = std::move(answer)] {
      while (!ending_) {
        pollfd wait = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, 20) <= 0) continue;
        const auto datagram = os::receive_datagram(socket_.get(), 512);
        if (!datagram || !*datagram) continue;
        const auto question = read_question((*datagram)->bytes);
        if (!question) continue;
        ++asked_;
        const auto found = answer(*question);
        if (found)
          (void)os::answer_datagram(socket_.get(), **datagram,
                                    write_answer(*question, *found, 512));
      }
    });
  }
  ~NameServer() {
    ending_ = true;
    thread_.join();
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  [[nodiscard]] std::string name() const {
    return "127.0.0.1:" + std::to_string(os::local_endpoint(socket_.get())->port);
  }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  base::Fd socket_;
  std::atomic<bool> ending_ = false;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

using Found = base::Result<std::vector<policy::Address>>;

asio::awaitable<void> look_up(Resolver& resolver, std::string name, Found& found) {
  found = co_await resolver.resolve(std::move(name));
}

Found resolve(Resolver& resolver, asio::io_context& io, const std::string& name) {
  Found found = base::fail(base::Kind::system, "test", "not run", {});
  bool done = false;
  asio::co_spawn(io, look_up(resolver, name, found),
                 [&](const std::exception_ptr&) { done = true; });
  io.restart();
  for (int i = 0; i < 2000 && !done; ++i) {
    io.restart();
    io.run_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(done);
  return found;
}

std::vector<std::string> texts(const Found& found) {
  std::vector<std::string> out;
  for (const auto& address : *found) out.push_back(policy::to_string(address));
  std::ranges::sort(out);
  return out;
}

TEST(Resolver, FindsBothFamilies) {
  const NameServer server([](const Question& question) -> std::optional<Answer> {
    EXPECT_EQ(question.name, "api.example.com");
    if (question.type == kTypeA)
      return Answer{.addresses = {"\x5d\xb8\xd8\x22", "\x0a\1\2\3"}, .ttl = 5};
    return Answer{.addresses = {std::string("\x26\x06", 2) + std::string(13, '\0') + "\1"},
                  .ttl = 5};
  });
  asio::io_context io{1};
  const auto resolver = make_resolver(io, {server.name()}, 500);
  ASSERT_TRUE(resolver);
  const Found found = resolve(**resolver, io, "api.example.com");
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(texts(found), (std::vector<std::string>{"10.1.2.3", "2606::1", "93.184.216.34"}));
  EXPECT_EQ(server.asked(), 2);
}

// N87: what stands in the host's files or search list has no say.
TEST(Resolver, AsksItsServersAlone) {
  const NameServer server(
      [](const Question&) -> std::optional<Answer> { return Answer{.code = Rcode::no_name}; });
  asio::io_context io{1};
  const auto resolver = make_resolver(io, {server.name()}, 500);
  for (const char* name : {"localhost.example", "ip6-allnodes.example", "single"}) {
    const Found found = resolve(**resolver, io, name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().kind, base::Kind::not_found);
  }
  EXPECT_EQ(server.asked(), 6);  // one A and one AAAA each: no other spelling was tried
}

TEST(Resolver, SilenceIsAnError) {
  const NameServer server([](const Question&) -> std::optional<Answer> { return std::nullopt; });
  asio::io_context io{1};
  const auto resolver = make_resolver(io, {server.name()}, 50);
  const Found found = resolve(**resolver, io, "api.example.com");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, base::Kind::peer);
}

TEST(Resolver, OneFamilyIsEnough) {
  const NameServer server([](const Question& question) -> std::optional<Answer> {
    if (question.type == kTypeA) return Answer{.addresses = {"\x5d\xb8\xd8\x22"}, .ttl = 5};
    return Answer{};
  });
  asio::io_context io{1};
  const auto resolver = make_resolver(io, {server.name()}, 500);
  const Found found = resolve(**resolver, io, "api.example.com");
  ASSERT_TRUE(found);
  EXPECT_EQ(texts(found), std::vector<std::string>{"93.184.216.34"});
}

TEST(Resolver, ServersAreAddresses) {
  asio::io_context io{1};
  EXPECT_FALSE(make_resolver(io, {}, 500));
  EXPECT_FALSE(make_resolver(io, {"dns.example.com"}, 500));
  EXPECT_TRUE(make_resolver(io, {"127.0.0.1", "[::1]:5353"}, 500));
}

}  // namespace
}  // namespace gateway
