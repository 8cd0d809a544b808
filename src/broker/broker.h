// The broker: holds the run's secrets, and lends one out for one request at a time.
//
// It judges every request again by itself, so that a gateway that is wholly taken over still gets a
// secret only for a host, port, method and path that its binding covers, only as often and as long
// as the policy says, and leaves an event for each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"
#include "ipc/ipc.h"
#include "plan/plan.h"

namespace broker {

inline constexpr std::size_t kMaxSecret = std::size_t{64} * 1024;

// Milliseconds on a clock that never goes back.
using Clock = std::function<std::uint64_t()>;
struct Edges {
  Clock steady;
  std::function<std::int64_t()> wall;  // seconds since 1970
};

// What is lent of a credential: its secret, and for signatures of AWS the account's three values.
struct Key {
  base::Secret secret;
  base::Secret access_key;
  base::Secret session_token;
};

// The secrets, and what may still be done with each.
class Vault {
 public:
  // `secrets` are memfds in the order of the policy's credentials; they are emptied. The lifetimes
  // begin now. Errors (bad_input, WHERE is the credential's name, never the secret): empty, longer
  // than kMaxSecret, with a control character (it could write a header field of its own), or more
  // or fewer than the policy has.
  [[nodiscard]] static base::Result<Vault> open(const plan::Plan& plan,
                                                std::vector<base::Fd> secrets, Clock clock);

  // What is to be answered, without the secret in it: `refusal` is empty when it may be lent.
  struct Decision {
    std::string refusal;
    std::size_t index = 0;  // into the policy's credentials, valid when there is no refusal
    std::uint64_t use = 0;  // which use this is
  };
  // Judges a request; decide() counts it, too, when it may be served.
  [[nodiscard]] Decision judge(const plan::LeaseRequest& request) const;
  [[nodiscard]] Decision decide(const plan::LeaseRequest& request);
  // The answer that carries the secret; for a signature of AWS the signing key of `request`'s day.
  [[nodiscard]] plan::LeaseAnswer lend(const Decision& decision,
                                       const plan::LeaseRequest& request) const;

  // Of a minted credential: the long-lived secret, which the vault then has no more, and what is
  // lent from now on.
  [[nodiscard]] base::Secret take_origin(std::size_t index) {
    return std::exchange(held_[index].origin, {});
  }
  void replace(std::size_t index, Key key) { held_[index].key = std::move(key); }
  [[nodiscard]] std::string_view secret(std::size_t index) const {
    return held_[index].key.secret.reveal();
  }

  // Judges by this plan from now on, which must outlive this; bad_input when its credentials are
  // not the same ones in the same order.
  [[nodiscard]] base::Status change(const plan::Plan& plan);

  // Forgets a secret ("" for all) for good, and tells whose it was.
  [[nodiscard]] std::vector<std::size_t> revoke(std::string_view credential);
  [[nodiscard]] std::uint64_t uses(std::size_t index) const { return held_[index].uses; }

 private:
  struct Held {
    base::Secret origin;  // of a minted one: the long-lived secret
    Key key;
    std::vector<std::string> placeholders;
    std::uint64_t uses = 0;
    bool revoked = false;
  };
  Vault(const plan::Plan& plan, Clock clock) : plan_(&plan), clock_(std::move(clock)) {}
  [[nodiscard]] std::string refusal(const plan::LeaseRequest& request, std::size_t index) const;
  [[nodiscard]] bool has(plan::Protection protection) const {
    return plan_->protections.contains(protection);
  }

  const plan::Plan* plan_;
  Clock clock_;
  std::uint64_t started_ = 0;
  std::vector<Held> held_;  // in the policy's order
};

struct Channels {
  ipc::Channel control;  // to the supervisor
  ipc::Channel journal;
  ipc::Channel gateway;
  ipc::Channel minter;  // open where the plan mints
};

// Runs the broker's process: waits for the minter, takes the secrets, confines itself (shut_in, as
// `id` when it is not 0), answers BrokerReady and serves until the supervisor's end. Returns the
// exit status.
int serve(const plan::Plan& plan, Channels channels, std::uint32_t id, Edges edges);

}  // namespace broker
