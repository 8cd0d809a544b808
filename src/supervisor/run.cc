// One run, from the caller's Launch to the Report.
#include "supervisor/run.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/frame.h"
#include "confine/confine.h"
#include "supervisor/record.h"

namespace supervisor {

namespace {

constexpr std::chrono::milliseconds kGrace{
    1000};  // between SIGTERM and the end of everything at a time-out
constexpr std::chrono::milliseconds kDiskInterval{
    500};  // how often the host's free room is looked at
constexpr std::chrono::milliseconds kOomInterval{
    5};                                // until the kernel has counted the kill that it announced
constexpr std::uint64_t kCommand = 1;  // the id of the one command of `cerco run`
constexpr std::size_t kMaxRoots = 8U << 20;

template <class... F>
struct Overload : F... {
  using F::operator()...;
};

std::uint64_t milliseconds_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count());
}

confine::Profile profile_of(policy::SeccompProfile profile) {
  switch (profile) {
    case policy::SeccompProfile::strict:
      return confine::Profile::strict;
    case policy::SeccompProfile::standard:
      return confine::Profile::standard;
    case policy::SeccompProfile::debug:
      return confine::Profile::debug;
    case policy::SeccompProfile::browser:
      return confine::Profile::browser;
  }
  return confine::Profile::strict;
}

template <class Wanted>
const Wanted* step_of(const plan::Plan& plan) {
  for (const auto& step : plan.steps) {
    if (const auto* found = std::get_if<Wanted>(&step)) return found;
  }
  return nullptr;
}

}  // namespace

int Run::serve() {
  base::Status start = receive_launch();
  if (start) start = start_parts();
  if (start) start = start_sandbox();
  if (!start) {
    report_failed_start(start.error());
  } else {
    loop();
    end_sandbox();
    report();
  }
  linger();
  return start ? 0 : 1;
}

// A socket that is closed with something unread takes what its peer has not read yet with it
// (unix(7), ECONNRESET): the caller's last words are read before this end goes.
void Run::linger() {
  pollfd polled = {caller_.fd(), POLLIN, 0};
  while (!caller_gone_ && ::poll(&polled, 1, 10'000) > 0) {
    const auto message = caller_.receive();
    if (!message || !*message) return;
  }
}

template <class Message>
void Run::tell_caller(const Message& message) {
  if (caller_gone_) return;
  if (!ipc::send_value(caller_, ToCaller(message), {})) caller_gone_ = true;
}

void Run::record(const journal::Draft& draft) {
  if (journal_lost_ || !journal_.control.open()) return;
  if (ipc::send_value(journal_.control, journal::ToJournal(draft), {})) return;
  journal_lost_ = true;
  if (plan_.policy.audit.journal == policy::Need::required) cut(Cut::killed, "journal lost");
}

// --- The start -----------------------------------------------------------------------------------

base::Status Run::receive_launch() {
  auto message = TRY(caller_.receive());
  if (!message) return base::fail(base::Kind::peer, "launch", "the caller ended", {});
  const auto request = TRY(base::decode<FromCaller>(message->bytes, "launch"));
  const auto* launch = std::get_if<Launch>(&request);
  if (launch == nullptr) return base::bad_input("launch", "another message came first", {});
  launch_ = *launch;
  auto& fds = message->fds;
  const std::size_t expected =
      5U + (launch_.put ? 1U : 0U) + (launch_.take ? 1U : 0U) + launch_.secrets;
  if (fds.size() != expected) return base::bad_input("launch", "wrong number of descriptors", {});
  std::size_t next = 0;
  plan_memfd_ = std::move(fds[next++]);
  for (auto& stream : streams_) stream = std::move(fds[next++]);
  roots_ = std::move(fds[next++]);
  if (launch_.put) put_session_ = std::move(fds[next++]);
  if (launch_.take) take_session_ = std::move(fds[next++]);
  while (next < fds.size()) secrets_.push_back(std::move(fds[next++]));

  const std::string bytes = TRY(os::read_all(plan_memfd_.get(), 16U << 20, "plan"));
  plan_ = TRY(base::decode<plan::Plan>(bytes, "plan"));
  if (verify_ == Verify::plan) TRY(plan::verify(plan_));
  if (secrets_.size() != plan_.policy.credentials.size()) {
    return base::bad_input("launch", "not one secret a credential", {});
  }
  return {};
}

base::Status Run::start_parts() {
  TRY(os::make_folders(plan_.state_dir, 0700));
  TRY(os::make_folders(plan_.state_dir + "/leases", 0700));
  if (!plan_.name.empty()) {
    const std::string path = plan_.state_dir + "/leases/name-" + plan_.name;
    name_lock_ = TRY(os::open(path, O_RDWR | O_CREAT, 0600));
    if (::flock(name_lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      return base::bad_input("--name " + plan_.name, "a run of that name is alive", "another name");
    }
  }
  journal_ = TRY(start_journal(plan_, plan_memfd_.get()));
  // What is planned is on record before anything is done.
  record(run_planned(plan_));
  if (!plan_.policy.credentials.empty()) {
    auto [gateway_end, broker_end] = TRY(ipc::make_pair());
    gateway_lease_end_ = gateway_end.release();
    broker_ = TRY(
        start_broker(plan_, plan_memfd_.get(), roots_.get(), journal_, secrets_, broker_end.fd()));
    secrets_.clear();
  }
  if (plan_.terminates) TRY(start_gateway_part());
  if (broker_) {
    const auto answer = TRY(receive<plan::FromBroker>(broker_->control, "broker"));
    const auto* ready = std::get_if<plan::BrokerReady>(&answer);
    if (ready == nullptr)
      return base::fail(base::Kind::peer, "broker", "answered something else", {});
    if (!ready->problem.empty()) return base::bad_input("credential", ready->problem, {});
  }
  return {};
}

base::Status Run::start_gateway_part() {
  gateway_ = TRY(
      start_gateway(plan_, plan_memfd_.get(), roots_.get(), journal_, gateway_lease_end_.get()));
  gateway_lease_end_.reset();
  const auto answer = TRY(receive<plan::FromGateway>(gateway_->control, "gateway"));
  const auto* ready = std::get_if<plan::GatewayReady>(&answer);
  if (ready == nullptr)
    return base::fail(base::Kind::peer, "gateway", "answered something else", {});
  authority_ = ready->authority;
  return {};
}

base::Result<std::string> Run::trust_bundle() {
  if (!plan_.terminates) return std::string();
  std::string bundle = TRY(os::read_all(roots_.get(), kMaxRoots, "roots"));
  if (!bundle.empty() && bundle.back() != '\n') bundle += '\n';
  return bundle + authority_;
}

base::Status Run::start_sandbox() {
  const sandbox::Inputs inputs = {TRY(trust_bundle()), plan_.helper_dir + "/cerco-init"};
  sandbox_ = TRY_IN("start sandbox", sandbox::start_container(plan_, inputs));
  const std::uint32_t uid = sandbox_->host_uid(1000);
  for (const auto& stream : streams_) {
    // So that /dev/stdout and its like can be opened again inside.
    if (stream.open() && ::fchown(stream.get(), uid, uid) != 0)
      return base::system_error("give the streams away");
  }
  // Kept here, since what the kernel refused last is read when the sandbox is gone.
  capture_ = std::move(sandbox_->capture());
  if (gateway_) TRY(serve_capture(*gateway_, capture_));
  const auto answer =
      TRY_IN("start sandbox", receive<frame::FromInit>(sandbox_->control(), "cerco-init"));
  if (!std::holds_alternative<frame::Ready>(answer)) {
    return base::fail(base::Kind::peer, "start sandbox", "cerco-init answered something else", {});
  }
  const auto opened = TRY(receive<journal::FromJournal>(journal_.control, "journal"));
  if (!std::holds_alternative<journal::Opened>(opened)) {
    return base::fail(base::Kind::peer, "journal", "answered something else", {});
  }
  record(run_started(plan_, uid));
  if (journal_lost_) return base::fail(base::Kind::peer, "journal", "ended", {});
  started_ = Clock::now();
  next_disk_check_ = started_;
  if (launch_.put) {
    const std::array<int, 1> fds = {put_session_.get()};
    TRY(ipc::send_value(sandbox_->control(),
                        frame::ToInit(frame::ServeFiles{1000, 1000, plan_.command.cwd}), fds));
    put_session_.reset();
    tell_caller(Ready{});
    return {};
  }
  return start_command();
}

base::Status Run::start_command() {
  frame::Exec exec;
  exec.id = kCommand;
  exec.argv = plan_.command.argv;
  for (const auto& [name, value] : plan_.command.env) exec.env.push_back(name + "=" + value);
  exec.cwd = plan_.command.cwd;
  exec.drop_capabilities = step_of<plan::DropCapabilities>(plan_) != nullptr;
  exec.no_new_privs = step_of<plan::NoNewPrivs>(plan_) != nullptr;
  if (const auto* rlimits = step_of<plan::Rlimits>(plan_)) exec.files = rlimits->files;
  if (const auto* seccomp = step_of<plan::Seccomp>(plan_)) {
    exec.filter = confine::as_bytes(confine::filter(profile_of(seccomp->profile)));
  }
  record(command_started(plan_));
  const std::array<int, 3> fds = {streams_[0].get(), streams_[1].get(), streams_[2].get()};
  TRY(ipc::send_value(sandbox_->control(), frame::ToInit(exec), fds));
  for (auto& stream : streams_) stream.reset();
  command_started_ = true;
  return {};
}

// --- The loop
// --------------------------------------------------------------------------------------

bool Run::network_is_idle() const {
  return !gateway_ && capture_.tcp4.open();
}

void Run::watch(std::vector<pollfd>& polled) const {
  polled.clear();
  const auto add = [&](int fd) { polled.push_back({fd, POLLIN, 0}); };
  add(caller_gone_ ? -1 : caller_.fd());
  add(sandbox_->control().fd());
  add(sandbox_->init_pidfd());
  add(journal_lost_ ? -1 : journal_.control.fd());
  add(sandbox_->oom_fd());
  add(gateway_ ? gateway_->control.fd() : -1);
  add(broker_ ? broker_->control.fd() : -1);
  if (!network_is_idle() || network_cut_) return;
  const sandbox::CaptureSockets& sockets = capture_;
  for (const auto* socket : {&sockets.tcp4, &sockets.tcp6, &sockets.dns4, &sockets.dns6,
                             &sockets.dns_tcp4, &sockets.dns_tcp6, &sockets.refused}) {
    add(socket->get());
  }
}

void Run::loop() {
  std::vector<pollfd> polled;
  while (!over_) {
    watch(polled);
    if (::poll(polled.data(), polled.size(), milliseconds_to_wait()) < 0 && errno != EINTR) {
      cut(Cut::killed, "host");
      return;
    }
    const auto readable = [&](std::size_t i) {
      return i < polled.size() && polled[i].revents != 0;
    };
    if (readable(3)) on_journal();
    if (readable(1)) on_init();
    if (readable(2) && !over_) on_init_gone();
    if (readable(4) && !over_) on_oom();
    if (readable(5)) on_gateway();
    if (readable(6)) on_broker();
    for (std::size_t i = 7; i < polled.size(); ++i) {
      if (polled[i].revents == 0 || over_) continue;
      on_network();
      break;
    }
    if (readable(0)) on_caller();
    if (!over_) on_tick();
  }
}

int Run::milliseconds_to_wait() const {
  Clock::time_point next = next_disk_check_;
  if (kill_at_) next = std::min(next, *kill_at_);
  if (oom_check_at_) next = std::min(next, *oom_check_at_);
  if (plan_.policy.limits.wall_ms != policy::kUnlimited && !kill_at_) {
    next = std::min(next, started_ + std::chrono::milliseconds(plan_.policy.limits.wall_ms));
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Run::cut(Cut why, std::string by) {
  if (facts_.cut == Cut::none) {
    facts_.cut = why;
    facts_.by = std::move(by);
  }
  over_ = true;
}

void Run::signal_command(std::uint32_t number) {
  // A full or closed control channel means that init is stuck or gone, which the loop sees by
  // itself.
  (void)ipc::send_value(sandbox_->control(), frame::ToInit(frame::Signal{kCommand, number}), {});
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
                      [&](const Signal& signal) { signal_command(signal.number); },
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
  std::visit(Overload{[&](const frame::Ended& ended) {
                        if (ended.id != kCommand) return;
                        facts_.command_ended = true;
                        facts_.signalled = ended.signalled;
                        facts_.code = ended.code;
                        usage_.cpu_ms = ended.cpu_ms;
                        record(command_ended(ended.signalled, ended.code, ended.cpu_ms));
                        over_ = true;
                      },
                      [&](const frame::NotStarted& failed) {
                        facts_.command_ended = true;
                        start_failure_ = failed.step;
                        facts_.code = failed.error;
                        over_ = true;
                      },
                      [&](const auto&) {}},
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
  // Nothing is due from it before Drain: whatever comes is its end or a fault.
  lose(*gateway_, "gateway");
  gateway_.reset();
  (void)sandbox_->cut_network();
  network_cut_ = true;
}

void Run::on_broker() {
  const auto answer = receive<plan::FromBroker>(broker_->control, "broker");
  if (answer) return;
  lose(*broker_, "broker");
  broker_.reset();
}

void Run::on_journal() {
  const auto answer = receive<journal::FromJournal>(journal_.control, "journal");
  if (!answer) {
    journal_lost_ = true;
    if (plan_.policy.audit.journal == policy::Need::required) cut(Cut::killed, "journal lost");
    return;
  }
  if (const auto* alarm = std::get_if<journal::Alarm>(&*answer)) contain(*alarm);
}

void Run::contain(const journal::Alarm& alarm) {
  // What has been cut stays cut: each further attempt has its alert, and needs no other act.
  if (alarm.action == "cut-network" && network_cut_) return;
  record(containment(alarm));
  if (alarm.action == "kill") {
    cut(Cut::killed, "detector:" + alarm.detector);
  } else if (alarm.action == "freeze") {
    if (!sandbox_->freeze()) cut(Cut::killed, "detector:" + alarm.detector);
  } else if (alarm.action == "cut-network") {
    network_cut_ = true;
    const bool cut_in_kernel = sandbox_->cut_network().has_value();
    if (gateway_) (void)ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayCut{}), {});
    if (!cut_in_kernel) cut(Cut::killed, "detector:" + alarm.detector);
  } else if (alarm.action == "revoke") {
    if (broker_)
      (void)ipc::send_value(broker_->control,
                            plan::ToBroker(plan::BrokerRevoke{alarm.credential, "detector"}), {});
    if (gateway_)
      (void)ipc::send_value(gateway_->control,
                            plan::ToGateway(plan::GatewayRevoke{alarm.credential}), {});
  }
}

void Run::on_tick() {
  const Clock::time_point now = Clock::now();
  if (oom_check_at_ && now >= *oom_check_at_) {
    const auto counters = sandbox_->counters();
    if (counters && counters->oom_kills > 0) {
      cut(Cut::out_of_memory, {});
      return;
    }
    // Pressure that reclaim resolved is no ending; stop looking after a second.
    oom_check_at_ = now + kOomInterval;
  }
  if (kill_at_ && now >= *kill_at_) {
    over_ = true;
    return;
  }
  const bool wall_held = plan_.protections.contains(plan::Protection::wall_limit);
  if (!kill_at_ && wall_held && plan_.policy.limits.wall_ms != policy::kUnlimited &&
      now >= started_ + std::chrono::milliseconds(plan_.policy.limits.wall_ms)) {
    facts_.cut = Cut::timed_out;
    signal_command(SIGTERM);
    kill_at_ = now + kGrace;
  }
  if (now >= next_disk_check_) {
    next_disk_check_ = now + kDiskInterval;
    struct statvfs room = {};
    if (::statvfs(plan_.state_dir.c_str(), &room) == 0 && room.f_bavail < room.f_blocks / 20) {
      cut(Cut::host_disk_full, "host");
    }
    if (sandbox_->oom_fd() < 0) oom_check_at_ = now;
  }
}

// --- The end
// ---------------------------------------------------------------------------------------

void Run::drain_gateway() {
  if (!gateway_ && network_is_idle()) {
    // Refusals may have come with the last instruction, before the loop saw them.
    pollfd polled = {capture_.refused.get(), POLLIN, 0};
    if (::poll(&polled, 1, 0) > 0) on_network();
  }
  if (!gateway_) return;
  if (ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayDrain{}), {})) {
    pollfd polled = {gateway_->control.fd(), POLLIN, 0};
    if (::poll(&polled, 1, 10'000) > 0) {
      const auto answer = receive<plan::FromGateway>(gateway_->control, "gateway");
      const auto* drained = answer ? std::get_if<plan::GatewayDrained>(&*answer) : nullptr;
      if (drained != nullptr) refusals_logged_ = drained->logged;
    }
  }
  gateway_.reset();
}

void Run::retire_broker() {
  if (!broker_) return;
  if (ipc::send_value(broker_->control, plan::ToBroker(plan::BrokerRevoke{"", "run ended"}), {})) {
    pollfd polled = {broker_->control.fd(), POLLIN, 0};
    if (::poll(&polled, 1, 10'000) > 0) (void)broker_->control.receive();
  }
  broker_.reset();
}

void Run::end_sandbox() {
  if (const auto counters = sandbox_->counters()) facts_.counters = *counters;
  usage_.wall_ms = milliseconds_since(started_);
  usage_.memory_peak_bytes = facts_.counters.memory_peak;
  usage_.processes_peak = facts_.counters.processes_peak;
  usage_.cpu_ms = std::max(usage_.cpu_ms, facts_.counters.cpu_ms);
  usage_.written_bytes = facts_.counters.disk_used;

  if (!start_failure_.empty()) {
    const std::uint32_t error = facts_.code;
    const bool missing = start_failure_ == "execve" && error == ENOENT;
    StartFailed failed;
    failed.status = start_failure_ != "execve" ? 125 : missing ? 127 : 126;
    const char* name = strerrorname_np(static_cast<int>(error));
    failed.ending.kind = EndingKind::start_failed;
    failed.ending.step = start_failure_;
    failed.ending.error = name == nullptr ? std::to_string(error) : name;
    failed.message = base::system_error(plan_.command.argv.front() + ": " + start_failure_,
                                        static_cast<int>(error))
                         .error()
                         .line();
    record(run_ended(failed.ending, failed.status, usage_, {}));
    tell_caller(failed);
    return;
  }

  Over over;
  over.ending = judge(facts_);
  over.status = status_of(over.ending, facts_.code);
  over.limits_hit = limits_hit(facts_);
  over.usage = usage_;
  for (const auto& limit : over.limits_hit) record(limit_hit(limit));
  if (launch_.take && !all_dead_ && !caller_gone_) {
    // Before anything is fetched, everything that could still change it is gone.
    (void)sandbox_->thaw();
    if (ipc::send_value(sandbox_->control(), frame::ToInit(frame::KillAll{}), {})) {
      pollfd polled = {sandbox_->control().fd(), POLLIN, 0};
      while (::poll(&polled, 1, 10'000) > 0) {
        const auto answer = receive<frame::FromInit>(sandbox_->control(), "cerco-init");
        if (!answer || std::holds_alternative<frame::AllDead>(*answer)) break;
      }
      const std::array<int, 1> fds = {take_session_.get()};
      (void)ipc::send_value(sandbox_->control(),
                            frame::ToInit(frame::ServeFiles{1000, 1000, plan_.command.cwd}), fds);
    }
  } else {
    if (const auto gone = sandbox_->destroy(); !gone) notes_.push_back(gone.error().line());
  }
  take_session_.reset();
  over.notes = notes_;
  record(run_ended(over.ending, over.status, usage_, over.limits_hit));
  tell_caller(over);
}

void Run::report() {
  while (launch_.take && !finished_ && !caller_gone_ && start_failure_.empty()) {
    auto message = caller_.receive();
    const bool gone = !message || !*message;
    const auto request = gone ? base::Result<FromCaller>(std::unexpected(base::Error{}))
                              : base::decode<FromCaller>((*message)->bytes, "caller");
    if (!request) caller_gone_ = true;
    finished_ = request && std::holds_alternative<Finish>(*request);
  }
  Report last;
  if (const auto gone = sandbox_->destroy(); !gone) last.problem = gone.error().line();
  drain_gateway();
  retire_broker();
  if (facts_.counters.refused_in_kernel > facts_.counters.refused_logged) {
    record(refusals_dropped(facts_.counters.refused_in_kernel - facts_.counters.refused_logged));
  }
  if (!journal_lost_ &&
      ipc::send_value(journal_.control, journal::ToJournal(journal::Finish{}), {})) {
    while (true) {
      const auto answer = receive<journal::FromJournal>(journal_.control, "journal");
      if (!answer) break;
      if (const auto* summary = std::get_if<journal::Summary>(&*answer)) {
        last.summary = *summary;
        break;
      }
    }
  }
  if (!plan_.name.empty()) (void)::unlink((plan_.state_dir + "/leases/name-" + plan_.name).c_str());
  tell_caller(last);
  (void)sandbox::prepare_spare(plan_);
}

void Run::report_failed_start(const base::Error& error) {
  StartFailed failed;
  failed.message = error.line();
  failed.ending.kind = EndingKind::start_failed;
  failed.ending.step = error.where;
  failed.ending.error = error.number != 0 && strerrorname_np(error.number) != nullptr
                            ? strerrorname_np(error.number)
                            : "";
  if (sandbox_) (void)sandbox_->destroy();
  gateway_.reset();
  retire_broker();
  record(run_ended(failed.ending, failed.status, usage_, {}));
  tell_caller(failed);
  Report last;
  if (journal_.control.open() && !journal_lost_ &&
      ipc::send_value(journal_.control, journal::ToJournal(journal::Finish{}), {})) {
    while (true) {
      const auto answer = receive<journal::FromJournal>(journal_.control, "journal");
      if (!answer) break;
      if (const auto* summary = std::get_if<journal::Summary>(&*answer)) {
        last.summary = *summary;
        break;
      }
    }
  }
  if (!plan_.name.empty() && name_lock_.open()) {
    (void)::unlink((plan_.state_dir + "/leases/name-" + plan_.name).c_str());
  }
  tell_caller(last);
}

}  // namespace supervisor
