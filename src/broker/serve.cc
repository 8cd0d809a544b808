// The broker's process: secrets in, then one loop over supervisor and gateway.
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "broker/broker.h"
#include "confine/confine.h"
#include "journal/journal.h"
#include "os/os.h"

namespace broker {

namespace {

constexpr int kPatience = 5'000;        // ms that a gateway may leave an answer in the way
constexpr std::size_t kMaxShown = 256;  // bytes of a gateway's claim in an event
constexpr std::size_t kMaxShownPath = 2048;

class Service {
 public:
  Service(const plan::Plan& plan, Channels channels, Clock clock)
      : plan_(plan), channels_(std::move(channels)), clock_(std::move(clock)) {}

  // Up to BrokerReady.
  base::Status open(std::uint32_t id) {
    auto secrets = TRY(receive_secrets());
    TRY(os::set_nonblocking(channels_.gateway.fd()));
    vault_.emplace(TRY(Vault::open(plan_, std::move(secrets), clock_)));
    TRY(confine::shut_in(confine::Own::broker, id, {}));
    for (const policy::Credential& credential : plan_.policy.credentials) TRY(issued(credential));
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
      std::array<pollfd, 2> polled = {
          {{channels_.control.fd(), POLLIN, 0},
           {channels_.gateway.open() ? channels_.gateway.fd() : -1, POLLIN, 0}}};
      TRY(os::wait_for(polled, -1));
      if (polled[0].revents != 0) {
        const bool more = TRY(from_supervisor());
        if (!more) return {};
      } else if (polled[1].revents != 0) {
        TRY(from_gateway());
      }
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

  // Whether there is more to come.
  base::Result<bool> from_supervisor() {
    auto message = TRY(channels_.control.receive());
    if (!message) {
      revoke({"", "run ended"});
      return false;
    }
    const auto decoded =
        TRY(base::decode<plan::ToBroker>(message->bytes, "message of the supervisor"));
    const auto* order = std::get_if<plan::BrokerRevoke>(&decoded);
    if (order == nullptr)
      return base::fail(base::Kind::peer, "supervisor", "sent secrets twice", {});
    revoke(*order);
    (void)ipc::send_value(channels_.control, plan::FromBroker(plan::BrokerRevoked{}), {});
    return true;
  }

  void revoke(const plan::BrokerRevoke& order) {
    for (std::size_t index : vault_->revoke(order.credential)) {
      base::JsonObject members;
      members.add("credential", plan_.policy.credentials[index].name)
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
    plan::LeaseAnswer answer = judge(*request);
    std::string bytes = base::encode(answer);
    base::wipe(answer.secret);
    const bool sent = send(bytes);
    base::wipe(bytes);
    return sent ? base::Status() : lose_gateway();
  }

  plan::LeaseAnswer judge(const plan::LeaseRequest& request) {
    const Vault::Decision decision = vault_->decide(request);
    base::JsonObject members;
    members.add("credential", shown(request.credential, kMaxShown))
        .add("host", shown(request.host, kMaxShown))
        .add("port", request.port)
        .add("method", shown(request.method, kMaxShown))
        .add("path", shown(request.path, kMaxShownPath));
    if (!decision.refusal.empty()) {
      members.add("reason", decision.refusal);
      (void)record("credential.refused", members);
      return {.refusal = decision.refusal};
    }
    members.add("tls", request.verified_tls).add("use", decision.use);
    // No use without its event, unless the policy says that the journal may be missing.
    const bool required = plan_.policy.audit.journal == policy::Need::required;
    if (!record("credential.used", members) && required) return {.refusal = "journal"};
    return vault_->lend(decision);
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
    return {};
  }

  base::Status issued(const policy::Credential& credential) {
    base::JsonObject members;
    members.add("credential", credential.name)
        .raw("hosts", base::json_strings(credential.hosts))
        .raw("methods", base::json_strings(credential.methods))
        .raw("paths", base::json_strings(credential.paths));
    if (credential.lifetime_ms) members.add("lifetime_ms", *credential.lifetime_ms);
    if (credential.uses != policy::kUnlimited) members.add("uses", credential.uses);
    const bool required = plan_.policy.audit.journal == policy::Need::required;
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

  const plan::Plan& plan_;
  Channels channels_;
  Clock clock_;
  std::optional<Vault> vault_;
};

}  // namespace

int serve(const plan::Plan& plan, Channels channels, std::uint32_t id, Clock clock) {
  constexpr int kFailed = 125;
  Service service(plan, std::move(channels), std::move(clock));
  if (auto opened = service.open(id); !opened) {
    service.say_ready(opened.error().line());
    return kFailed;
  }
  service.say_ready("");
  return service.run() ? 0 : kFailed;
}

}  // namespace broker
