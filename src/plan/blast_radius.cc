// What could be reached if everything inside were hostile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {
namespace {

using policy::kUnlimited;
using policy::Policy;

std::string ports_text(const std::vector<std::uint16_t>& ports) {
  return ports.size() == 1 ? fmt::format("{}", ports[0])
                           : fmt::format("{{{}}}", fmt::join(ports, ","));
}

// What one rule opens with one treatment: ports of it that are looked into alike.
struct Way {
  const policy::Egress* rule = nullptr;
  std::vector<std::uint16_t> ports;
  policy::Looked looked = policy::Looked::none;
};

std::vector<Way> ways_of(const Policy& policy) {
  std::vector<Way> ways;
  for (const auto& rule : policy.egress) {
    const std::size_t first = ways.size();
    if (rule.ports.empty()) ways.push_back({&rule, {}, policy::Looked::none});
    for (const std::uint16_t port : rule.ports) {
      const policy::Looked looked = policy::looked_into(policy, rule, port);
      const auto like = std::find_if(ways.begin() + static_cast<std::ptrdiff_t>(first), ways.end(),
                                     [&](const Way& way) { return way.looked == looked; });
      if (like != ways.end()) {
        like->ports.push_back(port);
      } else {
        ways.push_back({&rule, {port}, looked});
      }
    }
  }
  return ways;
}

std::string target_text(const Way& way) {
  if (!way.rule->tcp.empty()) return way.rule->tcp;
  const std::string& place = way.rule->host.empty() ? way.rule->cidr : way.rule->host;
  return fmt::format("{}:{}", place, ports_text(way.ports));
}

std::vector<const policy::Credential*> credentials_at(const Policy& policy, const Way& way) {
  policy::Egress there = *way.rule;
  there.ports = way.ports;
  std::vector<const policy::Credential*> found;
  for (const auto& credential : policy.credentials) {
    if (bound_to(credential, there)) found.push_back(&credential);
  }
  return found;
}

bool is_inspected(const Way& way) {
  return way.looked == policy::Looked::all;
}

bool only_reads(const policy::Egress& rule) {
  static constexpr std::array<std::string_view, 3> kReads = {"GET", "HEAD", "OPTIONS"};
  return !rule.methods.empty() && std::ranges::all_of(rule.methods, [](const auto& method) {
    return std::ranges::find(kReads, method) != kReads.end();
  });
}

std::string requests_text(const policy::Egress& rule) {
  std::string text = rule.methods.empty() ? "any method" : base::join(rule.methods, ", ");
  text += rule.paths.empty() ? " on any path" : " on " + base::join(rule.paths, ", ");
  return text;
}

std::string treatment_text(const Way& way) {
  switch (way.looked) {
    case policy::Looked::all:
      return fmt::format(": {}, each request looked at", requests_text(*way.rule));
    case policy::Looked::some:
      return ": any bytes, in a tunnel that is not looked into but for some of its names";
    case policy::Looked::none:
      break;
  }
  return ": any bytes, in a tunnel that is not looked into";
}

std::string reach_line(const Way& way) {
  const policy::Egress& rule = *way.rule;
  if (!rule.preset.empty()) return "the index of " + rule.preset;
  std::string line = target_text(way);
  if (rule.host == policy::kHostName) line += " (this host's own loopback)";
  line += treatment_text(way);
  std::vector<std::string> bounds;
  if (rule.max_body != kUnlimited) bounds.push_back(policy::size_text(rule.max_body) + " a body");
  if (rule.max_requests != kUnlimited)
    bounds.push_back(fmt::format("{} requests", rule.max_requests));
  if (rule.max_up != kUnlimited) bounds.push_back(policy::size_text(rule.max_up) + " up");
  if (rule.max_down != kUnlimited) bounds.push_back(policy::size_text(rule.max_down) + " down");
  if (!bounds.empty()) line += fmt::format(", at most {}", fmt::join(bounds, ", "));
  if (!rule.addresses.empty()) {
    line += fmt::format("; its names may lead to {}", fmt::join(rule.addresses, ", "));
  }
  return fmt::format("{} (rule {})", line, rule.name);
}

std::string never_line(const policy::Deny& deny) {
  const std::string methods = deny.methods.empty() ? "" : base::join(deny.methods, ", ") + " at ";
  return fmt::format("never {}{}{}{}", methods, deny.host.empty() ? deny.cidr : deny.host,
                     deny.ports.empty() ? "" : ":" + ports_text(deny.ports),
                     deny.paths.empty() ? "" : " on " + base::join(deny.paths, ", "));
}

bool reach_is_nothing(const Policy& policy) {
  return policy.egress.empty() && !policy::reaches_beyond_rules(policy);
}

std::vector<std::string> reach_of(const Policy& policy) {
  std::vector<std::string> reach;
  if (policy.network.mode == policy::NetworkMode::audit) {
    reach.emplace_back(
        "NOTHING IS ENFORCED (network.mode = \"audit\"): the whole public internet, whatever the "
        "rules say; what they would refuse is let through and recorded");
  }
  if (policy.network.fallback == policy::NetworkDefault::open_public) {
    reach.emplace_back(
        "the whole public internet (network.default = \"public\"): any name and any public "
        "address, any bytes; plain HTTP on port 80 looked at");
  }
  for (const Way& way : ways_of(policy)) reach.push_back(reach_line(way));
  if (reach.empty()) reach.emplace_back("nothing: no rule allows any destination");
  for (const auto& deny : policy.deny) reach.push_back(never_line(deny));
  if (reach_is_nothing(policy)) return reach;
  if (const auto& proxy = policy.network.upstream_proxy; !proxy.url.empty()) {
    reach.push_back(fmt::format("by way of the proxy {}{}{}", proxy.url,
                                proxy.no_proxy.empty() ? "" : ", but for ",
                                base::join(proxy.no_proxy, ", ")));
  }
  if (policy::reaches_beyond_rules(policy)) {
    reach.emplace_back(
        "names of hosts that are connected to leave in DNS queries, whatever they say");
  } else {
    reach.emplace_back("names that no rule allows do not resolve, and no query for them leaves");
  }
  reach.emplace_back(
      "private, link-local and metadata addresses stay closed unless a rule opens them");
  return reach;
}

std::string credential_line(const policy::Credential& credential) {
  const std::string ports = credential.ports.empty() ? "" : ":" + ports_text(credential.ports);
  const std::string methods =
      credential.methods.empty() ? "any method" : base::join(credential.methods, ", ");
  const std::string paths =
      credential.paths.empty() ? "any path" : base::join(credential.paths, ", ");
  const std::string uses = credential.uses == kUnlimited ? "as often as it likes"
                                                         : fmt::format("{} times", credential.uses);
  const std::string lifetime = credential.lifetime_ms
                                   ? "for " + policy::duration_text(*credential.lifetime_ms)
                                   : "while the run lasts";
  const std::string held = credential.env.empty() ? "" : "; inside there is only a placeholder";
  return fmt::format("{}: {} at {}{} on {}, {}, {}{}", credential.name, methods,
                     fmt::join(credential.hosts, ", "), ports, paths, uses, lifetime, held);
}

std::vector<std::string> credentials_of(const Policy& policy) {
  std::vector<std::string> lines;
  for (const auto& credential : policy.credentials) lines.push_back(credential_line(credential));
  if (lines.empty()) lines.emplace_back("none");
  return lines;
}

std::vector<std::string> reads_of(const Plan& plan) {
  std::vector<std::string> base;
  std::vector<std::string> asked;
  bool etc = false;
  const auto& named = plan.policy.filesystem.read_only;
  for (const Step& step : plan.steps) {
    const std::string* target = nullptr;
    if (const auto* bind = std::get_if<BindReadOnly>(&step)) target = &bind->target;
    if (const auto* layer = std::get_if<LayScratch>(&step)) target = &layer->target;
    if (target == nullptr) continue;
    if (std::ranges::find(named, *target) != named.end()) {
      asked.push_back(*target);
    } else if (is_within(*target, "/etc")) {
      etc = true;
    } else {
      base.push_back(*target);
    }
  }
  if (plan.tier == policy::Tier::isolate) {
    return {"the script itself, its environment and standard input",
            fmt::format("of this host: the engine and its libraries ({}){}", fmt::join(base, ", "),
                        etc ? ", and the authorities that it trusts" : "")};
  }
  const policy::Base& from = plan.policy.filesystem.base;
  const std::string whose =
      from.kind == policy::BaseKind::dir ? "the base folder " + from.name : "this host";
  std::vector<std::string> lines = {
      fmt::format("{} of {}, as far as every user of it may", fmt::join(base, ", "), whose),
      etc ? "an /etc of its own with the host's tool settings, no account or key"
          : "an /etc of its own"};
  if (plan.machine && from.kind == policy::BaseKind::dir) {
    lines.push_back(fmt::format(
        "whoever takes the guest's kernel over: all else below {} that is open to every user",
        from.name));
  }
  for (const auto& path : asked)
    lines.push_back(fmt::format("{} of this host (filesystem.read_only)", path));
  lines.emplace_back(
      "nothing below /home, /root, /var, /run, /srv or /opt of this host but what is named here");
  return lines;
}

std::vector<std::string> writes_of(const Plan& plan) {
  if (plan.tier == policy::Tier::isolate) return {"standard output and error, and no file"};
  const std::string_view kind = plan.rights == Rights::root ? "disk" : "disk in memory";
  const bool scratch = plan.policy.filesystem.root == policy::RootMode::scratch;
  return {fmt::format("{}: one {} of {} that is gone after the run",
                      scratch ? "everything inside, /usr and /etc too"
                              : fmt::format("{}", fmt::join(disk_targets(), ", ")),
                      kind, policy::size_text(plan.policy.limits.disk)),
          "/dev/shm, which counts as memory", "nothing of this host"};
}

std::vector<std::string> use_of(const Plan& plan) {
  const policy::Limits& limits = plan.policy.limits;
  constexpr double kMilli = 1000.0;
  const std::string cpus =
      limits.cpus_milli == kUnlimited
          ? "all processors"
          : fmt::format("{} processors", static_cast<double>(limits.cpus_milli) / kMilli);
  std::vector<std::string> use = {
      cpus,
      fmt::format("memory {}, swap {}", policy::size_text(limits.memory),
                  policy::size_text(limits.swap)),
      limits.processes == kUnlimited ? "any number of processes"
                                     : fmt::format("{} processes and threads", limits.processes),
      fmt::format("disk {}, {} files", policy::size_text(limits.disk), limits.inodes),
      fmt::format("{} open files a process", limits.files),
      fmt::format("output {}", policy::size_text(limits.output))};
  if (limits.cpu_ms != kUnlimited)
    use.push_back("processor time " + policy::duration_text(limits.cpu_ms));
  for (const auto& limit : plan.unheld)
    use.push_back(fmt::format("NOT HELD on this host: {}", limit));
  return use;
}

// --- The widest way out --------------------------------------------------------------------------

// How much could leave through a rule: bytes that nobody reads before requests that are looked at,
// many names before one; whoever may act with a credential before all of that.
int width(const Policy& policy, const Way& way) {
  const policy::Egress& rule = *way.rule;
  int width = 10;
  if (!is_inspected(way)) {
    width = 60;
  } else if (!only_reads(rule)) {
    width = 30;
  }
  if (!rule.cidr.empty()) {
    const auto range = policy::parse_cidr(rule.cidr);
    const bool open = range && policy::judge(range->address).guard == policy::Guard::open;
    width += open ? 25 : 5;
  }
  if (rule.host.starts_with("**.")) width += 20;
  if (rule.host.starts_with("*.")) width += 15;
  if (!rule.paths.empty() || rule.max_body != kUnlimited || rule.max_requests != kUnlimited)
    width -= 2;
  if (!credentials_at(policy, way).empty()) width += 100;
  return width;
}

std::string way_text(const Policy& policy, const Way& way) {
  const policy::Egress& rule = *way.rule;
  std::vector<std::string> names;
  for (const auto* credential : credentials_at(policy, way)) names.push_back(credential->name);
  const std::string with =
      names.empty() ? "" : fmt::format(", made with credential {}", fmt::join(names, ", "));
  const std::string at = fmt::format("{} (rule {})", target_text(way), rule.name);
  if (!is_inspected(way)) {
    return fmt::format("{}: any bytes, unread, to whoever answers there{}", at,
                       names.empty() ? "" : "; requests" + with.substr(1));
  }
  const std::string_view what = only_reads(rule)
                                    ? "what fits into the lines, headers and bodies of requests"
                                    : "what fits into requests";
  return fmt::format("{}: {} ({}){}", at, what, requests_text(rule), with);
}

std::string widest_of(const Policy& policy) {
  const std::vector<Way> ways = ways_of(policy);
  const auto widest =
      std::ranges::max_element(ways, {}, [&](const Way& way) { return width(policy, way); });
  const bool credential = widest != ways.end() && !credentials_at(policy, *widest).empty();
  if (policy::reaches_beyond_rules(policy) && !credential) {
    return "the whole public internet: any bytes, unread, to whoever answers there";
  }
  if (widest == ways.end())
    return "none over the network; the kernel and the output of the command remain";
  return way_text(policy, *widest);
}

std::string advice_of(const Plan& plan) {
  if (plan.below_advice.empty())
    return fmt::format("proportionate: {} is enough for this code", policy::to_string(plan.tier));
  const std::string accepted = not_accepted(plan).empty() ? " (accepted in isolation.accept)" : "";
  return fmt::format("below the advice{}: {}", accepted, fmt::join(plan.below_advice, "; "));
}

std::string kernel_of(const Plan& plan) {
  if (const auto* gvisor = find_step<RunGvisor>(plan)) {
    return fmt::format(
        "gVisor's (runsc {}, platform {}), a process of its own on this host's: what it asks of "
        "the "
        "host is a short list",
        gvisor->release, gvisor->platform);
  }
  if (!plan.machine) {
    return "this host's own, shared with all that runs on it; a seccomp list and Landlock narrow "
           "what of it can be asked";
  }
  return fmt::format(
      "one of its own in a microVM of {} and {} processors ({}); whoever breaks out of it and of "
      "the "
      "VMM stands in a box with no files, no network but the gateway's and no rights",
      policy::size_text(plan.machine->memory), plan.machine->processors,
      to_string(plan.machine->accelerator));
}

}  // namespace

BlastRadius blast_radius(const Plan& plan) {
  const Policy& policy = plan.policy;
  BlastRadius radius;
  radius.reach = reach_of(policy);
  radius.credentials = credentials_of(policy);
  radius.reads = reads_of(plan);
  radius.writes = writes_of(plan);
  radius.kernel = kernel_of(plan);
  radius.use = use_of(plan);
  radius.lifetime = policy.limits.wall_ms == kUnlimited
                        ? "as long as the command runs; every process dies with the run"
                        : fmt::format("at most {}; every process dies with the run",
                                      policy::duration_text(policy.limits.wall_ms));
  radius.widest = widest_of(policy);
  radius.advice = advice_of(plan);
  return radius;
}

}  // namespace plan
