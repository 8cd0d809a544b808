// Matching of host patterns, at label boundaries.
#include "policy/pattern.h"

namespace policy {
namespace {

bool is_deep(std::string_view pattern) {
  return pattern.starts_with("**.");
}
bool is_wild(std::string_view pattern) {
  return pattern.starts_with('*');
}

// What `name` has before ".suffix"; empty when it does not end so or has nothing before it.
std::string_view before(std::string_view name, std::string_view suffix) {
  if (name.size() <= suffix.size() + 1 || !name.ends_with(suffix)) return {};
  const std::size_t dot = name.size() - suffix.size() - 1;
  return name[dot] == '.' ? name.substr(0, dot) : std::string_view{};
}

}  // namespace

std::string_view suffix_of(std::string_view pattern) {
  if (is_deep(pattern)) return pattern.substr(3);
  return pattern.starts_with("*.") ? pattern.substr(2) : pattern;
}

bool host_matches(std::string_view pattern, std::string_view name) {
  if (!is_wild(pattern)) return pattern == name;
  const std::string_view labels = before(name, suffix_of(pattern));
  return !labels.empty() && (is_deep(pattern) || !labels.contains('.'));
}

std::size_t specificity(std::string_view pattern) {
  return is_wild(pattern) ? suffix_of(pattern).size() : kExact;
}

bool host_contains(std::string_view wide, std::string_view narrow) {
  if (!is_wild(narrow)) return host_matches(wide, narrow);
  if (!is_wild(wide)) return false;
  if (suffix_of(wide) == suffix_of(narrow)) return is_deep(wide) || !is_deep(narrow);
  return is_deep(wide) && !before(suffix_of(narrow), suffix_of(wide)).empty();
}

bool hosts_intersect(std::string_view a, std::string_view b) {
  if (!is_wild(a)) return host_matches(b, a);
  if (!is_wild(b)) return host_matches(a, b);
  if (suffix_of(a) == suffix_of(b)) return true;
  const bool a_is_longer = suffix_of(a).size() > suffix_of(b).size();
  const std::string_view longer = a_is_longer ? a : b;
  const std::string_view shorter = a_is_longer ? b : a;
  return is_deep(shorter) && !before(suffix_of(longer), suffix_of(shorter)).empty();
}

}  // namespace policy
