// `cerco exec`: one more command in a run that lives.
#include <sys/stat.h>

#include <csignal>
#include <optional>

#include "base/frame.h"
#include "cli/command_client.h"
#include "cli/living.h"
#include "cli/report_file.h"
#include "cli/terminal.h"
#include "supervisor/ending.h"
#include "supervisor/run_report.h"

namespace cli {
namespace {

constexpr int kCercoFailed = 125;
constexpr std::string_view kUsage = "[FLAGS] RUN -- CMD [ARG]…";
// Argv and environment travel in one frame, where the seccomp filter and the run's own environment
// have the rest.
constexpr std::size_t kMaxArguments = frame::kMaxFrame - (std::size_t{48} << 10);

// --timeout and --env are judged as those of `run` are.
base::Result<supervisor::Exec> read_request(const World& world, const Parsed& parsed) {
  if (parsed.words.size() != 1 || parsed.rest.empty()) {
    return base::bad_input("exec",
                           parsed.words.empty()      ? "no RUN"
                           : parsed.words.size() > 1 ? "more than RUN stands before `--`"
                                                     : "no command after `--`",
                           "expected cerco exec " + std::string(kUsage));
  }
  const policy::HostSize size = {.cpus_milli = 1000, .memory = std::uint64_t{1} << 30};
  const policy::Effective given = TRY(load_policy(world, parsed, size));
  supervisor::Exec request;
  request.argv = parsed.rest;
  if (request.argv[0].empty()) return base::bad_input("exec", "the command is empty", "a program");
  request.cwd = parsed.value("--cwd").value_or("");
  request.env = TRY(passed_environment(world, given.policy));
  request.env.insert(given.policy.environment.set.begin(), given.policy.environment.set.end());
  if (parsed.has("--timeout")) {
    request.timeout_ms = given.policy.limits.wall_ms;
    if (request.timeout_ms == 0) return base::bad_input("--timeout", "0", "more than nothing");
  }
  request.terminal = TRY(wanted_terminal(world, parsed, Seat::needed));
  if (request.terminal) pass_terminal_kind(world, request.env);
  if (base::encode(supervisor::FromClient(request)).size() > kMaxArguments) {
    return base::bad_input(
        "exec", "its arguments and variables take too many bytes",
        "expected at most " + std::to_string(kMaxArguments) + "; cerco cp brings more in");
  }
  return request;
}

base::Status write_report(const ReportFile& file, const supervisor::LiveRun& run,
                          os::Instant started, const CommandOutcome& outcome) {
  if (file.fd() < 0) return {};
  supervisor::RunReport report = supervisor::report_of(run, kVersion);
  report.started = started;
  report.ended = os::wall_time();
  report.status = static_cast<std::uint32_t>(outcome.status);
  report.ending = outcome.ending;
  report.usage = outcome.usage;
  report.limits_hit = outcome.limits_hit;
  report.stdout_bytes = outcome.stdout_bytes;
  report.stderr_bytes = outcome.stderr_bytes;
  return file.write(supervisor::report_json(report));
}

}  // namespace

base::Result<int> exec(const World& world, const Parsed& parsed) {
  const supervisor::Exec request = TRY(read_request(world, parsed));
  const ReportFile file = TRY(ReportFile::open(parsed.value("--report"), world.state_dir));
  const os::Instant started = os::wall_time();
  Reached reached = TRY(reach(world, parsed.words[0]));
  const supervisor::LiveRun run = TRY(supervisor::look_at_run(world.state_dir, reached.run.id)).run;
  CommandClient client = TRY(CommandClient::make(world, std::move(reached.channel)));
  const CommandOutcome outcome = client.run(request, run.output);
  for (const base::Error& failure : outcome.failures) print_error(world, failure);
  if (const std::string why = supervisor::why_ended(outcome.ending, outcome.limits_hit);
      !why.empty() && !parsed.has("--quiet")) {
    print_error(world, "cerco: " + why + "\n");
  }
  const auto written = write_report(file, run, started, outcome);
  if (!written) print_error(world, written.error());
  const bool failed = !written || !outcome.failures.empty();
  return failed && outcome.status == 0 ? kCercoFailed : outcome.status;
}

}  // namespace cli
