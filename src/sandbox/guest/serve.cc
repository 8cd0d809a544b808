// What a guest's pid 1 does while its sandbox lives.
#include "sandbox/guest/serve.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/frame.h"

namespace sandbox {

namespace {

constexpr std::size_t kMostMessage = frame::kMaxFrame + 1024;
constexpr int kPatienceMs = 10'000;
constexpr int kRecordMs = 1'000;

std::vector<int> numbers(const std::vector<base::Fd>& fds) {
  std::vector<int> out;
  out.reserve(fds.size());
  for (const auto& fd : fds) out.push_back(fd.get());
  return out;
}

}  // namespace

GuestService::GuestService(std::unique_ptr<Sandbox> sandbox, base::Fd watch, base::Fd tunnel_end)
    : sandbox_(std::move(sandbox)), watch_(std::move(watch)), tunnel_end_(std::move(tunnel_end)) {}

void GuestService::serve() {
  while (true) {
    std::array<pollfd, 3> waiting = {{{sandbox_->control().fd(), POLLIN, 0},
                                      {tunnel_end_.get(), POLLIN, 0},
                                      {watch_.get(), POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
    if (waiting[0].revents != 0 && !carry_out()) break;
    if (waiting[1].revents != 0 && !carry_in()) break;
    // A port whose other end is gone is always ready, and says nothing.
    if (waiting[2].revents != 0 && !hear_host()) break;
  }
  tell_over();
}

// From cerco-init to the host.
bool GuestService::carry_out() {
  const auto message = os::receive_message(sandbox_->control().fd(), kMostMessage, 0);
  if (!message || message->end) return false;
  return os::send_message(tunnel_end_.get(), message->bytes, {}).has_value();
}

// From the host to cerco-init. A command that was announced enters its groups, which only the guest
// has.
bool GuestService::carry_in() {
  auto message = os::receive_message(tunnel_end_.get(), kMostMessage, 3 + frame::kMaxGroups);
  if (!message || message->end) return false;
  std::vector<int> fds = numbers(message->fds);
  auto order = base::decode<frame::ToInit>(message->bytes, "control frame");
  if (!order) return false;
  if (auto* exec = std::get_if<frame::Exec>(&*order)) {
    const auto found = commands_.find(exec->id);
    if (found != commands_.end()) {
      const std::vector<int> entries = found->second->entries();
      exec->groups = static_cast<std::uint32_t>(entries.size());
      fds.insert(fds.end(), entries.begin(), entries.end());
      message->bytes = base::encode(*order);
    }
  }
  return os::send_message(sandbox_->control().fd(), message->bytes, fds).has_value();
}

bool GuestService::hear_host() {
  GuestRequest request;
  std::string bytes;
  while (bytes.size() < sizeof request) {
    auto got = os::read_some(watch_.get(), sizeof request - bytes.size(), "watch port");
    if (!got || got->empty()) return false;
    bytes += *got;
  }
  std::memcpy(&request, bytes.data(), sizeof request);
  answer(request);
  return true;
}

void GuestService::answer(const GuestRequest& request) {
  GuestNote note;
  note.kind = GuestSays::answer;
  note.sequence = request.sequence;
  if (const auto done = act(request, note); !done) {
    note.base_kind = static_cast<std::uint32_t>(done.error().kind);
    note.number = done.error().number == 0 ? EIO : done.error().number;
    note.say(done.error().where);
  }
  (void)write_whole(watch_.get(), record_bytes(note), kRecordMs);
}

base::Status GuestService::act(const GuestRequest& request, GuestNote& note) {
  switch (request.kind) {
    case GuestAsk::counters:
      put_counters(TRY(sandbox_->counters()), note);
      return {};
    case GuestAsk::prepare_commands:
      return sandbox_->prepare_commands();
    case GuestAsk::make_command:
      commands_[request.number] = TRY(sandbox_->command_processes(request.number));
      return {};
    default:
      break;
  }
  const auto found = commands_.find(request.number);
  if (found == commands_.end()) return base::system_error("command", ESRCH);
  if (request.kind == GuestAsk::kill_command) return found->second->kill();
  if (request.kind == GuestAsk::command_counters) {
    note.values[0] = found->second->oom_kills();
    note.values[1] = found->second->memory_peak();
    return {};
  }
  if (request.kind != GuestAsk::remove_command) return base::system_error("request", EPROTO);
  if (found->second->remove_empty()) {
    commands_.erase(found);
    note.values[0] = 1;
  }
  return {};
}

// After an end of the whole the kernel may still be counting.
void GuestService::tell_over() {
  GuestNote note;
  note.kind = GuestSays::over;
  if (const auto counters = sandbox_->counters()) put_counters(*counters, note);
  (void)write_whole(watch_.get(), record_bytes(note), kPatienceMs);
  tunnel_end_.reset();
}

}  // namespace sandbox
