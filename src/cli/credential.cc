// `cerco credential ls`, `credential show`: what credentials live runs have, and what became of a
// run's, as its journal tells.
#include <fmt/format.h>

#include "cli/cli.h"
#include "journal/journal.h"
#include "journal/members.h"

namespace cli {
namespace {

std::string journal_dir(const World& world) {
  return world.state_dir + "/journal";
}

std::string state_of(const journal::CredentialHistory& one, bool ended) {
  if (!one.revoked.empty()) return "revoked: " + one.why;
  return ended ? "run ended" : "live";
}

std::string json_of(const std::string& run, const journal::CredentialHistory& one, bool ended) {
  base::JsonObject object;
  object.add("run", run).add("credential", one.name).add("state", state_of(one, ended));
  object.raw("binding", "{" + one.issued + "}").add("uses", one.uses);
  object.add("last_used", one.last_used).add("refused", one.refused);
  return object.add("revoked", one.revoked).text();
}

// The strings of a JSON array that holds nothing else, as our own lines have them.
std::vector<std::string> strings_of(std::string_view json) {
  std::vector<std::string> all;
  for (std::size_t at = json.find('"'); at != std::string_view::npos; at = json.find('"', at)) {
    std::size_t end = at + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    if (end >= json.size()) break;
    all.push_back(journal::decode_string(json.substr(at, end + 1 - at)));
    at = end + 1;
  }
  return all;
}

// "hosts api.test; methods GET, POST; paths /v1/**; uses 100".
std::string binding_text(const journal::CredentialHistory& one) {
  const auto members = journal::Members::parse(one.issued);
  if (!members) return one.issued;
  std::vector<std::string> parts;
  for (const char* key : {"hosts", "methods", "paths"}) {
    const auto texts = strings_of(members->raw(key));
    if (!texts.empty()) parts.push_back(std::string(key) + " " + base::join(texts, ", "));
  }
  if (const auto lifetime = members->number("lifetime_ms")) {
    parts.push_back("lifetime " + policy::duration_text(*lifetime));
  }
  if (const auto uses = members->number("uses")) {
    parts.push_back("uses at most " + std::to_string(*uses));
  }
  return base::join(parts, "; ");
}

struct Row {
  std::string run;
  journal::CredentialHistory credential;
  bool ended = false;
};

std::string table(const std::vector<Row>& rows) {
  std::string out = fmt::format("{:<13} {:<20} {:<20} {:>5} {:>7}  {}\n", "RUN", "CREDENTIAL",
                                "STATE", "USES", "REFUSED", "LAST USED");
  for (const Row& row : rows) {
    const journal::CredentialHistory& one = row.credential;
    out += fmt::format("{:<13} {:<20} {:<20} {:>5} {:>7}  {}\n", row.run, base::printable(one.name),
                       base::printable(state_of(one, row.ended)), one.uses, one.refused,
                       one.last_used.empty() ? "never" : one.last_used);
  }
  return out;
}

void print_rows(const World& world, bool json, const std::vector<Row>& rows) {
  if (!json) return print(world, table(rows));
  std::vector<std::string> items;
  for (const Row& row : rows) items.push_back(json_of(row.run, row.credential, row.ended));
  print(world, base::json_array(items) + "\n");
}

}  // namespace

base::Result<int> credential_ls(const World& world, const Parsed& parsed) {
  TRY(want_words("credential ls", parsed, 0, ""));
  std::vector<Row> rows;
  for (const std::string& run : TRY(journal::runs(journal_dir(world)))) {
    // A run may go while it is looked at, and one journal that is damaged hides no other.
    const auto found = journal::credentials(journal_dir(world), run);
    if (!found || found->ended) continue;
    for (const auto& one : found->credentials) rows.push_back({run, one, false});
  }
  print_rows(world, parsed.has("--json"), rows);
  return 0;
}

base::Result<int> credential_show(const World& world, const Parsed& parsed) {
  TRY(want_words("credential show", parsed, 1, "RUN"));
  const std::string run = TRY(find_journal(world, parsed.words[0]));
  const auto found = TRY(journal::credentials(journal_dir(world), run));
  std::vector<Row> rows;
  for (const auto& one : found.credentials) rows.push_back({run, one, found.ended});
  print_rows(world, parsed.has("--json"), rows);
  if (parsed.has("--json")) return 0;
  for (const Row& row : rows) {
    print(world, fmt::format("{}: {}\n", base::printable(row.credential.name),
                             base::printable(binding_text(row.credential))));
  }
  return 0;
}

}  // namespace cli
