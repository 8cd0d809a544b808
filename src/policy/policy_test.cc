// The canonical forms of hosts, addresses and paths, driven by the tables of tests/cases.
#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/testing.h"

namespace policy {
namespace {

// --- Hosts: N2 to N42 of egress.md ----------------------------------------------------------

TEST(
    Hosts,
    LiteralSpellingsAndNames_N1_N2_N4_N5_N6_N7_N9_N10_N11_N12_N15_N16_N17_N24_N25_N27_N35_N36_N37_N39_N40_N41_N42) {
  const auto rows = cases::rows("hosts.txt");
  ASSERT_GT(rows.size(), 60U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3U);
    const auto host = canonical_host(cases::unescape(row[1]));
    const std::string seen = !host              ? "reject"
                             : host->is_address ? "address " + host->name
                                                : "name " + host->name;
    EXPECT_EQ(seen, row[2]) << row[0] << " " << row[1];
  }
}

TEST(Hosts, CanonicalFormIsStable) {
  for (const auto& row : cases::rows("hosts.txt")) {
    const auto host = canonical_host(cases::unescape(row[1]));
    if (host) EXPECT_EQ(canonical_host(host->name).value(), *host) << row[1];
  }
}

TEST(Hosts, LengthBounds) {
  const std::string label(49, 'a');
  const std::string longest =
      label + "." + label + "." + label + "." + label + "." + label + ".com";  // 253
  ASSERT_EQ(longest.size(), 253U);
  EXPECT_TRUE(canonical_host(longest));
  EXPECT_TRUE(canonical_host(longest + "."));
  EXPECT_FALSE(canonical_host("a" + longest));
}

// --- Addresses ------------------------------------------------------------------------------

TEST(Addresses, EveryRangeAndItsBoundaries_N1_N7_N15_N16_N17_N19_N20_N21_N22_N25_N26_F8_F11) {
  const auto rows = cases::rows("addresses.txt");
  ASSERT_GT(rows.size(), 200U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3U);
    const auto address = parse_address(row[1]);
    ASSERT_TRUE(address) << row[1];
    const Judgement judgement = judge(*address);
    std::string seen = judgement.guard == Guard::open            ? "open -"
                       : judgement.guard == Guard::private_range ? "private " + judgement.reason
                                                                 : "never " + judgement.reason;
    EXPECT_EQ(seen, row[2]) << row[0] << " " << row[1];
    EXPECT_EQ(parse_address(to_string(*address)).value(), *address);
  }
}

TEST(Addresses, StrictText) {
  for (std::string_view bad : {"", "1.2.3", "1.2.3.4 ", " 1.2.3.4", "1.2.3.04", "0x1.2.3.4",
                               "1.2.3.4/8", "::1%lo", ":::", "1::2::3", "12345::", "[::1]"}) {
    EXPECT_FALSE(parse_address(bad)) << bad;
  }
  EXPECT_FALSE(parse_address(std::string_view("1.2.3.4\0", 8)));
}

TEST(Cidrs, HoldExactlyTheirAddresses_F11) {
  const auto holds = [](std::string_view cidr, std::string_view address) {
    return contains(*parse_cidr(cidr), *parse_address(address));
  };
  EXPECT_TRUE(holds("0.0.0.0/0", "255.255.255.255"));
  EXPECT_FALSE(holds("0.0.0.0/0", "::"));
  EXPECT_TRUE(holds("::/0", "ffff::"));
  EXPECT_TRUE(holds("224.0.0.0/3", "255.255.255.255"));
  EXPECT_FALSE(holds("224.0.0.0/3", "223.255.255.255"));
  EXPECT_TRUE(holds("10.0.0.2/31", "10.0.0.3"));
  EXPECT_FALSE(holds("10.0.0.2/31", "10.0.0.4"));
  EXPECT_TRUE(holds("10.0.0.2", "10.0.0.2"));
  EXPECT_FALSE(holds("10.0.0.2/32", "10.0.0.3"));
  EXPECT_TRUE(holds("2001:db8::/29", "2001:dbf::1"));
  EXPECT_FALSE(holds("2001:db8::/29", "2001:dc0::"));
  for (std::string_view bad : {"10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1",
                               "10.0.0.1/8", "::/129", "/8", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(parse_cidr(bad)) << bad;
  }
}

// --- Paths ----------------------------------------------------------------------------------

TEST(Paths, CanonicalFormOrRejected_F21_N112_N119) {
  const auto rows = cases::rows("paths.txt");
  ASSERT_GT(rows.size(), 60U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 4U);
    const auto path = canonical_path(cases::unescape(row[1]), row[2] == "slash");
    EXPECT_EQ(path ? *path : "reject", row[3]) << row[0] << " " << row[1];
    if (path) EXPECT_EQ(canonical_path(*path, true).value(), *path) << "not stable: " << row[1];
  }
}

TEST(Paths, TargetsAreBounded_N122) {
  EXPECT_TRUE(canonical_path("/" + std::string(16 * 1024 - 1, 'a'), false));
  EXPECT_FALSE(canonical_path("/" + std::string(16 * 1024, 'a'), false));
}

}  // namespace
}  // namespace policy
