// Paths that a file session names: which are clean, and where a link can lead.
#include "workspace/path.h"

#include <algorithm>

#include "workspace/workspace.h"

namespace workspace {
namespace {

constexpr std::size_t kMaxName = 255;

}  // namespace

bool is_clean(std::string_view path) {
  if (path.empty() || path.contains('\0')) return false;
  return std::ranges::none_of(base::split(path, '/'), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

bool is_within_bounds(std::string_view path) {
  const auto parts = base::split(path, '/');
  return path.size() <= kMaxPath && parts.size() <= kMaxDepth &&
         std::ranges::all_of(parts, [](std::string_view part) { return part.size() <= kMaxName; });
}

std::pair<std::string, std::string> split_last(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", std::string(path)};
  return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

bool link_stays_inside(std::string_view path, std::string_view text) {
  if (text.empty() || text.starts_with('/') || text.contains('\0')) return false;
  // The folders above the link are real ones, so that leading `..` lead where they say. A `..`
  // after a name may follow another link first and then leave by it, so it is not allowed at all.
  const auto parts = base::split(text, '/');
  std::size_t ups = 0;
  while (ups < parts.size() && parts[ups] == "..") ++ups;
  const auto depth = static_cast<std::size_t>(std::ranges::count(path, '/'));
  if (ups > depth) return false;
  return std::ranges::none_of(std::span(parts).subspan(ups),
                              [](std::string_view part) { return part == ".."; });
}

base::Result<Incoming> incoming(std::string_view source, std::string_view dest,
                                std::string_view root) {
  const std::string shown =
      base::printable(source) + (dest.empty() ? "" : ":") + base::printable(dest);
  if (source.empty()) return base::bad_input("--in " + shown, "no source", "expected SRC[:DEST]");
  std::string_view trimmed = source;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.remove_suffix(1);
  const std::string base_name = split_last(trimmed).second;
  if (dest.starts_with(root) && dest.substr(root.size()).starts_with('/')) {
    dest.remove_prefix(root.size() + 1);
  } else if (dest == root) {
    dest = "";
  }
  while (dest.starts_with("./")) dest.remove_prefix(2);
  std::string path(dest);
  if (path.empty() || path == ".") {
    path = base_name;
  } else if (path.ends_with('/')) {
    path += base_name;
  }
  if (is_clean(path) && is_within_bounds(path)) return Incoming{std::string(source), path, false};
  return base::bad_input("--in " + shown,
                         "`" + base::printable(path) + "` is no path below the working folder",
                         "expected SRC[:DEST] with DEST in it");
}

}  // namespace workspace
