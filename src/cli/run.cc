// `cerco run`: one command in a sandbox of its own, from the flags to the exit status; `cerco
// start`: the sandbox alone, for commands that come later.
#include <fmt/format.h>

#include <cstring>

#include "base/frame.h"
#include "cli/attached.h"
#include "cli/executables.h"
#include "cli/invocation.h"
#include "cli/places.h"
#include "cli/report_file.h"
#include "cli/report_text.h"
#include "cli/roots.h"
#include "cli/secrets.h"
#include "cli/terminal.h"
#include "supervisor/ending.h"

namespace cli {
namespace {

constexpr int kCercoFailed = 125;
// Argv and environment travel to init in one frame, where the seccomp filter has the rest.
constexpr std::size_t kMaxArguments = frame::kMaxFrame - (std::size_t{28} << 10);

// How a run looks whose command was never started.
Outcome not_started(int status, base::Error error) {
  Outcome outcome;
  outcome.status = status;
  outcome.ending.kind = supervisor::EndingKind::start_failed;
  outcome.ending.step = error.where;
  const char* name = error.number == 0 ? nullptr : strerrorname_np(error.number);
  outcome.ending.error = name == nullptr ? "" : name;
  outcome.failures.push_back(std::move(error));
  return outcome;
}

base::Status check_size(const plan::Command& command) {
  frame::Exec exec;
  exec.argv = command.argv;
  for (const auto& [name, value] : command.env) exec.env.push_back(name + "=" + value);
  exec.cwd = command.cwd;
  const std::size_t bytes = base::encode(frame::ToInit(std::move(exec))).size();
  if (bytes <= kMaxArguments) return {};
  return base::bad_input("run",
                         fmt::format("{} arguments and {} variables take {} bytes",
                                     command.argv.size(), command.env.size(), bytes),
                         fmt::format("expected at most {}, where each counts 8 more than it has; "
                                     "use --in",
                                     kMaxArguments));
}

base::Status check_risks(const Parsed& parsed, const plan::Plan& plan) {
  if (!parsed.has("--strict")) return {};
  const auto rest = plan::not_accepted(plan);
  if (rest.empty()) return {};
  return base::fail(base::Kind::missing, "--strict", base::join(rest, "; "),
                    "name it in isolation.accept, or use a tier that is advised");
}

base::Result<Files> open_files(const World& world, const Parsed& parsed,
                               const Invocation& invocation, const ReportFile& report) {
  Files files;
  files.in = TRY(read_incoming(parsed));
  if (invocation.file) files.in.push_back(*invocation.file);
  const auto out = parsed.value("--out");
  if (!out) return files;
  const std::string what = "--out " + base::printable(*out);
  // Before it is made, so that none is made in the state folder.
  if (const auto place = real_place(*out)) {
    TRY(check_apart_from_state(*place, world.state_dir, what));
  }
  auto made = os::make_folders(*out, 0777);  // cut by the caller's umask
  auto folder = made ? os::open(*out, O_PATH | O_DIRECTORY, 0)
                     : base::Result<base::Fd>(std::unexpected(made.error()));
  if (!folder) {
    base::Error error = std::move(folder).error();
    error.kind = base::Kind::bad_input;
    error.where = what;
    return std::unexpected(std::move(error));
  }
  TRY(check_apart_from_state(place_of(folder->get()), world.state_dir, what));
  TRY(check_report_apart(report.fd(), folder->get()));
  files.out = std::move(*folder);
  return files;
}

enum class Form { run, start };

// Whether the caller stays, and what it cannot have when it does not.
base::Result<Part> part_of(const World& world, const Parsed& parsed, Form form,
                           const ReportFile& report) {
  Part part;
  const bool stays = form == Form::run && !parsed.has("--detach");
  part.terminal = TRY(wanted_terminal(world, parsed, stays ? Seat::needed : Seat::optional));
  if (stays) return part;
  const std::string where = form == Form::start ? "start" : "run --detach";
  if (parsed.has("--out")) {
    return base::bad_input(where, "nobody is there at the end to bring --out's files out",
                           "cerco cp RUN:PATH DST while it runs");
  }
  part.stay = Stay::until_begun;
  if (report.fd() >= 0) part.report = TRY(os::duplicate(report.fd()));
  return part;
}

// Everything from the flags to the end of the sandbox. `plan` is set once there is one, also on
// failure.
base::Result<Outcome> carry_out(const World& world, const Parsed& parsed, Form form,
                                const ReportFile& report, std::optional<plan::Plan>& plan) {
  const std::string name = parsed.value("--name").value_or("");
  if (parsed.has("--name")) TRY(check_name(name));
  Part part = TRY(part_of(world, parsed, form, report));
  const plan::HostFacts host = TRY(host_facts(world));
  const policy::Effective effective = TRY(load_policy(world, parsed, host.size));
  for (const std::string& warning : effective.warnings) {
    print_error(world, "cerco: " + base::printable(warning) + "\n");
  }
  const bool script = effective.policy.isolation.tier == policy::Tier::isolate;
  Invocation invocation;
  if (form == Form::run) {
    invocation = TRY(script ? read_script(parsed) : read_invocation(parsed));
  }
  const Kind kind = form == Form::start      ? Kind::session
                    : parsed.has("--detach") ? Kind::detached
                                             : Kind::one_command;
  plan = TRY(make_plan(world, effective.policy, host, name, invocation.argv, kind));
  if (part.terminal) pass_terminal_kind(world, plan->command.env);
  TRY(check_risks(parsed, *plan));
  TRY(check_size(plan->command));
  if (form == Form::run && !script) {
    if (auto problem = check_command(world, *plan)) {
      return not_started(problem->status, std::move(problem->error));
    }
  }
  Files files = TRY(open_files(world, parsed, invocation, report));
  if (world.terminal[2] && !parsed.has("--quiet")) {
    for (const std::string& below : plan->below_advice) {
      print_error(world, "cerco: below the advice: " + below + "\n");
    }
  }
  // The supervisor is forked before the secrets are read, so that its memory never held them.
  Attached attached = TRY(Attached::start(world));
  base::Fd roots = TRY(open_roots(host, *plan));
  std::vector<base::Fd> secrets = TRY(open_secrets(world, plan->policy));
  std::vector<std::string> brought;
  for (const auto& incoming : files.in) brought.push_back(incoming.path);
  Outcome outcome =
      attached.run(*plan, std::move(files), std::move(part), std::move(roots), std::move(secrets));
  // A path of the host is what a person most likely meant, and what is missed most often.
  if (!script && outcome.ending.kind == supervisor::EndingKind::exited && outcome.status != 0) {
    for (auto& hint : hints_of_arguments(*plan, brought)) outcome.notes.push_back(std::move(hint));
  }
  return outcome;
}

// What cerco itself failed at makes the status its own, unless the command's says already that all
// is not well.
void settle_status(Outcome& outcome) {
  if (!outcome.failures.empty() && outcome.status == 0) outcome.status = kCercoFailed;
}

void tell(const World& world, const Parsed& parsed, const Outcome& outcome) {
  for (const base::Error& failure : outcome.failures) print_error(world, failure);
  if (parsed.has("--quiet")) return;
  if (const std::string why = supervisor::why_ended(outcome.ending, outcome.limits_hit);
      !why.empty()) {
    print_error(world, "cerco: " + why + "\n");
  }
  for (const std::string& note : outcome.notes) print_error(world, "cerco: " + note + "\n");
  print_error(world, refusal_block(outcome.summary));
}

base::Result<int> run_as(const World& world, const Parsed& parsed, Form form) {
  const ReportFile report = TRY(ReportFile::open(parsed.value("--report"), world.state_dir));
  ReportFacts facts{.name = parsed.value("--name").value_or(""), .started = os::wall_time()};
  std::optional<plan::Plan> plan;
  auto outcome = carry_out(world, parsed, form, report, plan);
  facts.outcome =
      outcome ? std::move(*outcome) : not_started(kCercoFailed, std::move(outcome).error());
  if (facts.outcome.begun) {
    tell(world, parsed, facts.outcome);
    print(world, plan->run + "\n");
    return 0;
  }
  facts.ended = os::wall_time();
  facts.plan = plan ? &*plan : nullptr;
  settle_status(facts.outcome);
  const std::string json = report_json(facts);
  if (plan && facts.outcome.summary.events > 0) {
    const auto kept = keep_report(world.state_dir, plan->run, json);
    if (!kept) facts.outcome.failures.push_back(kept.error());
  }
  if (const auto written = report.write(json); !written) {
    facts.outcome.failures.push_back(written.error());
  }
  settle_status(facts.outcome);
  tell(world, parsed, facts.outcome);
  return facts.outcome.status;
}

}  // namespace

base::Result<int> run(const World& world, const Parsed& parsed) {
  return run_as(world, parsed, Form::run);
}

base::Result<int> start(const World& world, const Parsed& parsed) {
  if (!parsed.words.empty() || parsed.dashes) {
    return base::bad_input("start", "it takes no command",
                           "expected cerco start [FLAGS], then cerco exec RUN -- CMD");
  }
  return run_as(world, parsed, Form::start);
}

}  // namespace cli
