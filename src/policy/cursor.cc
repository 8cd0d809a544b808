// Moving through a text, with line and column.
#include "policy/cursor.h"

#include <charconv>

namespace policy {

void Cursor::advance(std::size_t bytes) {
  for (std::size_t i = 0; i < bytes && !at_end(); ++i) {
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\n') {
      ++line_;
      column_ = 1;
    } else if (byte >> 6 != 2) {
      ++column_;
    }
  }
}

bool Cursor::take(std::string_view word) {
  if (!sees(word)) return false;
  advance(word.size());
  return true;
}

void Cursor::skip(std::string_view characters) {
  while (!at_end() && characters.contains(peek())) advance(1);
}

base::Status Cursor::take_character(std::string& out) {
  const std::size_t length = at_end() ? 0 : base::utf8_length(rest());
  if (length == 0) return fail("bytes that are no UTF-8");
  out += rest().substr(0, length);
  advance(length);
  return {};
}

base::Result<std::uint32_t> Cursor::take_hex(std::size_t count) {
  std::uint32_t code = 0;
  const std::string_view digits = rest().substr(0, count);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() != count || read.ec != std::errc() || read.ptr != digits.data() + count) {
    return fail("an escape without its hexadecimal digits");
  }
  advance(count);
  return code;
}

std::unexpected<base::Error> Cursor::fail(std::string what) const {
  return fail(std::move(what), here());
}

std::unexpected<base::Error> Cursor::fail(std::string what, const Place& place) const {
  return base::bad_input(place_text(file_, place), std::move(what),
                         "expected " + std::string(language_));
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace policy
