// What the command line changes: --set, --allow, --env and --timeout, applied to the tree in order.
#include <fmt/format.h>

#include <algorithm>

#include "policy/reader.h"

namespace policy {
namespace {

Node make_node(Node::Kind kind, const Place& place) {
  Node node;
  node.kind = kind;
  node.place = place;
  return node;
}

Node text_node(std::string_view text, const Place& place) {
  Node node = make_node(Node::Kind::string, place);
  node.text = text;
  return node;
}

Node port_node(std::uint64_t port, const Place& place) {
  Node node = make_node(Node::Kind::integer, place);
  node.integer = static_cast<std::int64_t>(port);
  return node;
}

Node list_of(std::vector<Node> items, const Place& place) {
  Node node = make_node(Node::Kind::array, place);
  node.items = std::move(items);
  return node;
}

std::unexpected<base::Error> bad_flag(const Place& place, std::string what, std::string expected) {
  return base::bad_input(place.flag, std::move(what), std::move(expected));
}

// The member of that name, made as a table (or a list) where it is not there yet.
Node& member(Node& table, std::string_view key, Node::Kind kind, const Place& place) {
  if (Node* there = table.find(key)) return *there;
  table.members.push_back({std::string(key), place, make_node(kind, place)});
  return table.members.back().value;
}

void put(Node& table, std::string_view key, Node value) {
  const Place place = value.place;
  for (Member& there : table.members) {
    if (there.key == key) {
      there.place = place;
      there.value = std::move(value);
      return;
    }
  }
  table.members.push_back({std::string(key), place, std::move(value)});
}

void drop(Node& table, std::string_view key) {
  std::erase_if(table.members, [&](const Member& there) { return there.key == key; });
}

// --- --set ----------------------------------------------------------------------------------

// "egress[0].ports" → egress, 0, ports.
std::vector<std::string> key_parts(std::string_view key) {
  std::string dotted(key);
  for (std::size_t at = dotted.find('['); at != std::string::npos; at = dotted.find('[', at)) {
    const auto close = dotted.find(']', at);
    if (close == std::string::npos) break;
    dotted.erase(close, 1);
    dotted[at] = '.';
  }
  std::vector<std::string> parts;
  for (std::string_view part : base::split(dotted, '.')) parts.emplace_back(part);
  return parts;
}

base::Status apply_set(Node& root, std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const Place place = {1, 1, "--set " + base::printable(key.substr(0, 80))};
  if (equals == std::string_view::npos || key.empty()) {
    return bad_flag(place, "no KEY=VALUE", "expected a change such as limits.wall=10m");
  }
  const std::vector<std::string> parts = key_parts(key);
  if (parts.size() > static_cast<std::size_t>(kMaxDepth))
    return bad_flag(place, "a key of too many parts", "expected a key such as limits.wall");
  Node* at = &root;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (at->kind == Node::Kind::array) {
      const auto index = base::parse_number(parts[i]);
      if (!index || *index >= at->items.size()) {
        return bad_flag(place, fmt::format("no item {}", base::printable(parts[i])),
                        fmt::format("expected an index below {}", at->items.size()));
      }
      at = &at->items[*index];
    } else {
      at = &member(*at, parts[i], Node::Kind::table, place);
    }
    if (at->kind != Node::Kind::table && at->kind != Node::Kind::array) {
      return bad_flag(place,
                      fmt::format("{} is {}", base::printable(parts[i]), kind_name(at->kind)),
                      "expected the key of a table");
    }
  }
  if (at->kind != Node::Kind::table)
    return bad_flag(place, "the item of a list", "expected a key below it, or the whole list");
  put(*at, parts.back(), read_value(text.substr(equals + 1), place));
  return {};
}

// --- --allow --------------------------------------------------------------------------------

struct Url {
  std::string host;
  std::string path;
  std::optional<std::uint64_t> port;
};

base::Result<std::uint64_t> port_of(std::string_view text, const Place& place) {
  if (text == "*")
    return bad_flag(place, "every port of a host", "expected one port such as HOST:443");
  const auto port = base::parse_number(text);
  if (!port || *port < 1 || *port > 65535)
    return bad_flag(place, "no port", "expected a port from 1 to 65535");
  return *port;
}

// "HOST", "HOST:PORT", "[v6]:PORT".
base::Result<Url> authority(std::string_view text, const Place& place) {
  Url url;
  const auto bracket = text.find(']');
  const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  url.host = text.substr(0, colon);
  if (colon != std::string_view::npos) url.port = TRY(port_of(text.substr(colon + 1), place));
  return url;
}

base::Result<Url> https_url(std::string_view text, const Place& place) {
  text.remove_prefix(std::string_view("https://").size());
  const auto slash = text.find('/');
  if (text.find_first_of("?#@") != std::string_view::npos) {
    return bad_flag(place, "a query, fragment or user in the URL", "expected https://HOST/PATH");
  }
  Url url = TRY(authority(text.substr(0, slash), place));
  url.path = slash == std::string_view::npos ? "/" : text.substr(slash);
  return url;
}

// GET of the path itself and of everything below it.
std::vector<Node> paths_below(const std::string& path, const Place& place) {
  if (path.ends_with('/')) return {text_node(path + "**", place)};
  return {text_node(path, place), text_node(path + "/**", place)};
}

base::Status apply_allow(Node& root, std::string_view text) {
  const Place place = {1, 1, "--allow " + base::printable(text.substr(0, 200))};
  Node& rules = member(root, "egress", Node::Kind::array, place);
  Node rule = make_node(Node::Kind::table, place);
  if (text.starts_with("preset:")) {
    put(rule, "preset", text_node(text.substr(7), place));
  } else if (text.starts_with("https://")) {
    const Url url = TRY(https_url(text, place));
    put(rule, "host", text_node(url.host, place));
    if (url.port) put(rule, "ports", list_of({port_node(*url.port, place)}, place));
    Node tls = make_node(Node::Kind::boolean, place);
    tls.boolean = true;
    put(rule, "tls_only", std::move(tls));
    put(rule, "methods", list_of({text_node("GET", place)}, place));
    put(rule, "paths", list_of(paths_below(url.path, place), place));
  } else if (text.contains('/')) {
    return bad_flag(place, "no target",
                    "expected HOST, HOST:PORT, https://HOST/PATH or preset:NAME");
  } else {
    const Url url = TRY(authority(text, place));
    const auto host = canonical_host(url.host);
    if (host && host->is_address) {
      put(rule, "tcp", text_node(fmt::format("{}:{}", url.host, url.port.value_or(443)), place));
    } else {
      put(rule, "host", text_node(url.host, place));
      if (url.port) put(rule, "ports", list_of({port_node(*url.port, place)}, place));
      if (url.port == 80) put(rule, "paths", list_of({text_node("/**", place)}, place));
    }
  }
  if (rules.kind == Node::Kind::array) rules.items.push_back(std::move(rule));
  return {};
}

// --- --env, --timeout -----------------------------------------------------------------------

// The value is never shown: it may be a secret.
base::Status apply_env(Node& root, std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const Place place = {1, 1, "--env " + base::printable(name.substr(0, 80))};
  if (const Fault fault = check_variable(name); !fault.none())
    return bad_flag(place, fault.what, fault.expected);
  Node& environment = member(root, "environment", Node::Kind::table, place);
  Node& set = member(environment, "set", Node::Kind::table, place);
  if (equals != std::string_view::npos) {
    put(set, name, text_node(text.substr(equals + 1), place));
    Node* pass = environment.find("pass");
    if (pass != nullptr)
      std::erase_if(pass->items, [&](const Node& item) { return item.text == name; });
    return {};
  }
  drop(set, name);
  Node& pass = member(environment, "pass", Node::Kind::array, place);
  const bool there =
      std::ranges::any_of(pass.items, [&](const Node& item) { return item.text == name; });
  if (!there) pass.items.push_back(text_node(name, place));
  return {};
}

base::Status apply_timeout(Node& root, std::string_view text) {
  const Place place = {1, 1, "--timeout"};
  Node& limits = member(root, "limits", Node::Kind::table, place);
  put(limits, "wall", text_node(text, place));
  return {};
}

base::Status apply(Node& root, const Override& change) {
  switch (change.kind) {
    case OverrideKind::set:
      return apply_set(root, change.text);
    case OverrideKind::allow:
      return apply_allow(root, change.text);
    case OverrideKind::env:
      return apply_env(root, change.text);
    case OverrideKind::timeout:
      return apply_timeout(root, change.text);
  }
  return {};
}

}  // namespace

base::Status apply_overrides(Node& root, std::span<const Override> overrides) {
  for (const Override& change : overrides) TRY(apply(root, change));
  return {};
}

}  // namespace policy
