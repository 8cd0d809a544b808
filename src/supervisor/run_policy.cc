// The policy of a run that lives: what is in force, and how another one takes its place.
#include <algorithm>
#include <array>
#include <utility>

#include "supervisor/record.h"
#include "supervisor/run.h"

namespace supervisor {

namespace {

constexpr std::size_t kMostPolicy = std::size_t{4} << 20;
constexpr std::uint64_t kMostRevisions = 1000;  // the gateway keeps what was in force

StartFailed not_changed(const base::Error& error) {
  StartFailed failed;
  const bool asked = error.kind == base::Kind::bad_input || error.kind == base::Kind::unsupported;
  failed.status = asked ? 1 : 125;
  failed.message = error.line();
  failed.ending.kind = EndingKind::start_failed;
  failed.ending.step = error.where;
  return failed;
}

}  // namespace

void Run::answer(Client& client, const ShowPolicy&, std::vector<base::Fd>&) {
  const policy::Policy policy = plan::in_force(plan_);
  const auto memfd = os::sealed_memfd("cerco-policy", base::encode(policy));
  const std::array<int, 1> fds = {memfd ? memfd->get() : -1};
  const ToClient answer = PolicyInForce{policy.revision};
  // At once: its connection is new, so there is room.
  if (!memfd || !ipc::send_value(client.channel, answer, fds)) client.gone = true;
}

base::Result<plan::Plan> Run::changed_plan(const ApplyPolicy& request,
                                           const std::vector<base::Fd>& fds) const {
  if (over_ || !command_started_) {
    return base::bad_input("", "the run is not ready", "expected one that has begun");
  }
  if (network_cut_) {
    return base::bad_input("", "the run's network was cut for good", "start a new run");
  }
  const std::uint64_t now = plan_.policy.revision;
  if (request.instead_of != now || changes_asked_ != changes_done_) {
    return base::bad_input("", "the policy was changed meanwhile", "try again");
  }
  if (now >= kMostRevisions) {
    return base::bad_input("", "the policy was changed 1000 times", "start a new run");
  }
  if (fds.size() != 1) return base::bad_input("", "no policy came along", {});
  const std::string bytes = TRY(os::read_all(fds[0].get(), kMostPolicy, "policy"));
  return plan::change(plan_, TRY(base::decode<policy::Policy>(bytes, "policy")));
}

void Run::answer(Client& client, const ApplyPolicy& request, std::vector<base::Fd>& fds) {
  auto next = changed_plan(request, fds);
  if (!next) return client.say_last(not_changed(next.error()));
  PolicyChanged change{next->policy.revision, next->policy_sha256, {}};
  for (const std::string& name : next->retired) {
    if (std::ranges::count(plan_.retired, name) == 0) change.retired.push_back(name);
  }
  record(operator_action("policy apply"));
  // Nothing changes that is not on record.
  const journal::Draft draft = policy_changed(*next, change.retired);
  if (draft.members.size() > journal::kMaxMembersSupervisor) {
    return client.say_last(not_changed(
        base::bad_input("", "the policy is too long for one event of the journal", {}).error()));
  }
  if (const auto done = put_in_force(std::move(*next), draft); !done) {
    return client.say_last(not_changed(done.error()));
  }
  client.change = std::move(change);
  tell_changed();
}

// The kernel first: it takes all or nothing, and what it lets through too early or too late the
// gateway decides about by its own rules.
base::Status Run::put_in_force(plan::Plan next, const journal::Draft& draft) {
  base::Fd memfd = TRY(os::sealed_memfd("cerco-plan", base::encode(next)));
  const auto* before = plan::step_of<plan::Capture>(plan_);
  const auto* capture = plan::step_of<plan::Capture>(next);
  if (before != nullptr && capture != nullptr && *before != *capture) {
    TRY_IN("packet rules", sandbox_->steer(*capture));
  }
  plan_ = std::move(next);
  plan_memfd_ = std::move(memfd);
  record(draft);
  const std::array<int, 1> fds = {plan_memfd_.get()};
  (void)ipc::send_value(journal_.control, journal::ToJournal(actions_of(plan_.policy)), {});
  if (broker_) {
    const plan::ToBroker change = plan::BrokerChange{};
    if (ipc::send_value(broker_->control, change, fds)) ++revocations_asked_;
  }
  // A gateway that did not hear of it is one that is gone, which the loop sees by itself.
  if (gateway_) {
    const plan::ToGateway change = plan::GatewayChange{};
    if (ipc::send_value(gateway_->control, change, fds)) ++changes_asked_;
  }
  return {};
}

void Run::tell_changed() {
  if (gateway_ && changes_done_ < changes_asked_) return;
  if (broker_ && revocations_done_ < revocations_asked_) return;
  for (const auto& client : clients_) {
    if (!client->change) continue;
    client->say_last(*std::exchange(client->change, std::nullopt));
  }
}

}  // namespace supervisor
