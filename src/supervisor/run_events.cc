// What a run does with each thing that happens between its start and its end.
#include <unistd.h>

#include <csignal>

#include "base/frame.h"
#include "supervisor/host_room.h"
#include "supervisor/record.h"
#include "supervisor/run.h"

namespace supervisor {

namespace {

// How long the kernel may take to count the kill that it announced: pressure that reclaim resolved
// is no ending.
constexpr std::chrono::milliseconds kOomPatience{1000};

constexpr std::chrono::seconds kPartsInterval{2};      // long enough for a tier to clear its own
constexpr std::chrono::milliseconds kCpuInterval{10};  // between looks at the processor time
constexpr std::uint64_t kMostMilli = 1'024'000;        // thousandths of a processor

template <class... F>
struct Overload : F... {
  using F::operator()...;
};

}  // namespace

void Run::cut(Cut why, std::string by) {
  if (facts_.cut == Cut::none) {
    facts_.cut = why;
    facts_.by = std::move(by);
  }
  over_ = true;
}

void Run::on_caller() {
  auto message = caller_.receive();
  const auto request = message && *message
                           ? base::decode<FromCaller>((*message)->bytes, "caller")
                           : base::Result<FromCaller>(std::unexpected(base::Error{}));
  if (!request) {
    // The caller is gone or talks nonsense: nobody is left to run for.
    caller_gone_ = finished_ = true;
    cut(Cut::killed, "caller gone");
    return;
  }
  std::visit(Overload{[&](const Go&) {
                        if (!command_started_ && !start_command()) cut(Cut::killed, "host");
                      },
                      [&](const Signal& signal) { signal_command(kCommand, signal.number); },
                      [&](const Resize& now) { resize(kCommand, now.window); },
                      [&](const End& end) {
                        if (end.reason == "output_limit") {
                          cut(Cut::output_limit, {});
                        } else {
                          record(operator_action("kill"));
                          cut(Cut::killed, "operator");
                        }
                      },
                      [&](const auto&) { cut(Cut::killed, "caller broke the protocol"); }},
             *request);
}

void Run::on_init() {
  const auto answer = receive<frame::FromInit>(sandbox_->control(), "cerco-init");
  if (!answer) {
    on_init_gone();
    return;
  }
  std::visit(Overload{[&](const frame::Started& started) { on_started(started); },
                      [&](const frame::NotStarted& failed) { on_not_started(failed); },
                      [&](const frame::Ended& ended) { on_ended(ended); }, [&](const auto&) {}},
             *answer);
}

void Run::on_init_gone() {
  over_ = true;
  all_dead_ = true;
}

void Run::on_oom() {
  // The kernel announces pressure before it has killed: look again until the kill is counted.
  std::uint64_t count = 0;
  (void)!::read(sandbox_->oom_fd(), &count, sizeof count);
  oom_check_at_ = Clock::now();
  oom_check_until_ = *oom_check_at_ + kOomPatience;
}

void Run::on_network() {
  const base::Status started = start_gateway_part();
  base::Status served = started;
  if (served) served = serve_capture(*gateway_, capture_);
  if (!served) {
    capture_ = {};
    notes_.push_back("the gateway could not be started, so all traffic is refused: " +
                     served.error().line());
    record(part_lost("gateway"));
    gateway_.reset();
  }
}

void Run::lose(Part& part, std::string_view who) {
  record(part_lost(who));
  notes_.push_back(std::string(who) + " ended before the run; what it served was refused");
  part.control = {};
}

void Run::on_gateway() {
  // Before Drain only an answer to a change is due: whatever else comes is its end or a fault.
  const auto answer = receive<plan::FromGateway>(gateway_->control, "gateway");
  if (answer && std::holds_alternative<plan::GatewayChanged>(*answer) &&
      changes_done_ < changes_asked_) {
    ++changes_done_;
    return tell_changed();
  }
  lose(*gateway_, "gateway");
  gateway_.reset();
  changes_done_ = changes_asked_;
  tell_changed();
  (void)sandbox_->cut_network();
  network_cut_ = true;
}

void Run::on_broker() {
  const auto answer = receive<plan::FromBroker>(broker_->control, "broker");
  if (answer) {
    ++revocations_done_;
    tell_changed();
    return tell_revoked();
  }
  lose(*broker_, "broker");
  broker_.reset();
  // Whoever is gone lends nothing.
  revocations_done_ = revocations_asked_;
  tell_changed();
  tell_revoked();
}

void Run::revoke(const std::string& credential, const std::string& why) {
  const plan::ToBroker order = plan::BrokerRevoke{credential, why};
  if (broker_ && ipc::send_value(broker_->control, order, {})) ++revocations_asked_;
  if (gateway_)
    (void)ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayRevoke{credential}), {});
}

void Run::on_journal() {
  const auto answer = receive<journal::FromJournal>(journal_.control, "journal");
  if (!answer) {
    journal_lost_ = true;
    if (plan_.policy.audit.journal == policy::Need::required) cut(Cut::killed, "journal lost");
    return;
  }
  if (const auto* alarm = std::get_if<journal::Alarm>(&*answer)) contain(*alarm);
  if (std::holds_alternative<journal::Full>(*answer)) {
    facts_.journal_full = true;
    notes_.push_back(
        "the run's journal has reached its bound: what the gateway was asked afterwards was "
        "refused");
  }
  if (const auto* wish = std::get_if<journal::NextFile>(&*answer)) {
    // Without it the journal goes on in the file that it has, so nothing is lost.
    const auto given = give_next_file(journal_, plan_, wish->number);
    if (!given) notes_.push_back("the journal stays in one file: " + given.error().line());
  }
}

void Run::contain(const journal::Alarm& alarm) {
  // What has been cut stays cut: each further attempt has its alert, and needs no other act.
  if (alarm.action == "cut-network" && network_cut_) return;
  record(containment(alarm));
  if (alarm.action == "kill") {
    cut(Cut::killed, "detector:" + alarm.detector);
  } else if (alarm.action == "freeze") {
    next_parts_check_ = Clock::time_point::max();  // what is frozen clears nothing away
    if (!sandbox_->freeze()) cut(Cut::killed, "detector:" + alarm.detector);
  } else if (alarm.action == "cut-network") {
    network_cut_ = true;
    const bool cut_in_kernel = sandbox_->cut_network().has_value();
    if (gateway_) (void)ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayCut{}), {});
    if (!cut_in_kernel) cut(Cut::killed, "detector:" + alarm.detector);
  } else if (alarm.action == "revoke") {
    revoke(alarm.credential, "detector");
  }
}

void Run::look_at_host_disk(Clock::time_point now) {
  const auto found = os::disk_room(plan_.state_dir);
  const HostRoom room = found ? HostRoom{found->total, found->free} : HostRoom{};
  next_disk_check_ = now + look_again_after(room);
  if (found && host_is_full(room)) cut(Cut::host_disk_full, "host");
}

// What is left cannot be used up before all processors of the sandbox have worked on it.
void Run::look_at_processor_time(Clock::time_point now) {
  const policy::Limits& limits = plan_.policy.limits;
  const auto counters = sandbox_->counters();
  const std::uint64_t used = counters ? counters->cpu_ms : limits.cpu_ms;
  if (used >= limits.cpu_ms) {
    time_out(Cut::processor_time, now);
    return;
  }
  const bool held = plan_.protections.contains(plan::Protection::cpu_limit);
  const std::uint64_t milli = held ? limits.cpus_milli : policy::kUnlimited;
  const std::uint64_t processors = (std::clamp<std::uint64_t>(milli, 1, kMostMilli) + 999) / 1000;
  const auto soonest = std::chrono::milliseconds((limits.cpu_ms - used) / processors);
  next_cpu_check_ = now + std::max(soonest, kCpuInterval);
}

void Run::on_tick() {
  const Clock::time_point now = Clock::now();
  if (oom_check_at_ && now >= *oom_check_at_) look_for_oom(now);
  tick_commands(now);
  if (over_) return;
  if (kill_at_ && now >= *kill_at_) {
    over_ = true;
    return;
  }
  const bool wall_held = plan_.protections.contains(plan::Protection::wall_limit);
  if (!kill_at_ && wall_held && plan_.policy.limits.wall_ms != policy::kUnlimited &&
      now >= after(started_, plan_.policy.limits.wall_ms)) {
    time_out(Cut::timed_out, now);
  }
  if (next_cpu_check_ && !kill_at_ && now >= *next_cpu_check_) look_at_processor_time(now);
  if (now >= next_parts_check_) {
    next_parts_check_ = now + kPartsInterval;
    if (sandbox_->crippled()) cut(Cut::killed, "host");
  }
  if (now >= next_disk_check_) {
    look_at_host_disk(now);
    if (sandbox_->oom_fd() < 0) oom_check_at_ = oom_check_until_ = now;
  }
}

}  // namespace supervisor
