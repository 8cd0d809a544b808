// Drafts of egress events.
#include "gateway/recorder.h"

#include <boost/asio/post.hpp>
#include <cerrno>
#include <span>

#include "os/os.h"

namespace gateway {
namespace {

constexpr std::size_t kMostKept = 30;
constexpr int kPatienceMs = 2000;

void add(base::JsonObject& object, std::string_view key, const std::string& value) {
  if (!value.empty()) object.add(key, journal::cut_text(value));
}

}  // namespace

std::string members(const Decision& decision, std::uint64_t in_force) {
  base::JsonObject object;
  object.add("verdict", decision.verdict);
  add(object, "kind", decision.kind);
  add(object, "rule", decision.rule);
  object.add("policy", decision.policy != 0 ? decision.policy : in_force);
  add(object, "reason", decision.reason);
  object.add("way", decision.way);
  if (decision.conn != 0) object.add("conn", decision.conn);
  object.add("host", journal::cut_text(decision.host));
  object.add("port", decision.port);
  add(object, "address", decision.address);
  add(object, "method", decision.method);
  add(object, "path", decision.path);
  add(object, "url", decision.url);
  add(object, "tls", decision.tls);
  add(object, "credential", decision.credential);
  if (decision.count != 1) object.add("count", decision.count);
  // A rule that was cut would be no rule.
  if (decision.fix.size() <= journal::kMostText) add(object, "fix", decision.fix);
  if (decision.mixed) object.add("mixed", true);
  return object.members();
}

std::uint64_t Recorder::decision(const Decision& decision) {
  const std::uint64_t ref = ++refs_;
  keep({.type = "egress.decision", .members = members(decision, policy_), .ref = ref, .of = 0});
  return ref;
}

asio::awaitable<bool> Recorder::handed_over(Wake& wake) {
  if (!lost_ && !kept_.empty()) {
    Waiting waiting{.wake = &wake};
    // What is posted runs after the connections that are ready now have had their turn.
    if (waiting_.empty()) asio::post(io_, [this] { flush_for_all(); });
    waiting_.push_back(&waiting);
    while (!waiting.over) co_await wake.wait();
  }
  co_return !lost_;
}

void Recorder::flush_for_all() {
  const std::vector<Waiting*> waiting = std::exchange(waiting_, {});
  (void)flush();  // a failure is kept in lost_, which each of them looks at
  for (Waiting* one : waiting) {
    one->over = true;
    one->wake->notify();
  }
}

base::Status Recorder::event(std::string_view type, std::string members) {
  keep({.type = std::string(type), .members = std::move(members), .ref = 0, .of = 0});
  return flush();
}

void Recorder::ended(std::uint64_t of, const Ended& ended) {
  base::JsonObject object;
  if (ended.status != 0) object.add("status", ended.status);
  object.add("bytes_up", ended.bytes_up);
  object.add("bytes_down", ended.bytes_down);
  object.add("ms", ended.ms);
  add(object, "problem", ended.problem);
  keep({.type = "egress.ended", .members = object.members(), .ref = 0, .of = of});
  // A failure shows at the next decision, which then is refused.
  if (kept_.size() >= kMostKept) (void)flush();
}

base::Status Recorder::flush() {
  if (lost_) return base::system_error("journal", EPIPE);
  std::size_t done = 0;
  while (done < kept_.size()) {
    const auto sent = os::send_messages(channel_.fd(), std::span(kept_).subspan(done));
    done += sent.count;
    if (sent.error == 0) continue;
    // The journal is behind: wait for it. A connection that is held up is the sandbox's own loss.
    const bool full = sent.error == EAGAIN || sent.error == ENOBUFS;
    if (full && os::wait_writable(channel_.fd(), kPatienceMs)) continue;
    lost_ = true;
    kept_.clear();
    return base::system_error("journal", sent.error);
  }
  kept_.clear();
  return {};
}

}  // namespace gateway
