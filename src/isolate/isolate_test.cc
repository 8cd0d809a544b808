// Tests of what the engine is given and of how its lines are read.
#include "isolate/isolate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "isolate/loader.h"

namespace {

using isolate::Lines;
using isolate::Piece;

std::vector<Piece> read(std::string_view text, std::size_t step) {
  Lines lines;
  std::vector<Piece> all;
  for (std::size_t at = 0; at < text.size(); at += step) {
    for (Piece& piece : lines.feed(text.substr(at, step))) {
      const bool more = !all.empty() && all.back().stream == piece.stream && !piece.status;
      if (more) {
        all.back().bytes += piece.bytes;
      } else {
        all.push_back(std::move(piece));
      }
    }
  }
  return all;
}

TEST(Lines, SayTheSameInPiecesOfAnySize) {
  using namespace std::literals;
  struct Row {
    std::string_view text;
    std::vector<Piece> pieces;
  };
  const std::array rows = {
      Row{"ohello\\n\n", {{1, "hello\n", {}}}},
      Row{"oa\\\\n\\0b\n", {{1, "a\\n\0b"s, {}}}},
      Row{"ea\noh\n", {{2, "a", {}}, {1, "h", {}}}},
      Row{"oone\notwo\n", {{1, "onetwo", {}}}},
      Row{"O\xC3\xBF\\0\\n\xC2\x80z\n", {{1, "\xFF\0\n\x80z"s, {}}}},
      Row{"E\xC3\x83(\n", {{2, "\xC3(", {}}}},
      Row{"o\xC3\xBF\n", {{1, "\xC3\xBF", {}}}},
      Row{"x0\n", {{0, "", 0}}},
      Row{"ob\nx9\noafter\n", {{1, "b", {}}, {0, "", 9}}},
      Row{"x99999999999999999999\n", {{0, "", 255}}},
      Row{"x\n", {{0, "", 0}}},
      Row{"\n\no\n", {}},
      Row{"?engine's own\n", {{2, "engine's own", {}}}},
      Row{"ocut", {{1, "cut", {}}}},
  };
  for (const Row& row : rows) {
    for (const std::size_t step :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{100}}) {
      EXPECT_EQ(read(row.text, step), row.pieces) << row.text << " by " << step;
    }
  }
}

isolate::Script script(const std::string& source) {
  isolate::Script made;
  made.name = "a.js";
  made.source = source;
  made.argv = {"/engine/workerd", "/workspace/a.js", "x\"y"};
  made.env = {{"NAME", "a\\b\n"}};
  made.heap_mib = 512;
  return made;
}

TEST(Config, HoldsTheScriptAndNothingBoundButTheNetwork) {
  const std::string text = isolate::config_text(script("console.log(\"\\n\");\n"));
  EXPECT_TRUE(text.contains("--max-old-space-size=512"));
  EXPECT_TRUE(text.contains("cerco.start')];console.log(\\\"\\\\n\\\");\\n"));
  EXPECT_TRUE(text.contains("x\\\\\\\"y")) << "as JSON, then as a literal";
  for (const char* never :
       {"disk", "unsafeEval", "external", "inspector", "cacheApi", "localDisk"}) {
    EXPECT_FALSE(text.substr(0, text.find("modules =")).contains(never)) << never;
  }
  EXPECT_EQ(text.find("bindings"), text.rfind("bindings"));
}

TEST(Config, NoByteOfAScriptEndsItsLiteral) {
  const std::string plain = isolate::config_text(script(""));
  for (const std::string& hostile :
       {std::string("\")]); const config = 1"), std::string("\\"), std::string("a\\\")"),
        std::string("\r\n\t\x01\x7f"), std::string("\xEF\xBB\xBFlet a"),
        std::string("#!/usr/bin/env node\n1")}) {
    const std::string text = isolate::config_text(script(hostile));
    // Without escaped characters as many quotes as before, and none of the lines of its own.
    const auto quotes = [](std::string_view all) {
      std::size_t count = 0;
      for (std::size_t at = 0; at < all.size(); ++at) {
        if (all[at] == '\\') {
          ++at;
        } else if (all[at] == '"') {
          ++count;
        }
      }
      return count;
    };
    EXPECT_EQ(quotes(text), quotes(plain));
    EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(plain, '\n'));
    EXPECT_EQ(text.find('\r'), std::string::npos);
  }
  EXPECT_TRUE(isolate::config_text(script("#!/usr/bin/env node\n1")).contains(";//#!/usr/bin"));
}

TEST(Loader, TakesAwayWhatAScriptIsNotToHave) {
  for (const char* name : {"'WebAssembly'", "'SharedArrayBuffer'", "'Atomics'", "'caches'"}) {
    EXPECT_TRUE(isolate::kLoader.contains(name)) << name;
  }
}

}  // namespace
