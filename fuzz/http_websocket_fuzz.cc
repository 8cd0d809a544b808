// Any bytes as the frames of a server: what comes out does not depend on how they are cut, up to
// the frames it is cut into, is taken as frames again, and does not hold the secret.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

void check(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr std::string_view kSecret = "aab/aabaab";

std::optional<std::string> run(std::string_view text, std::size_t step,
                               const std::vector<std::unique_ptr<http::Redaction>>& redactions) {
  http::FrameRedactor redactor(redactions);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) {
    const auto some = redactor.push(text.substr(at, step));
    if (!some) return std::nullopt;
    out += *some;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const std::vector<std::unique_ptr<http::Redaction>> kNone;
  static const auto kAll = [] {
    std::vector<std::unique_ptr<http::Redaction>> all;
    all.push_back(std::make_unique<http::Redaction>(*http::Redaction::of(kSecret, "ph", {})));
    return all;
  }();
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto cut = run(text, 1 + bytes[0] % 16, kAll);
  const auto whole = run(text, size, kAll);
  check(cut.has_value() == whole.has_value());
  if (!whole) return 0;
  check(run(*whole, size, kNone).has_value() && run(*cut, size, kNone).has_value());
  check(!whole->contains(kSecret) && !cut->contains(kSecret));
  return 0;
}
