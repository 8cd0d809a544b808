// Where the policy of a run is read.
#include "cli/run_policy.h"

#include <fmt/format.h>

#include "journal/journal.h"
#include "journal/members.h"

namespace cli {
namespace {

constexpr std::size_t kMostPolicy = std::size_t{4} << 20;

// What the journal says last of it.
base::Result<policy::Policy> policy_on_record(const World& world, const std::string& run) {
  std::string text;
  std::uint64_t revision = 1;
  TRY(journal::read(world.state_dir + "/journal", run, {}, [&](std::string_view line) {
    const auto members = journal::Members::parse_object(line);
    if (!members) return;
    const std::string type = members->text("type");
    if (type != "run.planned" && type != "policy.changed") return;
    text = members->raw("policy");
    revision = members->number("revision").value_or(1);
  }));
  if (text.empty()) {
    return base::fail(base::Kind::not_found, run, "its journal names no policy", {});
  }
  policy::Effective effective = TRY(policy::parse(text, "run " + run, {}, {}));
  effective.policy.revision = revision;
  return std::move(effective.policy);
}

}  // namespace

base::Result<policy::Policy> policy_in_force(const ipc::Channel& channel) {
  TRY(ask(channel, supervisor::ShowPolicy{}, {}));
  const auto message = TRY_IN("supervisor", channel.receive());
  if (!message) return base::fail(base::Kind::peer, "supervisor", "ended: the run is gone", {});
  const auto answer = TRY(base::decode<supervisor::ToClient>(message->bytes, "supervisor"));
  if (!std::holds_alternative<supervisor::PolicyInForce>(answer) || message->fds.size() != 1) {
    return base::fail(base::Kind::peer, "supervisor", "answered something else", {});
  }
  const std::string bytes = TRY(os::read_all(message->fds[0].get(), kMostPolicy, "policy"));
  return base::decode<policy::Policy>(bytes, "policy");
}

base::Result<RunPolicy> policy_of_run(const World& world, const std::string& run) {
  if (const auto reached = reach(world, run)) {
    if (auto policy = policy_in_force(reached->channel)) {
      return RunPolicy{reached->run.id, std::move(*policy)};
    }
  }
  std::string id = TRY(find_journal(world, run));
  policy::Policy policy = TRY(policy_on_record(world, id));
  return RunPolicy{std::move(id), std::move(policy)};
}

base::Result<policy::Effective> effective_of_run(const World& world, const std::string& run) {
  RunPolicy found = TRY(policy_of_run(world, run));
  const std::string origin = fmt::format("run {}, policy {}", found.run, found.policy.revision);
  // Every key path, from a reading of the policy's own text.
  policy::Effective effective =
      TRY(policy::parse(policy::to_json(found.policy), origin, {}, policy::HostSize{}));
  for (auto& [path, from] : effective.origins) from = origin;
  effective.policy = std::move(found.policy);
  effective.warnings.clear();
  return effective;
}

}  // namespace cli
