// One run from Launch to Report: the supervisor's state and its loop.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "supervisor/ending.h"
#include "supervisor/name_lock.h"
#include "supervisor/parts.h"

namespace supervisor {

using Clock = std::chrono::steady_clock;

inline constexpr std::uint64_t kCommand = 1;  // the id of the one command of `cerco run`

class Run {
 public:
  Run(ipc::Channel caller, Verify verify) : caller_(std::move(caller)), verify_(verify) {}

  // Everything, in order; returns the process's exit status.
  int serve();

 private:
  // The steps of serve(), each named by what it does. An error before the command's first
  // instruction ends the run with StartFailed.
  base::Status receive_launch();
  base::Status start_parts();
  base::Status start_sandbox();
  base::Status start_gateway_part();
  base::Status start_command();
  void loop();
  void end_sandbox();
  void report_failed_start(const base::Error& error);
  void report();
  void clear_away();
  void linger();

  // The steps of end_sandbox().
  void take_counts();
  void serve_taking();
  void close_down();
  void drain_gateway();
  void retire_broker();
  void tell_over();
  void tell_not_started();
  void await_finish();
  void finish_journal();
  [[nodiscard]] journal::Summary journal_summary();
  void end_journal();

  // What the loop does with each thing that becomes readable.
  void watch(std::vector<pollfd>& polled) const;
  void on_caller();
  void on_init();
  void on_init_gone();
  void on_journal();
  void on_oom();
  void on_network();
  void on_gateway();
  void on_broker();
  void on_tick();
  void look_at_host_disk(Clock::time_point now);
  void look_at_processor_time(Clock::time_point now);
  void time_out(Cut why, Clock::time_point now);
  void contain(const journal::Alarm& alarm);
  void lose(Part& part, std::string_view who);

  void cut(Cut why, std::string by);
  void signal_command(std::uint32_t number);
  void record(const journal::Draft& draft);
  [[nodiscard]] base::Result<std::string> trust_bundle();
  [[nodiscard]] bool network_is_idle() const;
  [[nodiscard]] int milliseconds_to_wait() const;
  template <class Message>
  void tell_caller(const Message& message) {
    if (caller_gone_) return;
    if (!ipc::send_value(caller_, ToCaller(message), {})) caller_gone_ = true;
  }

  ipc::Channel caller_;
  Verify verify_;
  Launch launch_;
  plan::Plan plan_;
  base::Fd plan_memfd_;
  base::Fd roots_;
  base::Fd streams_[3];
  base::Fd put_session_;
  base::Fd take_session_;
  std::vector<base::Fd> secrets_;
  NameLock name_lock_;

  Part journal_;
  std::optional<Part> broker_;
  std::optional<Part> gateway_;
  base::Fd gateway_lease_end_;
  std::string authority_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
  sandbox::CaptureSockets capture_;

  Facts facts_;
  Usage usage_;
  std::vector<std::string> notes_;
  std::string start_failure_;
  Clock::time_point started_;
  std::optional<Clock::time_point> kill_at_;  // the grace after a time-out ends here
  Clock::time_point next_disk_check_;
  std::optional<Clock::time_point> next_cpu_check_;  // where limits.cpu is held
  std::optional<Clock::time_point> oom_check_at_;
  bool command_started_ = false;
  bool all_dead_ = false;
  bool over_ = false;      // the loop is to end
  bool finished_ = false;  // the caller said Finish or is gone
  bool caller_gone_ = false;
  bool journal_lost_ = false;
  bool journal_finishing_ = false;  // it was told to end, and its Summary is due
  bool network_cut_ = false;
};

}  // namespace supervisor
