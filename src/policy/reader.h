// Reading tables of the tree by a list of known keys, with places and origins.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "policy/tree.h"
#include "policy/values.h"

namespace policy {

// What one reading gathers beside the policy. `origins` says of every key path where its value is
// from.
struct Reading {
  std::string file;
  std::map<std::string, std::string> origins;
  std::vector<std::string> warnings;
  // Where it is set nothing is read: each reader writes the shape of its value there, as JSON
  // Schema, and `origins` gathers every key path (schema.cc).
  std::string* shape = nullptr;
};

// One value of the tree and its key path.
struct At {
  Reading& reading;
  const Node& node;
  std::string path;

  [[nodiscard]] std::string where() const { return place_text(reading.file, node.place); }
  // `WHERE: PATH: WHAT; EXPECTED`
  [[nodiscard]] std::unexpected<base::Error> bad(std::string_view what, std::string expected) const;
  // The same for a value of the wrong kind: says what was found.
  [[nodiscard]] std::unexpected<base::Error> wrong(std::string expected) const;
  // `WHERE: PATH = VALUE: not carried out yet`
  [[nodiscard]] std::unexpected<base::Error> not_yet(std::string_view value) const;
  [[nodiscard]] At item(std::size_t index) const;
  // Whether shapes are wanted; writes it then.
  [[nodiscard]] bool shaped(std::string_view shape) const;
  [[nodiscard]] bool describing() const { return reading.shape != nullptr; }
};

struct Field {
  std::string_view key;
  std::function<base::Status(const At&)> read;
};

// Reads every member of a table by its field. An unknown key is an error with the closest one; the
// origin of each field that is not there becomes "default".
[[nodiscard]] base::Status read_table(const At& at, const std::vector<Field>& fields);

// --- Leaves: each gives the reader of one field, which writes to `out` --------------------------

// Says of a text what is wrong with it and what would be right; empty when it is right.
struct Fault {
  std::string what;
  std::string expected;
  [[nodiscard]] bool none() const { return what.empty(); }
};
using Check = std::function<Fault(std::string_view)>;
// Turns the text into what is kept; the Error needs no place.
using Canon = std::function<base::Result<std::string>(std::string_view)>;

enum class Unlimited { allowed, refused };
enum class Zero { allowed, refused };

[[nodiscard]] base::Result<std::string> want_string(const At& at, std::string_view expected);
[[nodiscard]] std::function<base::Status(const At&)> boolean_into(bool& out);
[[nodiscard]] std::function<base::Status(const At&)> string_into(std::string& out, Check check);
// A list of texts, each passed through `canon`; a text that stands twice is refused.
[[nodiscard]] std::function<base::Status(const At&)> list_into(std::vector<std::string>& out,
                                                               std::string example, Canon canon);
// A table of texts; `check` sees each key.
[[nodiscard]] std::function<base::Status(const At&)> map_into(
    std::map<std::string, std::string>& out, std::string example, Check check_key);
[[nodiscard]] std::function<base::Status(const At&)> ports_into(std::vector<std::uint16_t>& out);
[[nodiscard]] std::function<base::Status(const At&)> size_into(std::uint64_t& out,
                                                               Unlimited unlimited, Zero zero);
[[nodiscard]] std::function<base::Status(const At&)> duration_into(std::uint64_t& out,
                                                                   Unlimited unlimited);
// A whole number from 1 to `most`.
[[nodiscard]] std::function<base::Status(const At&)> count_into(std::uint64_t& out,
                                                                std::uint64_t most,
                                                                Unlimited unlimited);

// A list that, where it is written, must say something.
[[nodiscard]] std::function<base::Status(const At&)> filled_list(std::vector<std::string>& out,
                                                                 const std::string& example,
                                                                 Canon canon);
// One text, passed through `canon`.
[[nodiscard]] std::function<base::Status(const At&)> canon_into(std::string& out, Canon canon);
// Exactly one of these keys stands in the table.
[[nodiscard]] base::Status want_one(const At& at, const std::vector<std::string_view>& keys);
// Puts a member into the shape that was written last.
void add_to_shape(const At& at, std::string_view member);
// A list of tables, each read by `read` with its number from 1.
[[nodiscard]] base::Status read_tables(
    const At& at, const std::function<base::Status(const At&, std::size_t)>& read);

// "found X" for messages, short and printable.
[[nodiscard]] std::string found(const Node& node);
// `one of a, b, c` of a set of names.
[[nodiscard]] std::string one_of(const std::vector<std::string_view>& names);
[[nodiscard]] base::Status read_name(const At& at, const std::vector<std::string_view>& names,
                                     const std::vector<bool>& built, std::size_t& index);

// A word of a closed set.
template <class E, std::size_t N>
std::function<base::Status(const At&)> name_into(E& out, const std::array<Name<E>, N>& names) {
  return [&out, &names](const At& at) -> base::Status {
    std::vector<std::string_view> texts;
    std::vector<bool> built;
    for (const auto& name : names) {
      texts.push_back(name.text);
      built.push_back(name.built == Built::yes);
    }
    std::size_t index = 0;
    TRY(read_name(at, texts, built, index));
    out = names[index].value;
    return {};
  };
}

// --- Sections (sections.cc), rules (rules.cc), credentials (credentials.cc)
// ------------------------------------------------

[[nodiscard]] base::Status read_policy(const At& root, Policy& policy);
[[nodiscard]] base::Status read_egress(const At& at, Policy& policy);
[[nodiscard]] base::Status read_deny(const At& at, Policy& policy);
[[nodiscard]] base::Status read_credentials(const At& at, Policy& policy);
[[nodiscard]] base::Status read_source(const At& at, Source& out);  // sources.cc

// The largest count that JSON says exactly.
inline constexpr std::uint64_t kMostCount = 1ULL << 53;

// Single words (words.cc). `is_token`: of RFC 9110, bounded; header values have no control
// character.
[[nodiscard]] bool is_token(std::string_view text);
[[nodiscard]] bool is_header_value(std::string_view text);
[[nodiscard]] Fault check_label(std::string_view text);     // names of rules, credentials, tasks
[[nodiscard]] Fault check_variable(std::string_view text);  // names of environment variables
[[nodiscard]] Fault check_region(std::string_view text);    // regions and services of AWS
// A range that a rule opens to the addresses of its names (rules.cc).
[[nodiscard]] base::Result<std::string> opened_cidr(std::string_view text);
[[nodiscard]] base::Result<std::string> canonical_header(std::string_view text);
[[nodiscard]] base::Result<std::string> canonical_method(std::string_view text);
// A name with perhaps "*." or "**." before it; IP literals are refused.
[[nodiscard]] base::Result<std::string> canonical_host_pattern(std::string_view text);
[[nodiscard]] base::Result<std::string> absolute_path(std::string_view text);

// Applies the overrides to the tree, in order (overrides.cc).
[[nodiscard]] base::Status apply_overrides(Node& root, std::span<const Override> overrides);

// What the whole policy must keep to (checks.cc, bindings.cc).
[[nodiscard]] base::Status check_rules(Reading& reading, const Policy& policy);
[[nodiscard]] base::Status check_bindings(Reading& reading, const Policy& policy);
// Every key path of a policy ("limits.memory"; of lists "egress.host").
[[nodiscard]] const std::vector<std::string>& key_paths();

// A wildcard over a public suffix: an error, or a warning in the private part of the list
// (suffix.cc).
// A suffix of the name under which anyone can get a name; "" when there is none.
[[nodiscard]] std::string shared_suffix(std::string_view name);
// Warnings of what the rules say together (warnings.cc).
void warn_of_rules(Reading& reading, const Policy& policy);
[[nodiscard]] base::Status check_suffix(Reading& reading, const std::string& pattern,
                                        const std::string& path);

}  // namespace policy
