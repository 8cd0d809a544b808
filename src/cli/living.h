// Runs that live, seen from those who ask something of them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "ipc/ipc.h"
#include "supervisor/run_folder.h"

namespace cli {

// A connection to the supervisor of RUN. not_found when there is no such run, or it has ended.
struct Reached {
  KnownRun run;
  ipc::Channel channel;
};
[[nodiscard]] base::Result<Reached> reach(const World& world, std::string_view run);

[[nodiscard]] base::Status ask(const ipc::Channel& channel, const supervisor::FromClient& request,
                               std::span<const int> fds);
// The next answer; an error of kind peer when the supervisor ended.
[[nodiscard]] base::Result<supervisor::ToClient> hear(const ipc::Channel& channel);
// Waits for Done; StartFailed becomes an error.
[[nodiscard]] base::Status await_done(const ipc::Channel& channel);

// 9 for "9", "KILL" and "SIGKILL", in any case of letters.
[[nodiscard]] base::Result<int> signal_number(std::string_view text);

}  // namespace cli
