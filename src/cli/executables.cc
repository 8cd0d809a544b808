// Finds a command's file before anything is started, so that a missing one is a clear message.
#include "cli/executables.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "os/os.h"

namespace cli {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
constexpr int kMaxLinks = 8;

// Source and target of a step that shows a part of the host inside, else empty.
std::pair<std::string_view, std::string_view> shown_by(const plan::Step& step) {
  if (const auto* bind = std::get_if<plan::BindReadOnly>(&step))
    return {bind->source, bind->target};
  if (const auto* layer = std::get_if<plan::LayScratch>(&step)) {
    return {layer->source, layer->target};
  }
  return {};
}

// Whether a file of the host appears inside at all.
bool comes_inside(const plan::Plan& plan, std::string_view real) {
  return std::ranges::any_of(plan.steps, [&](const plan::Step& step) {
    const auto source = shown_by(step).first;
    return !source.empty() && base::is_within(real, source);
  });
}

// What `--ro` would have to name so that a program runs: its own prefix when it lies in a `bin`.
std::string folder_to_bring(const std::string& file) {
  std::string folder = file.substr(0, file.rfind('/'));
  if (folder.ends_with("/bin")) folder.resize(folder.size() - 4);
  return folder.empty() ? file : folder;
}

CannotStart cannot(int status, const std::string& name, std::string what, std::string expected) {
  return {status,
          base::bad_input("run: " + base::printable(name), std::move(what), std::move(expected))
              .error()};
}

CannotStart outside(const std::string& name, const std::string& file) {
  const std::string shown = base::printable(file);
  return cannot(kNotFound, name, "is " + shown + " on this host, which is not inside",
                "--ro " + base::printable(folder_to_bring(file)) + " brings it in, or --in " +
                    shown + "; then call it by its path");
}

// `#!/opt/x/python` → "/opt/x/python"; "" for anything else.
std::string interpreter_of(const std::string& file) {
  static constexpr std::size_t kLine = 256;
  const auto fd = os::open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  if (!fd) return {};
  const std::string head = os::read_some(fd->get(), kLine, file).value_or("");
  if (!head.starts_with("#!")) return {};
  const std::size_t start = head.find_first_not_of(" \t", 2);
  if (start == std::string::npos) return {};
  return head.substr(start, head.find_first_of(" \t\r\n", start) - start);
}

// A file of the host that the plan shows inside: may it be executed, and is all that it needs there
// too?
std::optional<CannotStart> check_file(const plan::Plan& plan, const std::string& name,
                                      const std::string& file) {
  if (!os::is_executable_file(file)) {
    return cannot(kNotExecutable, name, "is not executable", {});
  }
  const auto real = os::real_path(file);
  if (real && !comes_inside(plan, *real)) return outside(name, *real);
  const std::string interpreter = interpreter_of(file);
  if (!interpreter.starts_with('/') || base::is_within(interpreter, plan.command.cwd))
    return std::nullopt;
  const auto on_host = host_path(plan, interpreter);
  if (on_host && os::is_executable_file(*on_host)) return std::nullopt;
  return cannot(kNotFound, name,
                "its interpreter " + base::printable(interpreter) + " is not inside",
                "--ro " + base::printable(folder_to_bring(interpreter)) + " brings it in");
}

// Something that the plan itself writes or makes there: no program.
bool made_by_plan(const plan::Plan& plan, std::string_view path) {
  return std::ranges::any_of(plan.steps, [&](const plan::Step& step) {
    const auto* file = std::get_if<plan::WriteFile>(&step);
    const auto* folder = std::get_if<plan::MakeFolder>(&step);
    return (file != nullptr && file->target == path) ||
           (folder != nullptr && folder->target == path);
  });
}

std::optional<CannotStart> check_path(const plan::Plan& plan, const std::string& name) {
  const std::string path = name.starts_with('/') ? name : plan.command.cwd + "/" + name;
  if (const auto file = host_path(plan, path)) {
    if (const auto real = os::real_path(*file)) return check_file(plan, name, *file);
    return cannot(kNotFound, name, "no such file inside", {});
  }
  if (base::is_within(path, plan.command.cwd))
    return std::nullopt;  // what --in brings is seen by init
  if (made_by_plan(plan, path)) return cannot(kNotExecutable, name, "is not executable", {});
  if (const auto real = os::real_path(path)) return outside(name, *real);
  return cannot(kNotFound, name, "no such file inside", {});
}

// Whether the command sees the host's own tree: only where a test took mount_namespace out.
bool stands_in_host_tree(const plan::Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* clone = std::get_if<plan::CloneNamespaces>(&step);
    return clone != nullptr && std::ranges::find(clone->kinds, "mount") == clone->kinds.end();
  });
}

}  // namespace

std::vector<std::string> hints_of_arguments(const plan::Plan& plan,
                                            const std::vector<std::string>& brought) {
  std::vector<std::string> hints;
  if (stands_in_host_tree(plan) || plan.command.argv.empty()) return hints;
  const auto is_brought = [&](std::string_view path) {
    return std::ranges::any_of(brought, [&](const std::string& name) {
      return base::is_within(path, plan.command.cwd + "/" + name);
    });
  };
  for (const std::string& word : std::span(plan.command.argv).subspan(1)) {
    if (word.empty() || word.starts_with('-') || word == "." || word == "..") continue;
    const os::PathKind kind = os::path_kind(word);
    if (kind != os::PathKind::file && kind != os::PathKind::folder) continue;
    // "./x", as `cerco run FILE` names its file, is x.
    const std::string inside =
        (std::filesystem::path(plan.command.cwd) / word).lexically_normal().string();
    const auto from = host_path(plan, inside);
    if ((from && os::real_path(*from)) || made_by_plan(plan, inside) || is_brought(inside))
      continue;
    const std::string shown = base::printable(word);
    hints.push_back(fmt::format("{} is on this host and not inside; --in {} brings it in as {}",
                                shown, shown, base::printable(word.substr(word.rfind('/') + 1))));
  }
  return hints;
}

std::string path_of(const World& world) {
  const auto at = world.env.find("PATH");
  return at == world.env.end() ? std::string() : at->second;
}

std::string find_executable(const std::string& name, std::string_view path) {
  if (name.contains('/')) return os::is_executable_file(name) ? name : std::string();
  if (name.empty()) return {};
  for (const std::string_view folder : base::split(path, ':')) {
    std::string file = (folder.empty() ? std::string(".") : std::string(folder)) + "/" + name;
    if (os::is_executable_file(file)) return file;
  }
  return {};
}

std::optional<std::string> host_path(const plan::Plan& plan, std::string path) {
  for (int hops = 0; hops < kMaxLinks; ++hops) {
    bool moved = false;
    for (const plan::Step& step : plan.steps) {
      const auto [source, target] = shown_by(step);
      if (!target.empty() && base::is_within(path, target)) {
        return std::string(source) + path.substr(target.size());
      }
      const auto* link = std::get_if<plan::MakeLink>(&step);
      if (link == nullptr || !base::is_within(path, link->target)) continue;
      const std::string parent = link->target.substr(0, link->target.rfind('/') + 1);
      path = (link->text.starts_with('/') ? link->text : parent + link->text) +
             path.substr(link->target.size());
      moved = true;
      break;
    }
    if (!moved) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<CannotStart> check_command(const World& world, const plan::Plan& plan) {
  if (stands_in_host_tree(plan)) return std::nullopt;
  const std::string name = plan.command.argv.empty() ? std::string() : plan.command.argv[0];
  if (name.contains('/')) return check_path(plan, name);
  const auto at = plan.command.env.find("PATH");
  const std::string path = at == plan.command.env.end() ? std::string() : at->second;
  bool own_folders = false;
  std::optional<CannotStart> first;
  for (const std::string_view folder : base::split(path, ':')) {
    const std::string inside = std::string(folder) + "/" + name;
    // Only the working folder can hold something before the command runs.
    own_folders = own_folders || base::is_within(folder, plan.command.cwd);
    const auto file = host_path(plan, inside);
    if (name.empty() || !file || !os::real_path(*file)) continue;
    auto problem = check_file(plan, name, *file);
    if (!problem) return std::nullopt;
    if (!first) first = std::move(problem);
  }
  if (own_folders) return std::nullopt;
  if (first) return first;
  if (const std::string here = find_executable(name, path_of(world)); !here.empty()) {
    return outside(name, os::real_path(here).value_or(here));
  }
  return cannot(kNotFound, name, "command not found", "inside, PATH is " + path);
}

}  // namespace cli
