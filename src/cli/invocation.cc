// What `cerco run` is asked to run, and what it brings along.
#include "cli/invocation.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "os/os.h"

namespace cli {
namespace {

constexpr std::string_view kRoot = "/workspace";
constexpr std::size_t kMaxName = 64;
constexpr off_t kMostScript = 8 << 20;  // as isolate/isolate.h has it

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kByExtension = {
    {{".py", "python3"}, {".js", "node"}, {".sh", "sh"}}};

bool exists(const std::string& path) {
  return os::open(path, O_PATH, 0).has_value();
}

// As it would be typed at a shell.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,@%+").contains(c);
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return base::printable(out + "'");
}

std::string command_form(const std::vector<std::string>& words) {
  std::vector<std::string> shown;
  for (const std::string& word : words) shown.push_back(quoted(word));
  return "to run a command: cerco run -- " + base::join(shown, " ");
}

base::Result<Invocation> from_file(const std::vector<std::string>& words) {
  const std::string& source = words[0];
  const auto fd = os::open(source, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  if (!fd) {
    return base::bad_input(
        "run: " + base::printable(source),
        fd.error().number == ENOENT ? "no such file on this host" : "cannot be read",
        command_form(words));
  }
  const auto status = TRY(os::fstat(fd->get(), source));
  if (!S_ISREG(status.st_mode)) {
    return base::bad_input("run: " + base::printable(source), "is no regular file",
                           command_form(words));
  }
  auto file = TRY(workspace::incoming(source, "", kRoot));
  Invocation invocation;
  const std::string inside = "./" + file.path;
  const bool shebang = TRY(os::read_some(fd->get(), 2, source)) == "#!";
  const auto by_extension = std::ranges::find_if(
      kByExtension, [&](const auto& known) { return file.path.ends_with(known.first); });
  if (shebang) {
    file.executable = true;
  } else if (by_extension != kByExtension.end()) {
    invocation.argv.emplace_back(by_extension->second);
  } else {
    return base::bad_input(
        "run: " + base::printable(source),
        "has no shebang and no extension that says how to start it (.py, .js, .sh)",
        "cerco run --in " + base::printable(source) + " -- " + base::printable(inside));
  }
  invocation.argv.push_back(inside);
  invocation.argv.insert(invocation.argv.end(), words.begin() + 1, words.end());
  invocation.file = std::move(file);
  return invocation;
}

}  // namespace

base::Result<Invocation> read_invocation(const Parsed& parsed) {
  if (!parsed.words.empty()) return from_file(parsed.words);
  if (parsed.rest.empty()) {
    return base::bad_input(
        "run", parsed.dashes ? "no command after `--`" : "nothing to run",
        "expected cerco run [FLAGS] -- CMD [ARG]… or cerco run [FLAGS] FILE [ARG]…");
  }
  return Invocation{parsed.rest, std::nullopt};
}

base::Result<Invocation> read_script(const Parsed& parsed) {
  for (const std::string flag : {"--in", "--out", "--ro"}) {
    if (!parsed.has(flag)) continue;
    return base::bad_input(flag, "a script in the isolate tier has no files",
                           "standard input and output, or another tier");
  }
  const std::vector<std::string>& words = parsed.words.empty() ? parsed.rest : parsed.words;
  if (words.empty()) {
    return base::bad_input("run", "nothing to run",
                           "expected cerco run --tier isolate [FLAGS] -- SCRIPT [ARG]…");
  }
  const std::string where = "run: " + base::printable(words[0]);
  const auto fd = os::open(words[0], O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  if (!fd) {
    return base::bad_input(
        where, fd.error().number == ENOENT ? "no such file on this host" : "cannot be read",
        "a script; in the isolate tier the command is a file of JavaScript on this host");
  }
  const auto status = TRY(os::fstat(fd->get(), words[0]));
  const bool named =
      words[0].ends_with(".js") || words[0].ends_with(".mjs") || words[0].ends_with(".cjs");
  if (!S_ISREG(status.st_mode) || !named) {
    return base::bad_input(where, "is no file of JavaScript (.js, .mjs, .cjs)",
                           "one, or another tier");
  }
  if (status.st_size > kMostScript) {
    return base::bad_input(where, "is larger than 8 MiB",
                           "a smaller script, its data on standard input");
  }
  Invocation invocation;
  invocation.file = TRY(workspace::incoming(words[0], "", kRoot));
  invocation.argv.push_back(invocation.file->path);
  invocation.argv.insert(invocation.argv.end(), words.begin() + 1, words.end());
  return invocation;
}

base::Result<std::vector<workspace::Incoming>> read_incoming(const Parsed& parsed) {
  std::vector<workspace::Incoming> all;
  for (const std::string& text : parsed.values("--in")) {
    const std::size_t colon = exists(text) ? std::string::npos : text.rfind(':');
    std::string source = text.substr(0, colon);
    const std::string dest = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (!exists(source)) {
      return base::bad_input("--in " + base::printable(source), "no such file or folder",
                             "expected SRC[:DEST] with SRC on this host");
    }
    // `.` and `..` have no name of their own; the folder that they are has.
    const std::string last = source.substr(source.rfind('/') + 1);
    if (last.empty() || last == "." || last == "..") source = TRY(os::real_path(source));
    all.push_back(TRY(workspace::incoming(source, dest, kRoot)));
  }
  return all;
}

base::Status check_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good = !name.empty() && name.size() <= kMaxName && letter(name[0]) &&
                    std::ranges::all_of(name, [&](char c) {
                      return letter(c) || c == '_' || c == '.' || c == '-';
                    });
  if (good && !is_run_id(name)) return {};
  return base::bad_input(
      "--name " + base::printable(name), good ? "has the form of a run's id" : "is no name",
      "expected [A-Za-z0-9][A-Za-z0-9_.-]{0,63} that is not of the form of an id");
}

}  // namespace cli
