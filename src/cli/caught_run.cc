// Files without a name in place of a terminal.
#include "cli/caught_run.h"

#include <fcntl.h>

#include "cli/report_text.h"
#include "os/os.h"

namespace cli {
namespace {

constexpr std::size_t kMostReport = std::size_t{4} << 20;

base::Result<base::Fd> nameless() {
  return os::open("/tmp", O_TMPFILE | O_RDWR, 0600);
}

}  // namespace

base::Result<Caught> caught_run(World world, Parsed command, std::size_t most) {
  const base::Fd out = TRY(nameless());
  const base::Fd err = TRY(nameless());
  const base::Fd report = TRY(nameless());
  const base::Fd in = TRY(os::open("/dev/null", O_RDONLY, 0));
  world.in = in.get();
  world.out = out.get();
  world.err = err.get();
  world.terminal = {};
  command.flags.emplace_back("--report", "fd:" + std::to_string(report.get()));
  command.dashes = true;
  Caught caught;
  caught.status = TRY(run(world, command));
  caught.out = TRY(os::read_all(out.get(), most, "standard output"));
  caught.errors = TRY(os::read_all(err.get(), most, "standard error"));
  caught.run = run_in(TRY(os::read_all(report.get(), kMostReport, "report")));
  return caught;
}

}  // namespace cli
