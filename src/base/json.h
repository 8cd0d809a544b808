// Writes JSON text: one object or array after another, escaped, integers only.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace base {

// `"…"` with every control character, quote, backslash and invalid UTF-8 byte escaped (RFC 8259).
[[nodiscard]] std::string json_string(std::string_view text);

// Builds the members of one object in the order they are added.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view value) {
    return raw(key, json_string(value));
  }
  JsonObject& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }
  JsonObject& add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  template <std::integral T>
  JsonObject& add(std::string_view key, T value) {
    return raw(key, std::to_string(value));
  }
  // `json` is already JSON text.
  JsonObject& raw(std::string_view key, std::string_view json);
  [[nodiscard]] bool empty() const { return members_.empty(); }
  [[nodiscard]] const std::string& members() const { return members_; }
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

[[nodiscard]] std::string json_array(std::span<const std::string> json_items);
[[nodiscard]] std::string json_strings(std::span<const std::string> texts);

}  // namespace base
