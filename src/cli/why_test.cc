// Tests of `cerco why` and `cerco policy show`: answers, exit statuses, both forms.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/cli_test.h"

namespace {

using cli_test::Folder;
using cli_test::Stage;
using Words = std::vector<std::string>;

constexpr const char* kPolicy = R"([[egress]]
name = "api"
host = "api.test"
methods = ["GET", "POST"]
paths = ["/v1/**"]
[[deny]]
host = "api.test"
paths = ["/v1/admin/**"]
[[egress]]
name = "tunnel"
host = "tunnel.test"
[[egress]]
name = "cdn"
host = "*.cdn.test"
[[egress]]
name = "plain"
host = "plain.test"
ports = [80]
methods = ["GET"]
[[egress]]
name = "raw"
tcp = "db.test:5432"
[[egress]]
name = "lab"
cidr = "10.9.0.0/16"
ports = [8000]
[[egress]]
name = "own"
host = "host.cerco.internal"
ports = [8000]
[[credential]]
name = "key"
source = { env = "API_KEY" }
hosts = ["api.test"]
methods = ["GET"]
paths = ["/v1/**"]
inject = { header = "Authorization" }
env = { API_KEY = "secret" }
)";

struct Case {
  std::string method;
  std::string url;
  int status;
  std::string says;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"GET", "https://api.test/v1/me", 0, "rule \"api\""},
      {"GET", "https://api.test/v1/me", 0, "looked into\ncredential \"key\" may be used"},
      {"POST", "https://api.test/v1/me", 0, "looked into\n"},
      {"HEAD", "https://api.test/v1/x/y", 0, "rule \"api\""},
      {"GET", "https://API.test./v1/?a=b#c", 0, "rule \"api\""},
      {"GET", "HTTPS://api.test/v1/", 0, "rule \"api\""},
      {"DELETE", "https://api.test/v1/me", 1, "no rule of that path allows DELETE"},
      {"GET", "https://api.test/v2/me", 1, "no rule of api.test allows that path"},
      {"GET", "https://api.test", 1, "no rule of api.test allows that path"},
      {"GET", "https://api.test/v1/admin/users", 1, "a [[deny]] rule forbids it"},
      {"GET", "https://api.test/v1/a%2Fb", 1, "the gateway rejects it: an encoded slash"},
      {"GET", "https://api.test/v1/../x", 1, "the gateway rejects it: a dot segment"},
      {"GET", "https://api.test/v1/%2561dmin/x", 1, "a character that is encoded twice"},
      {"GET", "https://api.test/v1/x?_method=DELETE", 1, "rejects it: _method in the query"},
      {"GET", "https://api.test/v1/x?a=b&%5fMethod=DELETE", 1, "_method in the query"},
      {"GET", "https://api.test/v1/x?a b", 1, "METHOD TARGET VERSION"},
      {"GET", "https://api.test/v1/x?a\\b", 1, "the query has a byte"},
      {"GET", "https://api.test/v1/x?\xc3\xa9", 1, "the query has a byte"},
      {"GET", "https://api.test/v1/x?a=%C3%A9&b=\"<>", 0, "rule \"api\""},
      {"PRI", "https://api.test/v1/x", 1, "HTTP/2 without TLS is not taken"},
      {"trace", "https://api.test/v1/x", 1, "TRACE and TRACK are not taken"},
      {"A B", "https://api.test/v1/x", 1, "METHOD TARGET VERSION"},
      {"GET", "https://tunnel.test/x?_method=DELETE", 0, "tunnelled"},
      {"GET", "http://plain.test/?_method=PUT", 1, "_method in the query"},
      {"GET\r\nA: b", "https://api.test/v1/x", 2, "a control character"},
      {"GET", "https://api.test/v1/x\r\nA: b", 2, "a control character"},
      {"GET", "https://api.test:8443/v1/me", 1, "no rule of api.test has port 8443"},
      {"GET", "http://api.test/v1/me", 1, "no rule of api.test has port 80"},
      {"GET", "http://api.test:443/v1/me", 1, "port 443 of api.test does not carry these bytes"},
      {"DELETE", "https://tunnel.test/x", 0, "tunnelled"},
      {"GET", "https://a.cdn.test/", 0, "rule \"cdn\""},
      {"GET", "https://cdn.test/", 1, "no rule names cdn.test"},
      {"GET", "https://b.a.cdn.test/", 1, "no rule names"},
      {"GET", "http://plain.test/", 0, "looked into"},
      {"POST", "http://plain.test/", 1, "POST"},
      {"GET", "https://evil.test/", 1, "this would allow it:\n[[egress]]\nhost = \"evil.test\"\n"},
      {"GET", "http://169.254.169.254/latest", 1, "(metadata)"},
      {"GET", "http://10.9.9.9/", 1, "(private)"},
      {"GET", "http://10.9.9.9:8000/", 0, "rule \"lab\""},
      {"GET", "https://metadata.google.internal/", 1, "never resolved (metadata)"},
      {"GET", "http://[::ffff:10.9.9.9]/", 1, "(private)"},
      {"GET", "http://127.0.0.2:81/", 1, "(loopback)"},
      {"GET", "http://host.cerco.internal:8000/x", 0, "rule \"own\""},
      {"GET", "http://host.cerco.internal:8001/x", 1, "port 8001"},
      {"GET", "tcp://db.test:5432", 0, "rule \"raw\""},
      {"GET", "tcp://api.test:22", 1, "tcp = \"api.test:22\""},
      {"GET", "not a url", 2, "why not a url: no URL; expected a URL"},
      {"GET", "ftp://api.test/", 2, "no http, https or tcp URL"},
      {"GET", "https://", 2, "an empty host"},
      {"GET", "https://127.1/", 2, "no dotted quad"},
      {"GET", "https://api.test:0/", 2, "no port from 1 to 65535"},
      {"GET", "https://api.test:x/", 2, "no port from 1 to 65535"},
      {"GET", "https://user@api.test/", 2, "a user in the URL"},
      {"GET", "tcp://db.test", 2, "a tcp URL without a port"},
  };
  return kCases;
}

// F13, F16: the same words for what no rule names; audit says what enforce would.
TEST(Why, BeyondTheRules) {
  const Folder folder;
  folder.write("public.toml", std::string("[network]\ndefault = \"public\"\n") + kPolicy);
  folder.write("audit.toml", std::string("[network]\nmode = \"audit\"\n") + kPolicy);
  struct Beyond {
    std::string file;
    std::string url;
    int status;
    std::string says;
  };
  const Beyond rows[] = {
      {"public.toml", "https://any.test/x", 0, "rule \"network.default\" ("},
      {"public.toml", "https://1.1.1.1/", 0, "public.toml:2:11), tunnelled"},
      {"public.toml", "tcp://any.test:22", 0, "tunnelled"},
      {"public.toml", "http://any.test:8080/", 0, "tunnelled"},
      {"public.toml", "http://any.test/", 0, "looked into"},
      {"public.toml", "https://api.test/v2/me", 1, "no rule of api.test allows that path"},
      {"public.toml", "http://10.9.9.9/", 1, "(private)"},
      {"public.toml", "http://169.254.169.254/", 1, "(metadata)"},
      {"audit.toml", "https://any.test/x", 0,
       "network.mode = \"audit\" lets it go, tunnelled; enforced, no rule names any.test\nthis "
       "would "
       "allow it:\n[[egress]]\nhost = \"any.test\"\n"},
      {"audit.toml", "https://api.test/v2/me", 0, "enforced, no rule of api.test allows that path"},
      {"audit.toml", "https://api.test/v1/me", 0, "rule \"api\""},
      {"audit.toml", "https://api.test/v1/admin/x", 1, "a [[deny]] rule forbids it"},
      {"audit.toml", "http://10.9.9.9/", 1, "(private)"}};
  for (const Beyond& row : rows) {
    Stage stage;
    EXPECT_EQ(stage.run({"why", row.url, "--policy", folder.at(row.file)}), row.status) << row.url;
    EXPECT_NE(stage.out().find(row.says), std::string::npos) << row.url << stage.out();
  }
  Stage stage;
  EXPECT_EQ(stage.run({"why", "https://any.test/", "--policy", folder.at("audit.toml"), "--json"}),
            0);
  EXPECT_NE(stage.out().find(R"("verdict":"audit")"), std::string::npos) << stage.out();
}

TEST(Why, AnswersAndStatuses_F103) {
  const Folder folder;
  folder.write("policy.toml", kPolicy);
  for (const Case& test : cases()) {
    Stage stage;
    const Words args = {"why",       test.url,   "--method",
                        test.method, "--policy", folder.at("policy.toml")};
    EXPECT_EQ(stage.run(args), test.status) << test.method << " " << test.url << stage.err();
    const std::string said = test.status == 2 ? stage.err() : stage.out();
    EXPECT_NE(said.find(test.says), std::string::npos)
        << test.method << " " << test.url << ": " << said;
  }
}

TEST(Why, JsonSaysTheSame) {
  const Folder folder;
  folder.write("policy.toml", kPolicy);
  Stage allowed;
  EXPECT_EQ(allowed.run({"why", "--json", "https://api.test/v1/me?x", "--policy",
                         folder.at("policy.toml")}),
            0);
  EXPECT_NE(allowed.out().find(R"("verdict":"allow")"), std::string::npos) << allowed.out();
  EXPECT_NE(allowed.out().find(R"("path":"/v1/me","credentials":["key"],"fix":null)"),
            std::string::npos)
      << allowed.out();
  Stage denied;
  EXPECT_EQ(denied.run({"why", "--json", "https://evil.test/"}), 1);
  EXPECT_NE(denied.out().find(R"("reason":"host")"), std::string::npos) << denied.out();
  EXPECT_NE(denied.out().find(R"("fix":"[[egress]]\nhost = \"evil.test\"\n")"), std::string::npos)
      << denied.out();
}

TEST(Why, TakesThePolicyFlags) {
  Stage stage;
  EXPECT_EQ(stage.run({"why", "https://a.test/", "--allow", "a.test"}), 0) << stage.err();
  EXPECT_NE(stage.out().find("(--allow a.test)"), std::string::npos) << stage.out();
}

TEST(PolicyShow, SaysWhereEachValueIsFrom) {
  const Folder folder;
  folder.write("policy.toml", "[limits]\nwall = \"5s\"\n");
  Stage stage;
  EXPECT_EQ(
      stage.run({"policy", "show", "--policy", folder.at("policy.toml"), "--allow", "*.github.io"}),
      0)
      << stage.err();
  EXPECT_NE(stage.out().find("wall = \"5s\"  # " + folder.at("policy.toml") + ":2:8\n"),
            std::string::npos)
      << stage.out();
  EXPECT_NE(stage.out().find("host = \"*.github.io\"  # --allow *.github.io\n"), std::string::npos);
  EXPECT_NE(stage.err().find("anyone can get a name under github.io"), std::string::npos)
      << stage.err();
  folder.write("again.toml", stage.out());
  Stage first;
  Stage second;
  EXPECT_EQ(first.run({"policy", "show", "--json", "--policy", folder.at("policy.toml"), "--allow",
                       "*.github.io"}),
            0);
  EXPECT_EQ(second.run({"policy", "show", "--json", "--policy", folder.at("again.toml")}), 0);
  EXPECT_EQ(first.out(), second.out());
}

// The gateway never connects to an address of the host itself, whatever a rule says.
TEST(Why, AnOwnAddressIsDeniedAsTheGatewayDeniesIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "a network namespace needs root";
  if (!std::filesystem::exists("/sbin/ip")) GTEST_SKIP() << "no ip(8)";
  Stage stage;
  const std::string open = stage.folder().write(
      "p.toml", "[[egress]]\nname = \"all\"\ncidr = \"0.0.0.0/0\"\nports = [8099]\n");
  const std::string closed = stage.folder().write("q.toml", "version = 1\n");
  const pid_t child = ::fork();
  if (child == 0) {  // with an address that is of the host's own in a namespace of its own
    const bool made =
        ::unshare(CLONE_NEWNET) == 0 &&
        // NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a fixed command
        std::system("/sbin/ip link set lo up && /sbin/ip addr add 9.9.9.1/32 dev lo") == 0;
    if (!made) ::_exit(77);
    const int allowed = stage.run({"why", "--policy", open, "http://9.9.9.2:8099/"});
    const int own = stage.run({"why", "--policy", open, "http://9.9.9.1:8099/"});
    const int unnamed = stage.run({"why", "--policy", closed, "http://9.9.9.1:8099/"});
    ::_exit(allowed * 9 + own * 3 + unnamed);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0 * 9 + 1 * 3 + 1) << stage.out() << stage.err();
  const std::string told = stage.out();
  EXPECT_EQ(base::split(told, '\n').size(), 4U) << told << "no fix is offered";
  EXPECT_NE(told.find("9.9.9.1 is never or not opened (own-address)"), std::string::npos) << told;
}

}  // namespace
