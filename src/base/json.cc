// JSON text.
#include "base/json.h"

#include <fmt/format.h>

#include "base/text.h"

namespace base {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      // Not UTF-8: the byte is kept readable; JSON has no way to carry it raw.
      out += fmt::format("\\ufffd\\u00{:02x}", c);
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + "\"";
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += json_string(key);
  members_ += ':';
  members_ += json;
  return *this;
}

std::string json_array(std::span<const std::string> json_items) {
  std::string out = "[";
  for (const auto& item : json_items) {
    if (out.size() > 1) out += ',';
    out += item;
  }
  return out + "]";
}

std::string json_strings(std::span<const std::string> texts) {
  std::string out = "[";
  for (const auto& text : texts) {
    if (out.size() > 1) out += ',';
    out += json_string(text);
  }
  return out + "]";
}

}  // namespace base
