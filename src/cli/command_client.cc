// One command in a run that lives, from its caller's side.
#include "cli/command_client.h"

#include <array>
#include <csignal>
#include <utility>

namespace cli {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace

base::Result<CommandClient> CommandClient::make(const World& world, ipc::Channel channel) {
  base::Fd signals = TRY(os::signal_descriptor(kPassedOn));
  return CommandClient(world, std::move(signals), std::move(channel));
}

CommandOutcome CommandClient::run(const supervisor::Exec& request, std::uint64_t limit) {
  outcome_.ending.kind = supervisor::EndingKind::start_failed;
  const auto note = [&](const base::Status& status) {
    if (!status) outcome_.failures.push_back(status.error());
    return status.has_value();
  };
  if (note(begin(request, limit)) && note(converse())) (void)note(streams_->drain(signals_.get()));
  if (front_) front_->restore();
  if (streams_) {
    outcome_.stdout_bytes = streams_->stdout_bytes();
    outcome_.stderr_bytes = streams_->stderr_bytes();
  }
  return std::move(outcome_);
}

base::Status CommandClient::begin(const supervisor::Exec& request, std::uint64_t limit) {
  streams_ = TRY(Streams::make(world_->in, world_->out, world_->err, limit));
  const auto streams = streams_->far_ends();
  TRY_IN("exec", ask(channel_, request, streams));
  streams_->close_far_ends();
  if (request.terminal) front_.emplace(TRY(Front::make(*world_)));
  return {};
}

base::Status CommandClient::converse() {
  std::vector<pollfd> polled;
  while (!over_) {
    polled.assign({{signals_.get(), POLLIN, 0},
                   {channel_.fd(), POLLIN, 0},
                   {front_ ? front_->resized() : -1, POLLIN, 0}});
    streams_->watch(polled);
    (void)TRY(os::wait_for(polled, -1));
    if (polled[0].revents != 0) TRY(on_signal());
    if (polled[2].revents != 0) {
      TRY(ask(channel_, supervisor::Resize{TRY(front_->window())}, {}));
    }
    streams_->act(&polled[3]);
    if (streams_->over_limit() && !std::exchange(limit_told_, true)) {
      TRY(ask(channel_, supervisor::End{"output_limit"}, {}));
    }
    if (polled[1].revents != 0) TRY(on_message());
  }
  return {};
}

// The second interrupt ends the command whatever it makes of the first.
base::Status CommandClient::on_signal() {
  while (const auto number = TRY(os::next_signal(signals_.get()))) {
    if (*number == SIGINT && ++interrupts_ > 1) {
      TRY(ask(channel_, supervisor::End{"killed"}, {}));
    } else {
      TRY(ask(channel_, supervisor::Signal{static_cast<std::uint32_t>(*number)}, {}));
    }
  }
  return {};
}

base::Status CommandClient::on_message() {
  auto message = TRY(hear(channel_));
  if (auto* over = std::get_if<supervisor::Over>(&message)) {
    over_ = true;
    outcome_.status = static_cast<int>(over->status);
    outcome_.ending = std::move(over->ending);
    outcome_.usage = over->usage;
    outcome_.limits_hit = std::move(over->limits_hit);
    return {};
  }
  if (auto* failed = std::get_if<supervisor::StartFailed>(&message)) {
    over_ = true;
    outcome_.status = static_cast<int>(failed->status);
    outcome_.ending = std::move(failed->ending);
    outcome_.failures.push_back({base::Kind::system, 0, std::move(failed->message), {}, {}});
    return {};
  }
  return base::fail(base::Kind::peer, "supervisor", "answered something else", {});
}

}  // namespace cli
