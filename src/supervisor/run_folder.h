// The folder of a living run: what it says of itself, and the socket that requests come in by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "supervisor/session_frames.h"

namespace supervisor {

// STATE/runs/RUN. Its file `live` is there, and locked, from when the run is planned until nothing
// of it is left; the kernel unlocks it when the supervisor is killed, which is how everybody tells.
class RunFolder {
 public:
  RunFolder() = default;
  RunFolder(RunFolder&& other) noexcept = default;
  RunFolder& operator=(RunFolder&& other) noexcept = default;
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder() = default;

  [[nodiscard]] static base::Result<RunFolder> make(const std::string& state_dir,
                                                    const LiveRun& live);
  // The listening socket, not blocking, for the folder's owner alone.
  [[nodiscard]] base::Result<base::Fd> listen() const;
  [[nodiscard]] base::Status write_report(std::string_view json) const;
  [[nodiscard]] int fd() const { return folder_.get(); }
  // Removes socket and `live`, and the folder where nothing else is in it.
  void close();

 private:
  base::Fd folder_;
  base::Fd lock_;
  std::string path_;
};

// A run whose folder is there. `alive`: its supervisor lives; else it ended without a word.
struct FoundRun {
  LiveRun run;
  bool alive = false;
};
// What `live` says in STATE/runs/`run`; not_found where there is none (the run ended by itself).
[[nodiscard]] base::Result<FoundRun> look_at_run(const std::string& state_dir,
                                                 const std::string& run);
// A connection to the run's supervisor. not_found when it does not live.
[[nodiscard]] base::Result<ipc::Channel> connect_to_run(const std::string& state_dir,
                                                        const std::string& run);
// Writes the report that the supervisor of `found` could not write, and removes `live` and socket:
// only where it can be had that nobody holds its lock; whether that was so.
[[nodiscard]] base::Result<bool> settle_lost_run(const std::string& state_dir,
                                                 const std::string& run, std::string_view version);

}  // namespace supervisor
