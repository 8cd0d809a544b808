// `cerco credential test NAME`: one request with the placeholder through a real run, and what
// became of it (the self-test of an injection that is configured and yet not active).
#include <fmt/format.h>

#include <algorithm>

#include "cli/caught_run.h"
#include "cli/cli.h"
#include "cli/credential_test_request.h"
#include "journal/journal.h"
#include "os/os.h"

namespace cli {
namespace {

constexpr std::size_t kMostText = 64 * 1024;

base::Result<policy::Credential> find_credential(const policy::Policy& policy,
                                                 const std::string& name) {
  const auto found = std::ranges::find(policy.credentials, name, &policy::Credential::name);
  if (found != policy.credentials.end()) return *found;
  std::vector<std::string_view> names;
  for (const auto& one : policy.credentials) names.push_back(one.name);
  const std::string near = base::closest(name, names);
  return base::bad_input("credential test",
                         "the policy has no credential `" + base::printable(name) + "`" +
                             (near.empty() ? "" : " (did you mean " + near + ")"),
                         "expected the name of one, with --policy FILE");
}

base::Result<Caught> try_it(const World& world, const Parsed& parsed, const TestRequest& request) {
  Parsed command;
  for (const auto& [name, value] : parsed.flags) {
    if (name != "--url" && name != "--method" && name != "--json") {
      command.flags.emplace_back(name, value);
    }
  }
  command.rest = request.argv;
  return caught_run(world, std::move(command), kMostText);
}

}  // namespace

base::Result<int> credential_test(const World& world, const Parsed& parsed) {
  TRY(want_words("credential test", parsed, 1, "NAME"));
  const plan::HostFacts host = TRY(host_facts(world));
  const policy::Effective effective = TRY(load_policy(world, parsed, host.size));
  const auto credential = TRY(find_credential(effective.policy, parsed.words[0]));
  const TestRequest request = TRY(test_request(credential, parsed.value("--method").value_or(""),
                                               parsed.value("--url").value_or("")));
  const Caught tried = TRY(try_it(world, parsed, request));
  std::uint64_t uses = 0;
  if (!tried.run.empty()) {
    const auto found = journal::credentials(world.state_dir + "/journal", tried.run);
    if (found) {
      for (const auto& one : found->credentials) uses += one.name == credential.name ? one.uses : 0;
    }
  }
  const bool answered =
      tried.status == 0 && (tried.out.starts_with('2') || tried.out.starts_with('3'));
  const bool good = uses > 0 && answered;
  const std::string what = uses == 0  ? "the secret was not sent"
                           : answered ? "the secret was sent"
                                      : "the secret was sent, and not taken";
  if (parsed.has("--json")) {
    print(world, base::JsonObject()
                         .add("credential", credential.name)
                         .add("ok", good)
                         .add("method", request.method)
                         .add("url", request.url)
                         .add("uses", uses)
                         .add("status", tried.out)
                         .add("run", tried.run)
                         .text() +
                     "\n");
  } else {
    print(world, fmt::format("{}: {} {}: {}; status {}; run {}\n", credential.name, request.method,
                             base::printable(request.url), what,
                             tried.out.empty() ? "none" : base::printable(tried.out),
                             tried.run.empty() ? "none" : tried.run));
  }
  if (!good) print_error(world, tried.errors);
  return good ? 0 : 1;
}

}  // namespace cli
