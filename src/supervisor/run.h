// One run from Launch to Report: the supervisor's state and its loop.
#pragma once

#include <poll.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/frame.h"
#include "supervisor/ending.h"
#include "supervisor/name_lock.h"
#include "supervisor/parts.h"
#include "supervisor/run_folder.h"
#include "supervisor/session.h"

namespace supervisor {

inline constexpr std::uint64_t kCommand = 1;  // the id of the command that the run began with

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
  base::Status begin_session();
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
  [[nodiscard]] std::optional<journal::Summary> journal_summary();
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
  void contain(const journal::Alarm& alarm);
  void revoke(const std::string& credential, const std::string& why);
  void lose(Part& part, std::string_view who);

  // What others ask of the run over its socket (run_session.cc).
  void watch_session(std::vector<pollfd>& polled) const;
  void act_session(std::span<const pollfd> polled);
  void accept_client();
  void on_client(Client& client);
  void answer(Client& client, const Exec& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const Signal& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const End& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const Attach& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const SendSignal& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const EndRun& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const OpenFiles& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const RevokeCredential& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const Resize& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const Publish& request, std::vector<base::Fd>& fds);
  void tell_revoked();
  void act_published(std::span<const pollfd> polled);
  void on_publisher(Published& published);
  base::Status give_way(Published& published, bool look);
  void lose_publisher(Published& published, std::uint32_t error);
  [[nodiscard]] bool is_connected() const;

  // The policy of the run as it changes (run_policy.cc).
  void answer(Client& client, const ShowPolicy& request, std::vector<base::Fd>& fds);
  void answer(Client& client, const ApplyPolicy& request, std::vector<base::Fd>& fds);
  [[nodiscard]] base::Result<plan::Plan> changed_plan(const ApplyPolicy& request,
                                                      const std::vector<base::Fd>& fds) const;
  base::Status put_in_force(plan::Plan next, const journal::Draft& draft);
  void tell_changed();
  void lose_client(Client& client);
  base::Status detach();
  void leave_caller();
  void read_pipe(Stream stream);
  void drain_pipes();
  void tell_clients_over();
  void flush_clients();
  [[nodiscard]] OutputRing* ring() { return ring_ ? &*ring_ : nullptr; }
  [[nodiscard]] const OutputRing* ring() const { return ring_ ? &*ring_ : nullptr; }

  // The commands besides the first (run_commands.cc).
  [[nodiscard]] frame::Exec order(std::uint64_t id, std::vector<std::string> argv,
                                  std::map<std::string, std::string> env, std::string cwd) const;
  [[nodiscard]] std::string path_variable() const;
  base::Status send_order(frame::Exec exec, std::span<const base::Fd> streams,
                          const sandbox::CommandProcesses* processes);
  base::Status start_further(Client& client, const Exec& request,
                             std::span<const base::Fd> streams);
  void on_started(const frame::Started& started);
  void on_not_started(const frame::NotStarted& failed);
  void on_ended(const frame::Ended& ended);
  void on_nonsense();
  void kill_command(Command& command);
  void end_command(Command& command, Cut why, std::string by);
  void finish_command(Command& command);
  void end_commands();
  void look_for_oom(Clock::time_point now);
  void tick_commands(Clock::time_point now);
  [[nodiscard]] Clock::time_point next_of_commands() const;
  [[nodiscard]] Command* command_of(std::uint64_t id);
  [[nodiscard]] Client* client_of(std::uint64_t command);

  void cut(Cut why, std::string by);
  void time_out(Cut why, Clock::time_point now);
  void signal_command(std::uint64_t id, std::uint32_t number);
  void signal_all(std::uint32_t number);
  void resize(std::uint64_t id, frame::Window window);
  [[nodiscard]] LiveRun live() const;  // what others read of the run while it lives
  void write_report(const journal::Summary& summary);
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
  base::Fd proxy_password_;  // of network.upstream_proxy, until the gateway has it
  base::Fd report_;
  NameLock name_lock_;
  RunFolder folder_;

  Part journal_;
  std::optional<Part> minter_;  // where the policy mints
  std::optional<Part> broker_;
  std::optional<Part> gateway_;
  base::Fd gateway_lease_end_;
  std::uint64_t revocations_asked_ = 0;  // of the broker, which carries them out in order
  std::uint64_t revocations_done_ = 0;
  std::uint64_t changes_asked_ = 0;  // of the gateway
  std::uint64_t changes_done_ = 0;
  std::string authority_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
  sandbox::CaptureSockets capture_;

  base::Fd listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Published>> published_;
  std::uint64_t publications_ = 0;
  std::vector<std::unique_ptr<Command>> commands_;
  std::unique_ptr<sandbox::CommandProcesses> first_processes_;  // of a detached run's command
  // Of commands that are over: what they left running goes on, and is not ours to wait for.
  std::vector<std::unique_ptr<sandbox::CommandProcesses>> left_;
  std::optional<OutputRing> ring_;
  base::Fd pipes_[2];  // our ends of a detached command's output and error
  base::Fd typing_;    // into the pipe of its terminal, where it has one
  std::uint64_t next_command_ = kCommand + 1;
  std::optional<Clock::time_point>
      active_;  // when something was last asked of a session that began
  os::Instant started_wall_;
  Over last_;  // what the run came to

  Facts facts_;
  Usage usage_;
  std::vector<std::string> notes_;
  std::string start_failure_;
  Clock::time_point started_;
  std::optional<Clock::time_point> kill_at_;  // the grace after a time-out ends here
  Clock::time_point next_disk_check_;
  Clock::time_point next_parts_check_;               // of what a tier is made of
  std::optional<Clock::time_point> next_cpu_check_;  // where limits.cpu is held
  std::optional<Clock::time_point> oom_check_at_;
  Clock::time_point oom_check_until_;
  bool command_started_ = false;  // it was ordered
  bool command_began_ = false;    // it runs, as cerco-init says
  bool all_dead_ = false;
  bool over_ = false;      // the loop is to end
  bool finished_ = false;  // the caller said Finish or is gone
  bool caller_gone_ = false;
  bool detached_ = false;  // the caller was told Begun and is gone
  bool journal_lost_ = false;
  bool journal_finishing_ = false;
  bool journal_silent_ =
      false;  // it did not answer its end  // it was told to end, and its Summary is due
  bool network_cut_ = false;
};

}  // namespace supervisor
