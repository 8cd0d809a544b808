// Which package index a tool of this host is configured with, read from the tool's own files.
//
// No host name of an index stands here. What a tool was not told, its own installation says where
// that can be read (pip, npm, go); where it cannot (cargo, maven), the caller is asked to configure
// it. Files of the project are not read, since whoever wrote the code wrote them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace host {

struct Index {
  std::string url;   // http(s), without a user
  std::string from;  // the file or variable that says so
  bool operator==(const Index&) const = default;
};

struct Indexes {
  std::vector<Index> all;  // at least one
  // Variables that tell the tool inside of what was configured; empty where its default holds.
  std::map<std::string, std::string> variables;
};

// Where tools keep their configuration. `read` gives a file's text, nullopt where there is none,
// and an error for one that others may have written; `list` the names in a folder, sorted.
struct ToolPlaces {
  std::map<std::string, std::string> env;
  std::string home;
  std::string folder;  // that the caller stands in
  std::function<base::Result<std::optional<std::string>>(const std::string& path)> read;
  std::function<std::vector<std::string>(const std::string& folder)> list;
};

// The names that indexes_of() knows: pip, npm, cargo, go, apt, maven, git.
[[nodiscard]] const std::vector<std::string_view>& index_tools();

// missing where the tool is configured with no index that can be named; says what would be read.
// For git these are the remotes of the repository that the caller stands in.
[[nodiscard]] base::Result<Indexes> indexes_of(std::string_view tool, const ToolPlaces& places);

}  // namespace host
