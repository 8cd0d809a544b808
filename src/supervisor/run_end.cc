// The end of a run: what is left is ended, counted, recorded, reported and cleared away, in that
// order.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/frame.h"
#include "supervisor/record.h"
#include "supervisor/run.h"
#include "supervisor/run_report.h"

namespace supervisor {

namespace {

constexpr int kPatienceMs = 10'000;  // longest wait for a part's last answer

std::uint64_t milliseconds_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count());
}

// Of `all`, what is not among `seen`; the two were not read at the same moment.
std::uint64_t missing(std::uint64_t all, std::uint64_t seen) {
  return all > seen ? all - seen : 0;
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kPatienceMs));
}

bool answers(const ipc::Channel& channel, int ms) {
  pollfd polled = {channel.fd(), POLLIN, 0};
  return ::poll(&polled, 1, ms) > 0;
}

}  // namespace

void Run::drain_gateway() {
  if (!gateway_ && network_is_idle()) {
    // Refusals may have come with the last instruction, before the loop saw them.
    pollfd polled = {capture_.refused.get(), POLLIN, 0};
    if (::poll(&polled, 1, 0) > 0) on_network();
  }
  if (!gateway_) return;
  // Answers that are still due come before the last one.
  std::uint64_t due = changes_asked_ - changes_done_ + 1;
  if (!ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayDrain{}), {})) due = 0;
  while (due-- > 0 && answers(gateway_->control, kPatienceMs)) {
    (void)gateway_->control.receive();
  }
  gateway_.reset();
}

void Run::retire_broker() {
  if (!broker_) return;
  if (ipc::send_value(broker_->control, plan::ToBroker(plan::BrokerRevoke{"", "run ended"}), {}) &&
      answers(broker_->control, kPatienceMs)) {
    (void)broker_->control.receive();
  }
  broker_.reset();
  minter_.reset();
}

void Run::end_sandbox() {
  take_counts();
  end_commands();
  const bool keeps = launch_.take && start_failure_.empty() && !all_dead_ && !caller_gone_;
  if (keeps) {
    serve_taking();
  } else {
    close_down();
  }
  take_session_.reset();
  if (start_failure_.empty()) {
    tell_over();
  } else {
    tell_not_started();
  }
  if (!keeps) {
    finish_journal();
    return;
  }
  await_finish();
  close_down();
  finish_journal();
}

void Run::take_counts() {
  if (const auto counters = sandbox_->counters()) facts_.counters = *counters;
  usage_.wall_ms = milliseconds_since(started_);
  usage_.memory_peak_bytes = facts_.counters.memory_peak;
  usage_.processes_peak = facts_.counters.processes_peak;
  usage_.cpu_ms = std::max(usage_.cpu_ms, facts_.counters.cpu_ms);
  usage_.written_bytes = facts_.counters.disk_used;
}

// Before anything is fetched, everything that could still change it is gone; and what is not, where
// a kernel of the sandbox's own does not do as it is told, has no network from here on.
void Run::serve_taking() {
  (void)sandbox_->thaw();
  if (!ipc::send_value(sandbox_->control(), frame::ToInit(frame::KillAll{}), {})) return;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (answers(sandbox_->control(), milliseconds_until(end))) {
    const auto answer = receive<frame::FromInit>(sandbox_->control(), "cerco-init");
    if (!answer || std::holds_alternative<frame::AllDead>(*answer)) break;
  }
  (void)sandbox_->cut_network();
  const std::array<int, 1> fds = {take_session_.get()};
  (void)ipc::send_value(sandbox_->control(),
                        frame::ToInit(frame::ServeFiles{1000, 1000, plan_.command.cwd}), fds);
}

// First whoever can act is gone, then what they said last goes on record.
void Run::close_down() {
  if (const auto gone = sandbox_->end(); !gone) {
    notes_.push_back(gone.error().line());
    record(left_over(gone.error()));
  }
  drain_gateway();
  retire_broker();
  const sandbox::Counters& counted = facts_.counters;
  const std::uint64_t unlogged = missing(counted.refused_in_kernel, counted.refused_logged);
  const std::uint64_t ranges = missing(counted.refused_ranges, counted.logged_ranges);
  const std::uint64_t others = missing(unlogged, ranges);
  if (ranges > 0) record(refusals_dropped("refusals of guarded ranges in the kernel", ranges));
  if (others > 0) record(refusals_dropped("refusals in the kernel", others));
}

void Run::tell_over() {
  Over over;
  over.ending = judge(facts_);
  over.status = status_of(over.ending, facts_.code);
  over.limits_hit = limits_hit(facts_);
  over.usage = usage_;
  over.notes = notes_;
  for (const auto& limit : over.limits_hit) {
    if (limit != "journal") record(limit_hit(limit));  // the journal has said so itself
  }
  record(run_ended(over.ending, over.status, usage_, over.limits_hit));
  last_ = over;
  tell_clients_over();
  tell_caller(over);
}

void Run::tell_not_started() {
  const StartFailed failed = not_started(plan_.command.argv.front(), start_failure_,
                                         static_cast<int>(facts_.code), path_variable());
  last_.status = failed.status;
  last_.ending = failed.ending;
  record(run_ended(failed.ending, failed.status, usage_, {}));
  tell_clients_over();
  tell_caller(failed);
}

void Run::await_finish() {
  while (!finished_ && !caller_gone_) {
    auto message = caller_.receive();
    const bool gone = !message || !*message;
    const auto request = gone ? base::Result<FromCaller>(std::unexpected(base::Error{}))
                              : base::decode<FromCaller>((*message)->bytes, "caller");
    if (!request) caller_gone_ = true;
    finished_ = request && std::holds_alternative<Finish>(*request);
  }
}

// The journal signs and writes its last lines while other things are given back.
void Run::finish_journal() {
  journal_finishing_ = journal_.control.open() && !journal_lost_ &&
                       ipc::send_value(journal_.control, journal::ToJournal(journal::Finish{}), {});
}

std::optional<journal::Summary> Run::journal_summary() {
  while (journal_finishing_ && answers(journal_.control, kPatienceMs)) {
    auto answer = receive<journal::FromJournal>(journal_.control, "journal");
    if (!answer) break;
    if (auto* summary = std::get_if<journal::Summary>(&*answer)) return std::move(*summary);
  }
  return std::nullopt;
}

void Run::report() {
  Report last;
  if (sandbox_) {
    // Told already where the end was tried before.
    const auto gone = sandbox_->end();
    if (!gone && notes_.empty()) last.problem = gone.error().line();
  }
  if (auto summary = journal_summary()) {
    last.summary = std::move(*summary);
  } else if (journal_finishing_) {
    journal_silent_ = true;
    if (last.problem.empty()) last.problem = "the journal did not say how it ends, and is killed";
  }
  if (caller_gone_ && command_started_) write_report(last.summary);
  name_lock_.release();
  folder_.close();
  tell_caller(last);
  flush_clients();
}

// Of a run that nobody stayed with: whoever is attached writes it instead, with what it saw itself.
void Run::write_report(const journal::Summary& summary) {
  RunReport report = report_of(live(), launch_.version);
  report.started = started_wall_;
  report.ended = os::wall_time();
  report.status = last_.status;
  report.ending = last_.ending;
  report.usage = usage_;
  if (ring_) {
    report.stdout_bytes = ring_->bytes(Stream::output);
    report.stderr_bytes = ring_->bytes(Stream::error);
  }
  report.limits_hit = last_.limits_hit;
  report.summary = summary;
  const std::string json = report_json(report);
  (void)folder_.write_report(json);
  if (report_.open()) (void)os::write_all(report_.get(), json, "report");
}

// It has nothing left to do but to end; in a run that failed it writes that it was abandoned.
void Run::end_journal() {
  journal_.control = {};
  if (!journal_.child.running()) return;
  pollfd ended = {journal_.child.pidfd(), POLLIN, 0};
  // One that did not answer is not waited for again.
  if (!journal_silent_) (void)::poll(&ended, 1, kPatienceMs);
  journal_ = {};
}

// After the answer: nobody waits for the disk's unmount, nor for the next run's disk. The caller's
// standard error is let go first, since whoever reads that waits for its last holder.
void Run::clear_away() {
  os::let_go_of_streams();
  end_journal();
  if (!sandbox_) return;
  (void)sandbox_->destroy();
  (void)sandbox::prepare_spare(plan_);
}

void Run::report_failed_start(const base::Error& error) {
  StartFailed failed;
  failed.message = error.line();
  failed.ending.kind = EndingKind::start_failed;
  failed.ending.step = error.where;
  failed.ending.error = error_name(error.number);
  if (sandbox_) (void)sandbox_->end();
  gateway_.reset();
  retire_broker();
  record(run_ended(failed.ending, failed.status, usage_, {}));
  tell_caller(failed);
  finish_journal();
}

}  // namespace supervisor
