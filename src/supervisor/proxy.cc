// A proxy that stands alone, from the start of its parts to its last words.
#include "supervisor/proxy.h"

#include <poll.h>
#include <unistd.h>

#include <linux/capability.h>
#include <algorithm>
#include <array>

#include "confine/confine.h"
#include "supervisor/record.h"

namespace supervisor {

namespace {

constexpr int kPatienceMs = 10'000;
constexpr std::uint32_t kFailed = 125;

bool answers(const ipc::Channel& channel) {
  pollfd polled = {channel.fd(), POLLIN, 0};
  return ::poll(&polled, 1, kPatienceMs) > 0;
}

journal::Draft planned(const plan::Plan& plan) {
  return {"run.planned",
          base::JsonObject()
              .add("tier", "none")
              .raw("unheld", base::json_strings(plan.unheld))
              .add("policy_sha256", plan.policy_sha256)
              .raw("policy", policy::to_json(plan.policy))
              .members(),
          0, 0};
}

// Only ending its own parts, which root starts under uids of their own, takes a right.
base::Status give_up_rights() {
  const bool root = ::geteuid() == 0;
  TRY(confine::as_status(confine::no_new_privs(), "proxy"));
  const confine::Capabilities keep = root ? confine::bit(CAP_KILL) : confine::kNone;
  if (root) {
    // What is to stay inheritable must be so before the bounding set is empty (capabilities(7)).
    const auto first = confine::keep_capabilities(keep | confine::bit(CAP_SETPCAP));
    TRY(confine::as_status(first, "proxy"));
    TRY(confine::as_status(confine::drop_bounding(), "proxy"));
  }
  TRY(confine::as_status(confine::keep_capabilities(keep), "proxy"));
  return confine::as_status(confine::not_dumpable(), "proxy");
}

}  // namespace

base::Result<std::unique_ptr<Proxy>> Proxy::start(ProxyLaunch launch) {
  std::unique_ptr<Proxy> proxy(new Proxy(launch.plan));
  TRY(proxy->start_parts(launch));
  return proxy;
}

base::Status Proxy::start_parts(ProxyLaunch& launch) {
  TRY(os::make_folders(plan_.state_dir, 0700));
  for (const char* folder : {"/.", "/journal", "/keys", "/runs"}) {
    TRY_IN("CERCO_STATE_DIR", os::own_folder(plan_.state_dir + folder));
  }
  const base::Fd memfd = TRY(os::sealed_memfd("cerco-plan", base::encode(plan_)));
  journal_ = TRY(start_journal(plan_, memfd.get()));
  record(planned(plan_));
  base::Fd password;
  if (!plan_.policy.network.upstream_proxy.auth.empty()) {
    password = std::move(launch.secrets.back());
    launch.secrets.pop_back();
  }
  if (!plan_.policy.credentials.empty()) TRY(start_lending(launch, memfd.get()));
  gateway_ = TRY(start_gateway(plan_, memfd.get(), launch.roots.get(), journal_, lease_end_.get()));
  lease_end_.reset();
  const auto answer = TRY(receive<plan::FromGateway>(gateway_->control, "gateway"));
  const auto* ready = std::get_if<plan::GatewayReady>(&answer);
  if (ready == nullptr)
    return base::fail(base::Kind::peer, "gateway", "answered something else", {});
  authority_ = ready->authority;
  if (password.open()) TRY(give_proxy_password(*gateway_, password));
  const auto opened = TRY(receive<journal::FromJournal>(journal_.control, "journal"));
  if (!std::holds_alternative<journal::Opened>(opened) || journal_lost_) {
    return base::fail(base::Kind::peer, "journal", "answered something else", {});
  }
  return {};
}

base::Status Proxy::start_lending(const ProxyLaunch& launch, int plan_memfd) {
  auto [gateway_end, broker_end] = TRY(ipc::make_pair());
  lease_end_ = gateway_end.release();
  if (!policy::mint_rules(plan_.policy).empty()) {
    minter_ = TRY(start_minter(plan_, plan_memfd, launch.roots.get()));
  }
  broker_ =
      TRY(start_broker(plan_, plan_memfd, journal_, launch.secrets, broker_end.fd(), minter_));
  const auto answer = TRY(receive<plan::FromBroker>(broker_->control, "broker"));
  const auto* ready = std::get_if<plan::BrokerReady>(&answer);
  if (ready == nullptr)
    return base::fail(base::Kind::peer, "broker", "answered something else", {});
  if (!ready->problem.empty()) return base::bad_input("credential", ready->problem, {});
  return {};
}

base::Status Proxy::open(std::vector<base::Fd> listeners, std::string token_sha256) {
  TRY(give_up_rights());
  // Only the gateway has them from here on.
  const std::vector<base::Fd> held = std::move(listeners);
  std::vector<int> fds;
  for (const base::Fd& listener : held) fds.push_back(listener.get());
  record({"run.started", base::JsonObject().add("tier", "none").members(), 0, 0});
  const plan::ToGateway message = plan::GatewayListen{std::move(token_sha256)};
  return ipc::send_value(gateway_->control, message, fds);
}

ProxyEnd Proxy::serve(int signals) {
  while (!over_) {
    std::array<pollfd, 4> polled = {{{signals, POLLIN, 0},
                                     {journal_.control.fd(), POLLIN, 0},
                                     {gateway_ ? gateway_->control.fd() : -1, POLLIN, 0},
                                     {broker_ ? broker_->control.fd() : -1, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[1].revents != 0) on_journal();
    // Before Drain nothing is due from it: whatever comes is its end or a fault.
    if (polled[2].revents != 0) lose("gateway");
    if (polled[3].revents != 0) {
      if (receive<plan::FromBroker>(broker_->control, "broker") && revocations_due_ > 0) {
        --revocations_due_;
      } else {
        lose("broker");
      }
    }
    if (polled[0].revents != 0) {
      const auto number = os::next_signal(signals);
      if (number && *number) end("operator", 0);
    }
  }
  drain();
  end_.ending.kind = end_.status == 0 ? EndingKind::exited : EndingKind::killed;
  record(run_ended(end_.ending, end_.status, {}, {}));
  end_.summary = finish_journal();
  return std::move(end_);
}

void Proxy::end(std::string by, std::uint32_t status) {
  if (over_) return;
  over_ = true;
  end_.ending.by = std::move(by);
  end_.status = status;
}

void Proxy::record(const journal::Draft& draft) {
  if (journal_lost_) return;
  if (ipc::send_value(journal_.control, journal::ToJournal(draft), {})) return;
  journal_lost_ = true;
  end("journal lost", kFailed);
}

void Proxy::lose(std::string_view who) {
  record(part_lost(who));
  end_.notes.push_back(std::string(who) + " ended before it was told to");
  if (who == "broker") {
    broker_.reset();  // who is gone lends nothing
    minter_.reset();
    return;
  }
  gateway_.reset();
  end("gateway lost", kFailed);
}

void Proxy::on_journal() {
  const auto answer = receive<journal::FromJournal>(journal_.control, "journal");
  if (!answer) {
    journal_lost_ = true;
    return end("journal lost", kFailed);
  }
  if (const auto* alarm = std::get_if<journal::Alarm>(&*answer)) contain(*alarm);
  if (const auto* wish = std::get_if<journal::NextFile>(&*answer)) {
    const auto given = give_next_file(journal_, plan_, wish->number);
    if (!given) {
      end_.notes.push_back("the journal stays in one file: " + given.error().line());
    }
  }
  if (std::holds_alternative<journal::Full>(*answer)) {
    end_.notes.emplace_back(
        "the journal has reached its bound: what was asked afterwards was refused");
  }
}

// What cannot be frozen from here loses its network.
void Proxy::contain(const journal::Alarm& alarm) {
  record(containment(alarm));
  if (alarm.action == "kill") return end("detector:" + alarm.detector, kFailed);
  if (alarm.action == "revoke") return revoke(alarm.credential, "detector");
  if (gateway_) (void)ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayCut{}), {});
}

void Proxy::revoke(const std::string& credential, const std::string& why) {
  const plan::ToBroker order = plan::BrokerRevoke{credential, why};
  if (broker_ && ipc::send_value(broker_->control, order, {})) ++revocations_due_;
  if (gateway_)
    (void)ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayRevoke{credential}), {});
}

void Proxy::drain() {
  if (gateway_ && ipc::send_value(gateway_->control, plan::ToGateway(plan::GatewayDrain{}), {}) &&
      answers(gateway_->control)) {
    (void)gateway_->control.receive();
  }
  gateway_.reset();
  revoke("", "run ended");
  while (broker_ && revocations_due_ > 0 && answers(broker_->control)) {
    if (!receive<plan::FromBroker>(broker_->control, "broker")) break;
    --revocations_due_;
  }
  broker_.reset();
  minter_.reset();
}

journal::Summary Proxy::finish_journal() {
  if (journal_lost_ ||
      !ipc::send_value(journal_.control, journal::ToJournal(journal::Finish{}), {})) {
    return {};
  }
  while (answers(journal_.control)) {
    auto answer = receive<journal::FromJournal>(journal_.control, "journal");
    if (!answer) break;
    if (auto* summary = std::get_if<journal::Summary>(&*answer)) return std::move(*summary);
  }
  return {};
}

}  // namespace supervisor
