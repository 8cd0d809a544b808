// What the journal's tests share: a state folder, a clock that stands still, a fixed key, whole
// runs.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "journal/journal.h"
#include "journal/recorder.h"

namespace journal::fixture {

inline constexpr std::string_view kSeed = "0123456789abcdef0123456789abcdef";
// The private key with that seed, as `openssl genpkey` would write it.
inline constexpr std::string_view kPem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIDAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string kRun = "aaaaaaaaaaaa";
inline const std::string kOther = "bbbbbbbbbbbb";

class StillClock : public Clock {
 public:
  [[nodiscard]] os::Instant wall() const override { return wall_; }
  [[nodiscard]] os::Instant steady() const override { return steady_; }
  void pass(std::int64_t seconds) {
    wall_.seconds += seconds;
    steady_.seconds += seconds;
  }

 private:
  os::Instant wall_{1767322245, 123456789};  // 2026-01-02T02:50:45
  os::Instant steady_{1000, 0};
};

// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string of(const std::string& name) const { return path_ + "/" + name; }

 private:
  // In memory where that is to be had: the tests rewrite small files thousands of times.
  std::string path_ = std::string(std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp") +
                      "/cerco-journal-XXXXXX";
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void spill(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// The state folder with the fixed key in place.
class State : public Folder {
 public:
  State() {
    std::filesystem::create_directories(of("keys"));
    spill(of("keys/journal.pub"), SigningKey::from_seed(kSeed)->public_key().pem());
    spill(of("keys/journal.key"), kPem);
  }
  [[nodiscard]] std::string journal(const std::string& run) const {
    return of("journal/" + run + ".jsonl");
  }
  [[nodiscard]] std::string host() const { return of("journal/host.jsonl"); }
};

// A recorder on the state folder, as serve() makes one, but with the fixed key and the given clock.
inline std::unique_ptr<Recorder> start(const State& state, const std::string& run,
                                       const Clock& clock,
                                       const std::map<std::string, std::string>& actions,
                                       std::string_view seed, const std::string& task) {
  auto files = open_files(state.path(), run);
  EXPECT_TRUE(files) << files.error().line();
  auto last = HostChain::open_last((*files)[2].get());
  auto memory = TaskMemory::open_file((*files)[3].get(), task);
  EXPECT_TRUE(last && memory);
  auto recorder = Recorder::start(
      {run, task, actions}, *SigningKey::from_seed(seed),
      {std::move((*files)[0]), std::move((*files)[1]), std::move(*last), std::move(*memory)},
      clock);
  EXPECT_TRUE(recorder) << recorder.error().line();
  return std::move(*recorder);
}
inline std::unique_ptr<Recorder> start(const State& state, const std::string& run,
                                       const Clock& clock) {
  return start(state, run, clock, {}, kSeed, "default");
}

inline Draft draft(std::string type, std::string members) {
  return {std::move(type), std::move(members), 0, 0};
}

// A whole run of `events` events besides its checkpoints.
inline Summary whole_run(const State& state, const std::string& run, std::uint64_t events) {
  const StillClock clock;
  auto recorder = start(state, run, clock);
  Producer supervisor("supervisor");
  for (std::uint64_t i = 0; i < events; ++i) {
    EXPECT_TRUE(
        recorder->take(supervisor, draft("exec", R"("argv":["a","b"],"n":)" + std::to_string(i))));
  }
  auto summary = recorder->finish("end");
  EXPECT_TRUE(summary);
  return *summary;
}

inline std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream in(slurp(path));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace journal::fixture
