// The parser, the matcher and the canonical forms, driven by the tables of tests/cases.
#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/cases.h"

namespace policy {
namespace {

base::Result<Effective> read(std::string_view text, std::span<const Override> overrides = {}) {
  return parse(text, "policy", overrides, {});
}

std::string line_of(const base::Result<Effective>& result) {
  return result ? "accepted" : result.error().line();
}

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

// --- Deciding -------------------------------------------------------------------------------

Policy decide_policy() {
  auto effective = read(cases::read("decide.toml"));
  EXPECT_TRUE(effective) << line_of(effective);
  return effective ? effective->policy : Policy{};
}

// A question of decide.txt; the target is made canonical as the gateway does.
struct Question {
  Request request;
  bool is_request = false;
};

Question question_of(const Policy& policy, const std::string& text) {
  std::vector<std::string> words;
  for (std::string_view word : base::split(text, ' ')) words.emplace_back(word);
  Question out;
  out.request.scheme = words[0] == "tls"    ? Scheme::tls
                       : words[0] == "http" ? Scheme::http
                                            : Scheme::tcp;
  out.request.host = canonical_host(words[1]).value();
  out.request.port = static_cast<std::uint16_t>(std::stoi(words[2]));
  if (words.size() < 5) return out;
  out.is_request = true;
  out.request.method = words[3];
  const bool slash = encoded_slash_allowed(policy, out.request.host.name, out.request.port);
  out.request.path = canonical_path(words[4], slash).value();
  for (std::size_t i = 5; i < words.size(); ++i) {
    const auto colon = words[i].find(':');
    out.request.headers.emplace_back(words[i].substr(0, colon), words[i].substr(colon + 1));
  }
  return out;
}

std::string text_of(const Verdict& verdict) {
  if (!verdict.allow) return "deny " + verdict.reason;
  return std::string("allow ") + (verdict.treatment == Treatment::tunnel ? "tunnel " : "inspect ") +
         verdict.rule;
}

TEST(
    Deciding,
    Table_N1_N14_N31_N32_N34_N35_N40_N41_N44_N45_N47_N50_N74_N76_N120_N121_N136_N137_F17_F24_F27_F37) {
  const Policy policy = decide_policy();
  const auto rows = cases::rows("decide.txt");
  ASSERT_GT(rows.size(), 90U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3U);
    const Question question = question_of(policy, row[1]);
    const Verdict verdict = question.is_request ? decide_request(policy, question.request)
                                                : decide_connection(policy, question.request);
    EXPECT_EQ(text_of(verdict), row[2]) << row[0] << " " << row[1];
    if (verdict.allow) {
      EXPECT_EQ(policy.egress.at(verdict.rule_index).name, verdict.rule);
      EXPECT_TRUE(verdict.fix.empty() && verdict.reason.empty());
      if (!question.request.host.is_address)
        EXPECT_TRUE(name_allowed(policy, question.request.host.name)) << row[1];
    } else {
      EXPECT_EQ(verdict.treatment, Treatment::refuse) << row[1];
    }
  }
}

// Positive control of every denial that has a fix: with the fix alone the question is allowed, and
// the fix opens neither another port, nor a name below, nor another method.
TEST(Deciding, TheFixAllowsWhatWasRefusedAndNoMore) {
  const Policy policy = decide_policy();
  int fixes = 0;
  for (const auto& row : cases::rows("decide.txt")) {
    const Question question = question_of(policy, row[1]);
    const Verdict verdict = question.is_request ? decide_request(policy, question.request)
                                                : decide_connection(policy, question.request);
    if (verdict.fix.empty()) continue;
    ++fixes;
    const auto fixed = read(verdict.fix);
    ASSERT_TRUE(fixed) << row[1] << "\n" << verdict.fix << line_of(fixed);
    const Verdict after = question.is_request ? decide_request(fixed->policy, question.request)
                                              : decide_connection(fixed->policy, question.request);
    EXPECT_TRUE(after.allow) << row[1] << "\n" << verdict.fix << after.reason;
    Request other = question.request;
    other.port = static_cast<std::uint16_t>(other.port + 1);
    EXPECT_FALSE(decide_connection(fixed->policy, other).allow) << row[1];
    other = question.request;
    if (!other.host.is_address) other.host.name = "x." + other.host.name;
    if (!other.host.is_address)
      EXPECT_FALSE(decide_connection(fixed->policy, other).allow) << row[1];
    if (verdict.reason != "method" && verdict.reason != "path") continue;
    other = question.request;
    other.method = "OPTIONS";
    EXPECT_FALSE(decide_request(fixed->policy, other).allow) << row[1];
    other = question.request;
    other.path += "/below";
    EXPECT_FALSE(decide_request(fixed->policy, other).allow) << row[1];
  }
  EXPECT_GT(fixes, 15);
}

TEST(Deciding, RangesAndDenialsHaveNoFix) {
  const Policy policy = decide_policy();
  for (const auto& row : cases::rows("decide.txt")) {
    const Question question = question_of(policy, row[1]);
    const Verdict verdict = question.is_request ? decide_request(policy, question.request)
                                                : decide_connection(policy, question.request);
    if (verdict.reason == "range" || verdict.reason == "deny-rule" ||
        verdict.reason == "blocked-name") {
      EXPECT_EQ(verdict.fix, "") << row[1];
    }
  }
}

TEST(Deciding, OrderOfTheRulesNeverMatters) {
  Policy policy = decide_policy();
  Policy turned = policy;
  std::ranges::reverse(turned.egress);
  for (const auto& row : cases::rows("decide.txt")) {
    const Question question = question_of(policy, row[1]);
    const auto ask = [&](const Policy& one) {
      return question.is_request ? decide_request(one, question.request)
                                 : decide_connection(one, question.request);
    };
    EXPECT_EQ(ask(policy).allow, ask(turned).allow) << row[1];
    EXPECT_EQ(ask(policy).treatment, ask(turned).treatment) << row[1];
    EXPECT_EQ(ask(policy).reason, ask(turned).reason) << row[1];
  }
}

TEST(Deciding, NamesForDns_F1_N45_N47) {
  const Policy policy = decide_policy();
  for (std::string_view name : {"api.example.com", "a.cdn.example.net", "ssh.example.com",
                                "host.cerco.internal", "half.cdn.example.net"}) {
    EXPECT_TRUE(name_allowed(policy, name)) << name;
  }
  for (std::string_view name :
       {"example.com", "cdn.example.net", "evil.test", "metadata.google.internal",
        "no.cdn.example.net", "x.host.cerco.internal", "*.cdn.example.net", ""}) {
    EXPECT_FALSE(name_allowed(policy, name)) << name;
  }
}

TEST(Deciding, WhatNeedsTermination) {
  const Policy policy = decide_policy();
  EXPECT_TRUE(needs_inspection(policy, "api.example.com", 443));
  EXPECT_TRUE(needs_inspection(policy, "sso.example.com", 443));       // a credential
  EXPECT_TRUE(needs_inspection(policy, "half.cdn.example.net", 443));  // a denial of methods
  EXPECT_TRUE(needs_inspection(policy, "*.cdn.example.net", 443));     // some name under it
  EXPECT_FALSE(needs_inspection(policy, "a.cdn.example.net", 443));
  EXPECT_FALSE(needs_inspection(policy, "api.example.com", 8443));
  EXPECT_FALSE(needs_inspection(policy, "files.example.org", 80));
  EXPECT_FALSE(needs_inspection(policy, "host.cerco.internal", 8000));
  EXPECT_FALSE(needs_inspection(policy, "ssh.example.com", 22));
}

TEST(Deciding, WhetherAnAuthorityIsNeeded) {
  const auto needed = [](std::string_view text) {
    const auto effective = read(text);
    EXPECT_TRUE(effective) << line_of(effective);
    return effective && terminates(effective->policy);
  };
  EXPECT_FALSE(needed(""));
  EXPECT_FALSE(needed("[[egress]]\nhost = \"a.example.com\"\n"));
  EXPECT_TRUE(needed("[[egress]]\nhost = \"a.example.com\"\nmethods = [\"GET\"]\n"));
  EXPECT_FALSE(needed("[[egress]]\nhost = \"a.example.com\"\nports = [80]\nmethods = [\"GET\"]\n"));
  EXPECT_FALSE(
      needed("[[egress]]\nhost = \"host.cerco.internal\"\nports = [8000]\nmethods = [\"GET\"]\n"));
  const std::string wide =
      "[[egress]]\nhost = \"*.cdn.example.net\"\n[[deny]]\nhost = \"a.cdn.example.net\"\n";
  EXPECT_FALSE(needed(wide));
  EXPECT_TRUE(needed(wide + "paths = [\"/x\"]\n"));
  EXPECT_FALSE(
      needed("[[egress]]\nhost = \"a.example.com\"\n[[deny]]\nhost = \"b.example.com\"\npaths = "
             "[\"/x\"]\n"));
}

TEST(Deciding, OpenedRanges_F27) {
  const auto effective = read(
      "[[egress]]\nhost = \"a.example.com\"\naddresses = [\"10.2.0.0/16\", \"fd00::/8\"]\n"
      "[[egress]]\nhost = \"b.example.com\"\naddresses = [\"host\"]\n"
      "[[egress]]\nhost = \"c.example.com\"\n"
      "[[egress]]\nhost = \"host.cerco.internal\"\nports = [8000]\n"
      "[[egress]]\ncidr = \"192.168.0.0/16\"\n"
      "[[egress]]\ntcp = \"192.168.7.7:22\"\n"
      "[[egress]]\nhost = \"a.example.com\"\nports = [8443]\n"
      "[[egress]]\nhost = \"d.example.com\"\naddresses = [\"0.0.0.0/0\", \"::/0\"]\n");
  ASSERT_TRUE(effective) << line_of(effective);
  const Policy& policy = effective->policy;
  const auto opened = [&](std::size_t rule, std::string_view address) {
    return range_opened(policy, policy.egress[rule], *parse_address(address));
  };
  EXPECT_TRUE(opened(0, "10.2.3.4"));
  EXPECT_FALSE(opened(0, "10.3.0.0"));
  EXPECT_TRUE(opened(0, "fd12::1"));
  EXPECT_FALSE(opened(0, "fd00:ec2::254"));  // metadata, never
  EXPECT_FALSE(opened(0, "127.0.0.1"));
  EXPECT_TRUE(opened(1, "127.0.0.1"));
  EXPECT_TRUE(opened(1, "::1"));
  EXPECT_FALSE(opened(1, "::ffff:127.0.0.1"));
  EXPECT_FALSE(opened(1, "169.254.169.254"));
  EXPECT_FALSE(opened(1, "10.2.3.4"));
  EXPECT_FALSE(opened(2, "10.2.3.4"));
  EXPECT_TRUE(opened(3, "127.0.0.1"));
  EXPECT_FALSE(opened(3, "10.2.3.4"));
  EXPECT_TRUE(opened(4, "192.168.1.1"));
  EXPECT_FALSE(opened(4, "10.2.3.4"));
  EXPECT_TRUE(opened(5, "192.168.7.7"));
  EXPECT_FALSE(opened(5, "192.168.7.8"));
  EXPECT_TRUE(opened(6, "10.2.3.4"));  // rules of one host add up
  for (std::string_view never : {"127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1",
                                 "168.63.129.16", "224.0.0.1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(opened(7, never)) << never;
  }
}

TEST(Deciding, DeniedAddresses) {
  const auto effective =
      read("[[deny]]\ncidr = \"93.184.0.0/16\"\n[[deny]]\ncidr = \"8.8.8.8\"\nports = [53]\n");
  ASSERT_TRUE(effective);
  const auto denied = [&](std::string_view address, std::uint16_t port) {
    return address_denied(effective->policy, *parse_address(address), port);
  };
  EXPECT_TRUE(denied("93.184.216.34", 443));
  EXPECT_FALSE(denied("93.185.0.0", 443));
  EXPECT_TRUE(denied("8.8.8.8", 53));
  EXPECT_FALSE(denied("8.8.8.8", 443));
}

// --- Credentials ----------------------------------------------------------------------------

TEST(Bindings, CoverTheirPlaceAlone_N161_N182) {
  Credential credential;
  credential.hosts = {"api.example.com", "*.cdn.example.net", "host.cerco.internal"};
  credential.ports = {443, 8000};
  credential.methods = {"GET", "POST"};
  credential.paths = {"/v1/**", "/one/*"};
  struct Row {
    std::string_view scheme, host;
    std::uint16_t port;
    std::string_view method, path;
    bool covered;
  };
  const Row rows[] = {
      {"tls", "api.example.com", 443, "GET", "/v1/me", true},
      {"tls", "api.example.com", 443, "HEAD", "/v1/me", true},
      {"tls", "api.example.com", 443, "POST", "/v1/", true},
      {"tls", "api.example.com", 443, "PUT", "/v1/me", false},
      {"tls", "api.example.com", 443, "TRACE", "/v1/me", false},
      {"tls", "api.example.com", 443, "GET", "/v2/me", false},
      {"tls", "api.example.com", 443, "GET", "/v1", false},
      {"tls", "api.example.com", 8443, "GET", "/v1/me", false},
      {"tls", "echo.example.com", 443, "GET", "/v1/me", false},
      {"tls", "x.api.example.com", 443, "GET", "/v1/me", false},
      {"tls", "a.cdn.example.net", 443, "GET", "/v1/me", true},
      {"tls", "a.b.cdn.example.net", 443, "GET", "/v1/me", false},
      {"tls", "1.2.3.4", 443, "GET", "/v1/me", false},
      {"http", "api.example.com", 443, "GET", "/v1/me", false},  // never in the clear
      {"http", "api.example.com", 8000, "GET", "/v1/me", false},
      {"http", "host.cerco.internal", 8000, "GET", "/v1/me", true},  // but there
      {"tcp", "host.cerco.internal", 8000, "GET", "/v1/me", false},
      {"tls", "api.example.com", 443, "GET", "/one/x", true},
      {"tls", "api.example.com", 443, "GET", "/one/x%2Fy", false},  // below it for a lax server
      {"tls", "api.example.com", 443, "GET", "/one/x;y", true},
  };
  for (const Row& row : rows) {
    Request request;
    request.scheme = row.scheme == "tls"    ? Scheme::tls
                     : row.scheme == "http" ? Scheme::http
                                            : Scheme::tcp;
    request.host = canonical_host(row.host).value();
    request.port = row.port;
    request.method = row.method;
    request.path = row.path;
    EXPECT_EQ(covers(credential, request), row.covered)
        << row.scheme << " " << row.method << " " << row.host << row.path;
  }
  Request override_method{Scheme::tls, {"api.example.com", false},
                          443,         "POST",
                          "/v1/me",    {{"x-http-method-override", "DELETE"}}};
  EXPECT_FALSE(covers(credential, override_method));
}

TEST(Bindings, NothingIsCoveredByAnEmptyBinding) {
  const Request request{Scheme::tls, {"api.example.com", false}, 443, "GET", "/", {}};
  EXPECT_FALSE(covers(Credential{}, request));
}

// --- Parsing --------------------------------------------------------------------------------

// The text around one key, so that a policy with it is complete.
std::string policy_with(const std::string& key, const std::string& value) {
  const auto dot = key.find('.');
  if (dot == std::string::npos) return key + " = " + value + "\n";
  const std::string table = key.substr(0, dot);
  const std::string name = key.substr(dot + 1);
  const std::string line = name + " = " + value + "\n";
  if (table == "egress") {
    const bool target = name == "host" || name == "tcp" || name == "cidr" || name == "preset";
    return "[[egress]]\n" + std::string(target ? "" : "host = \"a.example.com\"\n") +
           (name == "own" ? "methods = [\"GET\"]\n" : "") + line;
  }
  if (table == "deny")
    return "[[deny]]\n" +
           std::string(name == "host" || name == "cidr" ? "" : "host = \"a.example.com\"\n") + line;
  if (table != "credential") return "[" + table + "]\n" + line;
  std::string out =
      "[[egress]]\nhost = \"api.example.com\"\nmethods = [\"GET\", \"POST\"]\npaths = "
      "[\"/v1/**\"]\n[[credential]]\n" +
      line;
  const std::vector<std::pair<std::string, std::string>> needed = {
      {"source", "{ env = \"K\" }"},
      {"hosts", "[\"api.example.com\"]"},
      {"methods", "[\"GET\"]"},
      {"paths", "[\"/v1/**\"]"},
      {"inject", "{ header = \"A\" }"}};
  for (const auto& [other, text] : needed) {
    if (other != name) out += other + " = " + text + "\n";
  }
  return out;
}

bool starts_with_place(const std::string& line) {
  // policy:LINE:COLUMN:
  const auto parts = base::split(line, ':');
  return parts.size() > 3 && parts[0] == "policy" && base::parse_number(parts[1]) &&
         base::parse_number(parts[2]);
}

TEST(Parsing, EveryKeyWithAGoodAndABadValue_E2E9) {
  const auto rows = cases::rows("policy_keys.txt");
  for (const auto& row : rows) {
    ASSERT_GE(row.size(), 3U) << row[0];
    if (!row[1].empty()) {
      const auto good = read(policy_with(row[0], row[1]));
      EXPECT_TRUE(good) << row[0] << " = " << row[1] << ": " << line_of(good);
    }
    const auto bad = read(policy_with(row[0], row[2]));
    ASSERT_FALSE(bad) << row[0] << " = " << row[2];
    EXPECT_EQ(bad.error().kind, base::Kind::bad_input) << row[0] << ": " << bad.error().line();
    EXPECT_TRUE(starts_with_place(bad.error().line())) << bad.error().line();
    EXPECT_FALSE(bad.error().expected.empty()) << bad.error().line();
    if (row.size() < 4) continue;
    const auto later = read(policy_with(row[0], row[3]));
    ASSERT_FALSE(later) << row[0] << " = " << row[3];
    EXPECT_EQ(later.error().kind, base::Kind::unsupported)
        << row[0] << ": " << later.error().line();
    EXPECT_TRUE(later.error().line().ends_with(": not carried out yet")) << later.error().line();
    EXPECT_TRUE(later.error().line().contains(row[0].substr(row[0].find('.') + 1)))
        << later.error().line();
  }
}

TEST(Parsing, TheTableOfKeysIsWhole) {
  std::set<std::string> listed;
  for (const auto& row : cases::rows("policy_keys.txt")) listed.insert(row[0]);
  const auto effective = read(cases::read("decide.toml"));
  ASSERT_TRUE(effective);
  std::size_t keys = 0;
  for (const auto& [path, origin] : effective->origins) {
    std::string key = path;
    for (auto at = key.find('['); at != std::string::npos; at = key.find('['))
      key.erase(at, key.find(']') - at + 1);
    const auto parts = base::split(key, '.');
    if (parts.size() != 2) continue;
    ++keys;
    EXPECT_TRUE(listed.contains(key)) << key;
  }
  EXPECT_GT(keys, 60U);
}

TEST(Parsing, Errors_E2E9_F25_F100_F55_N182) {
  const std::string all = cases::read("policy_errors.txt");
  std::size_t count = 0;
  for (std::size_t at = all.find("### "); at != std::string::npos; ++count) {
    const auto next = all.find("\n### ", at);
    const std::string block = all.substr(at, next == std::string::npos ? next : next + 1 - at);
    at = next == std::string::npos ? next : next + 1;
    const auto text_at = block.find('\n') + 1;
    const auto arrow = block.find("\n=> ");
    ASSERT_NE(arrow, std::string::npos) << block;
    const std::string expected = block.substr(arrow + 4, block.find('\n', arrow + 1) - arrow - 4);
    const auto result = read(block.substr(text_at, arrow + 1 - text_at));
    ASSERT_FALSE(result) << block;
    EXPECT_TRUE(result.error().line().starts_with("policy:" + expected))
        << block << "\nsaid: " << result.error().line();
    EXPECT_FALSE(result.error().line().contains('\n'));
  }
  EXPECT_EQ(count, 37U);
}

TEST(Parsing, SecretsAreNeverInAMessage_F55_F105) {
  const std::string secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const Override flags[] = {{OverrideKind::env, "GH=" + secret}};
  EXPECT_FALSE(line_of(read("", flags)).contains(secret));
  EXPECT_FALSE(line_of(read("[environment]\nset = { A = \"" + secret + "\" }\n")).contains(secret));
  const Override set[] = {{OverrideKind::set, "environment.set.A=" + secret}};
  EXPECT_FALSE(line_of(read("", set)).contains(secret));
}

TEST(Parsing, PlainLetsAValueIn) {
  EXPECT_TRUE(read(
      "[environment]\nset = { MY_TOKEN = \"q7Zk2Lw9xP4vT8sB1nYd\" }\nplain = [\"MY_TOKEN\"]\n"));
  EXPECT_FALSE(
      read("[environment]\nset = { MY_TOKEN = \"q7Zk2Lw9xP4vT8sB1nYd\" }\nplain = [\"OTHER\"]\n"));
}

TEST(Parsing, WhatLooksLikeACredential_F55) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"A", "sk-proj-0123456789abcdef"},
           {"A", "AKIAIOSFODNN7EXAMPLE"},
           {"A", "glpat-0123456789abcdefghij"},
           {"A", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"},
           {"A", "-----BEGIN RSA PRIVATE KEY-----\nMII"},
           {"DB_PASSWORD", "Xk29vLq81zPwR74mTn0c"},
           {"api_key", "0123456789abcdef0123"}}) {
    EXPECT_NE(credential_like(name, value), "") << name << "=" << value;
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"A", "sk-learn"},
           {"A", "0123456789abcdef0123456789abcdef"},
           {"MY_KEY", "short"},
           {"MY_KEY", "aaaaaaaaaaaaaaaaaaaaaaaa1"},
           {"MY_KEY", "a sentence of more than twenty characters 1"},
           {"PASSWORD_FILE", "/run/secrets/db_password_1"},
           {"A", ""}}) {
    EXPECT_EQ(credential_like(name, value), "") << name << "=" << value;
  }
}

TEST(Parsing, DefaultsAreTheContractsAndCutToTheHost) {
  const auto effective = parse("", "policy", {}, {1000, 1ULL << 30});
  ASSERT_TRUE(effective);
  const Policy& policy = effective->policy;
  EXPECT_EQ(policy.limits.cpus_milli, 1000U);
  EXPECT_EQ(policy.limits.memory, 512ULL << 20);
  EXPECT_EQ(policy, defaults({1000, 1ULL << 30}));
  EXPECT_EQ(defaults({64000, 1ULL << 40}).limits.cpus_milli, 2000U);
  EXPECT_EQ(defaults({64000, 1ULL << 40}).limits.memory, 2ULL << 30);
  EXPECT_EQ(policy.filesystem.hide.size(), 8U);
  EXPECT_EQ(policy.code, Code::unreviewed);
  EXPECT_EQ(policy.limits.wall_ms, 3600'000U);
  EXPECT_EQ(effective->origins.at("limits.wall"), "default");
  // What is written may be more than the host's half.
  const auto asked = parse("[limits]\nmemory = \"900MiB\"\n", "policy", {}, {1000, 1ULL << 30});
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->policy.limits.memory, 900ULL << 20);
  EXPECT_EQ(asked->origins.at("limits.memory"), "policy:2:10");
}

TEST(Parsing, Overrides) {
  for (const auto& row : cases::rows("overrides.txt")) {
    ASSERT_EQ(row.size(), 2U);
    const auto space = row[0].find(' ');
    const std::string flag = row[0].substr(0, space);
    const Override change = {
        flag == "set"     ? OverrideKind::set
        : flag == "allow" ? OverrideKind::allow
        : flag == "env"   ? OverrideKind::env
                          : OverrideKind::timeout,
        space == std::string::npos ? "" : cases::unescape(row[0].substr(space + 1))};
    const auto result = read("", {&change, 1});
    if (row[1].starts_with("! ")) {
      ASSERT_FALSE(result) << row[0];
      EXPECT_TRUE(result.error().line().contains(row[1].substr(2)))
          << row[0] << ": " << result.error().line();
      continue;
    }
    ASSERT_TRUE(result) << row[0] << ": " << line_of(result);
    for (std::string_view line : base::split(row[1], ';')) {
      EXPECT_TRUE(show(*result).contains("\n" + cases::trim(line)))
          << row[0] << ": " << line << "\n"
          << show(*result);
    }
  }
}

TEST(Parsing, LaterChangesWinAndAddUp) {
  const Override changes[] = {{OverrideKind::set, "limits.wall=5m"},
                              {OverrideKind::timeout, "2s"},
                              {OverrideKind::env, "A=1"},
                              {OverrideKind::env, "A=2"},
                              {OverrideKind::env, "B"},
                              {OverrideKind::env, "B=3"},
                              {OverrideKind::env, "A"},
                              {OverrideKind::allow, "a.example.com"},
                              {OverrideKind::allow, "a.example.com:80"},
                              {OverrideKind::set, "egress[1].name=plain"}};
  const auto result =
      read("[[egress]]\nhost = \"x.example.com\"\n[environment]\npass = [\"C\"]\n", changes);
  ASSERT_TRUE(result) << line_of(result);
  EXPECT_EQ(result->policy.limits.wall_ms, 2000U);
  EXPECT_EQ(result->policy.environment.set, (std::map<std::string, std::string>{{"B", "3"}}));
  EXPECT_EQ(result->policy.environment.pass, (std::vector<std::string>{"C", "A"}));
  ASSERT_EQ(result->policy.egress.size(), 3U);
  EXPECT_EQ(result->policy.egress[1].name, "plain");
  EXPECT_EQ(result->policy.egress[2].ports, std::vector<std::uint16_t>{80});
  EXPECT_EQ(result->origins.at("egress[2].host"), "--allow a.example.com:80");
}

TEST(Parsing, AllowConflictsWithAnInspectingRule) {
  const Override allow[] = {{OverrideKind::allow, "api.example.com"}};
  const auto result = read("[[egress]]\nhost = \"api.example.com\"\nmethods = [\"GET\"]\n", allow);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().line().starts_with(
      "--allow api.example.com: egress[1]: for api.example.com:443 rule \"egress-1\" looks inside"))
      << result.error().line();
}

TEST(Parsing, WarningsOfHostingSuffixes_N49) {
  for (std::string_view host :
       {"*.github.io", "*.r2.dev", "*.workers.dev", "*.trycloudflare.com", "*.ngrok.app",
        "*.amazonaws.com", "**.blob.core.windows.net", "*.s3.amazonaws.com"}) {
    const auto result = read("[[egress]]\nhost = \"" + std::string(host) + "\"\n");
    ASSERT_TRUE(result) << line_of(result);
    ASSERT_EQ(result->warnings.size(), 1U) << host;
    EXPECT_TRUE(result->warnings[0].contains("anyone can get a name")) << result->warnings[0];
  }
  const auto own = read("[[egress]]\nhost = \"*.cdn.example.net\"\n");
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->warnings.empty());
}

TEST(Parsing, WarningsOfNamesThatAreNeverResolved_N45) {
  const auto result =
      read("[[egress]]\nhost = \"metadata.google.internal\"\n[[egress]]\nhost = \"*.svc\"\n");
  EXPECT_FALSE(result);  // a single label after the stars is a public suffix
  const auto exact = read(
      "[[egress]]\nhost = \"metadata.google.internal\"\n[[egress]]\nhost = \"*.prod.internal\"\n");
  ASSERT_TRUE(exact) << line_of(exact);
  EXPECT_EQ(exact->warnings.size(), 2U);
}

// The texts that other tests accept, as policies whose forms must agree.
std::vector<std::string> good_policies() {
  std::vector<std::string> out = {"", cases::read("decide.toml")};
  for (const auto& row : cases::rows("policy_keys.txt")) {
    if (!row[1].empty()) out.push_back(policy_with(row[0], row[1]));
  }
  out.push_back(
      "[environment]\nset = { A = \"a \\\"b\\\" \\\\ \\n \\u0007 \\u007f é\", B = \"\" }\n");
  return out;
}

TEST(Showing, TomlParsesToTheSamePolicy) {
  for (const std::string& text : good_policies()) {
    const auto first = parse(text, "policy", {}, {1500, 3ULL << 30});
    ASSERT_TRUE(first) << text << line_of(first);
    const std::string shown = show(*first);
    const auto second = read(shown);
    ASSERT_TRUE(second) << shown << line_of(second);
    EXPECT_EQ(second->policy, first->policy) << shown;
  }
}

TEST(Showing, JsonParsesToTheSamePolicy) {
  for (const std::string& text : good_policies()) {
    const auto first = parse(text, "policy", {}, {1500, 3ULL << 30});
    ASSERT_TRUE(first);
    const auto second = read(to_json(first->policy));
    ASSERT_TRUE(second) << to_json(first->policy) << line_of(second);
    EXPECT_EQ(second->policy, first->policy);
    EXPECT_EQ(to_json(second->policy), to_json(first->policy));
  }
}

TEST(Showing, EveryValueSaysWhereItIsFrom) {
  const Override changes[] = {{OverrideKind::set, "limits.memory=1GiB"}};
  const auto effective = read("[limits]\nwall = \"5s\"\n", changes);
  ASSERT_TRUE(effective);
  const std::string shown = show(*effective);
  EXPECT_TRUE(shown.contains("wall = \"5s\"  # policy:2:8\n")) << shown;
  EXPECT_TRUE(shown.contains("memory = \"1GiB\"  # --set limits.memory\n"));
  EXPECT_TRUE(shown.contains("disk = \"4GiB\"  # default\n"));
  for (std::string_view line : base::split(shown, '\n')) {
    if (!line.empty() && line[0] != '[') EXPECT_TRUE(line.contains("  # ")) << line;
  }
}

TEST(Showing, SizesAndDurationsSayExactlyTheSame) {
  EXPECT_EQ(size_text(512ULL << 20), "512MiB");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(1ULL << 40), "1TiB");
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(kUnlimited), "unlimited");
  EXPECT_EQ(duration_text(90'000), "90s");
  EXPECT_EQ(duration_text(3'600'000), "1h");
  EXPECT_EQ(duration_text(1'500), "1500ms");
  EXPECT_EQ(duration_text(86'400'000), "1d");
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(kUnlimited), "unlimited");
}

// --- JSON, byte by byte -----------------------------------------------------------------------

TEST(Json, StrictForms) {
  for (std::string_view bad : {"{",
                               "{}x",
                               "{\"task\":\"a\",}",
                               "{'task':'a'}",
                               "{\"task\":\"a\" \"code\":\"b\"}",
                               "{\"version\":01}",
                               "{\"version\":1.}",
                               "{\"version\":+1}",
                               "{\"version\":0x1}",
                               "{\"version\":NaN}",
                               "{\"task\":\"\x01\"}",
                               "{\"task\":\"\\x41\"}",
                               "{\"task\":\"\\ud800\"}",
                               "{\"task\":\"\\ud800\\u0041\"}",
                               "{\"task\":\"\\u12\"}",
                               "{\"task\":\"\xff\"}",
                               "{\"task\":\"a}",
                               "{\"task\":tru}",
                               "{\"version\":1e999}",
                               "{\"version\":99999999999999999999}",
                               "{task:1}",
                               "{\"task\":\"a\"/**/}",
                               "{\"task\":\"a\", \"task\":\"a\"}",
                               "{\"task\":null}"}) {
    const auto result = read(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_TRUE(starts_with_place(result.error().line())) << result.error().line();
  }
  EXPECT_TRUE(
      read(" \r\n\t{ \"version\" : 1 , \"task\":\"\\u0061\\t\" }").error().line().contains("task"));
  const auto good = read("{\"version\":1,\"task\":\"\\u0061b\",\"limits\":{\"cpus\":0.5e0}}");
  ASSERT_TRUE(good) << line_of(good);
  EXPECT_EQ(good->policy.task, "ab");
  EXPECT_EQ(good->policy.limits.cpus_milli, 500U);
}

TEST(Json, DepthAndSizeAreBounded) {
  const auto nested = [](int depth) {
    return "{\"x\":" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
  };
  EXPECT_TRUE(line_of(read(nested(100'000))).contains("more than 64 levels"));
  EXPECT_TRUE(line_of(read(nested(10))).contains("unknown key"));
  EXPECT_TRUE(
      line_of(read("{" + std::string(1024 * 1024, ' ') + "}")).contains("larger than 1 MiB"));
}

TEST(Toml, OnlyStringsAndCommentsHaveMoreThanAscii) {
  for (std::string_view bad :
       {"hose\xcd\x9c = 1\n", "task = \"a\"\xc2\xa1\n", "\xe2\x80\x8btask = \"a\"\n",
        "task\xc4\x80= 'a'\n", "[limits]\xc2\xa0\n", "task = \"\"\"a\"\"\"\xc2\xa1\n", "\xff\n"}) {
    EXPECT_TRUE(starts_with_place(line_of(read(bad)))) << line_of(read(bad));
  }
  EXPECT_TRUE(
      read("# \xc2\xa1 \xe2\x80\x8b\n[environment]\nset = { A = \"\xc3\xa9\", B = '\xc3\xa9', C = "
           "\"\"\"\n\xc3\xa9\\\"\"\"\"\"\" }\n"));
  EXPECT_TRUE(read("\xef\xbb\xbftask = \"a\"\n"));
  EXPECT_TRUE(line_of(read("x = \"a\\\n\n\"\ny\xc2\xa1 = 1\n")).starts_with("policy:"));
}

TEST(Toml, DepthAndSizeAreBounded) {
  std::string dotted = "a";
  for (int i = 0; i < 200'000; ++i) dotted += ".a";
  EXPECT_TRUE(line_of(read(dotted + " = 1\n")).contains("a key of more than 64 parts"));
  EXPECT_TRUE(line_of(read("[" + dotted + "]\n")).contains("a key of more than 64 parts"));
  EXPECT_TRUE(line_of(read("x = '''\n'''\n" + dotted + " = 1\n"))
                  .starts_with("policy:3:129: a key of more"));
  const std::string dots(500, '.');
  EXPECT_FALSE(line_of(read("x = \"" + dots + "\" # " + dots + "\n")).contains("parts"));
  EXPECT_TRUE(line_of(read("x = " + std::string(100'000, '[') + "\n")).starts_with("policy:1:"));
  EXPECT_TRUE(line_of(read(std::string(1024 * 1024 + 1, ' '))).contains("larger than 1 MiB"));
}

}  // namespace
}  // namespace policy
