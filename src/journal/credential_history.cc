// What became of a run's credentials, read from its journal.
#include <algorithm>

#include "journal/event.h"
#include "journal/journal.h"

namespace journal {

namespace {

CredentialHistory* find(CredentialHistories& all, const std::string& name) {
  const auto at = std::ranges::find(all.credentials, name, &CredentialHistory::name);
  return at == all.credentials.end() ? nullptr : &*at;
}

std::string binding(const Members& members) {
  std::string out;
  for (const char* key : {"hosts", "methods", "paths", "lifetime_ms", "uses"}) {
    if (!members.has(key)) continue;
    if (!out.empty()) out += ',';
    out += base::json_string(key) + ":";
    out += members.raw(key);
  }
  return out;
}

void take(CredentialHistories& all, const Members& members) {
  const std::string type = members.text("type");
  const std::string name = members.text("credential");
  if (type == "run.ended") all.ended = true;
  if (type == "credential.issued" && find(all, name) == nullptr) {
    all.credentials.push_back({.name = name, .issued = binding(members)});
  }
  CredentialHistory* one = find(all, name);
  if (one == nullptr) return;
  const std::string time = members.text("time");
  if (type == "credential.used") {
    ++one->uses;
    one->last_used = time;
  } else if (type == "credential.refused") {
    one->refused += times(members);
  } else if (type == "credential.revoked") {
    one->revoked = time;
    one->why = members.text("why");
  }
}

}  // namespace

base::Result<CredentialHistories> credentials(const std::string& journal_dir,
                                              const std::string& run) {
  CredentialHistories all;
  TRY(read(journal_dir, run, {.run = run}, [&](std::string_view line) {
    if (const auto members = Members::parse_object(line)) take(all, *members);
  }));
  return all;
}

}  // namespace journal
