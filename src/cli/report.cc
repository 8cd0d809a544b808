// `cerco report RUN`: the report of a run that has ended, as it was written then.
#include "cli/cli.h"
#include "os/os.h"

namespace cli {

base::Result<int> report(const World& world, const Parsed& parsed) {
  static constexpr std::size_t kMaxReport = 4 << 20;
  TRY(want_words("report", parsed, 1, "RUN"));
  const KnownRun run = TRY(find_run(world, parsed.words[0]));
  const auto text = os::read_file(world.state_dir + "/runs/" + run.id + "/report.json", kMaxReport);
  if (!text && text.error().number == ENOENT) {
    return base::fail(base::Kind::not_found, "report " + run.id, "the run has no report yet", {});
  }
  if (!text) return std::unexpected(text.error());
  print(world, *text);
  return 0;
}

}  // namespace cli
