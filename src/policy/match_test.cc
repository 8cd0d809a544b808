// The matcher, driven by tests/cases/decide.txt, and the bindings of credentials.
#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/testing.h"

namespace policy {
namespace {

using testing::line_of;
using testing::read;

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

// Two rules of one host: the slash that one takes is not taken by the other.
TEST(Deciding, AnEncodedSlashIsTakenByTheRuleThatSaysSo) {
  const auto effective = read(
      "[[egress]]\nhost = \"a.example.com\"\npaths = [\"/a/**\"]\nencoded_slash = true\n"
      "[[egress]]\nhost = \"a.example.com\"\npaths = [\"/b/**\"]\n");
  ASSERT_TRUE(effective) << line_of(effective);
  Request request;
  request.host = canonical_host("a.example.com").value();
  request.port = 443;
  request.method = "GET";
  request.path = "/a/x%2Fy";
  EXPECT_TRUE(decide_request(effective->policy, request).allow);
  request.path = "/b/x%2Fy";
  EXPECT_EQ(decide_request(effective->policy, request).reason, "path");
}

// What is never opened is so under the widest rule as well.
TEST(Deciding, TheWidestRangeOpensNoMetadata) {
  const auto effective = read("[[egress]]\ncidr = \"0.0.0.0/0\"\nports = [80]\n");
  ASSERT_TRUE(effective) << line_of(effective);
  Request request;
  request.scheme = Scheme::tcp;
  request.port = 80;
  request.host = canonical_host("93.184.216.34").value();
  EXPECT_TRUE(decide_connection(effective->policy, request).allow);
  request.host = canonical_host("169.254.169.254").value();
  EXPECT_EQ(decide_connection(effective->policy, request).reason, "range");
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
    // Nor does what was asked over TLS go out in the clear; a literal is raw in any case.
    other = question.request;
    if (other.scheme == Scheme::tls && !other.host.is_address) {
      other.scheme = Scheme::http;
      EXPECT_FALSE(decide_connection(fixed->policy, other).allow) << row[1];
    }
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

// What network.default and network.mode add to the rules. `audit` stands before a verdict that
// enforce would refuse for that reason.
std::string text_beyond(const Policy& policy, const std::string& text) {
  const Question question = question_of(policy, text);
  const Verdict verdict = question.is_request ? decide_request(policy, question.request)
                                              : decide_connection(policy, question.request);
  return verdict.audit ? "audit " + verdict.reason + ": " + text_of(verdict) : text_of(verdict);
}

struct Beyond {
  std::string question;
  std::string open;   // under network.default = "public"
  std::string audit;  // under network.mode = "audit"
};

const std::string kBeyond =
    "[[egress]]\nname = \"api\"\nhost = \"api.example.com\"\nmethods = [\"GET\"]\npaths = "
    "[\"/v1/**\"]\nheaders = { forbid = [\"Cookie\"] }\n"
    "[[egress]]\nname = \"db\"\ntcp = \"db.example.com:5432\"\n"
    "[[deny]]\nhost = \"**.evil.test\"\n"
    "[[deny]]\nhost = \"half.test\"\npaths = [\"/admin/**\"]\n"
    "[[deny]]\nhost = \"port.test\"\nports = [8080]\n"
    "[[deny]]\ncidr = \"93.184.0.0/16\"\n";

TEST(Beyond, TheRules_F13_F16) {
  const Beyond table[] = {
      {"tls any.test 443", "allow tunnel network.default", "audit host: allow tunnel "},
      {"http any.test 80 POST /x", "allow inspect network.default", "audit host: allow inspect "},
      {"http any.test 80 TRACE /x", "deny method", "deny method"},
      {"tcp any.test 22", "allow tunnel network.default", "audit host: allow tunnel "},
      {"http any.test 8080", "allow tunnel network.default", "audit host: allow tunnel "},
      // Port 443 is TLS alone and port 80 plain HTTP alone, as everywhere.
      {"tcp any.test 443", "deny protocol", "deny protocol"},
      {"tcp any.test 80", "deny protocol", "deny protocol"},
      {"http any.test 443", "deny protocol", "deny protocol"},
      {"tls any.test 80", "deny protocol", "deny protocol"},
      // A host that rules name is theirs: no other port, no other method by the default.
      {"tls api.example.com 443 GET /v1/me", "allow inspect api", "allow inspect api"},
      {"tls api.example.com 443 POST /v1/me", "deny method", "audit method: allow inspect api"},
      {"tls api.example.com 443 GET /v2/me", "deny path", "audit path: allow inspect api"},
      {"tls api.example.com 443 GET /v1/me cookie:x", "deny header", "deny header"},
      {"http api.example.com 80 GET /v1/me", "deny port", "audit port: allow inspect "},
      {"tcp api.example.com 22", "deny port", "audit port: allow tunnel "},
      {"tls db.example.com 443", "deny port", "audit port: allow tunnel "},
      {"tls x.api.example.com 443", "allow tunnel network.default", "audit host: allow tunnel "},
      // Denials hold in both.
      {"tls a.evil.test 443", "deny deny-rule", "deny deny-rule"},
      {"tcp a.evil.test 22", "deny deny-rule", "deny deny-rule"},
      {"tls half.test 443", "allow inspect network.default", "audit host: allow inspect "},
      {"tcp half.test 8443", "deny protocol", "deny protocol"},
      {"tls half.test 443 GET /admin/x", "deny deny-rule", "deny deny-rule"},
      {"tls half.test 443 GET /x", "allow inspect network.default", "audit host: allow inspect "},
      {"tcp port.test 8080", "deny deny-rule", "deny deny-rule"},
      {"tcp port.test 8081", "allow tunnel network.default", "audit host: allow tunnel "},
      // The guard's part: literals that are public, and nothing else.
      {"tls 1.1.1.1 443", "allow tunnel network.default", "audit host: allow tunnel "},
      {"tcp 1.1.1.1 22", "allow tunnel network.default", "audit host: allow tunnel "},
      {"tcp 1.1.1.1 443", "deny protocol", "deny protocol"},
      {"http 1.1.1.1 80 GET /", "allow inspect network.default", "audit host: allow inspect "},
      {"tls [2606:4700::1111] 443", "allow tunnel network.default", "audit host: allow tunnel "},
      {"tls 93.184.216.34 443", "deny deny-rule", "deny deny-rule"},
      {"tls 10.0.0.1 443", "deny range", "deny range"},
      {"tls 100.64.0.1 443", "deny range", "deny range"},
      {"http 169.254.169.254 80 GET /latest", "deny range", "deny range"},
      {"tcp 127.0.0.1 22", "deny range", "deny range"},
      {"tls [fd00:ec2::254] 443", "deny range", "deny range"},
      {"tls [::ffff:10.0.0.1] 443", "deny range", "deny range"},
      {"tls metadata.google.internal 443", "deny blocked-name", "deny blocked-name"},
      {"tls router 443", "deny blocked-name", "deny blocked-name"},
      {"http host.cerco.internal 8000", "deny host", "deny host"},
  };
  const auto open = read("[network]\ndefault = \"public\"\n" + kBeyond);
  const auto audit = read("[network]\nmode = \"audit\"\n" + kBeyond);
  ASSERT_TRUE(open && audit) << line_of(open) << line_of(audit);
  for (const Beyond& row : table) {
    EXPECT_EQ(text_beyond(open->policy, row.question), row.open) << row.question;
    EXPECT_EQ(text_beyond(audit->policy, row.question), row.audit) << row.question;
  }
}

// Both at once: what is public is allowed, and audit lifts what the rules of a host refuse.
TEST(Beyond, PublicAndAudit) {
  const auto both = read("[network]\ndefault = \"public\"\nmode = \"audit\"\n" + kBeyond);
  ASSERT_TRUE(both) << line_of(both);
  EXPECT_EQ(text_beyond(both->policy, "tls any.test 443"), "allow tunnel network.default");
  EXPECT_EQ(text_beyond(both->policy, "tcp api.example.com 22"), "audit port: allow tunnel ");
}

// The limits of the nearest rule hold for what audit lets go, and the fix is what enforce would
// say.
TEST(Beyond, AuditKeepsTheRuleAndTheFix) {
  const auto audit = read("[network]\nmode = \"audit\"\n" + kBeyond);
  ASSERT_TRUE(audit) << line_of(audit);
  Question question = question_of(audit->policy, "tls api.example.com 443 POST /v1/me");
  const Verdict request = decide_request(audit->policy, question.request);
  ASSERT_NE(rule_of(audit->policy, request), nullptr);
  EXPECT_EQ(rule_of(audit->policy, request)->name, "api");
  EXPECT_EQ(request.fix,
            "[[egress]]\nhost = \"api.example.com\"\nmethods = [\"POST\"]\npaths = [\"/v1/me\"]\n");
  question = question_of(audit->policy, "tls any.test 443");
  const Verdict connection = decide_connection(audit->policy, question.request);
  EXPECT_EQ(connection.fix, "[[egress]]\nhost = \"any.test\"\n");
  EXPECT_EQ(rule_of(audit->policy, connection), nullptr);
}

TEST(Beyond, Names) {
  const auto open = read("[network]\ndefault = \"public\"\n" + kBeyond);
  const auto audit = read("[network]\nmode = \"audit\"\n" + kBeyond);
  ASSERT_TRUE(open && audit);
  struct Row {
    std::string_view name;
    NameRuling open, audit;
  };
  using enum NameRuling;
  const Row rows[] = {{"any.test", allowed, audited},
                      {"api.example.com", allowed, allowed},
                      {"db.example.com", allowed, allowed},
                      {"a.evil.test", refused, refused},
                      {"evil.test", allowed, audited},
                      {"half.test", allowed, audited},
                      {"port.test", allowed, audited},
                      {"metadata.google.internal", refused, refused},
                      {"host.cerco.internal", refused, refused},
                      {"localhost", refused, refused},
                      {"*.any.test", refused, refused},
                      {"", refused, refused}};
  for (const Row& row : rows) {
    EXPECT_EQ(rule_on_name(open->policy, row.name), row.open) << row.name;
    EXPECT_EQ(rule_on_name(audit->policy, row.name), row.audit) << row.name;
  }
}

TEST(Beyond, ADenialOfSomeRequestsNeedsAnAuthority) {
  const std::string open = "[network]\ndefault = \"public\"\n";
  const auto needed = [&](const std::string& text) {
    const auto effective = read(open + text);
    EXPECT_TRUE(effective) << line_of(effective);
    return effective && terminates(effective->policy);
  };
  EXPECT_FALSE(needed(""));
  EXPECT_FALSE(needed("[[deny]]\nhost = \"a.test\"\n"));
  EXPECT_TRUE(needed("[[deny]]\nhost = \"a.test\"\npaths = [\"/x\"]\n"));
  EXPECT_FALSE(needed("[[deny]]\nhost = \"a.test\"\nports = [80]\npaths = [\"/x\"]\n"));
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

}  // namespace
}  // namespace policy
