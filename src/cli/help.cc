// The texts of `--help`.
#include <algorithm>

#include "cli/cli.h"

namespace cli {
namespace {

constexpr std::size_t kColumn = 26;

std::string row(const std::string& left, std::string_view right) {
  std::string line = "  " + left;
  if (line.size() + 2 > kColumn) {
    line += "\n" + std::string(kColumn, ' ');
  } else {
    line.append(kColumn - line.size(), ' ');
  }
  return line + std::string(right) + "\n";
}

std::string flag_row(const Flag& flag) {
  std::string left = flag.letter == 0 ? "    " : std::string("-") + flag.letter + ", ";
  left += flag.name;
  if (!flag.value.empty()) left += " " + std::string(flag.value);
  std::string about(flag.about);
  if (flag.built == Built::not_yet) about += " (not carried out yet)";
  return row(left, about);
}

}  // namespace

std::string help(const Command& command) {
  std::string text = "cerco " + std::string(command.name) + ": " + std::string(command.about);
  if (command.act == nullptr) text += " (not carried out yet)";
  text += "\n\nusage: cerco " + std::string(command.name);
  if (!command.usage.empty()) text += " " + std::string(command.usage);
  text += "\n\n";
  for (const Flag& flag : command.flags) text += flag_row(flag);
  return text;
}

std::string help_all() {
  std::string text =
      "cerco runs code that nobody on your team has written, and keeps what it could reach "
      "small.\n\nusage: cerco COMMAND [FLAGS] [ARG]…\n\n";
  for (const Command& command : commands()) {
    if (command.act != nullptr) text += row(std::string(command.name), command.about);
  }
  std::vector<std::string> rest;
  for (const Command& command : commands()) {
    if (command.act == nullptr) rest.emplace_back(command.name);
  }
  if (!rest.empty()) text += "\nnot carried out yet: " + base::join(rest, ", ") + "\n";
  return text +
         "\ncerco COMMAND --help says more about one. A first try:\n"
         "  cerco run -- python3 -c 'print(1)'\n";
}

}  // namespace cli
