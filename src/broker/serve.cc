// The broker's process: secrets in, then one loop over supervisor and gateway.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "broker/broker.h"
#include "broker/mints.h"
#include "confine/confine.h"
#include "http/http.h"
#include "journal/journal.h"
#include "os/os.h"

namespace broker {

namespace {

constexpr int kTick = 100;                   // ms between looks while something is awaited
constexpr std::uint64_t kVendorsMs = 5'000;  // for vendors to be told that a key is to be forgotten
constexpr int kPatience = 5'000;             // ms that a gateway may leave an answer in the way
constexpr std::size_t kMostWaiting = 512;    // requests for keys that are being made, of all
constexpr std::size_t kMaxShown = 256;       // bytes of a gateway's claim in an event
constexpr std::size_t kMaxShownPath = 2048;
constexpr std::size_t kMostPlan = std::size_t{16} << 20;

class Service {
 public:
  Service(const plan::Plan& plan, Channels channels, Edges edges)
      : plan_(&plan), channels_(std::move(channels)), edges_(std::move(edges)) {}

  // Up to BrokerReady.
  base::Status open(std::uint32_t id) {
    auto secrets = TRY(receive_secrets());
    TRY(os::set_nonblocking(channels_.gateway.fd()));
    TRY(wait_for_minter());
    vault_.emplace(TRY(Vault::open(*plan_, std::move(secrets), edges_.steady)));
    mints_.emplace(*plan_, *vault_, std::move(channels_.minter), edges_);
    TRY(confine::shut_in(confine::Own::broker, id, {}));
    for (const policy::Credential& credential : plan_->policy.credentials) {
      if (credential.source.mint.kind == policy::MintKind::none) TRY(issued(credential, nullptr));
    }
    return {};
  }

  void say_ready(std::string problem) {
    // A supervisor that is gone is seen as the end of its channel.
    (void)ipc::send_value(channels_.control,
                          plan::FromBroker(plan::BrokerReady{std::move(problem)}), {});
  }

  // Until the supervisor's end. What it says comes first, so that a revocation holds for every
  // lease that was asked for after it.
  base::Status run() {
    while (true) {
      std::array<pollfd, 3> polled = {
          {{channels_.control.fd(), POLLIN, 0},
           {channels_.gateway.open() ? channels_.gateway.fd() : -1, POLLIN, 0},
           {mints_->fd(), POLLIN, 0}}};
      (void)TRY(os::wait_for(polled, patience()));
      if (polled[0].revents != 0) {
        const bool more = TRY(from_supervisor());
        if (!more) return finish();
      } else if (polled[2].revents != 0) {
        mint_ends(mints_->on_minter());
      } else if (polled[1].revents != 0) {
        TRY(from_gateway());
      } else {
        mint_ends(mints_->on_time());
      }
      tell_revoked();
    }
  }

 private:
  base::Result<std::vector<base::Fd>> receive_secrets() {
    std::vector<base::Fd> secrets;
    std::uint64_t count = 0;
    do {
      auto message = TRY(channels_.control.receive());
      if (!message)
        return base::fail(base::Kind::peer, "supervisor", "ended before the secrets", {});
      const auto decoded =
          TRY(base::decode<plan::ToBroker>(message->bytes, "message of the supervisor"));
      const auto* header = std::get_if<plan::BrokerSecrets>(&decoded);
      if (header == nullptr)
        return base::fail(base::Kind::peer, "supervisor", "sent no secrets", {});
      count = header->count;
      if (message->fds.empty() && count > secrets.size()) {
        return base::fail(base::Kind::peer, "supervisor", "sent too few secrets", {});
      }
      for (base::Fd& fd : message->fds) secrets.push_back(std::move(fd));
    } while (secrets.size() < count);
    return secrets;
  }

  // A run whose keys nobody can make does not start.
  base::Status wait_for_minter() {
    if (!channels_.minter.open()) return {};
    auto message = TRY_IN("minter", channels_.minter.receive());
    if (!message) return base::fail(base::Kind::peer, "minter", "ended before it was ready", {});
    const auto told = TRY(base::decode<plan::FromMinter>(message->bytes, "message of the minter"));
    const auto* ready = std::get_if<plan::MinterReady>(&told);
    if (ready == nullptr) return base::fail(base::Kind::peer, "minter", "told something else", {});
    if (!ready->problem.empty())
      return base::fail(base::Kind::missing, "minter", ready->problem, {});
    return os::set_nonblocking(channels_.minter.fd());
  }

  // Whether there is more to come.
  base::Result<bool> from_supervisor() {
    auto message = TRY(channels_.control.receive());
    if (!message) {
      revoke({"", "run ended"});
      return false;
    }
    const auto decoded =
        TRY(base::decode<plan::ToBroker>(message->bytes, "message of the supervisor"));
    if (std::holds_alternative<plan::BrokerChange>(decoded)) {
      TRY(change(message->fds));
      return true;
    }
    const auto* order = std::get_if<plan::BrokerRevoke>(&decoded);
    if (order == nullptr)
      return base::fail(base::Kind::peer, "supervisor", "sent secrets twice", {});
    revoke(*order);
    ++untold_;
    revoked_ms_ = edges_.steady();
    return true;
  }

  // Whom the secrets are for stays as it is; where they may be used is what the new plan says.
  base::Status change(const std::vector<base::Fd>& fds) {
    if (fds.size() != 1) return base::fail(base::Kind::peer, "supervisor", "sent no plan", {});
    const std::string bytes = TRY(os::read_all(fds[0].get(), kMostPlan, "plan"));
    auto next = std::make_unique<plan::Plan>(TRY(base::decode<plan::Plan>(bytes, "plan")));
    TRY(vault_->change(*next));
    changed_ = std::move(next);
    plan_ = changed_.get();
    for (const std::string& name : plan_->retired) revoke({name, "policy"});
    (void)ipc::send_value(channels_.control, plan::FromBroker(plan::BrokerChanged{}), {});
    return {};
  }

  // The answer waits for the vendors, but not for long: what was lent here is lent no more anyway.
  void tell_revoked() {
    if (untold_ == 0 || (mints_->revoking() && edges_.steady() - revoked_ms_ < kVendorsMs)) return;
    for (; untold_ > 0; --untold_) {
      (void)ipc::send_value(channels_.control, plan::FromBroker(plan::BrokerRevoked{}), {});
    }
  }

  // The supervisor is gone; vendors are told all the same.
  base::Status finish() {
    const std::uint64_t start = edges_.steady();
    while (mints_->revoking() && edges_.steady() - start < kVendorsMs) {
      std::array<pollfd, 1> polled = {{{mints_->fd(), POLLIN, 0}}};
      if (!TRY(os::wait_for(polled, kTick))) continue;
      mint_ends(mints_->on_minter());
    }
    return {};
  }

  // Milliseconds until something is to be done although nobody says anything; -1: never.
  [[nodiscard]] int patience() const {
    const int mint = mints_->wait_ms();
    if (untold_ == 0) return mint;
    return mint < 0 ? kTick : std::min(mint, kTick);
  }

  // Requests that wait are looked at again, whatever ended.
  void mint_ends(const std::vector<MintEnd>& ends) {
    for (const MintEnd& end : ends) record_end(end);
    for (plan::LeaseRequest& request : std::exchange(waiting_, {})) {
      if (!serve_request(std::move(request))) return (void)lose_gateway();
    }
  }

  void record_end(const MintEnd& end) {
    const policy::Credential& credential = plan_->policy.credentials[end.index];
    switch (end.kind) {
      case MintEnd::Kind::minted:
      case MintEnd::Kind::renewed:
        (void)issued(credential, &end);
        return;
      case MintEnd::Kind::failed: {
        base::JsonObject members;
        members.add("credential", credential.name).add("reason", "mint").add("detail", end.problem);
        (void)record("credential.refused", members);
        return;
      }
      case MintEnd::Kind::revoked:
      case MintEnd::Kind::not_revoked: {
        base::JsonObject members;
        members.add("credential", credential.name)
            .add("why", "at the source")
            .add("at_source", end.problem.empty() ? "done" : end.problem);
        (void)record("credential.revoked", members);
        return;
      }
    }
  }

  void revoke(const plan::BrokerRevoke& order) {
    for (std::size_t i = 0; i < plan_->policy.credentials.size(); ++i) {
      const bool meant =
          order.credential.empty() || plan_->policy.credentials[i].name == order.credential;
      if (meant && plan_->policy.credentials[i].source.mint.kind != policy::MintKind::none) {
        mints_->revoke(i);
      }
    }
    for (std::size_t index : vault_->revoke(order.credential)) {
      base::JsonObject members;
      members.add("credential", plan_->policy.credentials[index].name)
          .add("why", order.why)
          .add("uses", vault_->uses(index));
      // It is revoked whether or not the journal still takes the event.
      (void)record("credential.revoked", members);
    }
  }

  // A gateway that is gone, or that sends what is no request, gets nothing any more; the broker
  // stays for the supervisor.
  base::Status from_gateway() {
    auto message = channels_.gateway.receive();
    if (!message && message.error().number == EAGAIN) return {};
    if (!message || !*message || !(*message)->fds.empty()) return lose_gateway();
    const auto request = base::decode<plan::LeaseRequest>((*message)->bytes, "lease request");
    if (!request) return lose_gateway();
    return serve_request(*request) ? base::Status() : lose_gateway();
  }

  // False where the gateway takes no answer any more. A request whose key is still being made
  // waits.
  bool serve_request(plan::LeaseRequest request) {
    const Vault::Decision first = vault_->judge(request);
    std::string refusal = first.refusal;
    std::string detail;
    if (refusal.empty() && !dated(request, first.index)) refusal = "date";
    if (refusal.empty() && !salted(request, first.index)) refusal = "salt";
    if (refusal.empty()) {
      const Mints::Ready ready = mints_->ready(first.index, detail);
      if (ready == Mints::Ready::wait && waiting_.size() < kMostWaiting) {
        waiting_.push_back(std::move(request));
        return true;
      }
      if (ready != Mints::Ready::yes) refusal = "mint";
    }
    plan::LeaseAnswer answer = answer_to(request, refusal, detail);
    answer.id = request.id;
    std::string bytes = base::encode(answer);
    for (std::string* one : {&answer.secret, &answer.access_key, &answer.session_token}) {
      base::wipe(*one);
    }
    const bool sent = channels_.gateway.open() && send(bytes);
    base::wipe(bytes);
    return sent;
  }

  // A signature's key is for a day, and AWS takes none that is more than a quarter of an hour off.
  [[nodiscard]] bool dated(const plan::LeaseRequest& request, std::size_t index) const {
    constexpr std::int64_t kOff = 1800;
    if (plan_->policy.credentials[index].inject.kind != policy::InjectKind::sigv4) {
      return request.date.empty();
    }
    const std::int64_t now = edges_.wall();
    return request.date == http::sigv4_time(now - kOff).substr(0, 8) ||
           request.date == http::sigv4_time(now + kOff).substr(0, 8);
  }

  // PostgreSQL's password is lent for one fair challenge; nothing else is salted.
  [[nodiscard]] bool salted(const plan::LeaseRequest& request, std::size_t index) const {
    if (plan_->policy.credentials[index].inject.kind != policy::InjectKind::postgres) {
      return request.salt.empty() && request.iterations == 0;
    }
    return http::is_fair({request.salt, request.iterations});
  }

  plan::LeaseAnswer answer_to(const plan::LeaseRequest& request, const std::string& refusal,
                              const std::string& detail) {
    base::JsonObject members;
    members.add("credential", shown(request.credential, kMaxShown))
        .add("host", shown(request.host, kMaxShown))
        .add("port", request.port)
        .add("method", shown(request.method, kMaxShown))
        .add("path", shown(request.path, kMaxShownPath));
    if (!refusal.empty()) {
      members.add("reason", refusal);
      if (!detail.empty()) members.add("detail", detail);
      (void)record("credential.refused", members);
      return {.refusal = refusal};
    }
    const Vault::Decision decision = vault_->decide(request);
    members.add("tls", request.verified_tls).add("use", decision.use);
    // No use without its event, unless the policy says that the journal may be missing.
    const bool required = plan_->policy.audit.journal == policy::Need::required;
    if (!record("credential.used", members) && required) return {.refusal = "journal"};
    return vault_->lend(decision, request);
  }

  bool send(std::string_view bytes) {
    const ipc::Channel& gateway = channels_.gateway;
    auto sent = gateway.send(bytes, {});
    if (sent || sent.error().number != EAGAIN) return sent.has_value();
    std::array<pollfd, 1> polled = {{{gateway.fd(), POLLOUT, 0}}};
    const auto ready = os::wait_for(polled, kPatience);
    return ready && *ready && gateway.send(bytes, {});
  }

  base::Status lose_gateway() {
    channels_.gateway = ipc::Channel();
    waiting_.clear();
    return {};
  }

  // `minted` is null for what was read on this host.
  base::Status issued(const policy::Credential& credential, const MintEnd* minted) {
    base::JsonObject members;
    members.add("credential", credential.name)
        .raw("hosts", base::json_strings(credential.hosts))
        .raw("methods", base::json_strings(credential.methods))
        .raw("paths", base::json_strings(credential.paths));
    if (credential.lifetime_ms) members.add("lifetime_ms", *credential.lifetime_ms);
    if (credential.uses != policy::kUnlimited) members.add("uses", credential.uses);
    if (minted != nullptr) {
      members.add("source", policy::to_string(credential.source.mint.kind))
          .add("lives_s", minted->lives_s)
          .add("renewed", minted->kind == MintEnd::Kind::renewed);
    }
    const bool required = plan_->policy.audit.journal == policy::Need::required;
    auto recorded = record("credential.issued", members);
    return required ? recorded : base::Status();
  }

  base::Status record(std::string_view type, const base::JsonObject& members) {
    return journal::hand_over(channels_.journal, {std::string(type), members.members(), 0, 0});
  }

  // What a gateway claims is data: bounded here, made printable by who shows it.
  static std::string_view shown(std::string_view text, std::size_t most) {
    return text.substr(0, most);
  }

  const plan::Plan* plan_;
  std::unique_ptr<plan::Plan> changed_;  // what plan_ points to once the policy has changed
  Channels channels_;
  Edges edges_;
  std::optional<Vault> vault_;
  std::optional<Mints> mints_;
  std::vector<plan::LeaseRequest> waiting_;  // for a key that is being made
  int untold_ = 0;                           // BrokerRevoked that are owed to the supervisor
  std::uint64_t revoked_ms_ = 0;
};

}  // namespace

int serve(const plan::Plan& plan, Channels channels, std::uint32_t id, Edges edges) {
  constexpr int kFailed = 125;
  Service service(plan, std::move(channels), std::move(edges));
  if (auto opened = service.open(id); !opened) {
    service.say_ready(opened.error().line());
    return kFailed;
  }
  service.say_ready("");
  return service.run() ? 0 : kFailed;
}

}  // namespace broker
