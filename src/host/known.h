// What was found out of this host with some effort, kept below the state folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace host {

// What was kept under that name with that key; nothing where the key was another one.
[[nodiscard]] std::optional<std::string> known(const std::string& state_dir,
                                               const std::string& name, std::string_view key);
// Keeps at most 512 bytes, key and value; where that fails it is found out again.
void keep(const std::string& state_dir, const std::string& name, std::string_view key,
          std::string_view value);

}  // namespace host
