// One run, one true ending.
#include "supervisor/ending.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace supervisor {

std::string_view to_string(EndingKind kind) {
  switch (kind) {
    case EndingKind::exited:
      return "exited";
    case EndingKind::signalled:
      return "signalled";
    case EndingKind::timed_out:
      return "timed_out";
    case EndingKind::out_of_memory:
      return "out_of_memory";
    case EndingKind::process_limit:
      return "process_limit";
    case EndingKind::disk_full:
      return "disk_full";
    case EndingKind::output_limit:
      return "output_limit";
    case EndingKind::killed:
      return "killed";
    case EndingKind::start_failed:
      return "start_failed";
  }
  return "killed";
}

std::string signal_name(std::uint32_t number) {
  const char* name = sigabbrev_np(static_cast<int>(number));
  return "SIG" + (name != nullptr ? std::string(name) : std::to_string(number));
}

std::string error_name(int number) {
  const char* name = number == 0 ? nullptr : strerrorname_np(number);
  return name == nullptr ? std::string() : name;
}

namespace {

// The same words as where it is seen before the start (cli/executables.cc).
std::string why_not_executed(const std::string& argv0, int number, const std::string& path) {
  const bool named = argv0.contains('/');
  base::Error error = {base::Kind::system, 0, base::printable(argv0), {}, {}};
  if (number == ENOENT && named) {
    error.what = "no such file inside, or its interpreter is not";
  } else if (number == ENOENT) {
    error.what = "command not found";
    error.expected = "inside, PATH is " + base::printable(path);
  } else if (number == EACCES) {
    error.what = "is not executable";
  } else {
    return base::system_error(argv0 + ": execve", number).error().line();
  }
  return error.line();
}

}  // namespace

StartFailed not_started(const std::string& argv0, const std::string& step, int number,
                        const std::string& path) {
  StartFailed failed;
  const bool missing = step == "execve" && number == ENOENT;
  failed.status = step != "execve" ? 125 : missing ? 127 : 126;
  failed.ending.kind = EndingKind::start_failed;
  failed.ending.step = step;
  failed.ending.error = error_name(number);
  if (failed.ending.error.empty()) failed.ending.error = std::to_string(number);
  failed.message = step == "execve"
                       ? why_not_executed(argv0, number, path)
                       : base::system_error(argv0 + ": " + step, number).error().line();
  return failed;
}

std::string why_ended(const Ending& ending, const std::vector<std::string>& limits) {
  const auto hit = [&](std::string_view limit) {
    return std::ranges::find(limits, limit) != limits.end();
  };
  switch (ending.kind) {
    case EndingKind::timed_out:
      if (ending.by == "idle") return "ended by limits.idle";
      return hit("cpu") ? "ended by limits.cpu" : "ended by limits.wall";
    case EndingKind::out_of_memory:
      return "ended by limits.memory";
    case EndingKind::output_limit:
      return "ended by limits.output";
    case EndingKind::killed:
      return ending.by.empty() ? "killed" : "killed by " + base::printable(ending.by);
    case EndingKind::disk_full:
      return ending.by == "host" ? "ended: the host's disk is full" : "";
    case EndingKind::exited:
    case EndingKind::signalled:
    case EndingKind::process_limit:
    case EndingKind::start_failed:
      break;
  }
  return {};
}

Ending judge(const Facts& facts) {
  Ending ending;
  if (facts.command_ended) {
    if (facts.signalled) {
      ending.signal = signal_name(facts.code);
    } else {
      ending.code = facts.code;
    }
  }
  const bool failed = !facts.command_ended || facts.signalled || facts.code != 0;
  switch (facts.cut) {
    case Cut::timed_out:
    case Cut::processor_time:
      ending.kind = EndingKind::timed_out;
      return ending;
    case Cut::idle:
      ending.kind = EndingKind::timed_out;
      ending.by = "idle";
      return ending;
    case Cut::out_of_memory:
      ending.kind = EndingKind::out_of_memory;
      return ending;
    case Cut::output_limit:
      ending.kind = EndingKind::output_limit;
      return ending;
    case Cut::host_disk_full:
      ending.kind = EndingKind::disk_full;
      ending.by = "host";
      return ending;
    case Cut::killed:
      ending.kind = EndingKind::killed;
      ending.by = facts.by;
      return ending;
    case Cut::none:
      break;
  }
  // The kernel's kill and the command's end may be seen in either order.
  if (failed && facts.counters.oom_kills > 0) {
    ending.kind = EndingKind::out_of_memory;
  } else if (failed && facts.counters.disk_full) {
    ending.kind = EndingKind::disk_full;
  } else if (failed && facts.counters.process_limit_hits > 0) {
    ending.kind = EndingKind::process_limit;
  } else if (!facts.command_ended) {
    // Init is gone without a word: nothing inside can do that, so somebody outside did.
    ending.kind = EndingKind::killed;
  } else {
    ending.kind = facts.signalled ? EndingKind::signalled : EndingKind::exited;
  }
  // It took the whole sandbox with it, so that there is no status of the command's own.
  if (!facts.command_ended && ending.kind != EndingKind::out_of_memory) ending.by = "host";
  return ending;
}

std::uint32_t status_of(const Ending& ending, std::uint32_t signal_number) {
  switch (ending.kind) {
    case EndingKind::timed_out:
      return 124;
    case EndingKind::out_of_memory:
    case EndingKind::output_limit:
    case EndingKind::killed:
      return 128 + SIGKILL;
    case EndingKind::start_failed:
      return 125;
    case EndingKind::exited:
    case EndingKind::signalled:
    case EndingKind::process_limit:
    case EndingKind::disk_full:
      break;
  }
  const bool by_host = ending.by == "host" && ending.kind != EndingKind::exited &&
                       ending.kind != EndingKind::signalled;
  if (by_host) return 128 + SIGKILL;
  return ending.signal.empty() ? ending.code : 128 + signal_number;
}

std::vector<std::string> limits_hit(const Facts& facts) {
  std::vector<std::string> hit;
  if (facts.cut == Cut::timed_out) hit.emplace_back("wall");
  if (facts.cut == Cut::idle) hit.emplace_back("idle");
  if (facts.cut == Cut::processor_time) hit.emplace_back("cpu");
  if (facts.cut == Cut::output_limit) hit.emplace_back("output");
  if (facts.cut == Cut::out_of_memory || facts.counters.oom_kills > 0) hit.emplace_back("memory");
  if (facts.cut == Cut::host_disk_full || facts.counters.disk_full) hit.emplace_back("disk");
  if (facts.counters.process_limit_hits > 0) hit.emplace_back("processes");
  if (facts.journal_full) hit.emplace_back("journal");
  return hit;
}

}  // namespace supervisor
