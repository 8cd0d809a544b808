// From the address that a client used to the address that is dialled; they are never the same
// thing.
#include "gateway/target.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

#include "gateway/address_book.h"
#include "gateway/nat64.h"
#include "gateway/upstream_proxy.h"

namespace gateway {

Target find_target(const Core& core, const os::Endpoint& destination) {
  const policy::Address address = to_address(destination);
  Target target{.port = destination.port};
  if (core.names.in_pool(address)) {
    target.host.name = core.names.name_of(address);
    if (!target.host.name.empty()) return target;
    target.problem = "unknown-address";
  } else {
    target.literal = address;
  }
  target.host = {.name = policy::to_string(address), .is_address = true};
  return target;
}

base::Result<Target> find_target(Core& core, std::string_view host, std::uint16_t port) {
  const policy::Host canonical = TRY(policy::canonical_host(host));
  if (canonical.is_address) {
    return find_target(core, to_endpoint(TRY(policy::parse_address(canonical.name)), port));
  }
  Target target{.host = canonical, .port = port};
  const bool full =
      policy::name_allowed(core.policy(), canonical.name) && !give_place(core, canonical.name);
  if (full) target.problem = "too-many-names";
  return target;
}

asio::awaitable<base::Result<Vetted>> find_route(Core& core, Target& target,
                                                 const policy::Egress* rule) {
  if (auto vetted = std::exchange(target.vetted, std::nullopt);
      vetted && vetted->revision == core.policy().revision) {
    co_return std::move(*vetted);
  }
  std::vector<policy::Address> addresses;
  if (target.literal) {
    addresses.push_back(*target.literal);
  } else if (target.host.name == policy::kHostName) {
    for (const char* own : {"127.0.0.1", "::1"}) addresses.push_back(*policy::parse_address(own));
  } else {
    addresses = CO_TRY(co_await core.resolver.resolve(target.host.name));
    const bool six = std::ranges::any_of(addresses, &policy::Address::v6);
    if (six && !co_await learn_nat64(core)) std::erase_if(addresses, &policy::Address::v6);
    if (addresses.empty()) {
      co_return base::fail(base::Kind::peer, "resolve", "nobody tells of this network's NAT64", {});
    }
  }
  Vetted vetted = CO_TRY(core.guard.vet(rule, target.host, target.port, addresses));
  vetted.direct = core.upstream_proxy == nullptr || !core.upstream_proxy->serves(target.host);
  vetted.revision = core.policy().revision;
  co_return vetted;
}

namespace {

// Addresses are tried in order, the next one when the last has failed or was silent for this long.
constexpr std::chrono::milliseconds kStagger{1000};

// Attempts that run at once; the first that connects wins. All addresses have passed the guard
// before the race begins (N81).
class Race {
 public:
  Race(Connection& connection, const Vetted& vetted, std::uint16_t port)
      : connection_(connection), vetted_(vetted), port_(port), timer_(connection.core.io) {}
  ~Race() {
    for (const Attempt& attempt : attempts_) {
      attempt.stream->close();
      attempt.stream->detach();
    }
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  // Starts attempts until one is under way or none is left.
  void start_next() {
    late_ = false;
    while (next_ < vetted_.passed.size()) {
      const Passed& to = vetted_.passed[next_++];
      auto socket = connection_.core.connector.start(to, port_);
      if (!socket) {
        error_ = socket.error().number;
        continue;
      }
      connection_.core.bound_queue(socket->get());
      attempts_.push_back({.address = to.address(),
                           .stream = std::make_shared<SocketStream>(
                               connection_.core.io, std::move(*socket), connection_.wake)});
      attempts_.back().stream->arm_write();
      break;
    }
    if (next_ == vetted_.passed.size()) return;
    timer_.expires_after(kStagger);
    timer_.async_wait(
        [this, alive = attempts_.back().stream](const boost::system::error_code& error) {
          if (error || !alive->attached()) return;
          late_ = true;
          connection_.wake.notify();
        });
  }

  // Looks at what was decided since; the winner becomes connection.upstream.
  [[nodiscard]] std::optional<policy::Address> winner() {
    for (std::size_t i = 0; i < attempts_.size();) {
      if (attempts_[i].stream->write_armed()) {
        ++i;
        continue;
      }
      error_ = os::connect_result(attempts_[i].stream->fd());
      const Attempt attempt = attempts_[i];
      attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(i));
      if (error_ == 0) {
        connection_.upstream = attempt.stream;
        return attempt.address;
      }
      attempt.stream->close();
      attempt.stream->detach();
    }
    if (attempts_.empty() || late_) start_next();
    return std::nullopt;
  }
  [[nodiscard]] bool over() const { return attempts_.empty(); }
  [[nodiscard]] int error() const { return error_; }

 private:
  struct Attempt {
    policy::Address address;
    std::shared_ptr<Stream> stream;
  };

  Connection& connection_;
  const Vetted& vetted_;
  std::uint16_t port_;
  asio::steady_timer timer_;
  std::vector<Attempt> attempts_;
  std::size_t next_ = 0;
  bool late_ = false;
  int error_ = EHOSTUNREACH;
};

}  // namespace

asio::awaitable<base::Result<policy::Address>> connect_to(Connection& connection, Vetted vetted,
                                                          std::uint16_t port) {
  connection.allow(connection.core.limits.connect);
  Race race(connection, vetted, port);
  race.start_next();
  while (!race.over()) {
    if (!co_await connection.pause()) co_return base::system_error("connect", ETIMEDOUT);
    if (const auto address = race.winner()) co_return *address;
  }
  co_return base::system_error("connect", race.error());
}

asio::awaitable<base::Result<policy::Address>> dial(Connection& connection, Vetted vetted,
                                                    std::uint16_t port) {
  const Core& core = connection.core;
  const UpstreamProxy* proxy = core.upstream_proxy;
  const std::uint64_t revision = vetted.revision;
  Vetted excepted = vetted;
  std::erase_if(excepted.passed,
                [&](const Passed& to) { return proxy != nullptr && proxy->serves(to.address()); });
  const bool direct = proxy == nullptr || vetted.direct || !excepted.passed.empty();
  auto address = direct ? co_await connect_to(connection, vetted.direct ? vetted : excepted, port)
                        : co_await dial_by_proxy(connection, vetted, port);
  // What was judged by rules that are no longer in force is not dialled after all.
  if (revision != core.policy().revision) {
    drop_upstream(connection);
    co_return base::fail(base::Kind::peer, kDialError, "policy", {});
  }
  if (address) connection.dialled = *address;
  co_return address;
}

void drop_upstream(Connection& connection) {
  if (!connection.upstream) return;
  connection.upstream->close();
  connection.upstream->detach();
  connection.upstream.reset();
}

std::string dial_problem(const base::Error& error) {
  return error.where == kDialError ? error.what : "unreachable";
}

namespace {

// The rules that a verdict was made by, in force or not.
const PastRules* past_rules(const Core& core, const policy::Verdict& verdict) {
  if (verdict.revision == 0 || verdict.revision == core.policy().revision) return nullptr;
  const auto found = std::ranges::find(core.past, verdict.revision,
                                       [](const PastRules& past) { return past.policy.revision; });
  return found == core.past.end() ? nullptr : &*found;
}

}  // namespace

const policy::Egress* rule_of(const Core& core, const policy::Verdict& verdict) {
  const PastRules* past = past_rules(core, verdict);
  return policy::rule_of(past == nullptr ? core.policy() : past->policy, verdict);
}

Used* used_by(const Core& core, const policy::Verdict& verdict) {
  const PastRules* past = past_rules(core, verdict);
  const auto& used = past == nullptr ? core.used : past->used;
  return verdict.rule_index < used.size() ? used[verdict.rule_index].get() : nullptr;
}

Budget budget_of(Core& core, const policy::Verdict& verdict) {
  const policy::Egress* rule = rule_of(core, verdict);
  Used* used = used_by(core, verdict);
  if (rule == nullptr || used == nullptr) return {};
  return {.up = {used->up, rule->max_up}, .down = {used->down, rule->max_down}};
}

std::string verdict_word(const policy::Verdict& verdict) {
  if (!verdict.allow) return "deny";
  return verdict.audit ? "audit" : "allow";
}

std::string kind_of(const std::string& reason) {
  for (const char* same : {"host", "port", "method", "path", "range", "credential"}) {
    if (reason == same) return reason;
  }
  if (reason == "blocked-name" || reason == "deny-rule" || reason == "unknown-address" ||
      reason == "too-many-names" || reason == "cut") {
    return "host";
  }
  return "protocol";
}

}  // namespace gateway
