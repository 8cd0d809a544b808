// The journal's core: takes drafts, writes the chain, runs the detectors, counts refusals.
//
// No descriptor is waited for here; serve() does that, and tests drive this class with a clock of
// their own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "journal/chain.h"
#include "journal/detectors.h"
#include "journal/host_chain.h"
#include "journal/journal.h"
#include "journal/keys.h"
#include "journal/producer.h"
#include "journal/refusals.h"
#include "os/os.h"

namespace journal {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual os::Instant wall() const = 0;
  [[nodiscard]] virtual os::Instant steady() const = 0;
};

// What was opened before the process confined itself.
struct Files {
  base::Fd run;     // RUN.jsonl
  base::Fd host;    // host.jsonl
  base::Fd last;    // keys/host.last
  base::Fd memory;  // tasks/….seen
};

class Recorder {
 public:
  static constexpr std::size_t kBatchBytes =
      std::size_t{256} * 1024;  // written at once at the latest

  // Reads the task's memory and writes the run's first line into the host chain.
  [[nodiscard]] static base::Result<std::unique_ptr<Recorder>> start(const Open& open,
                                                                     SigningKey key, Files files,
                                                                     const Clock& clock);

  // One draft: an event, an alert about it, or a count of what was dropped. An error ends the
  // journal.
  [[nodiscard]] base::Status take(Producer& producer, const Draft& draft);
  // Bytes that are no draft, or too long for one.
  [[nodiscard]] base::Status take_malformed(Producer& producer, std::string_view why);
  // Writes down what this producer's flood cost, if anything, refusals that were added up first: at
  // most once a second, or `now`.
  enum class When { due, now };
  [[nodiscard]] base::Status report_dropped(Producer& producer, When when);
  // What waits in memory goes to the files; what was alarmed about may be acted on only afterwards.
  [[nodiscard]] base::Status flush();
  [[nodiscard]] std::vector<Alarm> take_alarms() { return std::exchange(alarms_, {}); }

  // Whether the run's journal has grown to its bound.
  [[nodiscard]] bool full() const { return full_; }

  // The detectors' actions from now on.
  void act_as(const std::map<std::string, std::string>& actions) { detectors_.act_as(actions); }

  // The number of the file that is wanted now, once each; 0: none.
  [[nodiscard]] std::uint64_t take_file_wish();
  [[nodiscard]] base::Status go_on_in(base::Fd file);

  // Last checkpoint, last host line (`at`: "end" or "abandoned"). Nothing is taken afterwards.
  [[nodiscard]] base::Result<Summary> finish(std::string_view at);

  // Asks the kernel to begin writing to the disk, and does not wait for it.
  [[nodiscard]] base::Status start_writing();

 private:
  Recorder(const Open& open, SigningKey key, Files files, TaskMemory memory, const Clock& clock);
  [[nodiscard]] base::Result<std::uint64_t> add(std::string_view type, std::string_view members);
  [[nodiscard]] base::Status checkpoint();
  [[nodiscard]] base::Status note_full();
  [[nodiscard]] base::Result<std::uint64_t> write(Producer& producer, const Draft& draft,
                                                  const Members& members);
  [[nodiscard]] base::Status alert(const Finding& finding, std::uint64_t evidence);

  const Clock& clock_;
  std::string run_;
  SigningKey key_;
  Chain chain_;
  HostChain host_;
  base::Fd memory_file_;
  Detectors detectors_;
  Refusals refusals_;
  std::vector<Alarm> alarms_;
  std::uint64_t alerts_ = 0;
  std::uint64_t file_bytes_;
  std::uint64_t run_bytes_;
  bool full_ = false;
  std::uint64_t file_number_ = 1;
  bool file_wished_ = false;
  std::int64_t writing_second_ = 0;
  std::int64_t dropped_second_ = 0;
};

}  // namespace journal
