// Runs that live, seen from those who ask something of them.
#include "cli/living.h"

#include <csignal>
#include <cstring>

namespace cli {

base::Result<Reached> reach(const World& world, std::string_view run) {
  KnownRun known = TRY(find_run(world, run));
  auto channel = supervisor::connect_to_run(world.state_dir, known.id);
  if (!channel) return std::unexpected(std::move(channel).error());
  return Reached{std::move(known), std::move(*channel)};
}

base::Status ask(const ipc::Channel& channel, const supervisor::FromClient& request,
                 std::span<const int> fds) {
  return ipc::send_value(channel, request, fds);
}

base::Result<supervisor::ToClient> hear(const ipc::Channel& channel) {
  auto message = TRY_IN("supervisor", channel.receive());
  if (!message) return base::fail(base::Kind::peer, "supervisor", "ended: the run is gone", {});
  return base::decode<supervisor::ToClient>(message->bytes, "supervisor");
}

base::Status await_done(const ipc::Channel& channel) {
  const auto answer = TRY(hear(channel));
  if (std::holds_alternative<supervisor::Done>(answer)) return {};
  if (const auto* failed = std::get_if<supervisor::StartFailed>(&answer)) {
    const auto kind = failed->status == 2   ? base::Kind::bad_input
                      : failed->status == 1 ? base::Kind::missing
                                            : base::Kind::system;
    return std::unexpected(base::Error{kind, 0, failed->message, {}, {}});
  }
  return base::fail(base::Kind::peer, "supervisor", "answered something else", {});
}

base::Result<int> signal_number(std::string_view text) {
  std::string name = base::to_upper(text);
  if (name.starts_with("SIG")) name.erase(0, 3);
  const auto given = base::parse_number(text);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if ((known != nullptr && name == known) || (given && *given == static_cast<unsigned>(number))) {
      return number;
    }
  }
  return base::bad_input("-s " + base::printable(text), "no such signal",
                         "expected a name such as TERM or a number");
}

}  // namespace cli
