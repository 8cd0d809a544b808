// The kernel's log of refused packets: reading it, and what the journal is told.
#include "gateway/refused_log.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "gateway/testing.h"

namespace gateway {
namespace {

std::string v4(const std::string& to, std::uint8_t protocol, std::uint16_t port) {
  std::string packet(24, '\0');
  packet[0] = 0x45;
  packet[9] = static_cast<char>(protocol);
  const auto address = *policy::parse_address(to);
  std::memcpy(packet.data() + 16, address.bytes.data(), 4);
  packet[22] = static_cast<char>(port >> 8);
  packet[23] = static_cast<char>(port & 0xff);
  return packet;
}

std::string v6(const std::string& to, std::uint8_t protocol, const std::string& rest) {
  std::string packet(40, '\0');
  packet[0] = 0x60;
  packet[6] = static_cast<char>(protocol);
  const auto address = *policy::parse_address(to);
  std::memcpy(packet.data() + 24, address.bytes.data(), 16);
  return packet + rest;
}

void put16(std::string& out, std::size_t value) {
  out += static_cast<char>(value & 0xff);
  out += static_cast<char>(value >> 8);
}

std::string attribute(unsigned type, const std::string& value) {
  std::string out;
  put16(out, value.size() + 4);
  put16(out, type);
  out += value;
  out.resize((out.size() + 3) & ~std::size_t{3});
  return out;
}

std::string message(const std::string& packet, std::size_t type = 0x0400) {
  const std::string body =
      std::string(4, '\0') + attribute(1, std::string(4, 'h')) + attribute(9, packet);
  std::string out;
  put16(out, body.size() + 16);
  put16(out, 0);
  put16(out, type);
  out += std::string(10, '\0');
  return out + body;
}

TEST(RefusedLog, ReadsPackets) {
  std::vector<RefusedPacket> packets;
  ASSERT_TRUE(
      read_refused(message(v4("10.1.2.3", IPPROTO_TCP, 8080)) +
                       message(v6("2606:4700::1", IPPROTO_UDP, std::string("\0\0\0\x35", 4))),
                   packets));
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(policy::to_string(packets[0].to), "10.1.2.3");
  EXPECT_EQ(packets[0].port, 8080);
  EXPECT_EQ(packets[0].protocol, IPPROTO_TCP);
  EXPECT_EQ(packets[1].port, 53);
  EXPECT_TRUE(packets[1].to.v6);
}

TEST(RefusedLog, LooksBehindExtensionHeaders) {
  std::vector<RefusedPacket> packets;
  const std::string hop = std::string("\x06\0\0\0\0\0\0\0", 8);
  ASSERT_TRUE(
      read_refused(message(v6("2606::1", 0, hop + std::string("\0\0\x01\xbb", 4))), packets));
  EXPECT_EQ(packets[0].protocol, IPPROTO_TCP);
  EXPECT_EQ(packets[0].port, 443);
}

TEST(RefusedLog, AFragmentHasNoPort) {
  std::string packet = v4("10.1.2.3", IPPROTO_UDP, 53);
  packet[7] = 8;
  std::vector<RefusedPacket> packets;
  ASSERT_TRUE(read_refused(message(packet), packets));
  EXPECT_EQ(packets[0].port, 0);
}

TEST(RefusedLog, EveryCutIsMalformedOrWhole) {
  const std::string whole = message(v4("10.1.2.3", IPPROTO_TCP, 80));
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    std::vector<RefusedPacket> packets;
    EXPECT_FALSE(read_refused(std::string_view(whole).substr(0, cut), packets)) << cut;
  }
  RefusedPacket packet;
  EXPECT_FALSE(read_packet("", packet));
  EXPECT_FALSE(read_packet(std::string(19, '\x45'), packet));
  EXPECT_FALSE(read_packet(std::string(39, '\x60'), packet));
  EXPECT_FALSE(read_packet(std::string(60, '\x41'), packet));  // a header length of one word
}

TEST(RefusedLog, OtherMessagesAreNotPackets) {
  std::vector<RefusedPacket> packets;
  EXPECT_TRUE(read_refused(message(v4("10.1.2.3", IPPROTO_TCP, 80), 0x0300), packets));
  EXPECT_TRUE(packets.empty());
}

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
host = "api.example.com"
)";

// N1 N140, F4, F17: what the kernel refused says why, how often, and what would allow it
TEST(RefusedLog, TellsTheJournalOncePerPlace) {
  testing::World world(kPolicy);
  auto [ours, theirs] = std::move(*os::socket_pair(SOCK_DGRAM));
  RefusedLog log(world.core());
  (void)world.core().names.give("api.example.com");
  const auto log_one = [&](const std::string& packet) {
    ASSERT_TRUE(os::send_message(theirs.get(), message(packet), {}));
    log.read(ours.get());
  };
  for (int i = 0; i < 5; ++i) log_one(v4("169.254.169.254", IPPROTO_TCP, 80));
  log_one(v4("8.8.8.8", IPPROTO_TCP, 853));
  log_one(v4("198.19.0.1", IPPROTO_TCP, 8443));
  log_one(v4("8.8.8.8", IPPROTO_UDP, 123));
  log.tell(RefusedLog::Which::ripe);
  EXPECT_TRUE(world.decisions().empty());  // still gathering
  log.tell(RefusedLog::Which::all);
  EXPECT_EQ(log.read_so_far(), 8U);
  std::map<std::string, testing::Event> by_port;
  for (const auto& event : world.decisions()) {
    for (const char* port : {"80,", "853,", "8443,", "123,"}) {
      if (event.has(std::string("\"port\":") + port)) by_port[port] = event;
    }
  }
  ASSERT_EQ(by_port.size(), 4U);
  EXPECT_TRUE(by_port["80,"].has(R"("kind":"range")"));
  EXPECT_TRUE(by_port["80,"].has(R"("reason":"metadata")"));
  EXPECT_TRUE(by_port["80,"].has(R"("count":5)"));
  EXPECT_FALSE(by_port["80,"].has("fix"));
  EXPECT_TRUE(by_port["853,"].has(R"("kind":"host")"));
  EXPECT_TRUE(by_port["853,"].has("fix"));
  EXPECT_TRUE(by_port["8443,"].has(R"("kind":"port")"));
  EXPECT_TRUE(by_port["8443,"].has(R"("host":"api.example.com")"));
  EXPECT_TRUE(by_port["123,"].has(R"("kind":"protocol")"));
  EXPECT_TRUE(by_port["123,"].has(R"("way":"udp")"));
}

TEST(RefusedLog, AScanIsBounded) {
  testing::World world(kPolicy);
  auto [ours, theirs] = std::move(*os::socket_pair(SOCK_DGRAM));
  RefusedLog log(world.core());
  for (std::uint16_t port = 1; port <= 3000; ++port) {
    ASSERT_TRUE(os::send_message(theirs.get(), message(v4("8.8.8.8", IPPROTO_TCP, port)), {}));
    log.read(ours.get());
  }
  // What goes to a guarded range is told by itself, though the scan's bound is reached.
  ASSERT_TRUE(os::send_message(theirs.get(), message(v4("169.254.169.254", IPPROTO_TCP, 80)), {}));
  log.read(ours.get());
  world.run([&] {  // while the journal is read
    log.tell(RefusedLog::Which::all);
    EXPECT_TRUE(world.core().recorder.flush());
  });
  EXPECT_EQ(world.decisions().size(), 1026U);
  EXPECT_EQ(log.read_so_far(), 3001U);
  const auto metadata = std::ranges::count_if(
      world.decisions(), [](const auto& event) { return event.has(R"("reason":"metadata")"); });
  EXPECT_EQ(metadata, 1);
}

}  // namespace
}  // namespace gateway
