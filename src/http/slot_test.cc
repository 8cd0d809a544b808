// The places of secrets in a request: forms, JSON objects, queries, segments of a path.
#include "http/slot.h"

#include <gtest/gtest.h>

#include "http/http.h"

namespace {

using http::Fields;
using http::Finding;
using http::Place;
using http::Where;

constexpr std::string_view kP = "cerco_ph_aaaabbbbccccddddeeeeffff22";

http::RequestHead request(std::string target) {
  http::RequestHead head;
  head.method = "GET";
  head.target = std::move(target);
  head.host = "api.example.com";
  return head;
}

http::Slot slot(Place place, std::string name, std::size_t segment, std::string_view format) {
  http::Slot made;
  http::set_format(made, format);
  made.place = place;
  made.name = std::move(name);
  made.segment = segment;
  return made;
}

struct Row {
  http::Slot slot;
  std::string target;        // P stands for the placeholder
  std::vector<Where> where;  // of what is found
  std::string written;       // with the secret "s&/ é" in it
};

std::string filled(std::string text) {
  const auto at = text.find("{P}");
  return at == std::string::npos ? text : filled(text.replace(at, 3, kP));
}

TEST(Slot, InTheTarget) {
  const auto key = slot(Place::query, "key", 0, "{secret}");
  const auto token = slot(Place::query, "to ken", 0, "v1.{secret}");
  const auto bot = slot(Place::path, "", 1, "bot{secret}");
  const auto second = slot(Place::path, "", 2, "{secret}");
  const Row rows[] = {
      {key, "/a?key={P}", {Where::bound}, "/a?key=s%26%2F%20%C3%A9"},
      {key, "/a?x=1&key={P}&y=%20", {Where::bound}, "/a?x=1&key=s%26%2F%20%C3%A9&y=%20"},
      {key, "/a?%6bey={P}", {Where::bound}, "/a?key=s%26%2F%20%C3%A9"},
      {key, "/a?key={P}&key=other", {Where::bound}, "/a?key=s%26%2F%20%C3%A9&key=other"},
      {key, "/a?key={P}&k2={P}", {Where::bound, Where::url}, ""},
      {key, "/{P}?key={P}", {Where::bound, Where::url}, ""},
      {key, "/a?Key={P}", {Where::url}, ""},
      {key, "/a?key=x{P}", {Where::url}, ""},
      {key, "/a?key={P};key=1", {Where::url}, ""},
      {key, "/a?{P}", {Where::url}, ""},
      {key, "/a?key=", {}, ""},
      {token, "/a?to+ken=v1.{P}", {Where::bound}, "/a?to%20ken=v1.s%26%2F%20%C3%A9"},
      {token, "/a?to%20ken={P}", {Where::url}, ""},
      {bot, "/bot{P}/getMe?a=b", {Where::bound}, "/bots%26%2F%20%C3%A9/getMe?a=b"},
      {bot, "/bot{P}", {Where::bound}, "/bots%26%2F%20%C3%A9"},
      {bot, "/a/bot{P}", {Where::url}, ""},
      {bot, "/bot{P}/{P}", {Where::bound, Where::url}, ""},
      {bot, "/{P}", {Where::url}, ""},
      {second, "/a/{P}/b", {Where::bound}, "/a/s%26%2F%20%C3%A9/b"},
      {second, "/a", {}, ""},
  };
  for (const Row& row : rows) {
    auto head = request(filled(row.target));
    std::vector<Where> where;
    for (const Finding& one : http::find_placeholders(head, {{std::string(kP), row.slot}})) {
      where.push_back(one.where);
    }
    EXPECT_EQ(where, row.where) << row.target;
    if (row.written.empty()) continue;
    http::put_secret(head, row.slot, kP, "s&/ \u00e9");
    EXPECT_EQ(head.target, row.written) << row.target;
  }
}

// Where no placeholder is asked for, the secret is the only value of its place.
TEST(Slot, WithoutAPlaceholder) {
  const auto key = slot(Place::query, "key", 0, "{secret}");
  for (const auto& [target, written] : std::vector<std::pair<std::string, std::string>>{
           {"/a", "/a?key=s"},
           {"/a?", "/a?key=s"},
           {"/a?b=c", "/a?b=c&key=s"},
           {"/a?key=other&b=c&key=", "/a?b=c&key=s"}}) {
    auto head = request(target);
    http::put_secret(head, key, "", "s");
    EXPECT_EQ(head.target, written);
  }
  auto head = request("/a/b?c");
  http::put_secret(head, slot(Place::path, "", 2, "{secret}"), "", "s");
  EXPECT_EQ(head.target, "/a/s?c");
}

TEST(Slot, RenderedSlotHoldsTheSecret) {
  http::Slot basic;
  basic.place = Place::basic;
  basic.user = "git";
  EXPECT_EQ(http::render(basic, "abc"), "Basic " + base::base64("git:abc"));
  EXPECT_EQ(http::render(http::header_slot("X", "Bearer {secret}"), "abc"), "Bearer abc");
  auto head = request("/");
  head.fields = {{"authorization", "Bearer x", "Authorization"}};
  http::put_secret(head, basic, "x", "abc");
  EXPECT_EQ(head.fields[0].value, "Basic " + base::base64("git:abc"));
}

TEST(Form, BodyKinds) {
  const std::vector<std::tuple<std::string, std::string, Fields>> rows = {
      {"application/json", "", Fields::json},
      {"Application/JSON; charset=utf-8", "identity", Fields::json},
      {"application/vnd.api+json", "", Fields::json},
      {"application/x-www-form-urlencoded;a=b", "", Fields::form},
      {"application/json", "gzip", Fields::none},
      {"multipart/form-data; boundary=x", "", Fields::none},
      {"text/plain", "", Fields::none},
  };
  for (const auto& [type, encoding, kind] : rows) {
    auto head = request("/");
    head.fields = {{"content-type", type, ""}};
    if (!encoding.empty()) head.fields.push_back({"content-encoding", encoding, ""});
    EXPECT_EQ(http::fields_of(head), kind) << type;
  }
  EXPECT_EQ(http::fields_of(request("/")), Fields::none);
}

using Values = std::optional<std::vector<std::string>>;

TEST(Form, JsonMembersOfTheFirstLevel) {
  const std::vector<std::pair<std::string, Values>> rows = {
      {R"({"k":"v"})", {{"v"}}},
      {" { \"a\" : [1,{\"k\":\"no\"},\"]\"] ,\r\n\t\"k\" : \"v\" } ", {{"v"}}},
      {R"({"\u006b":"\u00e9\ud83d\ude00\n\/"})", {{"\u00e9\U0001F600\n/"}}},
      {R"({"k":"a","k":"b"})", {{"a", "b"}}},
      {R"({"k":12,"a":null})", {{"12"}}},
      {R"({"k":{"k":"x"}})", {{R"({"k":"x"})"}}},
      {R"({})", {std::vector<std::string>{}}},
      {R"({"a":"k"})", {std::vector<std::string>{}}},
      {R"(["k","v"])", std::nullopt},
      {R"({"k":"v"}{"k":"v"})", std::nullopt},
      {R"({"k":"v")", std::nullopt},
      {R"({"k":"v",})", std::nullopt},
      {R"({"k":"\ud83d"})", std::nullopt},
      {R"({"k":"\ude00"})", std::nullopt},
      {R"({"k":"\x"})", std::nullopt},
      {R"({"k":"\u12g4"})", std::nullopt},
      {"{\"k\":\"a\nb\"}", std::nullopt},
      {R"({"k":})", std::nullopt},
      {R"({k:"v"})", std::nullopt},
      {"", std::nullopt},
      {R"({"k":")", std::nullopt},
      {R"({"k":"\u)", std::nullopt},
      {"{\"k\":" + std::string(63, '[') + std::string(63, ']') + "}",
       {{std::string(63, '[') + std::string(63, ']')}}},
      {"{\"k\":" + std::string(200, '[') + std::string(200, ']') + "}", std::nullopt},
  };
  for (const auto& [text, values] : rows)
    EXPECT_EQ(http::field_values(Fields::json, text, "k"), values) << text;
}

TEST(Form, JsonIsRewrittenAtTheOnePlace) {
  const std::string text = R"({ "a" : {"k":"P"}, "k" : "P" , "k":"Q", "b":"P" })";
  EXPECT_EQ(http::with_field(Fields::json, text, "k", "P", "s\"\n"),
            R"({ "a" : {"k":"P"}, "k" : "s\"\n" , "k":"Q", "b":"P" })");
  EXPECT_EQ(http::with_only_field(Fields::json, text, "k", "s"),
            R"({ "a" : {"k":"P"}, "k" : "s" , "k":"s", "b":"P" })");
  EXPECT_EQ(http::with_only_field(Fields::json, " { }", "k", "s"), " {\"k\":\"s\" }");
  EXPECT_EQ(http::with_only_field(Fields::json, R"({"a":1})", "k", "s"), R"({"k":"s","a":1})");
  EXPECT_EQ(http::with_only_field(Fields::json, "[]", "k", "s"), std::nullopt);
  EXPECT_EQ(http::with_field(Fields::none, "k=P", "k", "P", "s"), std::nullopt);
}

TEST(Form, FormsAreRewrittenAtTheOnePlace) {
  EXPECT_EQ(http::with_field(Fields::form, "a=P&k=P&k=%50&k=Q&%6B=P", "k", "P", "s &"),
            "a=P&k=s%20%26&k=s%20%26&k=Q&k=s%20%26");
  EXPECT_EQ(http::with_only_field(Fields::form, "k=1&a=+&k", "k", "s"), "a=+&k=s");
  EXPECT_EQ(http::with_only_field(Fields::form, "", "k", "s"), "k=s");
  EXPECT_EQ(http::field_values(Fields::form, "k=a+b&k&x=1&k=%zz", "k"),
            (Values{{"a b", "", "%zz"}}));
  const auto not_k = [](std::string_view name, std::string_view) { return name != "k"; };
  EXPECT_EQ(http::form_with_some("k=1&a=%20+&&k&b", not_k), "a=%20+&&b");
}

}  // namespace
