// How a subcommand's flags are read.
#include <algorithm>
#include <deque>

#include "cli/cli.h"

namespace cli {

bool Parsed::has(std::string_view flag) const {
  return std::ranges::any_of(flags, [&](const auto& given) { return given.first == flag; });
}

std::optional<std::string> Parsed::value(std::string_view flag) const {
  std::optional<std::string> last;
  for (const auto& [name, value] : flags) {
    if (name == flag) last = value;
  }
  return last;
}

std::vector<std::string> Parsed::values(std::string_view flag) const {
  std::vector<std::string> all;
  for (const auto& [name, value] : flags) {
    if (name == flag) all.push_back(value);
  }
  return all;
}

namespace {

// The words that are still to be read, taken from the front.
class Arguments {
 public:
  Arguments(const Command& command, std::span<const std::string> args)
      : command_(command), left_(args) {}

  base::Result<Parsed> read() {
    while (!left_.empty()) {
      const std::string& arg = take();
      if (arg == "--") {
        parsed_.dashes = true;
        parsed_.rest.assign(left_.begin(), left_.end());
        return std::move(parsed_);
      }
      if (arg.size() < 2 || arg[0] != '-') {
        parsed_.words.push_back(arg);
        if (command_.words == Words::end_flags) {
          parsed_.words.insert(parsed_.words.end(), left_.begin(), left_.end());
          return std::move(parsed_);
        }
        continue;
      }
      TRY(arg.starts_with("--") ? long_flag(arg) : letters(arg));
    }
    return std::move(parsed_);
  }

 private:
  const std::string& take() {
    const std::string& first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }

  base::Status long_flag(const std::string& arg) {
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const auto flag = std::ranges::find(command_.flags, name, &Flag::name);
    if (flag == command_.flags.end()) return unknown(name);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = arg.substr(equals + 1);
    return add(*flag, name, std::move(value));
  }

  // `-it` is `-i -t`; the last letter may take the value that follows it.
  base::Status letters(const std::string& arg) {
    for (std::size_t at = 1; at < arg.size(); ++at) {
      const std::string shown = std::string("-") + arg[at];
      const auto flag = std::ranges::find(command_.flags, arg[at], &Flag::letter);
      if (flag == command_.flags.end()) return unknown(at == 1 ? arg : shown);
      std::optional<std::string> value;
      if (!flag->value.empty() && at + 1 < arg.size()) {
        value = arg.substr(at + 1);
        at = arg.size();
      }
      TRY(add(*flag, shown, std::move(value)));
    }
    return {};
  }

  base::Status add(const Flag& flag, const std::string& shown, std::optional<std::string> value) {
    if (flag.built == Built::not_yet) return base::not_yet(where() + ": " + shown);
    if (flag.value.empty()) {
      if (value) return base::bad_input(where(), "`" + shown + "` takes no value", {});
      value.emplace();
    } else if (!value) {
      if (left_.empty()) {
        return base::bad_input(where(), "`" + shown + "` has no value",
                               "expected " + shown + " " + std::string(flag.value));
      }
      value = take();
    }
    parsed_.flags.emplace_back(flag.name, std::move(*value));
    return {};
  }

  [[nodiscard]] std::unexpected<base::Error> unknown(const std::string& shown) const {
    std::vector<std::string_view> names;
    for (const Flag& flag : command_.flags) names.push_back(flag.name);
    const std::string near = base::closest(shown, names);
    const std::string hint = near.empty() ? "" : " (did you mean " + near + ")";
    return base::bad_input(where(), "unknown flag `" + base::printable(shown) + "`" + hint,
                           "see cerco " + where() + " --help");
  }

  [[nodiscard]] std::string where() const { return std::string(command_.name); }

  const Command& command_;
  std::span<const std::string> left_;
  Parsed parsed_;
};

}  // namespace

base::Result<Parsed> parse_flags(const Command& command, std::span<const std::string> args) {
  return Arguments(command, args).read();
}

base::Status want_words(std::string_view command, const Parsed& parsed, std::size_t count,
                        std::string_view usage) {
  const std::string expected =
      "expected cerco " + std::string(command) + (usage.empty() ? "" : " ") + std::string(usage);
  if (parsed.dashes) return base::bad_input(std::string(command), "`--` is not for it", expected);
  if (parsed.words.size() > count) {
    return base::bad_input(std::string(command),
                           "one word too many: `" + base::printable(parsed.words[count]) + "`",
                           expected);
  }
  if (parsed.words.size() < count) {
    return base::bad_input(std::string(command), "something is missing", expected);
  }
  return {};
}

}  // namespace cli
