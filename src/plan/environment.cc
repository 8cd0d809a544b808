// The command's environment and what stands in it for credentials.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/parts.h"

namespace plan {
namespace {

std::map<std::string, std::string> own_variables(std::string_view run) {
  return {
      {"CERCO_RUN", std::string(run)},
      {"HOME", "/home/agent"},
      {"LANG", "C.UTF-8"},
      {"LOGNAME", "agent"},
      {"NPM_CONFIG_PREFIX", "/home/agent/.local"},
      {"PATH", "/home/agent/.local/bin:/usr/local/bin:/usr/bin:/bin"},
      {"SHELL", "/bin/sh"},
      {"TMPDIR", "/tmp"},
      {"USER", "agent"},
  };
}

base::Status set_variable(std::map<std::string, std::string>& env, const std::string& where,
                          const std::string& name, const std::string& value) {
  if (!is_variable_name(name)) {
    return base::bad_input(where, fmt::format("{:?} is no name of a variable", name),
                           "letters, digits and _, no digit first");
  }
  if (name == "CERCO_RUN")
    return base::bad_input(where, "CERCO_RUN is set by cerco", "another name");
  if (value.find('\0') != std::string::npos) {
    return base::bad_input(where, fmt::format("the value of {} holds a NUL byte", name), "text");
  }
  env[name] = value;
  return {};
}

}  // namespace

bool is_variable_name(std::string_view name) {
  const auto word = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 255 && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, word);
}

const std::vector<PlaceholderShape>& placeholder_shapes() {
  static const std::vector<PlaceholderShape> kShapes = {
      {"cerco_ph_", 26, {}},
      {"ghp_", 36, {"GH_TOKEN", "GITHUB_TOKEN", "GITHUB_PAT"}},
      {"glpat-", 26, {"GITLAB_TOKEN"}},
      {"sk-", 48, {"OPENAI_API_KEY"}},
      {"sk-ant-api03-", 95, {"ANTHROPIC_API_KEY"}},
      {"AKIA", 26, {"AWS_ACCESS_KEY_ID"}},
      {"npm_", 36, {"NPM_TOKEN", "NODE_AUTH_TOKEN"}},
      {"pypi-", 160, {"TWINE_PASSWORD", "PYPI_TOKEN", "UV_PUBLISH_TOKEN"}},
      {"hf_", 34, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}},
      {"xoxb-", 50, {"SLACK_TOKEN", "SLACK_BOT_TOKEN"}},
      {"sk_test_", 99, {"STRIPE_API_KEY", "STRIPE_SECRET_KEY"}},
  };
  return kShapes;
}

namespace {

// By the first variable that is known; the secret itself plays no part, so that nothing of it comes
// in.
std::string placeholder_for(const policy::Credential& credential, const std::string& field,
                            const std::function<std::string(std::size_t)>& random) {
  const auto& shapes = placeholder_shapes();
  for (const auto& [variable, of] : credential.env) {
    for (const PlaceholderShape& shape : shapes) {
      if (of != field || std::ranges::find(shape.variables, variable) == shape.variables.end()) {
        continue;
      }
      std::string text = random(shape.random);
      if (shape.prefix == "AKIA") text = base::to_upper(text);  // as botocore expects it
      return std::string(shape.prefix) + text;
    }
  }
  return std::string(shapes[0].prefix) + random(shapes[0].random);
}

}  // namespace

std::vector<Placeholder> make_placeholders(const policy::Policy& policy,
                                           const std::function<std::string(std::size_t)>& random) {
  std::vector<Placeholder> placeholders;
  for (const auto& credential : policy.credentials) {
    std::set<std::string> fields;
    for (const auto& [variable, field] : credential.env) fields.insert(field);
    for (const auto& field : fields) {
      placeholders.push_back({credential.name, field, placeholder_for(credential, field, random)});
    }
  }
  return placeholders;
}

base::Result<std::map<std::string, std::string>> environment_for(
    const Plan& plan, const std::map<std::string, std::string>& caller) {
  const policy::Environment& wanted = plan.policy.environment;
  const bool isolate = plan.tier == policy::Tier::isolate;
  std::map<std::string, std::string> env = own_variables(plan.run);
  // A script has no home, no programs and no files: it gets what the policy gives it.
  if (isolate) env = {{"CERCO_RUN", plan.run}};
  if (plan.terminates && !isolate) env.merge(trust_variables());
  for (const auto& name : wanted.pass) {
    const auto value = caller.find(name);
    if (value != caller.end()) TRY(set_variable(env, "environment.pass", name, value->second));
  }
  for (const auto& [name, value] : wanted.set)
    TRY(set_variable(env, "environment.set", name, value));
  std::set<std::string> taken;
  for (const auto& credential : plan.policy.credentials) {
    for (const auto& [name, field] : credential.env) {
      const std::string where = fmt::format("credential {:?}", credential.name);
      const bool clash = wanted.set.contains(name) ||
                         std::ranges::find(wanted.pass, name) != wanted.pass.end() ||
                         !taken.insert(name).second;
      if (clash) {
        return base::bad_input(where, fmt::format("the variable {} is set twice", name),
                               "one source for each variable");
      }
      const auto placeholder =
          std::ranges::find_if(plan.placeholders, [&](const Placeholder& candidate) {
            return candidate.credential == credential.name && candidate.field == field;
          });
      if (placeholder == plan.placeholders.end()) {
        return base::bad_input(where, fmt::format("no placeholder for field {:?}", field),
                               "one for each field");
      }
      TRY(set_variable(env, where, name, placeholder->value));
    }
  }
  return env;
}

}  // namespace plan
