// One run, from the caller's Launch to the Report: the order of its acts, and its loop.
#include "supervisor/run.h"

#include <algorithm>
#include <cerrno>

namespace supervisor {

namespace {

// What is polled, in this order: these, the sockets of the network while it is idle, the session.
constexpr std::size_t kFixed = 7;
constexpr std::size_t kNetwork = 7;

}  // namespace

int Run::serve() {
  base::Status start = receive_launch();
  if (start) start = start_parts();
  if (start) start = start_sandbox();
  if (start) {
    loop();
    end_sandbox();
  } else {
    report_failed_start(start.error());
  }
  report();
  clear_away();
  linger();
  return start ? 0 : 1;
}

// A socket that is closed with something unread gives its peer ECONNRESET before what it had sent:
// the caller's last words are read before this end goes.
void Run::linger() {
  pollfd polled = {caller_.fd(), POLLIN, 0};
  while (!caller_gone_ && ::poll(&polled, 1, 10'000) > 0) {
    const auto message = caller_.receive();
    if (!message || !*message) return;
  }
}

void Run::record(const journal::Draft& draft) {
  if (journal_lost_ || !journal_.control.open()) return;
  if (ipc::send_value(journal_.control, journal::ToJournal(draft), {})) return;
  journal_lost_ = true;
  if (plan_.policy.audit.journal == policy::Need::required) cut(Cut::killed, "journal lost");
}

bool Run::network_is_idle() const {
  return !gateway_ && capture_.tcp4.open();
}

void Run::watch(std::vector<pollfd>& polled) const {
  polled.clear();
  const auto add = [&](int fd) { polled.push_back({fd, POLLIN, 0}); };
  add(caller_gone_ ? -1 : caller_.fd());
  add(sandbox_->control().fd());
  add(sandbox_->init_pidfd());
  add(journal_lost_ ? -1 : journal_.control.fd());
  add(sandbox_->oom_fd());
  add(gateway_ ? gateway_->control.fd() : -1);
  add(broker_ ? broker_->control.fd() : -1);
  const bool network = network_is_idle() && !network_cut_;
  const sandbox::CaptureSockets& sockets = capture_;
  for (const auto* socket : {&sockets.tcp4, &sockets.tcp6, &sockets.dns4, &sockets.dns6,
                             &sockets.dns_tcp4, &sockets.dns_tcp6, &sockets.refused}) {
    add(network ? socket->get() : -1);
  }
  watch_session(polled);
}

void Run::loop() {
  std::vector<pollfd> polled;
  while (!over_) {
    watch(polled);
    if (::poll(polled.data(), polled.size(), milliseconds_to_wait()) < 0 && errno != EINTR) {
      cut(Cut::killed, "host");
      return;
    }
    const auto readable = [&](std::size_t i) {
      return i < polled.size() && polled[i].revents != 0;
    };
    if (readable(3)) on_journal();
    if (readable(1)) on_init();
    if (readable(2) && !over_) on_init_gone();
    if (readable(4) && !over_) on_oom();
    if (readable(5)) on_gateway();
    if (readable(6)) on_broker();
    for (std::size_t i = kFixed; i < kFixed + kNetwork; ++i) {
      if (polled[i].revents == 0 || over_) continue;
      on_network();
      break;
    }
    act_session(std::span<const pollfd>(polled).subspan(kFixed + kNetwork));
    if (readable(0)) on_caller();
    if (!over_) on_tick();
  }
}

int Run::milliseconds_to_wait() const {
  Clock::time_point next = next_disk_check_;
  if (kill_at_) next = std::min(next, *kill_at_);
  if (next_cpu_check_ && !kill_at_) next = std::min(next, *next_cpu_check_);
  if (oom_check_at_) next = std::min(next, *oom_check_at_);
  next = std::min(next, next_of_commands());
  if (plan_.policy.limits.wall_ms != policy::kUnlimited && !kill_at_) {
    next = std::min(next, after(started_, plan_.policy.limits.wall_ms));
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace supervisor
