// What the tests of this module share: case files and their escapes.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace http_test {

// `$` is CRLF; \r \n \t \0 \xNN \\ \$ are bytes.
inline std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$') {
      out += "\r\n";
    } else if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else {
      const char c = text[++i];
      if (c == 'x' && text.size() - i > 2) {
        out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        out += c == 'r' ? '\r' : c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
      }
    }
  }
  return out;
}

struct Row {
  std::size_t line = 0;
  std::vector<std::string> words;  // the words in front of the text
  std::string text;                // unescaped
  std::string written;             // of the line `= …` that follows; "" when there is none
};

// Rows of tests/cases/NAME with `words` words in front of the text.
inline std::vector<Row> rows(const std::string& name, std::size_t words) {
  std::ifstream file(std::string(CERCO_SOURCE_DIR "/tests/cases/") + name);
  std::vector<Row> out;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream stream(line);
    std::string word;
    Row row{number, {}, {}, {}};
    if (line[0] == '=') {
      stream >> word >> std::ws;
      std::getline(stream, word);
      out.back().written = unescape(word + "$$");
      continue;
    }
    for (std::size_t i = 0; i < words && stream >> word; ++i) row.words.push_back(word);
    stream >> std::ws;
    std::getline(stream, word);
    row.text = unescape(word + "$$");
    out.push_back(std::move(row));
  }
  if (out.empty()) ADD_FAILURE() << name << " has no row";
  return out;
}

}  // namespace http_test
