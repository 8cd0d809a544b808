// The minting of a run's credentials: when a key is asked for, renewed and revoked, and by whom it
// is waited for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/recipe.h"
#include "ipc/ipc.h"

namespace broker {

// Something that came to its end.
struct MintEnd {
  enum class Kind { minted, renewed, failed, revoked, not_revoked };
  Kind kind = Kind::failed;
  std::size_t index = 0;      // into the policy's credentials
  std::string problem;        // of failed, not_revoked: short, no secret in it
  std::uint64_t lives_s = 0;  // of minted, renewed
};

// One request at a time goes to the minter. A key is made at its first use, and again when a use
// finds it in the last fifth of its life: then the old one still serves, until it ends. After a
// failure nobody is asked for a while, longer each time.
class Mints {
 public:
  // `plan` and `vault` must outlive this. `minter` is confined and ready, or not open where nothing
  // is minted; it becomes non-blocking.
  Mints(const plan::Plan& plan, Vault& vault, ipc::Channel minter, const Edges& edges);
  ~Mints();
  Mints(const Mints&) = delete;
  Mints& operator=(const Mints&) = delete;

  enum class Ready {
    yes,     // the vault lends it
    wait,    // it is being made; poll the minter's channel and time
    failed,  // not to be had now; `why` says it
  };
  // Whether a credential can be lent, and makes what is needed for it.
  [[nodiscard]] Ready ready(std::size_t index, std::string& why);
  // The vendor is to forget what was minted, where it has a way to; nothing is minted any more.
  // Call before the vault forgets.
  void revoke(std::size_t index);
  // Whether a vendor is still to be told, or something may yet come that it has to be told of.
  [[nodiscard]] bool revoking() const;

  [[nodiscard]] int fd() const { return minter_.open() ? minter_.fd() : -1; }
  // Milliseconds until on_time() has something to do, -1 for never.
  [[nodiscard]] int wait_ms() const;
  // What ended meanwhile. Calls after fd() is readable, and after wait_ms().
  [[nodiscard]] std::vector<MintEnd> on_minter();
  [[nodiscard]] std::vector<MintEnd> on_time();

 private:
  enum class Act { mint, renew, revoke };
  struct Job {
    Act act = Act::mint;
    std::size_t index = 0;
    std::unique_ptr<Recipe> recipe;    // of a minting
    std::optional<plan::MintAsk> ask;  // of the others
  };
  struct State {
    base::Secret origin;  // the long-lived secret
    bool minting = false;
    bool closed = false;  // revoked: nothing more is made
    std::uint64_t made_ms = 0;
    std::uint64_t ends_ms = 0;  // 0: there is no key
    std::string lease;
    std::uint64_t failures = 0;  // one after another
    std::uint64_t again_ms = 0;
    std::string why;
  };

  [[nodiscard]] Mintage mintage(std::size_t index) const;
  void want(std::size_t index, Act act);
  void go_on(std::vector<MintEnd>& ends);
  void ask(plan::MintAsk ask);
  void take(const plan::MintTold& told, std::vector<MintEnd>& ends);
  void keep(std::size_t index, Minted& minted, std::vector<MintEnd>& ends);
  void fail(const Job& job, std::string problem, std::vector<MintEnd>& ends);
  void lose(std::vector<MintEnd>& ends);
  static void rotate(State& state, const std::string& token);
  [[nodiscard]] bool push_revocation(std::size_t index, std::string_view secret);
  void let_go(std::size_t index);

  const plan::Plan& plan_;
  Vault& vault_;
  ipc::Channel minter_;
  const Edges& edges_;
  std::vector<State> states_;
  std::deque<Job> jobs_;  // the first is under way where `asked_ms_` says so
  std::uint64_t last_id_ = 0;
  std::optional<std::uint64_t> asked_ms_;
};

}  // namespace broker
