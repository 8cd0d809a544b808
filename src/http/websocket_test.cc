// Secrets in the frames of a WebSocket.
#include "http/websocket.h"

#include <gtest/gtest.h>

#include "http/http.h"

namespace {

constexpr std::string_view kSecret = "s3cr3t-of-the-api-0123456789";
constexpr std::string_view kPlaceholder = "cerco_ph_aaaabbbbccccddddeeee";

std::string frame(unsigned first, std::string_view payload) {
  std::string out(1, static_cast<char>(first));
  if (payload.size() < 126) {
    out += static_cast<char>(payload.size());
  } else {
    out += static_cast<char>(126);
    out += static_cast<char>(payload.size() >> 8);
    out += static_cast<char>(payload.size());
  }
  return out + std::string(payload);
}

struct Message {
  unsigned kind = 0;
  std::string text;
  bool operator==(const Message&) const = default;
};

// What a client reads: control frames between the others stand where they came.
std::vector<Message> read(std::string_view bytes) {
  std::vector<Message> messages;
  std::optional<Message> open;
  while (!bytes.empty()) {
    const auto first = static_cast<unsigned char>(bytes[0]);
    std::uint64_t size = static_cast<unsigned char>(bytes[1]);
    std::size_t head = 2;
    if (size >= 126) {
      const std::size_t more = size == 126 ? 2 : 8;
      size = 0;
      for (std::size_t i = 0; i < more; ++i) {
        size = size << 8 | static_cast<unsigned char>(bytes[2 + i]);
      }
      head += more;
    }
    const std::string text(bytes.substr(head, size));
    bytes.remove_prefix(head + size);
    if ((first & 15U) >= 8) {
      messages.push_back({first & 15U, text});
      continue;
    }
    EXPECT_EQ((first & 15U) == 0, open.has_value());
    if (!open) open = Message{first & 15U, ""};
    open->text += text;
    if ((first & 128U) == 0) continue;
    messages.push_back(*open);
    open.reset();
  }
  EXPECT_FALSE(open);
  return messages;
}

std::vector<std::unique_ptr<http::Redaction>> redactions() {
  std::vector<std::unique_ptr<http::Redaction>> all;
  all.push_back(std::make_unique<http::Redaction>(*http::Redaction::of(kSecret, kPlaceholder, {})));
  return all;
}

std::optional<std::string> streamed(std::string_view bytes, std::size_t step) {
  const auto all = redactions();
  http::FrameRedactor redactor(all);
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const auto some = redactor.push(bytes.substr(at, step));
    if (!some) return std::nullopt;
    out += *some;
  }
  return out;
}

TEST(WebSocket, SecretsAreTakenOutOfMessagesHoweverTheyAreCut) {
  const std::string s(kSecret);
  const std::string p(kPlaceholder);
  const std::string long_text(70'000, 'x');
  const std::vector<std::pair<std::string, std::vector<Message>>> rows = {
      {frame(0x81, "key " + s + "."), {{1, "key " + p + "."}}},
      {frame(0x82, base::base64(s)), {{2, base::base64(p)}}},
      {frame(0x01, s.substr(0, 9)) + frame(0x00, s.substr(9, 3)) + frame(0x80, s.substr(12)),
       {{1, p}}},
      {frame(0x01, s.substr(0, 9)) + frame(0x89, "ping") + frame(0x80, s.substr(9) + "!"),
       {{9, "ping"}, {1, p + "!"}}},
      {frame(0x89, s), {{9, p}}},
      {frame(0x81, "") + frame(0x81, "a") + frame(0x01, "") + frame(0x80, ""),
       {{1, ""}, {1, "a"}, {1, ""}}},
      {frame(0x82, s + long_text.substr(0, 60'000) + s),
       {{2, p + long_text.substr(0, 60'000) + p}}},
      {frame(0x81, s.substr(0, 20)) + frame(0x81, "b"), {{1, p.substr(0, 20)}, {1, "b"}}},
      {frame(0x88, "\x03\xe8" + s), {{8, "\x03\xe8" + p}}},
  };
  for (const auto& [bytes, messages] : rows) {
    for (const std::size_t step : {1UL, 2UL, 3UL, 7UL, 1000UL, bytes.size()}) {
      const auto out = streamed(bytes, step);
      ASSERT_TRUE(out) << step;
      EXPECT_EQ(read(*out), messages) << step;
      EXPECT_FALSE(out->contains(s));
    }
  }
}

// A message goes on at once unless it ends in what may be the secret.
TEST(WebSocket, AWholeFrameStaysOne) {
  EXPECT_EQ(streamed(frame(0x81, "hello"), 100), frame(0x81, "hello"));
}

TEST(WebSocket, WhatIsNoFrameOfAServerIsRefused) {
  const std::string rows[] = {
      std::string("\x81\x85"
                  "abcdhello"),   // masked
      frame(0xC1, "compressed"),  // an extension
      frame(0x83, "kind"),        // unknown kinds
      frame(0x8B, "kind"),
      frame(0x80, "of nothing"),
      frame(0x01, "a") + frame(0x81, "b"),  // a message in a message
      frame(0x09, "cut ping"),
      frame(0x89, std::string(126, 'x')),
      std::string("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"),
  };
  for (const std::string& bytes : rows) {
    EXPECT_EQ(streamed(bytes, 1), std::nullopt);
    EXPECT_EQ(streamed(bytes, bytes.size()), std::nullopt);
  }
}

}  // namespace
