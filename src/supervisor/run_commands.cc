// The commands of a run: how each is ordered, timed and ended, with every process of it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "confine/confine.h"
#include "supervisor/believable.h"
#include "supervisor/record.h"
#include "supervisor/run.h"

namespace supervisor {

namespace {

constexpr std::chrono::milliseconds kGrace{1000};  // between SIGTERM and the end of a command
constexpr std::chrono::milliseconds kGoneWithin{10'000};  // of a kill
constexpr std::chrono::milliseconds kOomInterval{5};

confine::Profile profile_of(policy::SeccompProfile profile) {
  switch (profile) {
    case policy::SeccompProfile::strict:
      return confine::Profile::strict_program;
    case policy::SeccompProfile::standard:
      return confine::Profile::standard;
    case policy::SeccompProfile::debug:
      return confine::Profile::debug;
    case policy::SeccompProfile::browser:
      return confine::Profile::browser;
  }
  return confine::Profile::strict_program;
}

std::uint64_t milliseconds(Clock::duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace

// `env` stands over the run's own; "" for `cwd` is the run's, and what is relative lies below it.
frame::Exec Run::order(std::uint64_t id, std::vector<std::string> argv,
                       std::map<std::string, std::string> env, std::string cwd) const {
  frame::Exec exec;
  exec.id = id;
  exec.argv = std::move(argv);
  env.insert(plan_.command.env.begin(), plan_.command.env.end());
  for (const auto& [name, value] : env) {
    exec.env.push_back(name);
    exec.env.back().append("=").append(value);
  }
  exec.cwd = plan_.command.cwd;
  if (cwd.starts_with('/')) {
    exec.cwd = std::move(cwd);
  } else if (!cwd.empty()) {
    exec.cwd += "/" + cwd;
  }
  exec.drop_capabilities = plan::step_of<plan::DropCapabilities>(plan_) != nullptr;
  exec.no_new_privs = plan::step_of<plan::NoNewPrivs>(plan_) != nullptr;
  if (const auto* rlimits = plan::step_of<plan::Rlimits>(plan_)) exec.files = rlimits->files;
  if (const auto* seccomp = plan::step_of<plan::Seccomp>(plan_)) {
    exec.filter = confine::as_bytes(confine::filter(profile_of(seccomp->profile)));
  }
  return exec;
}

std::string Run::path_variable() const {
  const auto path = plan_.command.env.find("PATH");
  return path == plan_.command.env.end() ? std::string() : path->second;
}

base::Status Run::send_order(frame::Exec exec, std::span<const base::Fd> streams,
                             const sandbox::CommandProcesses* processes) {
  std::vector<int> fds;
  for (const base::Fd& stream : streams) fds.push_back(stream.get());
  if (processes != nullptr) {
    for (const int entry : processes->entries()) fds.push_back(entry);
  }
  exec.groups = static_cast<std::uint32_t>(fds.size() - streams.size());
  return ipc::send_value(sandbox_->control(), frame::ToInit(std::move(exec)), fds);
}

base::Status Run::start_further(Client& client, const Exec& request,
                                std::span<const base::Fd> streams) {
  const std::uint32_t uid = sandbox_->host_uid(1000);
  for (const base::Fd& stream : streams) {
    if (plan_.rights == plan::Rights::root && ::fchown(stream.get(), uid, uid) != 0)
      return base::system_error("give the streams away");
  }
  auto command = std::make_unique<Command>();
  command->id = next_command_++;
  command->argv0 = request.argv.front();
  command->processes = TRY(sandbox_->command_processes(command->id));
  command->before = TRY(sandbox_->counters());
  command->started = Clock::now();
  if (request.timeout_ms != kNoTimeout) {
    command->deadline = after(command->started, request.timeout_ms);
  }
  frame::Exec exec = order(command->id, request.argv, request.env, request.cwd);
  exec.terminal = request.terminal;
  const auto path = request.env.find("PATH");
  command->path = path == request.env.end() ? path_variable() : path->second;
  record(command_started(command->id, exec.argv, exec.cwd));
  TRY_IN("exec", send_order(std::move(exec), streams, command->processes.get()));
  client.command = command->id;
  commands_.push_back(std::move(command));
  return {};
}

Command* Run::command_of(std::uint64_t id) {
  const auto found = std::ranges::find_if(
      commands_, [&](const auto& command) { return command->id == id && !command->over; });
  return found == commands_.end() ? nullptr : found->get();
}

Client* Run::client_of(std::uint64_t command) {
  const auto found = std::ranges::find_if(
      clients_, [&](const auto& client) { return client->command == command && !client->gone; });
  return found == clients_.end() ? nullptr : found->get();
}

void Run::on_started(const frame::Started& started) {
  if (Command* command = command_of(started.id)) command->began = true;
  if (started.id != kCommand) return;
  command_began_ = true;
  if (!launch_.detach || detached_) return;
  tell_caller(Begun{});
  leave_caller();
}

// A sandbox whose own words contradict each other is ended: nothing else that it says would count.
void Run::on_nonsense() {
  record(broke_protocol());
  all_dead_ = true;  // nothing is asked of it any more
  cut(Cut::killed, "the sandbox broke the protocol");
}

void Run::on_not_started(const frame::NotStarted& failed) {
  const Command* told_of = command_of(failed.id);
  const bool began = failed.id == kCommand ? command_began_ : told_of != nullptr && told_of->began;
  if (began || !can_be(failed)) return on_nonsense();
  if (failed.id == kCommand) {
    facts_.command_ended = true;
    start_failure_ = failed.step;
    facts_.code = failed.error;
    over_ = true;
    return;
  }
  Command* command = command_of(failed.id);
  if (command == nullptr) return;
  const StartFailed told =
      not_started(command->argv0, failed.step, static_cast<int>(failed.error), command->path);
  record(further_ended(command->id, command->facts, told.ending));
  if (Client* client = client_of(command->id)) client->say_last(told);
  command->over = true;
}

void Run::on_ended(const frame::Ended& ended) {
  if (!can_be(ended)) return on_nonsense();
  if (ended.id == kCommand) {
    facts_.command_ended = true;
    facts_.signalled = ended.signalled;
    facts_.code = ended.code;
    usage_.cpu_ms = ended.cpu_ms;
    record(command_ended(kCommand, ended.signalled, ended.code, ended.cpu_ms));
    over_ = true;
    return;
  }
  Command* command = command_of(ended.id);
  if (command == nullptr) return;
  command->facts.command_ended = true;
  command->facts.signalled = ended.signalled;
  command->facts.code = ended.code;
  command->facts.cpu_ms = ended.cpu_ms;
  finish_command(*command);
}

// With every process of it. Whoever waits for it waits no longer than kGoneWithin, whatever becomes
// of them: a kernel of the sandbox's own may have stopped to answer.
void Run::kill_command(Command& command) {
  (void)command.processes->kill();
  command.kill_at.reset();
  if (!command.gone_by) command.gone_by = Clock::now() + kGoneWithin;
}

// All its processes go with it, whatever sessions and parents they have given themselves.
void Run::end_command(Command& command, Cut why, std::string by) {
  if (command.facts.cut == Cut::none) {
    command.facts.cut = why;
    command.facts.by = std::move(by);
  }
  kill_command(command);
}

// The command itself has ended, or everything with it.
void Run::finish_command(Command& command) {
  Facts& facts = command.facts;
  facts.counters.oom_kills = command.processes->oom_kills();
  if (facts.cut == Cut::none && facts.counters.oom_kills > 0) facts.cut = Cut::out_of_memory;
  if (facts.cut != Cut::none) (void)command.processes->kill();
  if (const auto now = sandbox_->counters()) {
    facts.counters.disk_full = now->disk_full;
    facts.counters.process_limit_hits =
        std::max(now->process_limit_hits, command.before.process_limit_hits) -
        command.before.process_limit_hits;
  }
  Over over;
  over.ending = judge(facts);
  over.status = status_of(over.ending, facts.code);
  over.limits_hit = limits_hit(facts);
  over.usage.wall_ms = milliseconds(Clock::now() - command.started);
  over.usage.cpu_ms = facts.cpu_ms;
  over.usage.memory_peak_bytes = command.processes->memory_peak();
  record(further_ended(command.id, facts, over.ending));
  if (Client* client = client_of(command.id)) {
    client->command = 0;
    client->say_last(over);
  }
  command.over = true;
}

// The run ends, and with it what is still running: for the run's reason.
void Run::end_commands() {
  for (const auto& command : commands_) {
    if (command->over) continue;
    if (command->facts.cut == Cut::none) {
      command->facts.cut = facts_.cut == Cut::none ? Cut::killed : facts_.cut;
      command->facts.by = facts_.cut == Cut::none ? "the run ended" : facts_.by;
    }
    finish_command(*command);
  }
}

// The kernel announces that memory ran out before it has killed: looked at until it is counted.
void Run::look_for_oom(Clock::time_point now) {
  oom_check_at_ = now + kOomInterval;
  if (now >= oom_check_until_) oom_check_at_.reset();
  for (const auto& command : commands_) {
    if (command->over || command->facts.cut != Cut::none || command->processes->oom_kills() == 0) {
      continue;
    }
    if (!launch_.detach) cut(Cut::out_of_memory, {});
    end_command(*command, Cut::out_of_memory, {});
  }
  if (first_processes_) {
    if (first_processes_->oom_kills() > 0) cut(Cut::out_of_memory, {});
    return;
  }
  if (launch_.detach) return;
  const auto counters = sandbox_->counters();
  if (counters && counters->oom_kills > 0) cut(Cut::out_of_memory, {});
}

void Run::tick_commands(Clock::time_point now) {
  for (const auto& command : commands_) {
    if (command->over) continue;
    if (command->gone_by && now >= *command->gone_by) {
      finish_command(*command);
      continue;
    }
    if (command->kill_at && now >= *command->kill_at) kill_command(*command);
    if (command->deadline && now >= *command->deadline) {
      command->deadline.reset();
      if (command->facts.cut == Cut::none) command->facts.cut = Cut::timed_out;
      signal_command(command->id, SIGTERM);
      command->kill_at = now + kGrace;
    }
  }
  for (const auto& command : commands_) {
    if (command->over) left_.push_back(std::move(command->processes));
  }
  const auto over = std::erase_if(commands_, [](const auto& command) { return command->over; });
  if (over > 0 && active_) active_ = now;
  std::erase_if(left_, [](const auto& processes) { return processes->remove_empty(); });
  if (!active_ || facts_.cut != Cut::none || !commands_.empty() || !clients_.empty() ||
      is_connected()) {
    return;
  }
  const std::uint64_t idle = plan_.policy.limits.idle_ms;
  if (idle != policy::kUnlimited && now >= after(*active_, idle)) {
    cut(Cut::idle, {});
  }
}

Clock::time_point Run::next_of_commands() const {
  Clock::time_point next = Clock::time_point::max();
  for (const auto& command : commands_) {
    if (command->deadline) next = std::min(next, *command->deadline);
    if (command->kill_at) next = std::min(next, *command->kill_at);
    if (command->gone_by) next = std::min(next, *command->gone_by);
    if (command->over) next = Clock::now();
  }
  const std::uint64_t idle = plan_.policy.limits.idle_ms;
  if (active_ && idle != policy::kUnlimited && commands_.empty() && clients_.empty() &&
      !is_connected()) {
    next = std::min(next, after(*active_, idle));
  }
  return next;
}

// A full or closed control channel means that init is stuck or gone, which the loop sees by itself.
void Run::signal_command(std::uint64_t id, std::uint32_t number) {
  (void)ipc::send_value(sandbox_->control(), frame::ToInit(frame::Signal{id, number}), {});
}

void Run::resize(std::uint64_t id, frame::Window window) {
  (void)ipc::send_value(sandbox_->control(), frame::ToInit(frame::Resize{id, window}), {});
}

void Run::signal_all(std::uint32_t number) {
  if (!plan_.session) signal_command(kCommand, number);
  for (const auto& command : commands_) {
    if (!command->over) signal_command(command->id, number);
  }
}

// Of the whole run: a moment to flush what is open, then the end of everything.
void Run::time_out(Cut why, Clock::time_point now) {
  facts_.cut = why;
  signal_all(SIGTERM);
  kill_at_ = now + kGrace;
}

}  // namespace supervisor
