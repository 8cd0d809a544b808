// The supervisor's own check of a Plan that it was handed, before the first privileged act.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::size_t kMostWords = 128ULL << 10;  // of the command, together (MAX_ARG_STRLEN)
constexpr std::uint64_t kMostFiles = 1ULL << 20;  // fs.nr_open

bool is_run_id(std::string_view run) {
  return run.size() == 12 && std::ranges::all_of(run, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
         });
}

bool is_label(std::string_view name) {
  const auto alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return name.size() <= 64 && alnum(name[0]) && !is_run_id(name) &&
         std::ranges::all_of(name,
                             [&](char c) { return alnum(c) || c == '_' || c == '.' || c == '-'; });
}

base::Status check_head(const Plan& plan) {
  if (!is_run_id(plan.run))
    return refuse(fmt::format("run id {:?}", plan.run), "12 characters of a-z2-7");
  if (!plan.name.empty() && !is_label(plan.name)) {
    return refuse(fmt::format("name {:?}", plan.name),
                  "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}, and not of the form of a run id");
  }
  TRY(refuse_unbuilt(plan.policy));
  const bool isolate = plan.tier == policy::Tier::isolate;
  if (isolate != (plan.policy.isolation.tier == policy::Tier::isolate)) {
    return refuse(fmt::format("tier {}", policy::to_string(plan.tier)), "that of its policy");
  }
  if (isolate) TRY(refuse_for_isolate(plan.policy, plan.session));
  const bool gvisor = plan.tier == policy::Tier::gvisor;
  if ((find_step<RunGvisor>(plan) != nullptr) != gvisor) {
    return refuse(fmt::format("tier {} and its steps differ", policy::to_string(plan.tier)),
                  "run_gvisor in tier gvisor alone");
  }
  if (plan.policy_sha256 != base::sha256(policy::to_json(plan.policy))) {
    return refuse("policy_sha256 is not that of its policy", "the plan as make gives it");
  }
  for (const auto* folder : {&plan.state_dir, &plan.helper_dir}) {
    if (!is_clean_path(*folder))
      return refuse(fmt::format("folder {:?}", *folder), "an absolute, clean path");
  }
  if (plan.terminates != policy::terminates(plan.policy)) {
    return refuse("`terminates` does not follow from the policy", "the plan as make gives it");
  }
  return {};
}

base::Status check_unheld(const Plan& plan) {
  const auto& allowed = plan.policy.limits.not_required;
  for (const auto& limit : plan.unheld) {
    if (std::ranges::find(allowed, limit) == allowed.end()) {
      return refuse(fmt::format("limit {:?} is not held", limit),
                    "it is named in limits.not_required");
    }
  }
  return {};
}

base::Status check_command(const Plan& plan) {
  const Command& command = plan.command;
  if (plan.session && !command.argv.empty()) return refuse("a command of a session", "none yet");
  if (!plan.session && (command.argv.empty() || command.argv[0].empty())) {
    return refuse("no command", "one");
  }
  if (plan.tier == policy::Tier::isolate && command.argv.front() != kEngineStarter) {
    return refuse(fmt::format("command {:?} in an isolate", command.argv.front()),
                  std::string(kEngineStarter));
  }
  if (!is_clean_path(command.cwd))
    return refuse(fmt::format("working folder {:?}", command.cwd), "an absolute, clean path");
  std::size_t size = 0;
  const auto is_word = [&](std::string_view text) {
    size += text.size() + 1;
    return text.find('\0') == std::string_view::npos;
  };
  bool good = std::ranges::all_of(command.argv, is_word);
  for (const auto& [name, value] : command.env)
    good = good && is_variable_name(name) && is_word(value) && is_word(name);
  if (!good)
    return refuse("the command or its environment holds a NUL byte or a name that is none", "text");
  if (size > 2 * kMostWords)
    return refuse("command and environment are too long", "at most 256 KiB");
  if (plan.policy.limits.files > kMostFiles) {
    return refuse(fmt::format("limits.files {}", plan.policy.limits.files), "at most 1048576");
  }
  return {};
}

base::Status check_placeholders(const Plan& plan) {
  std::set<std::string> seen;
  for (const auto& placeholder : plan.placeholders) {
    const std::string& value = placeholder.value;
    const bool formed =
        std::ranges::any_of(placeholder_shapes(), [&](const PlaceholderShape& shape) {
          return value.starts_with(shape.prefix) &&
                 value.size() == shape.prefix.size() + shape.random &&
                 std::ranges::all_of(value.substr(shape.prefix.size()), [](char c) {
                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '2' && c <= '7');
                 });
        });
    if (!formed || !seen.insert(value).second) {
      return refuse(fmt::format("placeholder of {:?}", placeholder.credential),
                    "a known beginning and 26 or more random characters");
    }
  }
  for (const auto& credential : plan.policy.credentials) {
    for (const auto& [variable, field] : credential.env) {
      const auto value = plan.command.env.find(variable);
      if (value == plan.command.env.end() || !seen.contains(value->second)) {
        return refuse(fmt::format("{} holds no placeholder", variable),
                      "the placeholder of its credential");
      }
    }
  }
  return {};
}

base::Status check_cgroup(const Plan& plan) {
  static constexpr std::array<std::string_view, 8> kControllers = {
      "memory", "pids", "cpu", "cpuacct", "freezer", "unified", "cpuset", "io"};
  for (const auto& group : plan.cgroup.groups) {
    if (std::ranges::find(kControllers, group.controller) == kControllers.end() ||
        !is_clean_path(group.where.path)) {
      return refuse(fmt::format("cgroup {:?} at {:?}", group.controller, group.where.path),
                    "a known controller");
    }
    const std::string prefix = group.controller + ".";
    const std::string_view more = group.controller == "io" ? " :=\n" : " ";
    for (const auto& [file, text] : group.limits) {
      const bool good =
          file.starts_with(prefix) && file.find('/') == std::string::npos && !text.empty() &&
          std::ranges::all_of(text, [&](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || more.contains(c);
          });
      if (!good)
        return refuse(fmt::format("cgroup file {:?}", file), "a limit of its own controller");
    }
  }
  return {};
}

}  // namespace

base::Status verify(const Plan& plan) {
  TRY(check_head(plan));
  TRY(check_unheld(plan));
  TRY(check_order(plan));
  TRY(check_protections(plan));
  TRY(check_tree(plan));
  TRY(check_command(plan));
  TRY(check_placeholders(plan));
  TRY(check_canaries(plan));
  TRY(check_machine(plan));
  return check_cgroup(plan);
}

}  // namespace plan
