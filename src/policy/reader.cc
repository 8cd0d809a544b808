// Reading tables and leaves: what is found, what would be right, the closest known word.
#include "policy/reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace policy {
namespace {

// Beyond this a number of JSON is no longer exact for every reader; 1 PiB and a year are enough.
constexpr std::uint64_t kMostBytes = 1ULL << 50;
constexpr std::uint64_t kMostMs = 366ULL * 86'400'000;

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string near = base::closest(word, known);
  return near.empty() ? "" : fmt::format(" (did you mean {})", near);
}

// "limits.memory" for "memory" where it was not looked for.
std::string elsewhere(std::string_view key) {
  const std::string end = "." + std::string(key);
  for (const std::string& path : key_paths()) {
    if (path.ends_with(end)) return fmt::format(" (did you mean {})", path);
  }
  return "";
}

std::string join_path(const std::string& table, std::string_view key) {
  return table.empty() ? std::string(key) : table + "." + std::string(key);
}

// The key path is not said twice where the flag names it already.
std::unexpected<base::Error> fault_at(std::string where, const std::string& path,
                                      std::string_view what, std::string expected) {
  const bool said = path.empty() || where == "--set " + path;
  std::string whole = said ? std::string(what) : fmt::format("{}: {}", path, what);
  return base::bad_input(std::move(where), std::move(whole), std::move(expected));
}

constexpr std::string_view kText = R"({"type":"string"})";

// `example` is a list of TOML, which is one of JSON as well.
std::string list_shape(const std::string& example) {
  return R"({"type":"array","items":{"type":"string"},"uniqueItems":true,"examples":[)" + example +
         "]}";
}

bool is_scalar(Node::Kind kind) {
  return kind != Node::Kind::table && kind != Node::Kind::array;
}

}  // namespace

std::string found(const Node& node) {
  switch (node.kind) {
    case Node::Kind::boolean:
      return node.boolean ? "found true" : "found false";
    case Node::Kind::integer:
      return fmt::format("found the number {}", node.integer);
    case Node::Kind::string:
      return fmt::format("found \"{}\"",
                         base::printable(std::string_view(node.text).substr(0, 80)));
    default:
      return fmt::format("found {}", kind_name(node.kind));
  }
}

std::string one_of(const std::vector<std::string_view>& names) {
  std::string out = names.size() == 1 ? "expected " : "expected one of ";
  for (const auto& name : names) {
    if (&name != names.data()) out += ", ";
    out += name;
  }
  return out;
}

std::unexpected<base::Error> At::bad(std::string_view what, std::string expected) const {
  return fault_at(where(), path, what, std::move(expected));
}

std::unexpected<base::Error> At::wrong(std::string expected) const {
  return bad(found(node), std::move(expected));
}

std::unexpected<base::Error> At::not_yet(std::string_view value) const {
  const std::string what = value.empty() ? path : fmt::format("{} = {}", path, value);
  return base::fail(base::Kind::unsupported, where(), what + ": not carried out yet", "");
}

bool At::shaped(std::string_view shape) const {
  if (!describing()) return false;
  *reading.shape = shape;
  return true;
}

At At::item(std::size_t index) const {
  return {reading, node.items[index], fmt::format("{}[{}]", path, index)};
}

namespace {

// Of a table the shape is that of its members; no other may stand there.
base::Status describe_table(const At& at, const std::vector<Field>& fields) {
  static const Node kNothing;
  base::JsonObject properties;
  for (const Field& field : fields) {
    std::string shape = "true";
    Reading inner;
    inner.shape = &shape;
    const std::string path = join_path(at.path, field.key);
    TRY(field.read({inner, kNothing, path}));
    properties.raw(field.key, shape);
    at.reading.origins[path] = "";
    at.reading.origins.merge(inner.origins);
  }
  *at.reading.shape = base::JsonObject()
                          .add("type", "object")
                          .raw("additionalProperties", "false")
                          .raw("properties", properties.text())
                          .text();
  return {};
}

}  // namespace

void add_to_shape(const At& at, std::string_view member) {
  if (!at.describing() || !at.reading.shape->ends_with('}')) return;
  at.reading.shape->back() = ',';
  *at.reading.shape += member;
  *at.reading.shape += '}';
}

base::Status read_table(const At& at, const std::vector<Field>& fields) {
  if (at.describing()) return describe_table(at, fields);
  if (at.node.kind != Node::Kind::table) return at.wrong("expected a table");
  std::vector<std::string_view> known;
  for (const Field& field : fields) known.push_back(field.key);
  for (const Member& member : at.node.members) {
    const std::string path = join_path(at.path, base::printable(member.key.substr(0, 80)));
    const auto field = std::ranges::find(fields, member.key, &Field::key);
    if (field == fields.end()) {
      std::string near = did_you_mean(member.key, known);
      if (near.empty()) near = elsewhere(member.key);
      return fault_at(place_text(at.reading.file, member.place), path, "unknown key" + near,
                      one_of(known));
    }
    at.reading.origins[path] = place_text(at.reading.file, member.value.place);
    TRY(field->read({at.reading, member.value, path}));
  }
  for (const Field& field : fields) {
    at.reading.origins.try_emplace(join_path(at.path, field.key), "default");
  }
  return {};
}

base::Result<std::string> want_string(const At& at, std::string_view expected) {
  if (at.node.kind == Node::Kind::string) return at.node.text;
  if (is_scalar(at.node.kind) && !at.node.raw.empty()) return at.node.raw;
  return at.wrong("expected " + std::string(expected));
}

std::function<base::Status(const At&)> boolean_into(bool& out) {
  return [&out](const At& at) -> base::Status {
    if (at.shaped(R"({"type":"boolean"})")) return {};
    if (at.node.kind != Node::Kind::boolean) return at.wrong("expected true or false");
    out = at.node.boolean;
    return {};
  };
}

std::function<base::Status(const At&)> string_into(std::string& out, Check check) {
  return [&out, check = std::move(check)](const At& at) -> base::Status {
    if (at.shaped(kText)) return {};
    std::string text = TRY(want_string(at, "a string"));
    if (const Fault fault = check(text); !fault.none()) return at.bad(fault.what, fault.expected);
    out = std::move(text);
    return {};
  };
}

std::function<base::Status(const At&)> list_into(std::vector<std::string>& out, std::string example,
                                                 Canon canon) {
  return
      [&out, example = std::move(example), canon = std::move(canon)](const At& at) -> base::Status {
        if (at.shaped(list_shape(example))) return {};
        if (at.node.kind != Node::Kind::array)
          return at.wrong("expected a list such as " + example);
        out.clear();
        for (std::size_t i = 0; i < at.node.items.size(); ++i) {
          const At item = at.item(i);
          const std::string text = TRY(want_string(item, "a string, in a list such as " + example));
          auto kept = canon(text);
          if (!kept)
            return item.bad(fmt::format("{}: {}", found(item.node), kept.error().what),
                            kept.error().expected);
          if (std::ranges::find(out, *kept) != out.end()) {
            return item.bad(found(item.node) + ", which stands twice", "expected each once");
          }
          out.push_back(std::move(*kept));
        }
        return {};
      };
}

std::function<base::Status(const At&)> map_into(std::map<std::string, std::string>& out,
                                                std::string example, Check check_key) {
  return [&out, example = std::move(example),
          check = std::move(check_key)](const At& at) -> base::Status {
    if (at.shaped(R"({"type":"object","additionalProperties":{"type":"string"}})")) return {};
    if (at.node.kind != Node::Kind::table) return at.wrong("expected a table such as " + example);
    for (const Member& member : at.node.members) {
      const std::string path = join_path(at.path, base::printable(member.key.substr(0, 80)));
      const At item = {at.reading, member.value, path};
      if (const Fault fault = check(member.key); !fault.none())
        return item.bad(fault.what, fault.expected);
      if (is_scalar(member.value.kind) && !member.value.raw.empty()) {
        out[member.key] = member.value.raw;
        if (member.value.kind == Node::Kind::string) out[member.key] = member.value.text;
      } else if (member.value.kind == Node::Kind::string) {
        out[member.key] = member.value.text;
      } else {
        return item.bad(fmt::format("found {}", kind_name(member.value.kind)), "expected a string");
      }
      at.reading.origins[path] = item.where();
    }
    return {};
  };
}

std::function<base::Status(const At&)> ports_into(std::vector<std::uint16_t>& out) {
  return [&out](const At& at) -> base::Status {
    if (at.shaped(R"({"type":"array","minItems":1,"uniqueItems":true,)"
                  R"("items":{"type":"integer","minimum":1,"maximum":65535}})")) {
      return {};
    }
    const std::string expected = "expected a list of ports from 1 to 65535 such as [443]";
    if (at.node.kind != Node::Kind::array) return at.wrong(expected);
    if (at.node.items.empty()) return at.bad("an empty list", expected);
    out.clear();
    for (std::size_t i = 0; i < at.node.items.size(); ++i) {
      const At item = at.item(i);
      if (item.node.kind != Node::Kind::integer || item.node.integer < 1 ||
          item.node.integer > 65535) {
        return item.wrong(expected);
      }
      const auto port = static_cast<std::uint16_t>(item.node.integer);
      if (std::ranges::find(out, port) != out.end()) {
        return item.bad(found(item.node) + ", which stands twice", "expected each port once");
      }
      out.push_back(port);
    }
    return {};
  };
}

namespace {

// Bytes or milliseconds in text, bounded.
struct Measure {
  std::optional<std::uint64_t> (*parse)(std::string_view);
  std::string_view example;
  std::string_view most_text;
  std::uint64_t most;
  std::string_view pattern;
};
constexpr Measure kSize = {parse_size, "a size such as \"512MiB\"", "1024TiB", kMostBytes,
                           "[0-9]+([KMGT]i?B|B)?"};
constexpr Measure kDuration = {parse_duration, "a duration such as \"90s\"", "366d", kMostMs,
                               "([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?"};

std::string measure_shape(const Measure& measure, Unlimited unlimited) {
  return fmt::format(R"({{"type":"string","pattern":"^({}{})$"}})", measure.pattern,
                     unlimited == Unlimited::allowed ? "|unlimited" : "");
}

base::Status read_measure(const At& at, const Measure& measure, Unlimited unlimited, Zero zero,
                          std::uint64_t& out) {
  if (at.shaped(measure_shape(measure, unlimited))) return {};
  const std::string expected =
      std::string(measure.example) + (unlimited == Unlimited::allowed ? " or \"unlimited\"" : "");
  const std::string text = TRY(want_string(at, expected));
  if (text == "unlimited") {
    if (unlimited == Unlimited::refused)
      return at.bad("found \"unlimited\"", "expected " + expected);
    out = kUnlimited;
    return {};
  }
  const auto value = measure.parse(text);
  if (!value) return at.wrong("expected " + expected);
  if (*value == 0 && zero == Zero::refused) return at.bad("zero", "expected " + expected);
  if (*value > measure.most) {
    return at.wrong(fmt::format("expected at most \"{}\"", measure.most_text));
  }
  out = *value;
  return {};
}

}  // namespace

std::function<base::Status(const At&)> size_into(std::uint64_t& out, Unlimited unlimited,
                                                 Zero zero) {
  return [&out, unlimited, zero](const At& at) {
    return read_measure(at, kSize, unlimited, zero, out);
  };
}

std::function<base::Status(const At&)> duration_into(std::uint64_t& out, Unlimited unlimited) {
  return [&out, unlimited](const At& at) {
    return read_measure(at, kDuration, unlimited, Zero::refused, out);
  };
}

std::function<base::Status(const At&)> count_into(std::uint64_t& out, std::uint64_t most,
                                                  Unlimited unlimited) {
  return [&out, most, unlimited](const At& at) -> base::Status {
    const bool free = unlimited == Unlimited::allowed;
    const std::string whole = fmt::format(R"("type":"integer","minimum":1,"maximum":{})", most);
    if (at.shaped(free ? fmt::format(R"({{"anyOf":[{{{}}},{{"const":"unlimited"}}]}})", whole)
                       : "{" + whole + "}")) {
      return {};
    }
    if (free && at.node.kind == Node::Kind::string && at.node.text == "unlimited") {
      out = kUnlimited;
      return {};
    }
    if (at.node.kind != Node::Kind::integer || at.node.integer < 1 ||
        static_cast<std::uint64_t>(at.node.integer) > most) {
      return at.wrong(fmt::format("expected a whole number from 1 to {}{}", most,
                                  free ? " or \"unlimited\"" : ""));
    }
    out = static_cast<std::uint64_t>(at.node.integer);
    return {};
  };
}

base::Status read_name(const At& at, const std::vector<std::string_view>& names,
                       const std::vector<bool>& built, std::size_t& index) {
  if (at.describing()) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (built[i]) words.emplace_back(names[i]);
    }
    (void)at.shaped(R"({"enum":)" + base::json_strings(words) + "}");
    return {};
  }
  const std::string text =
      TRY(want_string(at, one_of(names).substr(std::string_view("expected ").size())));
  const auto known = std::ranges::find(names, std::string_view(text));
  if (known == names.end()) {
    return at.bad(found(at.node) + did_you_mean(text, names), one_of(names));
  }
  index = static_cast<std::size_t>(known - names.begin());
  if (!built[index]) return at.not_yet("\"" + text + "\"");
  return {};
}

std::function<base::Status(const At&)> filled_list(std::vector<std::string>& out,
                                                   const std::string& example, Canon canon) {
  return [&out, example,
          read = list_into(out, example, std::move(canon))](const At& at) -> base::Status {
    TRY(read(at));
    if (at.describing()) {
      add_to_shape(at, R"("minItems":1)");
      return {};
    }
    if (out.empty())
      return at.bad("an empty list", "expected a list such as " + example + ", or no such key");
    return {};
  };
}

std::function<base::Status(const At&)> canon_into(std::string& out, Canon canon) {
  return [&out, canon = std::move(canon)](const At& at) -> base::Status {
    if (at.shaped(kText)) return {};
    const std::string text = TRY(want_string(at, "a string"));
    auto cidr = canon(text);
    if (!cidr) return at.bad(found(at.node) + ": " + cidr.error().what, cidr.error().expected);
    out = std::move(*cidr);
    return {};
  };
}

base::Status want_one(const At& at, const std::vector<std::string_view>& keys) {
  if (at.describing()) {
    std::vector<std::string> each;
    for (std::string_view key : keys) each.push_back(fmt::format(R"({{"required":["{}"]}})", key));
    add_to_shape(at, R"("oneOf":)" + base::json_array(each));
    return {};
  }
  std::vector<std::string_view> given;
  for (std::string_view key : keys) {
    if (at.node.find(key) != nullptr) given.push_back(key);
  }
  if (given.size() == 1) return {};
  return at.bad(given.empty() ? "no target" : fmt::format("both {} and {}", given[0], given[1]),
                one_of(keys));
}

base::Status read_tables(const At& at,
                         const std::function<base::Status(const At&, std::size_t)>& read) {
  if (at.describing()) {
    TRY(read(at, 1));
    *at.reading.shape = R"({"type":"array","items":)" + *at.reading.shape + "}";
    return {};
  }
  const std::string expected = fmt::format("expected tables [[{}]]", at.path);
  if (at.node.kind != Node::Kind::array) return at.wrong(expected);
  for (std::size_t i = 0; i < at.node.items.size(); ++i) {
    const At item = at.item(i);
    if (item.node.kind != Node::Kind::table) return item.wrong(expected);
    at.reading.origins[item.path] = item.where();
    TRY(read(item, i + 1));
  }
  return {};
}

}  // namespace policy
