// `cerco kill` ends a run or sends its command a signal; `cerco rm` ends a run and removes what it
// left.
#include <csignal>

#include "cli/living.h"
#include "cli/run_files.h"

namespace cli {
namespace {

// It answers when nothing of the run is left. A supervisor that goes at that moment has done so
// too.
base::Status end_run(const ipc::Channel& channel) {
  TRY(ask(channel, supervisor::EndRun{}, {}));
  const auto done = await_done(channel);
  return !done && done.error().kind != base::Kind::peer ? done : base::Status();
}

}  // namespace

base::Result<int> kill(const World& world, const Parsed& parsed) {
  TRY(want_words("kill", parsed, 1, "[-s SIGNAL] RUN"));
  const int number = TRY(signal_number(parsed.value("--signal").value_or("KILL")));
  const Reached reached = TRY(reach(world, parsed.words[0]));
  if (number == SIGKILL) {
    TRY(end_run(reached.channel));
    return 0;
  }
  TRY(ask(reached.channel, supervisor::SendSignal{static_cast<std::uint32_t>(number)}, {}));
  TRY(await_done(reached.channel));
  return 0;
}

base::Result<int> rm(const World& world, const Parsed& parsed) {
  TRY(want_words("rm", parsed, 1, "RUN"));
  const KnownRun run = TRY(find_run(world, parsed.words[0]));
  const auto channel = supervisor::connect_to_run(world.state_dir, run.id);
  if (channel) TRY(end_run(*channel));
  (void)TRY(supervisor::settle_lost_run(world.state_dir, run.id, kVersion));
  TRY(remove_run_files(world.state_dir, run.id));
  print(world, run.id + "\n");
  return 0;
}

}  // namespace cli
