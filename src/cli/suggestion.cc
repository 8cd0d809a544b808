// Each decision carries the fix that the matcher wrote; fixes of one host and method become one
// rule with all their paths.
#include "cli/suggestion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "journal/event.h"
#include "journal/members.h"

namespace cli {
namespace {

std::string place_of(const policy::Egress& rule) {
  return fmt::format("{}{} {} {} {}", rule.host, rule.tcp, fmt::join(rule.ports, ","),
                     rule.tls_only, base::join(rule.methods, ","));
}

bool is_lifted_or_refused(const journal::Members& members, std::string_view type) {
  const std::string verdict = members.text("verdict");
  if (type == "dns.decision") return verdict == "deny";
  return type == "egress.decision" && (verdict == "deny" || verdict == "audit");
}

}  // namespace

// What is printed is only what the parser understood.
const policy::Egress* Suggestion::read(const std::string& fix) {
  constexpr std::size_t kMostRead = 10'000;
  if (read_.size() >= kMostRead && !read_.contains(fix)) read_.clear();
  const auto [at, fresh] = read_.try_emplace(fix);
  if (fresh) {
    const auto parsed = policy::parse(fix, "fix", {}, {});
    if (parsed && parsed->policy.egress.size() == 1) at->second = parsed->policy.egress[0];
  }
  return at->second ? &*at->second : nullptr;
}

void Suggestion::look(std::string_view json_line) {
  const auto members = journal::Members::parse_object(json_line);
  if (!members || !is_lifted_or_refused(*members, members->text("type"))) return;
  const std::string fix = members->text("fix");
  if (fix.empty()) return;
  const policy::Egress* found = read(fix);
  if (found == nullptr) return;
  const policy::Egress& egress = *found;
  const std::string place = place_of(egress);
  const std::uint64_t count = members->number("count").value_or(1);
  if (!rules_.contains(place) && rules_.size() >= kMostRules) {
    more_ += count;
    return;
  }
  Rule& rule = rules_[place];
  if (rule.count == 0) rule.egress = egress;
  rule.count += count;
  rule.egress.encoded_slash = rule.egress.encoded_slash || egress.encoded_slash;
  for (const std::string& path : egress.paths) {
    auto& paths = rule.egress.paths;
    if (std::ranges::find(paths, path) != paths.end()) continue;
    if (paths.size() >= kMostPaths) {
      rule.more_paths = true;
    } else {
      paths.push_back(path);
    }
  }
}

// A tunnel to a host and port beside rules that look inside would be refused at load; the narrower
// ones stay.
std::vector<const Suggestion::Rule*> Suggestion::compatible() const {
  std::vector<const Rule*> out;
  for (const auto& [place, rule] : rules_) {
    const auto inspected = [&](const auto& other) {
      return other.second.egress.inspects && other.second.egress.host == rule.egress.host &&
             other.second.egress.ports == rule.egress.ports;
    };
    const bool tunnel = !rule.egress.host.empty() && !rule.egress.inspects;
    if (!tunnel || std::ranges::none_of(rules_, inspected)) out.push_back(&rule);
  }
  return out;
}

std::string Suggestion::text() const {
  if (rules_.empty()) return "# nothing was refused that a rule could allow\n";
  std::string out =
      "# UNTRUSTED: the code inside chose every host, method and path below.\n"
      "# Add to the policy what you know to be right, and nothing that you do not.\n";
  for (const Rule* rule : compatible()) {
    out += fmt::format("\n# asked for {} time{}{}\n", rule->count, rule->count == 1 ? "" : "s",
                       rule->more_paths ? ", with more paths than are listed" : "");
    out += policy::rule_text(rule->egress);
  }
  if (more_ != 0) out += fmt::format("\n# and {} more, to other places\n", more_);
  return out;
}

std::string Suggestion::json() const {
  std::vector<std::string> items;
  for (const Rule* rule : compatible()) {
    items.push_back(base::JsonObject()
                        .add("rule", policy::rule_text(rule->egress))
                        .add("count", rule->count)
                        .add("chosen_by", "code inside")
                        .add("whole", !rule->more_paths)
                        .text());
  }
  return base::json_array(items);
}

}  // namespace cli
