// HTTP/2 connections of both sides, against each other and against frames written by hand.
#include <gtest/gtest.h>

#include <array>

#include "http/http.h"

namespace http {
namespace {

using State = H2Stream::State;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string frame(unsigned type, unsigned flags, std::uint32_t stream, std::string_view payload) {
  std::string out;
  for (const unsigned shift : {16U, 8U, 0U}) {
    out += static_cast<char>(payload.size() >> shift & 0xff);
  }
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const unsigned shift : {24U, 16U, 8U, 0U}) out += static_cast<char>(stream >> shift & 0xff);
  return out + std::string(payload);
}

enum : unsigned { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinue = 9 };
enum : unsigned { kEndStream = 1, kEndHeaders = 4 };

// A field that enters no table; short names and values only.
std::string literal(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  for (const auto text : {name, value}) {
    out += static_cast<char>(text.size());
    out += text;
  }
  return out;
}

std::string block(const std::vector<Field>& more, std::string_view method = "GET",
                  std::string_view path = "/v1/x", std::string_view authority = "api.test") {
  std::string out = literal(":method", method) + literal(":scheme", "https") +
                    literal(":authority", authority) + literal(":path", path);
  for (const Field& field : more) out += literal(field.name, field.value);
  return out;
}

std::unique_ptr<H2Connection> side(H2Side which, const H2Limits& limits = {}) {
  return std::move(*H2Connection::make(which, limits));
}

// The code of the GOAWAY, or -1; and of the last RST_STREAM.
struct Answer {
  int go_away = -1;
  int reset = -1;
};
Answer read_frames(std::string_view bytes) {
  Answer answer;
  while (bytes.size() >= 9) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const std::size_t size = static_cast<std::size_t>(at(0) << 16 | at(1) << 8 | at(2));
    if (at(3) == 7) answer.go_away = at(9 + 7);
    if (at(3) == 3) answer.reset = at(9 + 3);
    bytes.remove_prefix(std::min(bytes.size(), 9 + size));
  }
  return answer;
}

std::string all_output(H2Connection& connection) {
  std::string out;
  while (true) {
    const std::string_view some = connection.output();
    if (some.empty()) return out;
    out += some;
  }
}

// A server that has had the preface and these frames.
struct Served {
  std::unique_ptr<H2Connection> connection;
  std::vector<std::shared_ptr<H2Stream>> streams;
  Answer answer;
};
Served serve(const std::string& frames, const H2Limits& limits = {}) {
  Served out{.connection = side(H2Side::server, limits), .streams = {}, .answer = {}};
  out.connection->feed(std::string(kPreface) + frame(kSettings, 0, 0, "") + frames, 0);
  out.streams = out.connection->accept();
  out.answer = read_frames(all_output(*out.connection));
  return out;
}

std::string read_all(H2Stream& stream) {
  std::string out;
  std::array<char, 64> room{};
  while (true) {
    const auto got = stream.read(room);
    if (got.state != State::moved) break;
    out.append(room.data(), got.bytes);
  }
  return out;
}

// Two sides whose bytes go to each other.
struct Pair {
  std::unique_ptr<H2Connection> client = side(H2Side::client);
  std::unique_ptr<H2Connection> server = side(H2Side::server);
  std::vector<std::shared_ptr<H2Stream>> accepted;

  void pump() {
    while (true) {
      const std::string up(client->output());
      const std::string down(server->output());
      if (up.empty() && down.empty()) break;
      server->feed(up, 0);
      client->feed(down, 0);
      for (auto& stream : server->accept()) accepted.push_back(std::move(stream));
    }
  }
  std::shared_ptr<H2Stream> ask(std::string_view text) {
    auto stream = client->open();
    EXPECT_EQ(stream->write(text).bytes, text.size());
    pump();
    return stream;
  }
};

TEST(H2, ARequestAndItsAnswerAreTheSameText) {
  Pair pair;
  const auto asked = pair.ask(
      "POST /v1/x?y=1 HTTP/1.1\r\nHost: api.test\r\nX-One: a b\r\nTransfer-Encoding: chunked\r\n"
      "\r\n3\r\nabc\r\n0\r\n\r\n");
  ASSERT_EQ(pair.accepted.size(), 1U);
  H2Stream& served = *pair.accepted[0];
  EXPECT_EQ(read_all(served),
            "POST /v1/x?y=1 HTTP/1.1\r\nhost: api.test\r\nx-one: a b\r\nte: trailers\r\n"
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  std::array<char, 64> room{};
  EXPECT_EQ(served.read(room).state, State::end);
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nok\r\n0\r\ngrpc-status: 0\r\nx-mine: 1\r\n\r\n";
  EXPECT_EQ(served.write(answer).bytes, answer.size());
  pair.pump();
  EXPECT_EQ(read_all(*asked),
            "HTTP/1.1 200 \r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n"
            "2\r\nok\r\n0\r\ngrpc-status: 0\r\nx-mine: 1\r\n\r\n");
  EXPECT_EQ(asked->read(room).state, State::end);
  EXPECT_EQ(pair.client->streams(), 0U);
  EXPECT_EQ(pair.server->streams(), 0U);
}

TEST(H2, AnAnswerMayBeginBeforeTheRequestHasEnded) {
  Pair pair;
  const auto asked =
      pair.ask("POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  H2Stream& served = *pair.accepted.at(0);
  EXPECT_TRUE(read_all(served).ends_with("\r\n\r\n1\r\na\r\n"));
  (void)served.write("HTTP/1.1 100 Continue\r\n\r\n");
  (void)served.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n");
  pair.pump();
  EXPECT_EQ(read_all(*asked),
            "HTTP/1.1 100 \r\n\r\nHTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n1\r\nb\r\n");
  (void)asked->write("1\r\nc\r\n0\r\n\r\n");
  pair.pump();
  EXPECT_EQ(read_all(served), "1\r\nc\r\n0\r\n\r\n");
  (void)served.write("0\r\ngrpc-status: 0\r\n\r\n");
  pair.pump();
  EXPECT_EQ(read_all(*asked), "0\r\ngrpc-status: 0\r\n\r\n");
}

TEST(H2, WhatIsNotReadHoldsTheSenderBack) {
  Pair pair;
  const auto asked =
      pair.ask("POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  std::size_t sent = 0;
  while (true) {
    const auto put = asked->write(chunk);
    if (put.state == State::waits) break;
    ASSERT_EQ(put.state, State::moved);
    if (put.bytes < chunk.size()) {
      sent += put.bytes;
      break;
    }
    sent += put.bytes;
    pair.pump();
  }
  const H2Limits limits;
  EXPECT_LE(sent, static_cast<std::size_t>(limits.stream_window) + std::size_t{128} * 1024);
  EXPECT_TRUE(asked->held());
  EXPECT_FALSE(asked->writable());
  EXPECT_FALSE(read_all(*pair.accepted.at(0)).empty());
  pair.pump();
  EXPECT_TRUE(asked->writable());
}

TEST(H2, ResetsGoBothWays) {
  Pair pair;
  const auto first = pair.ask("GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n");
  first->abandon(H2Code::cancel);
  pair.pump();
  EXPECT_TRUE(pair.accepted.at(0)->broken());
  const auto second = pair.ask("GET /b HTTP/1.1\r\nHost: api.test\r\n\r\n");
  pair.accepted.at(1)->abandon(H2Code::refused);
  pair.pump();
  EXPECT_TRUE(second->broken());
  EXPECT_TRUE(second->refused());
}

TEST(H2, AnAnswerBeforeTheEndOfTheRequestAsksForNoMore) {
  Pair pair;
  const auto asked =
      pair.ask("POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n");
  (void)pair.accepted.at(0)->write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  pair.accepted.at(0)->abandon(H2Code::internal);
  pair.pump();
  EXPECT_EQ(read_all(*asked), "HTTP/1.1 403 \r\ncontent-length: 2\r\n\r\nno");
  EXPECT_EQ(asked->write("1\r\na\r\n").state, State::broken);
  EXPECT_EQ(pair.server->streams(), 0U);
}

TEST(H2, AGoAwayLeavesWhatIsUnderWay) {
  Pair pair;
  const auto asked = pair.ask("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
  pair.client->feed(frame(7, 0, 0, std::string("\0\0\0\x01\0\0\0\0", 8)), 0);
  EXPECT_FALSE(pair.client->takes_more());
  (void)pair.accepted.at(0)->write("HTTP/1.1 204 No Content\r\n\r\n");
  pair.pump();
  EXPECT_EQ(read_all(*asked), "HTTP/1.1 204 \r\n\r\n");
}

TEST(H2, N112LineBreaksInFieldsAreAnErrorOfTheStream) {
  for (const Field& field :
       {Field{"x", "a\r\nx-evil: 1", ""}, Field{"x", std::string("a\0b", 3), ""},
        Field{"x\r\ny", "a", ""}, Field{"X-Upper", "a", ""}, Field{"connection", "close", ""},
        Field{"transfer-encoding", "chunked", ""}, Field{"upgrade", "websocket", ""}}) {
    auto served = serve(frame(kHeaders, kEndStream | kEndHeaders, 1, block({field})));
    EXPECT_TRUE(served.streams.empty()) << field.name;
    EXPECT_EQ(served.answer.reset, 1) << field.name;
    EXPECT_EQ(served.connection->take_malformed(), 1U) << field.name;
  }
  for (const std::string& path :
       {std::string("/a b"), std::string("/a\r\nHost: b"), std::string("x")}) {
    auto served = serve(frame(kHeaders, kEndStream | kEndHeaders, 1, block({}, "GET", path)));
    const bool rejected =
        served.streams.empty() || !parse_request(read_all(*served.streams[0]), {.leg = Leg::tls});
    EXPECT_TRUE(rejected) << path;
  }
}

TEST(H2, WhatCouldBeTwoHostsIsRejectedAsText) {
  const auto text = [](const std::string& headers) {
    auto served = serve(frame(kHeaders, kEndStream | kEndHeaders, 1, headers));
    return served.streams.empty() ? std::string() : read_all(*served.streams[0]);
  };
  const Admission admission{.leg = Leg::tls};
  EXPECT_TRUE(parse_request(text(block({{"host", "api.test", ""}})), admission));
  EXPECT_EQ(parse_request(text(block({{"host", "evil.test", ""}})), admission).error().reason,
            "host");
  const std::string other = literal(":method", "GET") + literal(":scheme", "http") +
                            literal(":authority", "api.test") + literal(":path", "/");
  EXPECT_EQ(parse_request(text(other), admission).error().reason, "target");
}

TEST(H2, CookieCrumbsBecomeOne) {
  auto served = serve(frame(kHeaders, kEndStream | kEndHeaders, 1,
                            block({{"cookie", "a=1", ""}, {"cookie", "b=2", ""}})));
  ASSERT_EQ(served.streams.size(), 1U);
  EXPECT_TRUE(read_all(*served.streams[0]).contains("\r\ncookie: a=1; b=2\r\n"));
}

TEST(H2, N114TheLengthThatWasStatedCounts) {
  const std::string head = block({{"content-length", "3", ""}}, "POST");
  for (const std::string& data : {std::string("ab"), std::string("abcd")}) {
    auto served = serve(frame(kHeaders, kEndHeaders, 1, head) + frame(kData, kEndStream, 1, data));
    EXPECT_EQ(served.answer.reset, 1) << data;
    ASSERT_EQ(served.streams.size(), 1U);
    EXPECT_TRUE(served.streams[0]->broken()) << data;
  }
  auto served = serve(frame(kHeaders, kEndHeaders, 1, head) + frame(kData, kEndStream, 1, "abc"));
  EXPECT_TRUE(read_all(*served.streams.at(0)).ends_with("content-length: 3\r\n\r\nabc"));
}

TEST(H2, N115FloodsEndInCalm) {
  std::string resets;
  std::string pings;
  std::string settings;
  std::string empty = frame(kHeaders, kEndHeaders, 1, block({}, "POST"));
  std::string malformed = frame(kHeaders, 0, 1, block({{"X", "", ""}}));
  std::string continued = frame(kHeaders, 0, 1, block({}));
  for (std::uint32_t i = 0; i < 1200; ++i) {
    resets += frame(kHeaders, kEndStream | kEndHeaders, 1 + 2 * i, block({})) +
              frame(kReset, 0, 1 + 2 * i, std::string("\0\0\0\x08", 4));
    pings += frame(kPing, 1, 0, "12345678");
    settings += frame(kSettings, 0, 0, "");
    empty += frame(kData, 0, 1, "");
    continued += frame(kContinue, 0, 1, "");
    malformed += frame(kContinue, 0, 1, "\x82");
  }
  // Longer as sent than is taken, though no longer unpacked than is left to the admission.
  std::string large = frame(kHeaders, 0, 1, block({}));
  std::string fields;
  for (int i = 0; i < 150; ++i) fields += literal("x", std::string(100, 'v'));
  std::string bomb = block({});
  // One field of a large value enters the table, and is named again and again.
  bomb += std::string("\x40\x01x\x7f\xa1\x1e", 6) + std::string(4000, 'v');
  for (int i = 0; i < 5; ++i) large += frame(kContinue, 0, 1, fields);
  for (int i = 0; i < 100; ++i) bomb += '\xbe';
  for (const auto& [name, frames] :
       {std::pair{"h2-resets", resets},
        {"h2-control", pings},
        {"h2-control", settings},
        {"h2-control", empty},
        {"h2-control", continued},
        {"h2-control", malformed},
        {"h2-head", large},
        {"h2-head", frame(kHeaders, kEndStream | kEndHeaders, 1, bomb)}}) {
    const auto served = serve(frames);
    EXPECT_EQ(served.connection->problem(), name);
    EXPECT_EQ(served.answer.go_away, 11) << name;
    EXPECT_TRUE(served.connection->over()) << name;
  }
}

TEST(H2, N115WhatIsWithinTheLimitsIsServed) {
  std::string frames;
  for (std::uint32_t i = 0; i < 100; ++i) {
    frames += frame(kHeaders, kEndStream | kEndHeaders, 1 + 2 * i, block({}));
    frames += frame(kPing, 0, 0, "12345678");
  }
  const auto served = serve(frames);
  EXPECT_EQ(served.streams.size(), 100U);
  EXPECT_EQ(served.connection->problem(), "");
}

TEST(H2, N115NoMoreStreamsThanAreAllowed) {
  std::string frames;
  for (std::uint32_t i = 0; i < 101; ++i) {
    frames += frame(kHeaders, kEndStream | kEndHeaders, 1 + 2 * i, block({}));
  }
  const auto served = serve(frames);
  EXPECT_EQ(served.streams.size(), 100U);
  EXPECT_EQ(served.answer.reset, 7);
}

TEST(H2, AnAllowanceComesBackWithTime) {
  H2Allowance allowance(2, 10);
  EXPECT_TRUE(allowance.take());
  EXPECT_TRUE(allowance.take());
  EXPECT_FALSE(allowance.take());
  allowance.now(99);
  EXPECT_FALSE(allowance.take());
  allowance.now(100);
  EXPECT_TRUE(allowance.take());
  EXPECT_FALSE(allowance.take());
  allowance.earn(5);
  EXPECT_TRUE(allowance.take());
  EXPECT_TRUE(allowance.take());
  EXPECT_FALSE(allowance.take());
}

TEST(H2, N117ExtendedConnectIsNotAdvertisedAndNotTaken) {
  const auto server = side(H2Side::server);
  const std::string settings = all_output(*server);
  // SETTINGS first: identifier 8 would be SETTINGS_ENABLE_CONNECT_PROTOCOL.
  const std::size_t size = static_cast<unsigned char>(settings[2]);
  ASSERT_EQ(settings[3], 4);
  for (std::size_t at = 9; at < 9 + size; at += 6) EXPECT_NE(settings[at + 1], 8);
  const auto served = serve(frame(
      kHeaders, kEndHeaders, 1,
      literal(":method", "CONNECT") + literal(":protocol", "websocket") +
          literal(":scheme", "https") + literal(":authority", "api.test") + literal(":path", "/")));
  EXPECT_TRUE(served.streams.empty());
  EXPECT_EQ(served.answer.reset, 1);
  const auto plain =
      serve(frame(kHeaders, kEndHeaders, 1,
                  literal(":method", "CONNECT") + literal(":authority", "api.test:443")));
  ASSERT_EQ(plain.streams.size(), 1U);
  EXPECT_EQ(parse_request(read_all(*plain.streams[0]), {.leg = Leg::tls}).error().reason,
            "connect");
}

// HPACK remembers fields that may be indexed, at both ends; a secret must not be among them.
TEST(H2, WhatAClientSideSendsEntersNoTable) {
  const auto client = side(H2Side::client);
  std::vector<std::string> sent;
  for (int i = 0; i < 2; ++i) {
    (void)client->open()->write("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer abc\r\n\r\n");
    sent.push_back(all_output(*client));
  }
  const std::string never_indexed("\x1f\x08", 2);  // of `authorization`, RFC 7541 section 6.2.3
  for (const std::string& one : sent) EXPECT_TRUE(one.contains(never_indexed));
  EXPECT_TRUE(sent[0].ends_with(sent[1].substr(9)));
}

TEST(H2, ALongHeadIsLeftToTheAdmission) {
  std::string headers = block({});
  for (int i = 0; i < 600; ++i) headers += literal("x", std::string(100, 'v'));
  std::string frames = frame(kHeaders, kEndStream, 1, headers.substr(0, 16000));
  for (std::size_t at = 16000; at < headers.size(); at += 16000) {
    frames += frame(kContinue, at + 16000 < headers.size() ? 0 : kEndHeaders, 1,
                    headers.substr(at, 16000));
  }
  const auto served = serve(frames);
  ASSERT_EQ(served.streams.size(), 1U);
  const auto parsed = parse_request(read_all(*served.streams[0]), {.leg = Leg::tls});
  EXPECT_EQ(parsed.error().status, 431U);
}

TEST(H2, BytesThatAreNoHttp2AreSentAway) {
  const auto server = side(H2Side::server);
  server->feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0);
  (void)all_output(*server);
  EXPECT_EQ(server->problem(), "h2-protocol");
  EXPECT_TRUE(server->over());
}

TEST(H2, AStreamOutlivesItsConnection) {
  Pair pair;
  const auto asked = pair.ask("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
  pair.client.reset();
  std::array<char, 64> room{};
  EXPECT_EQ(asked->read(room).state, State::broken);
  EXPECT_EQ(asked->write("x").state, State::broken);
  asked->abandon(H2Code::cancel);
}

}  // namespace
}  // namespace http
