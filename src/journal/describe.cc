// An event as one line for people. Everything in it may have been chosen by the code inside, so
// every piece goes through base::printable.
#include <fmt/format.h>

#include <array>

#include "journal/event.h"
#include "journal/journal.h"

namespace journal {
namespace {

constexpr std::size_t kMostPiece = 2000;  // bytes of one value

std::string piece(std::string text) {
  if (text.size() > kMostPiece) text = text.substr(0, kMostPiece) + "…";
  return base::printable(text);
}

// A member's value for people: strings bare, everything else as it stands.
std::string shown(const Members& members, std::string_view key) {
  const std::string_view raw = members.raw(key);
  return piece(raw.starts_with('"') ? decode_string(raw) : std::string(raw));
}

void append(std::string& out, std::string_view text) {
  if (text.empty()) return;
  if (!out.empty()) out += ' ';
  out += text;
}

// " · key value" for each member that is there and says something.
std::string details(const Members& members, std::initializer_list<std::string_view> keys) {
  std::string out;
  for (std::string_view key : keys) {
    const std::string value = shown(members, key);
    if (!value.empty() && value != "null" && value != "[]" && value != "{}") {
      out += fmt::format(" · {} {}", key, value);
    }
  }
  return out;
}

std::string where(const Members& members) {
  if (const std::string url = shown(members, "url"); !url.empty()) return url;
  if (!members.has("host") && !members.has("address")) return {};
  std::string out = piece(destination(members));
  if (out.ends_with(':')) out.pop_back();
  return out + shown(members, "path");
}

std::string decision(const Members& members) {
  std::string out = shown(members, "verdict");
  append(out, shown(members, "method"));
  append(out, where(members));
  // The reason of a permission is its rule.
  out += details(members, {"reason", "rule", "address", "way", "tls", "credential"});
  if (times(members) > 1) out += fmt::format(" · {} times", times(members));
  return out;
}

std::string ended(const Members& members) {
  std::string out = shown(members, "of");
  out += details(members, {"status", "problem"});
  return out + fmt::format(" · up {} B · down {} B · {} ms", shown(members, "bytes_up"),
                           shown(members, "bytes_down"), shown(members, "ms"));
}

std::string credential(const Members& members) {
  std::string out = shown(members, "credential");
  append(out, shown(members, "method"));
  append(out, where(members));
  return out + details(members, {"reason", "why", "expires", "of"});
}

std::string alert(const Members& members) {
  std::string out = fmt::format("{} [{}]", shown(members, "detector"), shown(members, "severity"));
  append(out, shown(members, "text"));
  return out + details(members, {"action", "evidence"});
}

std::string planned(const Members& members) {
  return "policy " + shown(members, "policy_sha256") +
         details(members, {"revision", "retired", "tier", "unheld", "below_advice"});
}

// "exited 1 · status 1 · wall 1200 ms …": what a person asks of an ending first.
std::string run_end(const Members& members) {
  std::string out;
  if (const auto ending = Members::parse_object(members.raw("ending"))) {
    out = shown(*ending, "kind");
    const std::string signal = shown(*ending, "signal");
    append(out, signal.empty() ? shown(*ending, "code") : signal);
    out += details(*ending, {"by", "step", "errno"});
  }
  out += details(members, {"status", "limits_hit"});
  const auto usage = Members::parse_object(members.raw("usage"));
  if (!usage) return out;
  static constexpr std::array<std::array<std::string_view, 3>, 5> kUsage = {
      {{"wall_ms", "wall", "ms"},
       {"cpu_ms", "processor", "ms"},
       {"memory_peak_bytes", "memory", "B"},
       {"processes_peak", "processes", ""},
       {"written_bytes", "written", "B"}}};
  for (const auto& [key, name, unit] : kUsage) {
    if (!usage->has(key)) continue;
    out += fmt::format(" · {} {}{}{}", name, shown(*usage, key), unit.empty() ? "" : " ", unit);
  }
  return out;
}

std::string other(const Members& members) {
  static constexpr std::array<std::string_view, 8> kKnown = {"v",   "seq",  "id",   "time",
                                                             "run", "task", "type", "prev"};
  std::string out;
  for (const Members::Member& member : members.all()) {
    bool known = false;
    for (std::string_view key : kKnown) known = known || member.key == key;
    if (!known) append(out, fmt::format("{}={}", member.key, shown(members, member.key)));
  }
  return out;
}

std::string text_of(std::string_view type, const Members& members) {
  if (type == "egress.decision" || type == "dns.decision") return decision(members);
  if (type == "egress.ended") return ended(members);
  if (type.starts_with("credential.")) return credential(members);
  if (type == "alert") return alert(members);
  if (type == "run.planned" || type == "policy.changed") return planned(members);
  if (type == "run.ended") return run_end(members);
  if (type == "checkpoint") return "signed by " + shown(members, "key_id");
  return other(members);
}

// "2026-01-02 03:04:05.123" of "2026-01-02T03:04:05.123456789Z"; anything else as it is.
std::string time_of(const Members& members) {
  std::string time = members.text("time");
  if (time.size() == 30 && time[10] == 'T') {
    time[10] = ' ';
    time.resize(23);
  }
  return piece(time);
}

}  // namespace

Tone tone(std::string_view json_line) {
  const auto members = Members::parse_object(json_line);
  if (!members) return Tone::alert;
  if (const std::string type = members->text("type"); type == "alert" || type == "containment") {
    return Tone::alert;
  } else if (type == "credential.refused" || type == "limit.hit") {
    return Tone::refused;
  }
  const std::string verdict = members->text("verdict");
  if (verdict == "deny" || verdict == "reject") return Tone::refused;
  if (verdict == "audit") return Tone::audit;
  return verdict == "allow" ? Tone::allowed : Tone::plain;
}

std::string describe_whole(std::string_view json_line) {
  const auto members = Members::parse_object(json_line);
  if (!members) return "unreadable: " + base::printable(json_line) + "\n";
  std::string out;
  for (const Members::Member& member : members->all()) {
    const std::string_view raw = member.value;
    const std::string value = raw.starts_with('"') ? decode_string(raw) : std::string(raw);
    out += fmt::format("{:<14} {}\n", member.key, base::printable(value));
  }
  return out;
}

std::string describe(std::string_view json_line) {
  const auto members = Members::parse_object(json_line);
  if (!members) return "unreadable: " + piece(std::string(json_line));
  const std::string type = members->text("type");
  std::string out =
      fmt::format("{}  {}  {:<16}", time_of(*members), shown(*members, "id"), piece(type));
  append(out, text_of(type, *members));
  return out;
}

}  // namespace journal
