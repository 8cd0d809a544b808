// `cerco attach`: what a detached run has written and writes, and its end as one's own.
#include <fcntl.h>

#include "cli/living.h"
#include "cli/run_files.h"
#include "journal/members.h"
#include "os/os.h"
#include "supervisor/output_ring.h"

namespace cli {
namespace {

constexpr std::size_t kMostReport = std::size_t{1} << 20;

base::Status write_out(const World& world, const supervisor::Output& output) {
  const bool error = output.stream == supervisor::Stream::error;
  return os::write_all(error ? world.err : world.out, output.bytes, "output");
}

void tell_lost(const World& world, std::uint64_t bytes) {
  print_error(world, "cerco: " + std::to_string(bytes) +
                         " bytes of output are no longer kept (the last 64 MiB are)\n");
}

base::Result<int> follow(const World& world, const ipc::Channel& channel) {
  TRY(ask(channel, supervisor::Attach{}, {}));
  while (true) {
    const auto answer = TRY(hear(channel));
    if (const auto* output = std::get_if<supervisor::Output>(&answer)) {
      TRY(write_out(world, *output));
    } else if (const auto* lost = std::get_if<supervisor::Lost>(&answer)) {
      tell_lost(world, lost->bytes);
    } else if (const auto* over = std::get_if<supervisor::Over>(&answer)) {
      return static_cast<int>(over->status);
    } else if (const auto* failed = std::get_if<supervisor::StartFailed>(&answer)) {
      return std::unexpected(base::Error{base::Kind::system, 0, failed->message, {}, {}});
    }
  }
}

// Of a run that has ended: what it left, and its status from the report.
base::Result<int> replay(const World& world, const KnownRun& run) {
  const std::string folder = world.state_dir + "/runs/" + run.id + "/";
  const std::vector<std::string> names = TRY(output_files(world.state_dir, run.id));
  const std::string text = TRY(os::read_file(folder + supervisor::kReportFile, kMostReport));
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const auto report = TRY(journal::Members::parse_object(line));
  const auto status = report.number("status");
  if (names.empty() || !status) {
    return base::fail(base::Kind::not_found, run.id, "its output went to whoever started it",
                      "cerco report " + run.id + " tells how it ended");
  }
  for (const std::string& name : names) {
    const base::Fd file = TRY(os::open(folder + name, O_RDONLY | O_NOFOLLOW, 0));
    std::uint64_t offset = 0;
    while (const auto output = supervisor::read_record(file.get(), offset)) {
      offset += supervisor::OutputRing::kHead + output->bytes.size();
      TRY(write_out(world, *output));
    }
  }
  return static_cast<int>(*status);
}

}  // namespace

base::Result<int> attach(const World& world, const Parsed& parsed) {
  TRY(want_words("attach", parsed, 1, "RUN"));
  const KnownRun run = TRY(find_run(world, parsed.words[0]));
  const auto channel = supervisor::connect_to_run(world.state_dir, run.id);
  if (!channel && channel.error().kind != base::Kind::not_found) {
    return std::unexpected(channel.error());
  }
  return channel ? follow(world, *channel) : replay(world, run);
}

}  // namespace cli
