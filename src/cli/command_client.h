// One command in a run that lives, from its caller's side: streams, signals, its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/living.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "os/os.h"

namespace cli {

struct CommandOutcome {
  int status = 125;
  supervisor::Ending ending;
  supervisor::Usage usage;
  std::vector<std::string> limits_hit;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::vector<base::Error> failures;
};

class CommandClient {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP and SIGQUIT from here on: they are passed on to the command.
  [[nodiscard]] static base::Result<CommandClient> make(const World& world, ipc::Channel channel);

  // Stays until the command is over and what it wrote is passed on; past `limit` bytes of output it
  // is ended.
  [[nodiscard]] CommandOutcome run(const supervisor::Exec& request, std::uint64_t limit);

 private:
  CommandClient(const World& world, base::Fd signals, ipc::Channel channel)
      : world_(&world), signals_(std::move(signals)), channel_(std::move(channel)) {}
  base::Status begin(const supervisor::Exec& request, std::uint64_t limit);
  base::Status converse();
  base::Status on_signal();
  base::Status on_message();

  const World* world_;
  base::Fd signals_;
  ipc::Channel channel_;
  std::optional<Streams> streams_;
  std::optional<Front> front_;  // with -t
  CommandOutcome outcome_;
  bool over_ = false;
  bool limit_told_ = false;
  int interrupts_ = 0;
};

}  // namespace cli
