// The plan for people and as JSON.
#include <fmt/format.h>

#include "plan/parts.h"

namespace plan {
namespace {

void section(std::string& out, std::string_view title, const std::vector<std::string>& lines) {
  out += fmt::format("\n{}\n", title);
  for (const auto& line : lines) out += fmt::format("  {}\n", base::printable(line));
}

std::string steps_json(const std::vector<Step>& steps) {
  std::vector<std::string> items;
  for (const Step& step : steps) {
    const std::string line = describe(step);
    const auto space = line.find(' ');
    base::JsonObject item;
    item.add("step", line.substr(0, space));
    item.add("what", space == std::string::npos ? "" : line.substr(space + 1));
    items.push_back(item.text());
  }
  return base::json_array(items);
}

std::string strings_json(const std::map<std::string, std::string>& members) {
  base::JsonObject object;
  for (const auto& [key, value] : members) object.add(key, value);
  return object.text();
}

std::string cgroup_json(const CgroupPlan& cgroup) {
  std::vector<std::string> items;
  for (const auto& group : cgroup.groups) {
    base::JsonObject item;
    item.add("controller", group.controller);
    item.add("version", group.where.kind == CgroupKind::v1 ? 1 : 2);
    item.add("below", group.where.path);
    item.raw("limits", strings_json({group.limits.begin(), group.limits.end()}));
    items.push_back(item.text());
  }
  return base::json_array(items);
}

std::string radius_json(const BlastRadius& radius) {
  base::JsonObject object;
  object.raw("reach", base::json_strings(radius.reach));
  object.raw("credentials", base::json_strings(radius.credentials));
  object.raw("reads", base::json_strings(radius.reads));
  object.raw("writes", base::json_strings(radius.writes));
  object.add("kernel", radius.kernel);
  object.raw("use", base::json_strings(radius.use));
  object.add("lifetime", radius.lifetime);
  object.add("widest", radius.widest);
  object.add("advice", radius.advice);
  return object.text();
}

std::string command_json(const Plan& plan) {
  base::JsonObject object;
  object.raw("argv", base::json_strings(plan.command.argv));
  object.add("cwd", plan.command.cwd);
  object.raw("env", strings_json(plan.command.env));
  return object.text();
}

}  // namespace

std::string explain(const Plan& plan) {
  const BlastRadius radius = blast_radius(plan);
  std::string out = fmt::format("Tier {}, task {}, policy {}\n", policy::to_string(plan.tier),
                                base::printable(plan.policy.task), plan.policy_sha256);
  section(out, "If everything inside were hostile, it could reach", radius.reach);
  section(out, "with these credentials", radius.credentials);
  section(out, "It could read", radius.reads);
  section(out, "It could write", radius.writes);
  if (!plan.engine.empty()) {
    section(out, "The engine",
            {plan.engine,
             "V8 alone is no boundary: what holds a script that broke it is the process "
             "around it, which can start nothing, write nothing and signal nobody"});
  }
  section(out, "The kernel it stands on", {radius.kernel});
  section(out, "It could use", radius.use);
  section(out, "How long", {radius.lifetime});
  section(out, "The widest way out that remains", {radius.widest});
  section(out, "Is the tier proportionate?", {radius.advice});
  std::vector<std::string> steps;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    steps.push_back(fmt::format("{:2} {}", i + 1, describe(plan.steps[i])));
  }
  section(out, "What is done, in this order", steps);
  return out;
}

std::string to_json(const Plan& plan) {
  std::vector<std::string> protections;
  for (const Protection protection : plan.protections)
    protections.emplace_back(to_string(protection));
  base::JsonObject object;
  object.add("version", 1);
  object.add("tier", policy::to_string(plan.tier));
  if (!plan.engine.empty()) object.add("engine", plan.engine);
  object.add("rights", to_string(plan.rights));
  object.raw("below_advice", base::json_strings(plan.below_advice));
  object.raw("not_accepted", base::json_strings(not_accepted(plan)));
  object.raw("unheld", base::json_strings(plan.unheld));
  object.raw("blast_radius", radius_json(blast_radius(plan)));
  object.raw("protections", base::json_strings(protections));
  object.raw("cgroup", cgroup_json(plan.cgroup));
  object.raw("steps", steps_json(plan.steps));
  object.raw("command", command_json(plan));
  object.raw("resolvers", base::json_strings(plan.resolvers));
  object.add("terminates", plan.terminates);
  object.add("policy_sha256", plan.policy_sha256);
  object.raw("policy", policy::to_json(plan.policy));
  return object.text();
}

}  // namespace plan
