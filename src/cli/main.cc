// From the words of the command line to the subcommand that they name.
#include <algorithm>

#include "cli/cli.h"

namespace cli {
namespace {

constexpr int kUsage = 2;

// The command that the first one or two words name, and how many words that took.
struct Found {
  const Command* command = nullptr;
  std::size_t words = 0;
};
Found find_command(std::span<const std::string> args) {
  Found found;
  for (const Command& command : commands()) {
    if (args.size() >= 2 && command.name == args[0] + " " + args[1]) return {&command, 2};
    if (command.name == args[0]) found = {&command, 1};
  }
  return found;
}

// The second words of a command family ("policy" → show, apply, …).
std::vector<std::string> family(const std::string& first) {
  std::vector<std::string> seconds;
  for (const Command& command : commands()) {
    if (command.name.starts_with(first + " ")) {
      seconds.emplace_back(command.name.substr(first.size() + 1));
    }
  }
  return seconds;
}

base::Error unknown_command(std::span<const std::string> args) {
  const std::vector<std::string> seconds = family(args[0]);
  const bool in_family = !seconds.empty();
  std::vector<std::string_view> names;
  for (const Command& command : commands()) {
    if (!in_family) names.push_back(command.name);
  }
  names.insert(names.end(), seconds.begin(), seconds.end());
  if (in_family && args.size() < 2) {
    return base::bad_input(args[0], "which of its commands?",
                           "expected one of " + base::join(seconds, ", "))
        .error();
  }
  const std::string& word = args[in_family ? 1 : 0];
  const std::string near = base::closest(word, names);
  const std::string hint = near.empty() ? "" : " (did you mean " + near + ")";
  return base::bad_input(
             in_family ? args[0] : "", "unknown command `" + base::printable(word) + "`" + hint,
             in_family ? "expected one of " + base::join(seconds, ", ") : "see cerco --help")
      .error();
}

bool asks_for_help(const Command& command, std::span<const std::string> args) {
  for (const std::string& arg : args) {
    if (arg == "--" || (command.words == Words::end_flags && !arg.starts_with('-'))) return false;
    if (arg == "--help" || arg == "-h") return true;
  }
  return false;
}

base::Result<int> carry_out(const World& world, const Command& command,
                            std::span<const std::string> args) {
  if (command.act == nullptr) return base::not_yet(std::string(command.name));
  const Parsed parsed = TRY(parse_flags(command, args));
  if (parsed.has("--help")) {
    print(world, help(command));
    return 0;
  }
  return command.act(world, parsed);
}

}  // namespace

int main(const World& world) {
  const std::span<const std::string> args(world.args);
  if (args.empty()) {
    print_error(world, help_all());
    return kUsage;
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    print(world, help_all());
    return 0;
  }
  if (args[0] == "--version") return version(world, {}).value_or(kUsage);
  const Found found = find_command(args);
  if (found.command == nullptr) {
    print_error(world, unknown_command(args));
    return kUsage;
  }
  const auto rest = args.subspan(found.words);
  if (asks_for_help(*found.command, rest)) {
    print(world, help(*found.command));
    return 0;
  }
  const auto status = carry_out(world, *found.command, rest);
  if (status) return *status;
  print_error(world, status.error());
  return exit_status(status.error(), found.command->usage_status);
}

}  // namespace cli
