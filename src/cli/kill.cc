// `cerco kill` ends a run or sends its command a signal; `cerco rm` ends a run and removes what it
// left.
#include <algorithm>
#include <csignal>

#include "cli/living.h"
#include "cli/run_files.h"

namespace cli {
namespace {

constexpr int kBadInput = 2;

// It answers when nothing of the run is left. A supervisor that goes at that moment has done so
// too.
base::Status end_run(const ipc::Channel& channel) {
  TRY(ask(channel, supervisor::EndRun{}, {}));
  const auto done = await_done(channel);
  return !done && done.error().kind != base::Kind::peer ? done : base::Status();
}

base::Status remove_run(const World& world, const std::string& word) {
  const KnownRun run = TRY(find_run(world, word));
  const auto channel = supervisor::connect_to_run(world.state_dir, run.id);
  if (channel) TRY(end_run(*channel));
  (void)TRY(supervisor::settle_lost_run(world.state_dir, run.id, kVersion));
  TRY(remove_run_files(world.state_dir, run.id));
  print(world, run.id + "\n");
  return {};
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
  TRY(want_words("rm", parsed, std::max<std::size_t>(parsed.words.size(), 1), "RUN…"));
  int status = 0;
  for (const std::string& word : parsed.words) {
    const auto removed = remove_run(world, word);
    if (removed) continue;
    print_error(world, removed.error());
    status = exit_status(removed.error(), kBadInput);
  }
  return status;
}

}  // namespace cli
