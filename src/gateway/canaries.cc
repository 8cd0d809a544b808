// Canaries are looked for as redaction looks for secrets, in what goes out.
#include "gateway/canaries.h"

#include <algorithm>

#include "base/base.h"
#include "http/percent.h"

namespace gateway {
namespace {

constexpr int kMostRounds = 3;  // of percent-encoding

}  // namespace

Canaries::Canaries(const std::vector<plan::Canary>& canaries) {
  for (const plan::Canary& canary : canaries) {
    for (const std::string& value : {canary.id, canary.secret}) {
      if (value.empty()) continue;
      lower_.push_back(base::to_lower(value));
      of_lower_.push_back("canary:" + canary.kind);
      for (std::string& form : http::forms_of(value)) {
        needles_.push_back({.placeholder = std::move(form), .slot = {}});
        names_.push_back("canary:" + canary.kind);
      }
    }
  }
}

Canaries::Sight Canaries::at(std::size_t needle, std::string_view where) const {
  return {.canary = names_[needle], .where = std::string(where)};
}

std::optional<std::size_t> Canaries::find(std::string_view text) const {
  std::string decoded(text);
  for (int round = 0;; ++round) {
    const auto found = std::ranges::find_if(needles_, [&](const http::Marked& needle) {
      return decoded.find(needle.placeholder) != std::string::npos;
    });
    if (found != needles_.end()) return static_cast<std::size_t>(found - needles_.begin());
    if (round == kMostRounds || decoded.find('%') == std::string::npos) return std::nullopt;
    decoded = http::percent_decoded(decoded);
  }
}

std::optional<Canaries::Sight> Canaries::in(const http::RequestHead& head) const {
  if (!any()) return std::nullopt;
  if (const auto found = find(head.target)) return at(*found, "url");
  if (auto sight = in_name(head.host)) return sight;
  return in(head.fields);
}

std::optional<Canaries::Sight> Canaries::in(const std::vector<http::Field>& fields) const {
  if (!any()) return std::nullopt;
  for (const http::Field& field : fields) {
    if (const auto found = find(field.value)) return at(*found, "header " + field.name);
    if (auto sight = in_name(field.name)) {
      sight->where = "name of a header";
      return sight;
    }
  }
  return std::nullopt;
}

std::optional<Canaries::Sight> Canaries::in_name(std::string_view name) const {
  if (!any()) return std::nullopt;
  const std::string lower = base::to_lower(name);
  for (std::size_t i = 0; i < lower_.size(); ++i) {
    if (lower.contains(lower_[i])) return Sight{.canary = of_lower_[i], .where = "name"};
  }
  return std::nullopt;
}

base::Status record_sight(Recorder& recorder, const Canaries::Sight& sight, const Destination& to) {
  base::JsonObject object;
  object.add("credential", sight.canary).add("reason", "canary").add("where", sight.where);
  object.add("host", journal::cut_text(to.host)).add("port", to.port);
  if (!to.method.empty()) object.add("method", to.method);
  if (!to.path.empty()) object.add("path", journal::cut_text(to.path));
  return recorder.event("credential.refused", object.members());
}

}  // namespace gateway
