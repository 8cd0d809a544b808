// `cerco policy suggest RUN`: the narrowest rules for what the run was refused, printed and never
// merged.
#include "cli/cli.h"
#include "cli/suggestion.h"
#include "journal/journal.h"

namespace cli {

base::Result<int> policy_suggest(const World& world, const Parsed& parsed) {
  TRY(want_words("policy suggest", parsed, 1, "RUN"));
  const std::string run = TRY(find_journal(world, parsed.words[0]));
  Suggestion suggestion;
  TRY(journal::read(world.state_dir + "/journal", run, {},
                    [&](std::string_view line) { suggestion.look(line); }));
  print(world, parsed.has("--json") ? suggestion.json() + "\n" : suggestion.text());
  return 0;
}

}  // namespace cli
