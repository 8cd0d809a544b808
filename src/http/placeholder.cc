// Finds placeholders in requests, whatever they are wrapped in.
#include "http/placeholder.h"

#include <algorithm>

#include "base/base.h"
#include "http/form.h"
#include "http/percent.h"
#include "http/sigv4.h"
#include "http/syntax.h"

namespace http {

namespace {

constexpr std::string_view kBasic = "basic ";

// Whether the text has the placeholder, as it is or under up to three rounds of percent-encoding.
bool has(std::string_view text, std::string_view placeholder) {
  if (text.find(placeholder) != std::string_view::npos) return true;
  std::string decoded(text);
  for (int round = 0; round < 3 && decoded.find('%') != std::string::npos; ++round) {
    decoded = percent_decoded(decoded);
    if (decoded.find(placeholder) != std::string::npos) return true;
  }
  return false;
}

// `user:password` of a Basic value; nullopt when it is none.
std::optional<std::string> basic_pair(std::string_view value) {
  if (value.size() < kBasic.size() || !same_text(value.substr(0, kBasic.size()), kBasic))
    return std::nullopt;
  return base::from_base64(trim(value.substr(kBasic.size())));
}

bool fills_slot(const Field& field, const Marked& marked) {
  const Slot& slot = marked.slot;
  if (slot.place == Place::sigv4 && field.name == slot.header) {
    const auto claim = sigv4_claim(field.value);
    return claim && claim->id == marked.placeholder &&
           field.value.find(marked.placeholder) == field.value.rfind(marked.placeholder);
  }
  const bool basic = slot.place == Place::basic;
  if ((!basic && slot.place != Place::header) || field.name != slot.header) return false;
  const std::string_view value = field.value;
  if (basic) {
    const auto pair = basic_pair(value);
    return pair && *pair == slot.user + ":" + marked.placeholder;
  }
  const std::string& before = slot.before;
  return value.size() == before.size() + marked.placeholder.size() + slot.after.size() &&
         same_text(value.substr(0, before.size()), before) &&
         value.substr(before.size()) == marked.placeholder + slot.after;
}

// The target without what fills the slot there; `bound` tells whether something did.
std::string target_without_bound(const RequestHead& head, const Marked& marked, bool& bound) {
  const Slot& slot = marked.slot;
  if (slot.place == Place::path) {
    bound = path_segment(head.target, slot.segment) == render(slot, marked.placeholder);
    return bound ? with_segment(head.target, slot.segment, "") : head.target;
  }
  if (slot.place != Place::query) return head.target;
  const std::string filled = render(slot, marked.placeholder);
  const auto values = field_values(Fields::form, query_of(head), slot.name);
  bound = values && std::ranges::find(*values, filled) != values->end();
  if (!bound) return head.target;
  const auto rest = with_field(Fields::form, query_of(head), slot.name, filled, "");
  return with_query(head.target, rest.value_or(""));
}

}  // namespace

std::vector<Finding> find_placeholders(const RequestHead& head, const std::vector<Marked>& marked) {
  std::vector<Finding> findings;
  const auto add = [&findings](std::size_t index, Where where, std::string_view field) {
    Finding finding{index, where, std::string(field)};
    if (std::ranges::find(findings, finding) == findings.end())
      findings.push_back(std::move(finding));
  };
  for (std::size_t i = 0; i < marked.size(); ++i) {
    const std::string& placeholder = marked[i].placeholder;
    const std::string lower = base::to_lower(placeholder);
    bool bound = false;
    const std::string target = target_without_bound(head, marked[i], bound);
    if (bound) add(i, Where::bound, {});
    if (has(target, placeholder) || has(head.host, placeholder)) add(i, Where::url, {});
    for (const Field& field : head.fields) {
      if (fills_slot(field, marked[i])) {
        add(i, Where::bound, field.name);
      } else if (has(field.value, placeholder) || has(field.name, lower)) {
        add(i, Where::header, field.name);
      } else if (const auto pair = basic_pair(field.value); pair && has(*pair, placeholder)) {
        add(i, Where::basic, field.name);
      }
    }
  }
  return findings;
}

BodyScan::BodyScan(const std::vector<Marked>& marked) {
  for (const Marked& one : marked) {
    needles_.push_back({one.placeholder});
    longest_ = std::max(longest_, one.placeholder.size());
  }
}

std::vector<std::size_t> BodyScan::scan(std::string_view piece) {
  std::vector<std::size_t> found;
  if (longest_ == 0) return found;
  // Only the seam needs a copy: the end of what came before and the start of this piece.
  const std::string seam = tail_ + std::string(piece.substr(0, longest_ - 1));
  for (std::size_t i = 0; i < needles_.size(); ++i) {
    Needle& needle = needles_[i];
    if (needle.seen || needle.text.empty()) continue;
    if (seam.find(needle.text) == std::string::npos &&
        piece.find(needle.text) == std::string_view::npos)
      continue;
    needle.seen = true;
    found.push_back(i);
  }
  tail_ = piece.size() >= longest_ - 1 ? std::string(piece.substr(piece.size() - (longest_ - 1)))
                                       : (tail_ + std::string(piece));
  if (tail_.size() > longest_ - 1) tail_.erase(0, tail_.size() - (longest_ - 1));
  return found;
}

}  // namespace http
