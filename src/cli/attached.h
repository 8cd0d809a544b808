// One attached run, from the caller's side: the supervisor is forked, the command's streams,
// signals and files pass through here, and what the supervisor says at the end is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "ipc/ipc.h"
#include "os/os.h"
#include "supervisor/supervisor.h"
#include "workspace/workspace.h"

namespace cli {

// What goes in and comes out besides the streams.
struct Files {
  std::vector<workspace::Incoming> in;
  base::Fd out;  // the folder of --out; not open: nothing is brought out
};
enum class Stay { to_the_end, until_begun };
// How the caller takes part. Whoever does not stay to the end has no streams, and the supervisor
// writes the report, also to `report` where that is open.
struct Part {
  Stay stay = Stay::to_the_end;
  base::Fd report;
  std::optional<frame::Window> terminal = {};  // -t
};

// How it went. `failure` is what cerco itself could not do although the command ran.
struct Outcome {
  int status = 125;
  supervisor::Ending ending;
  supervisor::Usage usage;
  std::vector<std::string> limits_hit;
  journal::Summary summary;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint64_t changes = 0;
  std::vector<std::string> notes;  // lines for standard error
  std::vector<base::Error> failures;
  bool begun = false;  // and goes on without us
};

class Attached {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP and SIGQUIT from here on, and forks the supervisor.
  [[nodiscard]] static base::Result<Attached> start(const World& world);

  // Hands plan, roots and secrets over, and stays until everything is gone. The secrets' and roots'
  // descriptors are closed as soon as they are sent.
  [[nodiscard]] Outcome run(const plan::Plan& plan, Files files, Part part, base::Fd roots,
                            std::vector<base::Fd> secrets);

 private:
  Attached(const World& world, base::Fd signals, ipc::Channel channel, os::Child supervisor);

  base::Status launch(const plan::Plan& plan, const Files& files, const Part& part, base::Fd roots,
                      std::vector<base::Fd> secrets);
  base::Status converse(const plan::Plan& plan, const Files& files);
  base::Status on_signal();
  base::Status on_message(const plan::Plan& plan, const Files& files);
  void take_over(supervisor::Over over);
  void note_hidden(std::vector<std::string> paths);
  base::Status put_files(const plan::Plan& plan, const Files& files);
  base::Status fetch_files(const plan::Plan& plan, const Files& files);
  base::Status finish();
  base::Status ask(const supervisor::FromCaller& request);
  base::Result<supervisor::ToCaller> hear();

  const World* world_;
  base::Fd signals_;
  ipc::Channel channel_;
  os::Child supervisor_;
  std::optional<Streams> streams_;
  std::optional<Front> front_;  // with -t
  base::Fd put_session_;
  base::Fd take_session_;
  workspace::Manifest manifest_;
  Outcome outcome_;
  bool over_ = false;
  bool failed_ = false;  // the command was never started
  bool limit_told_ = false;
  std::int64_t last_interrupt_ms_ = -1;
};

}  // namespace cli
