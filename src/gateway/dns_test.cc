// DNS: messages, the address book, and who gets an answer.
#include "gateway/dns.h"

#include <gtest/gtest.h>

#include "gateway/dns_message.h"
#include "gateway/testing.h"

namespace gateway {
namespace {

std::string labels(const std::string& name) {
  std::string out;
  for (const auto& label : base::split(name, '.')) {
    out += static_cast<char>(label.size());
    out += label;
  }
  out += '\0';
  return out;
}

std::string query(const std::string& name, unsigned type, bool edns = false) {
  std::string out("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", 11);
  out += edns ? '\x01' : '\0';
  out += labels(name);
  out += static_cast<char>(type >> 8);
  out += static_cast<char>(type & 0xff);
  out += std::string("\0\1", 2);
  if (edns) out += std::string("\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
  return out;
}

unsigned rcode(const std::string& answer) {
  return static_cast<unsigned char>(answer[3]) & 0xfU;
}
unsigned answers(const std::string& answer) {
  return static_cast<unsigned char>(answer[7]);
}
std::string last(const std::string& answer, std::size_t count) {
  return answer.substr(answer.size() - count);
}

TEST(DnsMessage, ReadsAQuestion) {
  const auto question = read_question(query("API.Example.com", 28, true));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->id, 0x1234);
  EXPECT_EQ(question->name, "api.example.com");
  EXPECT_EQ(question->type, 28);
  EXPECT_TRUE(question->recursion_desired);
  EXPECT_TRUE(question->edns);
  EXPECT_EQ(question->udp_size, 0x4d0);
}

TEST(DnsMessage, RefusesWhatTwoReadersCouldReadDifferently) {
  std::string good = query("a.test", 1);
  EXPECT_TRUE(read_question(good));
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(read_question(good.substr(0, cut))) << cut;
  }
  EXPECT_FALSE(read_question(good + "x"));  // bytes left over
  std::string response = good;
  response[2] = static_cast<char>(0x81);
  EXPECT_TRUE(read_question(response).error().drop);  // no answer to an answer: no loops
  std::string two = good;
  two[5] = 2;
  EXPECT_FALSE(read_question(two));
  std::string compressed("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01",
                         18);
  EXPECT_FALSE(read_question(compressed));
  std::string update = good;
  update[2] = static_cast<char>(5 << 3);
  EXPECT_EQ(read_question(update).error().code, Rcode::not_built);
  // 127 labels are the most that fit into 255 bytes.
  std::string longest = "a";
  for (int i = 0; i < 126; ++i) longest += ".a";
  EXPECT_TRUE(read_question(query(longest, 1)));
  EXPECT_FALSE(read_question(query(longest + ".a", 1)));
}

TEST(DnsMessage, ANameThatIsNoHostNameIsNotAName) {
  const auto question = read_question(query(std::string("a\0b", 3), 1));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->name, "");
  EXPECT_FALSE(question->plain_name);
}

TEST(DnsMessage, WritesTheQuestionAsItCameAndTheErrorOnlyWithEdns) {
  const auto plain = read_question(query("A.test", 1));
  const std::string answer =
      write_answer(*plain, {.addresses = {std::string("\1\2\3\4")}, .ttl = 60}, 512);
  EXPECT_TRUE(answer.contains(labels("A.test")));
  EXPECT_EQ(last(answer, 4), "\1\2\3\4");
  const Answer blocked{.code = Rcode::no_name, .error = kErrorBlocked, .error_text = "why"};
  EXPECT_FALSE(write_answer(*plain, blocked, 512).contains("why"));
  const auto edns = read_question(query("a.test", 1, true));
  EXPECT_TRUE(write_answer(*edns, blocked, 512).ends_with(std::string("\0\x0fwhy", 5)));
}

TEST(DnsMessage, CutsWhatDoesNotFit) {
  const auto question = read_question(query("a.test", 1));
  const Answer many{.addresses = std::vector<std::string>(100, "\1\2\3\4"), .ttl = 1};
  const std::string answer = write_answer(*question, many, 512);
  EXPECT_LE(answer.size(), 512U);
  EXPECT_NE(static_cast<unsigned char>(answer[2]) & 2U, 0U);
  EXPECT_GT(answers(answer), 20U);
}

TEST(Names, EveryNameHasItsOwnAddressForEver) {
  auto names = Names::make("198.19.0.0/16", "fd63:6572:636f:1::/64", 300);
  ASSERT_TRUE(names);
  std::set<policy::Address> seen;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "n" + std::to_string(i) + ".test";
    const auto given = names->give(name);
    ASSERT_TRUE(given);
    EXPECT_TRUE(seen.insert(given->place.v4).second);
    EXPECT_TRUE(seen.insert(given->place.v6).second);
    EXPECT_EQ(names->name_of(given->place.v4), name);
    EXPECT_EQ(names->name_of(given->place.v6), name);
    EXPECT_EQ(names->give(name)->place.v4, given->place.v4);
  }
  EXPECT_FALSE(names->give("one-more.test"));
  EXPECT_EQ(policy::to_string(names->give("n299.test")->place.v4), "198.19.1.44");
}

// N95: an address means a name in the one sandbox that was given it.
TEST(Names, EverySandboxHasItsOwn) {
  auto one = Names::make("198.19.0.0/16", "fd63:6572:636f:1::/64", 10);
  auto other = Names::make("198.19.0.0/16", "fd63:6572:636f:1::/64", 10);
  const auto given = one->give("one.test")->place;
  EXPECT_EQ(other->name_of(given.v4), "");
  EXPECT_EQ(other->give("other.test")->place.v4, given.v4);
  EXPECT_EQ(other->name_of(given.v4), "other.test");
  EXPECT_EQ(one->name_of(given.v4), "one.test");
}

TEST(Names, AnAddressThatWasNotGivenOutStandsForNothing) {
  auto names = Names::make("198.19.0.0/16", "fd63:6572:636f:1::/64", 10);
  (void)names->give("a.test");
  for (const char* text :
       {"198.19.0.0", "198.19.0.2", "198.19.255.255", "198.18.0.1", "fd63:6572:636f:1::2",
        "fd63:6572:636f:1::1:0:1", "fd63:6572:636f:1::"}) {
    EXPECT_EQ(names->name_of(*policy::parse_address(text)), "") << text;
  }
  EXPECT_EQ(names->name_of(*policy::parse_address("fd63:6572:636f:1::1")), "a.test");
  EXPECT_FALSE(Names::make("198.19.0.0/31", "fd63::/64", 1));
  EXPECT_FALSE(Names::make("fd63::/64", "fd63::/64", 1));
}

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
host = "api.example.com"
[[egress]]
host = "*.cdn.example.net"
[[egress]]
tcp = "db.example.com:5432"
)";

std::string ask(testing::World& world, const std::string& name, unsigned type, bool edns = false) {
  return world.dns().answer(query(name, type, edns), 512).value_or("");
}

TEST(Dns, AnAllowedNameGetsAnAddressOfThePoolAndOneEvent) {
  testing::World world(kPolicy);
  const std::string a = ask(world, "API.example.com", 1);
  EXPECT_EQ(rcode(a), 0U);
  EXPECT_EQ(last(a, 4), std::string("\xc6\x13\0\1", 4));
  const std::string aaaa = ask(world, "api.example.com", 28);
  EXPECT_EQ(last(aaaa, 1), "\1");
  EXPECT_EQ(answers(ask(world, "db.example.com", 1)), 1U);
  EXPECT_EQ(answers(ask(world, "x.cdn.example.net", 1)), 1U);
  EXPECT_TRUE(world.asked.empty());  // N89: nobody outside is asked before a connection
  const auto events = world.events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].type, "dns.decision");
  EXPECT_TRUE(events[0].has(R"("verdict":"allow")"));
}

// N31 N32 N34 N44 N45 N47 N91, F1
TEST(Dns, NothingElseHasAnAddress) {
  testing::World world(kPolicy);
  for (const char* name :
       {"evil.test", "cdn.example.net", "a.b.cdn.example.net", "evil-cdn.example.net", "localhost",
        "metadata", "metadata.google.internal", "kubernetes.default.svc", "host.cerco.internal",
        "host.docker.internal", "secret-data-in-labels.evil.test", "example.com", "1.1.1.1",
        "0x7f.1"}) {
    const std::string answer = ask(world, name, 1, true);
    EXPECT_EQ(rcode(answer), 3U) << name;
    EXPECT_EQ(answers(answer), 0U) << name;
    EXPECT_TRUE(answer.contains("no rule allows")) << name;
  }
  EXPECT_TRUE(world.asked.empty());
}

// The control of the above: without the name filter the same question has an answer.
TEST(Dns, WithoutTheNameFilterANameHasAnAddress) {
  testing::World world(kPolicy, {plan::Protection::name_filter});
  EXPECT_EQ(answers(ask(world, "evil.test", 1)), 1U);
}

// N90
TEST(Dns, OtherTypesOfAnAllowedNameAreEmptyAndOfOthersDoNotExist) {
  testing::World world(kPolicy);
  for (const unsigned type : {2U, 5U, 10U, 15U, 16U, 33U, 64U, 65U, 252U, 255U}) {
    const std::string answer = ask(world, "api.example.com", type);
    EXPECT_EQ(rcode(answer), 0U) << type;
    EXPECT_EQ(answers(answer), 0U) << type;
    EXPECT_EQ(rcode(ask(world, "evil.test", type)), 3U) << type;
  }
  EXPECT_EQ(rcode(ask(world, "1.0.19.198.in-addr.arpa", 12)), 3U);
}

TEST(Dns, ARefusedNameIsOneEventHoweverOftenItIsAsked) {
  testing::World world(kPolicy);
  for (int i = 0; i < 50; ++i) (void)ask(world, "evil.test", i % 2 == 0 ? 1 : 28);
  auto events = world.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].has(R"("verdict":"deny")"));
  EXPECT_TRUE(events[0].has("[[egress]]"));  // what would allow it
  world.dns().finish();
  events = world.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[1].has(R"("count":49)"));
}

TEST(Dns, AFloodOfRefusedNamesIsBounded) {
  testing::World world(kPolicy);
  for (int i = 0; i < 3000; ++i) {
    (void)ask(world, "n" + std::to_string(i) + ".evil.test", 1);
    if (i % 100 == 0) (void)world.events();
  }
  EXPECT_EQ(world.events().size(), 1025U);
  world.dns().finish();
  EXPECT_TRUE(world.events().back().has(R"("count":1975)"));
}

// N89
TEST(Dns, NamesOfAWildcardAreLimitedWithAnAlert) {
  testing::World world(kPolicy);
  world.limits.wildcard_names = 20;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(rcode(ask(world, "n" + std::to_string(i) + ".cdn.example.net", 1)), 0U);
  }
  EXPECT_EQ(rcode(ask(world, "n20.cdn.example.net", 1)), 3U);
  EXPECT_EQ(rcode(ask(world, "n19.cdn.example.net", 28)), 0U);  // known ones stay
  EXPECT_EQ(rcode(ask(world, "api.example.com", 1)), 0U);
  int alerts = 0;
  for (const auto& event : world.events()) alerts += event.type == "alert" ? 1 : 0;
  EXPECT_EQ(alerts, 1);
}

TEST(Dns, WithoutAJournalThereIsNoAddress) {
  testing::World world(kPolicy);
  world.core();
  world.close_journal();
  EXPECT_EQ(rcode(ask(world, "api.example.com", 1)), 2U);
}

}  // namespace
}  // namespace gateway
