// The isolate tier: a container that holds a V8 engine, one script and nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::uint64_t kLeastFiles = 1024;  // the engine's program lies above the first thousand
constexpr std::uint64_t kOldEngine = 60;     // days; V8 is mended every week or two

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::vector<Lack> lacks_of_engine(const HostFacts& host) {
  std::vector<Lack> lacks;
  if (!host.engine.files.contains(std::string(kEngineProgram))) {
    lacks.push_back({fmt::format("the V8 engine workerd ({}/engine/workerd)", host.helper_dir),
                     fmt::format("tools/install-engine {}/engine", host.helper_dir)});
  } else if (!host.engine.lacking.empty()) {
    lacks.push_back({"libraries of the V8 engine workerd: " + base::join(host.engine.lacking, ", "),
                     "use a host with glibc 2.35 or later"});
  }
  if (!host.engine.files.contains(std::string(kEngineStarter))) {
    lacks.push_back({"cerco's own program cerco-isolate", "install it beside cerco"});
  }
  return lacks;
}

base::Status refuse_for_isolate(const policy::Policy& policy, bool session) {
  const auto refuse_key = [](std::string key, const std::string& what, std::string expected) {
    return base::bad_input(std::move(key), what + " in the isolate tier", std::move(expected));
  };
  if (session) {
    return refuse_key("start", "a session takes commands, and there are none",
                      "cerco run --tier isolate -- SCRIPT, or another tier");
  }
  if (policy.isolation.seccomp != policy::SeccompProfile::standard) {
    return refuse_key("isolation.seccomp", "the engine has a filter of its own",
                      "\"default\", or another tier");
  }
  if (!policy.filesystem.read_only.empty()) {
    return refuse_key("filesystem.read_only", "a script has no files",
                      "hand it over on standard input, or use another tier");
  }
  if (!policy.filesystem.canaries.empty()) {
    return refuse_key("filesystem.canaries", "there is no home to plant them in",
                      "none, or another tier");
  }
  if (policy.limits.files < kLeastFiles) {
    return refuse_key("limits.files", fmt::format("{} is too few", policy.limits.files),
                      fmt::format("at least {}", kLeastFiles));
  }
  return {};
}

policy::Limits limits_for(policy::Tier tier, policy::Limits limits) {
  if (tier != policy::Tier::isolate) return limits;
  limits.disk = kIsolateDisk;
  limits.inodes = kIsolateInodes;
  return limits;
}

bool is_engine_bind(const Plan& plan, const BindReadOnly& bind) {
  if (plan.tier != policy::Tier::isolate) return false;
  if (bind.target == kEngineProgram) return bind.source == plan.helper_dir + "/engine/workerd";
  if (bind.target == kEngineStarter) return bind.source == plan.helper_dir + "/cerco-isolate";
  static constexpr std::array<std::string_view, 3> kFrom = {"/usr", "/lib", "/lib64"};
  const std::string folder = parent_of(bind.target);
  return (folder == "/lib" || folder == "/lib64") &&
         std::ranges::any_of(kFrom, [&](auto from) { return is_within(bind.source, from); }) &&
         file_name(bind.source) == file_name(bind.target);
}

std::string engine_text(const Engine& engine) {
  if (engine.day.empty()) return fmt::format("workerd {}", engine.version);
  return fmt::format("workerd {} of {}, {} days old", engine.version, engine.day, engine.days_old);
}

std::vector<std::string> engine_risks(const Engine& engine) {
  if (!engine.day.empty() && engine.days_old <= kOldEngine) return {};
  return {
      fmt::format("old-engine: {}; V8 is mended every week or two, and what was mended since is "
                  "known to everyone: tools/install-engine brings the release that cerco names",
                  engine_text(engine))};
}

}  // namespace plan
