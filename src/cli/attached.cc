// The caller's half of a run: launch, streams and signals, files, the report.
#include "cli/attached.h"

#include <sys/socket.h>

#include <array>
#include <csignal>
#include <tuple>
#include <utility>

namespace cli {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::int64_t kSecondInterruptMs = 2000;  // a second Ctrl-C within it ends the run at once
constexpr std::size_t kNotesOfHidden = 5;

std::int64_t now_ms() {
  const os::Instant now = os::steady_time();
  return now.seconds * 1000 + now.nanoseconds / 1'000'000;
}

}  // namespace

base::Result<Attached> Attached::start(const World& world) {
  base::Fd signals = TRY(os::signal_descriptor(kPassedOn));
  auto [ours, theirs] = TRY(ipc::make_pair());
  const std::array<int, 1> keep = {theirs.fd()};
  // The copy holds our descriptors only until it has closed them, and this end of the channel is
  // among them: that it ends is how the supervisor learns that we do.
  os::Child child = TRY(os::fork_child(
      keep, [&] { return supervisor::serve(ipc::Channel(base::Fd(theirs.fd())), world.verify); }));
  return Attached(world, std::move(signals), std::move(ours), std::move(child));
}

Attached::Attached(const World& world, base::Fd signals, ipc::Channel channel, os::Child supervisor)
    : world_(&world),
      signals_(std::move(signals)),
      channel_(std::move(channel)),
      supervisor_(std::move(supervisor)) {}

Outcome Attached::run(const plan::Plan& plan, Files files, Part part, base::Fd roots,
                      std::vector<base::Fd> secrets) {
  const auto note = [&](const base::Status& status) {
    if (!status) outcome_.failures.push_back(status.error());
    return status.has_value();
  };
  note_hidden(plan::hidden(plan));
  const bool talked = note(launch(plan, files, part, std::move(roots), std::move(secrets))) &&
                      note(converse(plan, files));
  if (talked && !failed_ && !outcome_.begun) {
    (void)note(streams_->drain(signals_.get()));
    (void)note(fetch_files(plan, files));
  }
  if (talked && !outcome_.begun) (void)note(finish());
  if (streams_) {
    outcome_.stdout_bytes = streams_->stdout_bytes();
    outcome_.stderr_bytes = streams_->stderr_bytes();
  }
  if (!over_) outcome_.ending.kind = supervisor::EndingKind::start_failed;
  if (front_) front_->restore();
  channel_ = {};
  // It clears up by itself, and what it still prepares for later runs is nothing to wait for; but
  // when the talk broke off, nothing is known to be gone before it has ended.
  if (talked) {
    supervisor_.leave();
  } else {
    (void)supervisor_.wait();
  }
  return std::move(outcome_);
}

base::Status Attached::launch(const plan::Plan& plan, const Files& files, const Part& part,
                              base::Fd roots,
                              // NOLINTNEXTLINE(performance-unnecessary-value-param): closed here
                              std::vector<base::Fd> secrets) {
  const base::Fd plan_memfd = TRY(os::sealed_memfd("cerco-plan", base::encode(plan)));
  std::vector<int> fds = {plan_memfd.get()};
  supervisor::Launch launch;
  launch.version = kVersion;
  launch.detach = part.stay == Stay::until_begun;
  if (!launch.detach) {
    streams_ = TRY(Streams::make(world_->in, world_->out, world_->err, plan.policy.limits.output));
    for (const int stream : streams_->far_ends()) fds.push_back(stream);
  }
  fds.push_back(roots.get());
  base::Fd far_put;
  base::Fd far_take;
  if (!files.in.empty()) {
    std::tie(put_session_, far_put) = TRY(os::socket_pair(SOCK_SEQPACKET));
    fds.push_back(far_put.get());
    launch.put = true;
  }
  if (files.out.open()) {
    std::tie(take_session_, far_take) = TRY(os::socket_pair(SOCK_SEQPACKET));
    fds.push_back(far_take.get());
    launch.take = true;
  }
  if (launch.detach && part.report.open()) {
    fds.push_back(part.report.get());
    launch.report = true;
  }
  for (const base::Fd& secret : secrets) fds.push_back(secret.get());
  launch.secrets = secrets.size();
  launch.terminal = part.terminal;
  TRY_IN("start", ipc::send_value(channel_, supervisor::FromCaller(launch), fds));
  if (streams_) streams_->close_far_ends();
  if (part.terminal && streams_) front_.emplace(TRY(Front::make(*world_)));
  return {};
}

base::Status Attached::converse(const plan::Plan& plan, const Files& files) {
  std::vector<pollfd> polled;
  while (!over_ && !failed_) {
    polled.assign({{signals_.get(), POLLIN, 0},
                   {channel_.fd(), POLLIN, 0},
                   {front_ ? front_->resized() : -1, POLLIN, 0}});
    if (streams_) streams_->watch(polled);
    (void)TRY(os::wait_for(polled, -1));
    if (polled[0].revents != 0) TRY(on_signal());
    if (polled[2].revents != 0) TRY(ask(supervisor::Resize{TRY(front_->window())}));
    if (streams_) streams_->act(&polled[3]);
    if (streams_ && streams_->over_limit() && !limit_told_) {
      limit_told_ = true;
      TRY(ask(supervisor::End{"output_limit"}));
    }
    if (polled[1].revents != 0) TRY(on_message(plan, files));
  }
  return {};
}

base::Status Attached::on_signal() {
  while (const auto number = TRY(os::next_signal(signals_.get()))) {
    if (*number == SIGINT) {
      const std::int64_t now = now_ms();
      const bool again = last_interrupt_ms_ >= 0 && now - last_interrupt_ms_ < kSecondInterruptMs;
      last_interrupt_ms_ = now;
      if (again) {
        TRY(ask(supervisor::End{"killed"}));
        continue;
      }
    }
    TRY(ask(supervisor::Signal{static_cast<std::uint32_t>(*number)}));
  }
  return {};
}

base::Status Attached::on_message(const plan::Plan& plan, const Files& files) {
  auto message = TRY(hear());
  if (std::holds_alternative<supervisor::Ready>(message)) {
    if (files.in.empty()) return {};
    if (const auto put = put_files(plan, files); !put) {
      outcome_.failures.push_back(put.error());
      failed_ = true;
      outcome_.ending = {.step = "--in"};
      return ask(supervisor::End{"killed"});
    }
    return ask(supervisor::Go{});
  }
  if (std::holds_alternative<supervisor::Begun>(message)) {
    over_ = outcome_.begun = true;
    outcome_.status = 0;
    return {};
  }
  if (auto* over = std::get_if<supervisor::Over>(&message)) {
    take_over(std::move(*over));
    return {};
  }
  if (auto* failed = std::get_if<supervisor::StartFailed>(&message)) {
    failed_ = over_ = true;
    outcome_.status = static_cast<int>(failed->status);
    outcome_.ending = std::move(failed->ending);
    outcome_.failures.push_back(
        base::Error{base::Kind::system, 0, std::move(failed->message), {}, {}});
    return {};
  }
  return base::fail(base::Kind::peer, "supervisor", "answered something else", {});
}

void Attached::take_over(supervisor::Over over) {
  over_ = true;
  outcome_.status = static_cast<int>(over.status);
  outcome_.ending = std::move(over.ending);
  outcome_.usage = over.usage;
  outcome_.limits_hit = std::move(over.limits_hit);
  for (std::string& note : over.notes) outcome_.notes.push_back(std::move(note));
}

base::Status Attached::put_files(const plan::Plan& plan, const Files& files) {
  const workspace::Session session = {.socket = put_session_.get(), .stop = signals_.get()};
  std::vector<std::string> hidden;
  for (const workspace::Incoming& incoming : files.in) {
    const auto more =
        TRY(workspace::put(session, incoming, plan.policy.filesystem.hide, manifest_));
    hidden.insert(hidden.end(), more.begin(), more.end());
  }
  put_session_.reset();
  note_hidden(std::move(hidden));
  return {};
}

void Attached::note_hidden(std::vector<std::string> paths) {
  if (paths.empty()) return;
  const std::size_t count = paths.size();
  if (count > kNotesOfHidden) paths.resize(kNotesOfHidden);
  outcome_.notes.push_back(
      "came in empty by filesystem.hide: " + base::printable(base::join(paths, ", ")) +
      (count > paths.size() ? ", …" : ""));
}

base::Status Attached::fetch_files(const plan::Plan& plan, const Files& files) {
  if (!files.out.open()) return {};
  const workspace::Session session = {.socket = take_session_.get(), .stop = signals_.get()};
  const workspace::Caps caps = {.bytes = plan.policy.limits.disk,
                                .entries = plan.policy.limits.inodes};
  const auto taken = TRY(workspace::take(session, files.out.get(), manifest_, caps));
  outcome_.changes = taken.changes;
  for (const std::string& left_out : taken.left_out) {
    outcome_.notes.push_back("not brought out: " + base::printable(left_out));
  }
  if (taken.left_out_count > taken.left_out.size()) {
    outcome_.notes.push_back(
        "not brought out: " + std::to_string(taken.left_out_count - taken.left_out.size()) +
        " more");
  }
  return {};
}

base::Status Attached::finish() {
  take_session_.reset();
  (void)ask(supervisor::Finish{.stdout_bytes = streams_ ? streams_->stdout_bytes() : 0,
                               .stderr_bytes = streams_ ? streams_->stderr_bytes() : 0,
                               .changes = outcome_.changes});
  while (true) {
    auto message = TRY(hear());
    const auto* report = std::get_if<supervisor::Report>(&message);
    if (report == nullptr) continue;
    outcome_.summary = report->summary;
    if (report->problem.empty()) return {};
    return base::fail(base::Kind::system, "clean-up", report->problem,
                      "`cerco gc` removes what is left");
  }
}

base::Status Attached::ask(const supervisor::FromCaller& request) {
  return ipc::send_value(channel_, request, {});
}

base::Result<supervisor::ToCaller> Attached::hear() {
  auto message = TRY_IN("supervisor", channel_.receive());
  if (!message) {
    return base::fail(base::Kind::peer, "supervisor", "ended before the run was over", {});
  }
  return base::decode<supervisor::ToCaller>(message->bytes, "supervisor");
}

}  // namespace cli
