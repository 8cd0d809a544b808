// Reads and rewrites single fields of forms and JSON objects.
#include "http/form.h"

#include <algorithm>

#include "base/base.h"
#include "base/json.h"
#include "http/json_members.h"
#include "http/percent.h"
#include "http/syntax.h"

namespace http {

namespace {

struct Pair {
  std::string_view text;  // the whole, as written
  std::string name;
  std::string value;
};

std::vector<Pair> pairs_of(std::string_view form) {
  std::vector<Pair> pairs;
  if (form.empty()) return pairs;
  for (const std::string_view part : base::split(form, '&')) {
    const auto equals = part.find('=');
    pairs.push_back(
        {part, form_decoded(part.substr(0, equals)),
         equals == std::string_view::npos ? std::string() : form_decoded(part.substr(equals + 1))});
  }
  return pairs;
}

std::string pair_text(std::string_view name, std::string_view value) {
  return percent_encoded(name, kUpperHex) + "=" + percent_encoded(value, kUpperHex);
}

void append(std::string& form, bool& first, std::string_view pair) {
  if (!std::exchange(first, false)) form += '&';
  form += pair;
}

std::string form_with(std::string_view form, std::string_view name, std::string_view old,
                      std::string_view value) {
  std::string out;
  bool first = true;
  for (const Pair& pair : pairs_of(form)) {
    const bool meant = pair.name == name && pair.value == old;
    append(out, first, meant ? pair_text(name, value) : std::string(pair.text));
  }
  return out;
}

std::string form_with_only(std::string_view form, std::string_view name, std::string_view value) {
  std::string out;
  bool first = true;
  for (const Pair& pair : pairs_of(form)) {
    if (pair.name != name) append(out, first, pair.text);
  }
  append(out, first, pair_text(name, value));
  return out;
}

template <class Meant>
std::optional<std::string> json_with(std::string_view text, std::string_view value, Meant meant,
                                     bool& any) {
  const auto members = json_members(text);
  if (!members) return std::nullopt;
  std::string out;
  std::size_t done = 0;
  for (const JsonMember& member : *members) {
    if (!meant(member)) continue;
    any = true;
    out += text.substr(done, member.at - done);
    out += base::json_string(value);
    done = member.at + member.size;
  }
  out += text.substr(done);
  return out;
}

std::optional<std::string> json_with_only(std::string_view text, std::string_view name,
                                          std::string_view value) {
  bool any = false;
  auto out =
      json_with(text, value, [&](const JsonMember& member) { return member.name == name; }, any);
  if (!out || any) return out;
  const bool empty = json_members(text)->empty();
  out->insert(out->find('{') + 1,
              base::json_string(name) + ":" + base::json_string(value) + (empty ? "" : ","));
  return out;
}

}  // namespace

Fields fields_of(const RequestHead& head) {
  const Field* encoding = find_field(head.fields, "content-encoding");
  if (encoding != nullptr && !same_text(encoding->value, "identity")) return Fields::none;
  const Field* type = find_field(head.fields, "content-type");
  if (type == nullptr) return Fields::none;
  const std::string_view value = type->value;
  const std::string media = base::to_lower(trim(value.substr(0, value.find(';'))));
  if (media == "application/x-www-form-urlencoded") return Fields::form;
  const bool json = media == "application/json" ||
                    (media.starts_with("application/") && media.ends_with("+json"));
  return json ? Fields::json : Fields::none;
}

std::optional<std::vector<std::string>> field_values(Fields kind, std::string_view text,
                                                     std::string_view name) {
  std::vector<std::string> values;
  if (kind == Fields::form) {
    for (Pair& pair : pairs_of(text)) {
      if (pair.name == name) values.push_back(std::move(pair.value));
    }
    return values;
  }
  if (kind != Fields::json) return std::nullopt;
  auto members = json_members(text);
  if (!members) return std::nullopt;
  for (JsonMember& member : *members) {
    if (member.name == name) values.push_back(std::move(member.value));
  }
  return values;
}

std::optional<std::string> with_field(Fields kind, std::string_view text, std::string_view name,
                                      std::string_view old, std::string_view value) {
  if (kind == Fields::form) return form_with(text, name, old, value);
  if (kind != Fields::json) return std::nullopt;
  bool any = false;
  return json_with(
      text, value,
      [&](const JsonMember& member) { return member.name == name && member.value == old; }, any);
}

std::optional<std::string> with_only_field(Fields kind, std::string_view text,
                                           std::string_view name, std::string_view value) {
  if (kind == Fields::form) return form_with_only(text, name, value);
  return kind == Fields::json ? json_with_only(text, name, value) : std::nullopt;
}

std::string form_with_some(std::string_view form, const Keep& keep) {
  std::string out;
  bool first = true;
  for (const Pair& pair : pairs_of(form)) {
    if (keep(pair.name, pair.value)) append(out, first, pair.text);
  }
  return out;
}

std::string form_value(std::string_view value) {
  return percent_encoded(value, kUpperHex);
}

std::string form_pair(std::string_view name, std::string_view value) {
  return form_value(name) + "=" + form_value(value);
}

}  // namespace http
