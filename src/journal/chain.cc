// One run's chain: each line carries the hash of the bytes before it.
#include "journal/chain.h"

#include <fmt/format.h>

#include <chrono>

namespace journal {

const std::string& zeros() {
  static const std::string text(64, '0');
  return text;
}

std::string time_text(const os::Instant& wall) {
  // Not gmtime_r(3): the C library would look for time zone files, which a confined process has
  // not.
  using std::chrono::seconds;
  const std::chrono::sys_seconds time{seconds(wall.seconds)};
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{midnight};
  const std::int64_t second = (time - midnight).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     second / 3600, second / 60 % 60, second % 60, wall.nanoseconds);
}

std::string checkpoint_text(std::string_view run, std::uint64_t seq, std::string_view prev) {
  return fmt::format("cerco-checkpoint-v1\n{}\n{}\n{}\n", run, seq, prev);
}

Chain::Chain(std::string run, const std::string& task, const SigningKey& key, base::Fd file)
    : run_(std::move(run)),
      run_json_(base::json_string(run_)),
      task_json_(base::json_string(task)),
      key_(key),
      file_(std::move(file)) {}

std::uint64_t Chain::add(std::string_view type, std::string_view members, const os::Instant& wall) {
  ++seq_;
  ++unsigned_;
  const std::size_t start = waiting_.size();
  fmt::format_to(
      std::back_inserter(waiting_),
      R"({{"v":1,"seq":{0},"id":"{1}:{0}","time":"{2}","run":{3},"task":{4},"type":"{5}","prev":"{6}")",
      seq_, run_, time_text(wall), run_json_, task_json_, type, prev_);
  if (!members.empty()) waiting_ += ',';
  waiting_ += members;
  waiting_ += '}';
  prev_ = base::sha256(std::string_view(waiting_).substr(start));
  waiting_ += '\n';
  return seq_;
}

void Chain::checkpoint(const os::Instant& wall) {
  base::JsonObject members;
  members.add("key_id", key_.id()).add("sig", key_.sign(checkpoint_text(run_, seq_ + 1, prev_)));
  add("checkpoint", members.members(), wall);
  unsigned_ = 0;
}

base::Status Chain::flush() {
  TRY(os::write_all(file_.get(), waiting_, "journal of " + run_));
  file_bytes_ += waiting_.size();
  run_bytes_ += waiting_.size();
  waiting_.clear();
  return {};
}

base::Status Chain::start_writing() const {
  return os::start_writing(file_.get(), "journal of " + run_);
}

base::Status Chain::go_on_in(base::Fd file) {
  TRY(flush());
  TRY(start_writing());
  file_ = std::move(file);
  file_bytes_ = 0;
  return {};
}

}  // namespace journal
