// Any bytes as a form and as a JSON object: what was put into a field is what stands in it, and
// nothing else has changed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

void check(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr std::string_view kValue = "s&=\"+\\\n/%";

void rewrite(http::Fields kind, std::string_view text) {
  const auto before = http::field_values(kind, text, "k");
  const auto only = http::with_only_field(kind, text, "k", kValue);
  check(before.has_value() == only.has_value());
  if (!before) return;
  const auto after = http::field_values(kind, *only, "k");
  check(after && !after->empty());
  for (const std::string& value : *after) check(value == kValue);
  check(kind == http::Fields::json || after->size() == 1);
  check(http::field_values(kind, *only, "o") == http::field_values(kind, text, "o"));
  if (before->empty()) return;
  const auto one = http::with_field(kind, text, "k", before->front(), kValue);
  check(one.has_value());
  const auto changed = http::field_values(kind, *one, "k");
  check(changed && changed->size() == before->size());
  for (std::size_t i = 0; i < before->size(); ++i) {
    check((*changed)[i] == ((*before)[i] == before->front() ? kValue : (*before)[i]));
  }
}

void target(std::string_view text) {
  for (std::size_t segment = 1; segment < 4; ++segment) {
    const std::string put = http::with_segment(text, segment, "s%2F");
    check(put == text || http::path_segment(put, segment) == "s/");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  rewrite(http::Fields::form, text);
  rewrite(http::Fields::json, text);
  target(text);
  return 0;
}
