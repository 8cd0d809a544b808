// Reading the text tables of tests/cases for this module's tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace cases {

inline std::string read(const std::string& name) {
  std::ifstream file(std::string(CERCO_SOURCE_DIR) + "/tests/cases/" + name);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

inline std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// \xNN becomes the byte.
inline std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\\x" && i + 3 < text.size()) {
      out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 2, 2)), nullptr, 16)));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// The rows of a table: lines that are neither empty nor a comment, split at " | ".
inline std::vector<std::vector<std::string>> rows(const std::string& name) {
  std::vector<std::vector<std::string>> out;
  const std::string all = read(name);
  for (std::string_view line : base::split(all, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> row;
    std::string_view rest = line;
    for (auto at = rest.find(" |"); at != std::string_view::npos; at = rest.find(" |")) {
      row.push_back(trim(rest.substr(0, at)));
      rest.remove_prefix(at + 2);
    }
    row.push_back(trim(rest));
    out.push_back(std::move(row));
  }
  if (out.empty()) ADD_FAILURE() << name << " has no row";
  return out;
}

}  // namespace cases
