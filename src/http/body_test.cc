// Bodies: framing, chunks, trailers, and that it does not matter how the bytes are cut.
#include <gtest/gtest.h>

#include "http/http.h"

namespace {

struct Outcome {
  std::string content;
  std::string rest;  // what was not taken
  std::string reason;
  bool done = false;
  std::vector<http::Field> trailers;
  bool operator==(const Outcome&) const = default;
};

// Feeds the text in pieces of `step` bytes.
Outcome run(http::Body body, std::string_view text, std::size_t step) {
  http::BodyReader reader(body, 400, http::Trailers::known);
  Outcome out;
  while (!text.empty() && !reader.done()) {
    std::string_view piece = text.substr(0, step);
    while (!piece.empty() && !reader.done()) {
      const auto part = reader.read(piece);
      if (!part) {
        out.reason = part.error().reason;
        return out;
      }
      out.content += part->content;
      piece.remove_prefix(part->used);
      text.remove_prefix(part->used);
    }
  }
  out.rest = text;
  out.done = reader.done();
  out.trailers = reader.trailers();
  return out;
}

// The same outcome however the bytes are cut.
Outcome any_cut(http::Body body, std::string_view text) {
  const Outcome whole = run(body, text, text.size() + 1);
  for (std::size_t step = 1; step < 8; ++step) EXPECT_EQ(run(body, text, step), whole) << step;
  return whole;
}

constexpr http::Body kChunked{http::Framing::chunked, 0};

TEST(Body, LengthEndsWhereItSays) {
  const auto out = any_cut({http::Framing::length, 5}, "helloGET / HTTP/1.1\r\n");
  EXPECT_EQ(out.content, "hello");
  EXPECT_EQ(out.rest, "GET / HTTP/1.1\r\n");
  EXPECT_TRUE(out.done);
  EXPECT_TRUE(http::BodyReader({http::Framing::length, 0}, 400, http::Trailers::known).done());
  EXPECT_TRUE(http::BodyReader({}, 400, http::Trailers::known).done());
}

TEST(Body, ChunksEndAtTheLast) {
  const auto out = any_cut(kChunked, "5\r\nhello\r\n6;a=\"b\"\r\n world\r\n0\r\n\r\nnext");
  EXPECT_EQ(out.content, "hello world");
  EXPECT_EQ(out.rest, "next");
  EXPECT_TRUE(out.done);
}

// N104: trailers are not merged into anything, and only harmless ones go on.
TEST(Body, N104TrailersAreDroppedButAFew) {
  const auto out = any_cut(
      kChunked, "0\r\nAuthorization: a\r\nHost: b\r\nContent-Length: 5\r\ngrpc-status: 0\r\n\r\n");
  EXPECT_TRUE(out.done);
  ASSERT_EQ(out.trailers.size(), 1U);
  EXPECT_EQ(out.trailers[0].name, "grpc-status");
  EXPECT_EQ(http::last_chunk(out.trailers), "0\r\ngrpc-status: 0\r\n\r\n");
}

TEST(Body, MalformedChunksAreRejected) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"\r\n", "chunk"},
      {"x\r\n", "chunk"},
      {"-1\r\n", "chunk"},
      {"0x5\r\nhello\r\n", "chunk"},
      {"+5\r\nhello\r\n", "chunk"},
      {" 5\r\nhello\r\n", "chunk"},
      {"5\nhello\r\n", "chunk"},
      {"5\r\nhelloX\r\n", "chunk"},
      {"5\r\nhello\n0\r\n", "chunk"},
      {"5 x\r\nhello\r\n", "chunk"},
      {"5;a\x01\r\nhello\r\n", "chunk"},
      {"5;\rb\r\nhello\r\n", "chunk"},
      {"1000000000000000\r\n", "chunk"},
      {"0000000000000005\r\nhello\r\n", "chunk"},
      {"5;" + std::string(300, 'a') + "\r\nhello\r\n", "chunk"},
      {"0\r\nbad name: a\r\n\r\n", "field-name"},
      {"0\r\nA: b\r\n c\r\n\r\n", "folded-line"},
      {"0\r\nA: b\nC: d\r\n\r\n", "chunk"},
      {"0\r\n" + std::string(9000, 'a'), "chunk"},
  };
  for (const auto& [text, reason] : rows) EXPECT_EQ(any_cut(kChunked, text).reason, reason) << text;
  std::string many = "0\r\n";
  for (int i = 0; i < 2000; ++i) many += "A: b\r\n";
  EXPECT_EQ(any_cut(kChunked, many + "\r\n").reason, "trailers");
}

TEST(Body, WrittenChunksAreReadBack) {
  std::string text;
  std::string content;
  for (std::size_t size : {1U, 15U, 16U, 255U, 70'000U}) {
    const std::string piece(size, 'x');
    content += piece;
    text += http::chunk_head(size) + piece + std::string(http::kChunkEnd);
  }
  text += http::last_chunk({});
  const auto out = run(kChunked, text, 1000);
  EXPECT_EQ(out.content, content);
  EXPECT_TRUE(out.done);
}

TEST(Body, CloseEndsOnlyWhatSaysSo) {
  http::BodyReader open({http::Framing::until_close, 0}, 502, http::Trailers::known);
  EXPECT_EQ(open.read("abc")->content, "abc");
  EXPECT_FALSE(open.done());
  EXPECT_TRUE(open.closed());
  EXPECT_TRUE(open.done());
  http::BodyReader cut({http::Framing::length, 4}, 502, http::Trailers::known);
  ASSERT_TRUE(cut.read("abc"));
  EXPECT_EQ(cut.closed().error().status, 502U);
  http::BodyReader chunks(kChunked, 400, http::Trailers::known);
  ASSERT_TRUE(chunks.read("5\r\nhel"));
  EXPECT_EQ(chunks.closed().error().reason, "body-cut");
}

TEST(Body, TrailersOfGrpcPassButNoneThatAHeadCouldHaveSaid) {
  const auto trailers = [](std::string_view text, http::Trailers which) {
    http::BodyReader reader(kChunked, 502, which);
    std::string left = "0\r\n" + std::string(text) + "\r\n";
    while (!reader.done()) left.erase(0, reader.read(left)->used);
    std::string names;
    for (const auto& field : reader.trailers()) names += field.name + " ";
    return names;
  };
  constexpr std::string_view kText =
      "grpc-status: 0\r\nx-mine-bin: aa\r\nset-cookie: a=1\r\ncontent-length: 1\r\n"
      "x-cerco-deny: no\r\nproxy-x: 1\r\naccess-control-allow-origin: a\r\n";
  EXPECT_EQ(trailers(kText, http::Trailers::known), "grpc-status ");
  EXPECT_EQ(trailers(kText, http::Trailers::grpc), "grpc-status x-mine-bin ");
}

}  // namespace
