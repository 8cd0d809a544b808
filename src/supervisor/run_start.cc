// The start of a run: from the caller's Launch to the command's first instruction.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/frame.h"
#include "supervisor/record.h"
#include "supervisor/run.h"

namespace supervisor {

namespace {

constexpr std::size_t kMaxRoots = 8U << 20;

}  // namespace

LiveRun Run::live() const {
  LiveRun live;
  live.run = plan_.run;
  live.name = plan_.name;
  live.kind = plan_.session    ? RunKind::session
              : launch_.detach ? RunKind::detached
                               : RunKind::attached;
  live.started = static_cast<std::uint64_t>(started_wall_.seconds);
  live.supervisor = static_cast<std::uint64_t>(::getpid());
  live.argv = policy::without_credentials(plan_.command.argv);
  live.task = plan_.policy.task;
  live.tier = policy::to_string(plan_.tier);
  live.below_advice = plan_.below_advice;
  live.unheld = plan_.unheld;
  live.policy_sha256 = plan_.policy_sha256;
  live.output = plan_.policy.limits.output;
  live.disk = plan_.policy.limits.disk;
  live.inodes = plan_.policy.limits.inodes;
  live.hide = plan_.policy.filesystem.hide;
  return live;
}

base::Status Run::receive_launch() {
  auto message = TRY(caller_.receive());
  if (!message) return base::fail(base::Kind::peer, "launch", "the caller ended", {});
  const auto request = TRY(base::decode<FromCaller>(message->bytes, "launch"));
  const auto* launch = std::get_if<Launch>(&request);
  if (launch == nullptr) return base::bad_input("launch", "another message came first", {});
  launch_ = *launch;
  auto& fds = message->fds;
  const std::size_t expected = 2U + (launch_.detach ? 0U : 3U) + (launch_.put ? 1U : 0U) +
                               (launch_.take ? 1U : 0U) + (launch_.report ? 1U : 0U) +
                               launch_.secrets;
  if (fds.size() != expected) return base::bad_input("launch", "wrong number of descriptors", {});
  std::size_t next = 0;
  plan_memfd_ = std::move(fds[next++]);
  if (!launch_.detach) {
    for (auto& stream : streams_) stream = std::move(fds[next++]);
  }
  roots_ = std::move(fds[next++]);
  if (launch_.put) put_session_ = std::move(fds[next++]);
  if (launch_.take) take_session_ = std::move(fds[next++]);
  if (launch_.report) report_ = std::move(fds[next++]);
  while (next < fds.size()) secrets_.push_back(std::move(fds[next++]));

  const std::string bytes = TRY(os::read_all(plan_memfd_.get(), 16U << 20, "plan"));
  plan_ = TRY(base::decode<plan::Plan>(bytes, "plan"));
  if (verify_ == Verify::plan) TRY(plan::verify(plan_));
  if (!secrets_.empty() && !plan_.policy.network.upstream_proxy.auth.empty()) {
    proxy_password_ = std::move(secrets_.back());
    secrets_.pop_back();
  }
  if (secrets_.size() != plan_.policy.credentials.size()) {
    return base::bad_input("launch", "not one secret a credential", {});
  }
  if (plan_.session && !launch_.detach) {
    return base::bad_input("launch", "a session that its caller stays with", {});
  }
  started_wall_ = os::wall_time();
  return launch_.detach ? detach() : base::Status();
}

base::Status Run::start_parts() {
  TRY(os::make_folders(plan_.state_dir, 0700));
  for (const char* folder : {"/.", "/leases", "/patterns", "/journal", "/keys", "/runs"}) {
    TRY_IN("CERCO_STATE_DIR", os::own_folder(plan_.state_dir + folder));
  }
  if (!plan_.name.empty()) name_lock_ = TRY(NameLock::take(plan_.state_dir, plan_.name));
  folder_ = TRY(RunFolder::make(plan_.state_dir, live()));
  if (launch_.detach && !plan_.session) {
    ring_.emplace(folder_.fd());
    TRY_IN("output", ring_->open());
  }
  journal_ = TRY(start_journal(plan_, plan_memfd_.get()));
  // What is planned is on record before anything is done.
  record(run_planned(plan_));
  if (!plan_.policy.credentials.empty()) {
    auto [gateway_end, broker_end] = TRY(ipc::make_pair());
    gateway_lease_end_ = gateway_end.release();
    if (!policy::mint_rules(plan_.policy).empty()) {
      minter_ = TRY(start_minter(plan_, plan_memfd_.get(), roots_.get()));
    }
    broker_ =
        TRY(start_broker(plan_, plan_memfd_.get(), journal_, secrets_, broker_end.fd(), minter_));
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
  if (proxy_password_.open()) TRY(give_proxy_password(*gateway_, proxy_password_));
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
  sandbox_ = TRY_IN("start sandbox", sandbox::start(plan_, inputs));
  const std::uint32_t uid = sandbox_->host_uid(1000);
  for (const auto& stream : streams_) {
    // So that /dev/stdout and its like can be opened again inside.
    const bool own = plan_.rights == plan::Rights::user;
    if (stream.open() && !own && ::fchown(stream.get(), uid, uid) != 0)
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
  if (launch_.detach) TRY_IN("start sandbox", sandbox_->prepare_commands());
  record(run_started(plan_, uid));
  if (journal_lost_) return base::fail(base::Kind::peer, "journal", "ended", {});
  started_ = Clock::now();
  next_disk_check_ = started_;
  if (plan_.protections.contains(plan::Protection::processor_time_limit)) {
    next_cpu_check_ = started_;
  }
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
  // From here on nothing is waited for: an init that does not listen is an error of its own.
  TRY(os::set_nonblocking(sandbox_->control().fd()));
  if (plan_.session) return begin_session();
  if (launch_.detach) first_processes_ = TRY(sandbox_->command_processes(kCommand));
  record(command_started(kCommand, plan_.command.argv, plan_.command.cwd));
  frame::Exec exec = order(kCommand, plan_.command.argv, {}, {});
  exec.terminal = launch_.terminal;
  TRY(send_order(std::move(exec), streams_, first_processes_.get()));
  for (auto& stream : streams_) stream.reset();
  command_started_ = true;
  // While the command begins: nobody waits for it.
  listener_ = TRY(folder_.listen());
  return {};
}

base::Status Run::begin_session() {
  command_started_ = true;
  active_ = Clock::now();
  listener_ = TRY(folder_.listen());
  tell_caller(Begun{});
  leave_caller();
  return {};
}

}  // namespace supervisor
