// One minting a credential at a time, however many requests wait for it.
#include "broker/mints.h"

#include <algorithm>
#include <cerrno>

#include "http/http.h"
#include "os/os.h"

namespace broker {
namespace {

constexpr std::uint64_t kAnswerMs = 25'000;  // beyond what the minter gives itself
constexpr std::uint64_t kFirstPauseMs = 1'000;
constexpr std::uint64_t kMostPauseMs = 60'000;

void wipe(plan::MintAsk& ask) {
  base::wipe(ask.body);
  for (auto& [name, value] : ask.headers) base::wipe(value);
}

base::Result<Key> hold(const Minted& minted) {
  Key key;
  key.secret = TRY(base::Secret::hold(minted.secret));
  key.access_key = TRY(base::Secret::hold(minted.access_key));
  key.session_token = TRY(base::Secret::hold(minted.session_token));
  return key;
}

}  // namespace

Mints::Mints(const plan::Plan& plan, Vault& vault, ipc::Channel minter, const Edges& edges)
    : plan_(plan),
      vault_(vault),
      minter_(std::move(minter)),
      edges_(edges),
      states_(plan.policy.credentials.size()) {
  for (std::size_t i = 0; i < states_.size(); ++i) states_[i].origin = vault.take_origin(i);
}

Mints::~Mints() {
  for (Job& job : jobs_) {
    if (job.ask) wipe(*job.ask);
  }
}

Mintage Mints::mintage(std::size_t index) const {
  return {plan_.policy.credentials[index], states_[index].origin.reveal(), plan_.run,
          base::random_base32(26), edges_.wall()};
}

Mints::Ready Mints::ready(std::size_t index, std::string& why) {
  State& state = states_[index];
  if (plan_.policy.credentials[index].source.mint.kind == policy::MintKind::none) return Ready::yes;
  const std::uint64_t now = edges_.steady();
  const bool held = state.ends_ms > now;
  const std::uint64_t life = state.ends_ms - state.made_ms;
  const bool fresh = held && state.ends_ms - now > life / 5;
  if (!fresh && !state.minting && !state.closed && now >= state.again_ms) {
    want(index, held && !state.lease.empty() ? Act::renew : Act::mint);
  }
  if (held) return Ready::yes;
  if (state.minting) return Ready::wait;
  why = state.why;
  return Ready::failed;
}

void Mints::want(std::size_t index, Act act) {
  Job job{.act = act, .index = index};
  std::vector<MintEnd> ends;
  if (act == Act::mint) {
    job.recipe = std::make_unique<Recipe>(mintage(index));
  } else {
    auto ask = renewal(mintage(index), states_[index].lease);
    if (!ask) return;
    job.ask = std::move(*ask);
  }
  states_[index].minting = true;
  jobs_.push_back(std::move(job));
  go_on(ends);  // what fails at once is told by the state
}

void Mints::revoke(std::size_t index) {
  State& state = states_[index];
  state.closed = true;
  // What is not under way yet is not begun any more.
  const auto first = jobs_.begin() + (asked_ms_ ? 1 : 0);
  jobs_.erase(
      std::remove_if(first, jobs_.end(),
                     [&](const Job& job) { return job.index == index && job.act != Act::revoke; }),
      jobs_.end());
  const bool lives = state.ends_ms > edges_.steady();
  state.ends_ms = 0;
  if (lives && push_revocation(index, vault_.secret(index))) {
    std::vector<MintEnd> ends;
    go_on(ends);
  }
  let_go(index);
}

bool Mints::push_revocation(std::size_t index, std::string_view secret) {
  if (!minter_.open()) return false;
  auto made = revocation(mintage(index), secret, states_[index].lease);
  if (!made || !*made) return false;
  jobs_.push_back({.act = Act::revoke, .index = index, .recipe = nullptr, .ask = std::move(*made)});
  return true;
}

// The long-lived secret goes with the last job that may need it.
void Mints::let_go(std::size_t index) {
  State& state = states_[index];
  if (state.closed && std::ranges::find(jobs_, index, &Job::index) == jobs_.end()) {
    state.origin = base::Secret();
  }
}

bool Mints::revoking() const {
  return std::ranges::any_of(
      jobs_, [&](const Job& job) { return job.act == Act::revoke || states_[job.index].closed; });
}

int Mints::wait_ms() const {
  if (!asked_ms_) return -1;
  const std::uint64_t spent = edges_.steady() - *asked_ms_;
  return spent >= kAnswerMs ? 0 : static_cast<int>(kAnswerMs - spent);
}

// Begins the first job, if none is under way.
void Mints::go_on(std::vector<MintEnd>& ends) {
  while (!asked_ms_ && !jobs_.empty()) {
    Job& job = jobs_.front();
    if (!minter_.open()) {
      fail(job, "the minter is gone", ends);
    } else if (job.ask) {
      ask(std::move(*job.ask));
      job.ask.reset();
    } else if (auto first = job.recipe->begin(); first) {
      ask(std::get<plan::MintAsk>(std::move(*first)));
    } else {
      fail(job, first.error().what, ends);
    }
    if (!asked_ms_) jobs_.pop_front();
  }
}

void Mints::ask(plan::MintAsk ask) {
  ask.id = ++last_id_;
  std::string bytes = base::encode(ask);
  wipe(ask);
  // One request is under way at most, so it fits; a minter that is gone is seen by its end.
  (void)minter_.send(bytes, {});
  base::wipe(bytes);
  asked_ms_ = edges_.steady();
}

std::vector<MintEnd> Mints::on_minter() {
  std::vector<MintEnd> ends;
  auto message = minter_.receive();
  if (!message && message.error().number == EAGAIN) return ends;
  auto told = message && *message
                  ? base::decode<plan::FromMinter>((*message)->bytes, "message of the minter")
                  : base::Result<plan::FromMinter>(base::bad_input("minter", "is gone", {}));
  auto* answer = told ? std::get_if<plan::MintTold>(&*told) : nullptr;
  if (answer == nullptr || !asked_ms_ || answer->id != last_id_) {
    lose(ends);
    return ends;
  }
  take(*answer, ends);
  for (auto& [name, value] : answer->found) base::wipe(value);
  base::wipe((*message)->bytes);
  return ends;
}

std::vector<MintEnd> Mints::on_time() {
  std::vector<MintEnd> ends;
  if (wait_ms() == 0) lose(ends);
  return ends;
}

void Mints::take(const plan::MintTold& told, std::vector<MintEnd>& ends) {
  asked_ms_.reset();
  Job& job = jobs_.front();
  if (job.act == Act::mint) {
    auto step = job.recipe->take(told);
    if (step && std::holds_alternative<plan::MintAsk>(*step)) {
      if (!states_[job.index].closed) return ask(std::get<plan::MintAsk>(std::move(*step)));
      wipe(std::get<plan::MintAsk>(*step));
      step = base::fail(base::Kind::peer, "mint", "revoked", {});
    }
    if (step) {
      keep(job.index, std::get<Minted>(*step), ends);
    } else {
      fail(job, step.error().what, ends);
    }
  } else if (job.act == Act::renew) {
    State& state = states_[job.index];
    state.minting = false;
    const std::uint64_t lives = renewed_for(told);
    const std::uint64_t now = edges_.steady();
    // A lease at the end of what it may be renewed for is replaced by another.
    if (lives == 0 || now + lives * 1000 <= state.ends_ms) {
      state.lease.clear();
    } else {
      state.made_ms = now;
      state.ends_ms = now + lives * 1000;
      ends.push_back({MintEnd::Kind::renewed, job.index, {}, lives});
    }
  } else {
    const bool done = revocation_done(told);
    const std::string problem =
        !told.problem.empty() ? told.problem : "status " + std::to_string(told.status);
    ends.push_back({done ? MintEnd::Kind::revoked : MintEnd::Kind::not_revoked, job.index,
                    done ? "" : problem, 0});
  }
  const std::size_t index = job.index;
  jobs_.pop_front();
  let_go(index);
  go_on(ends);
}

void Mints::keep(std::size_t index, Minted& minted, std::vector<MintEnd>& ends) {
  State& state = states_[index];
  auto key = hold(minted);
  if (!key) {
    fail(jobs_.front(), "no memory can be locked", ends);
    return broker::wipe(minted);
  }
  state.minting = false;
  state.lease = minted.lease;
  if (state.closed) {
    // It was revoked while it was made.
    (void)push_revocation(index, minted.secret);
    return broker::wipe(minted);
  }
  if (!minted.rotated.empty()) rotate(state, minted.rotated);
  vault_.replace(index, std::move(*key));
  state.failures = 0;
  state.made_ms = edges_.steady();
  state.ends_ms = state.made_ms + minted.lives_s * 1000;
  ends.push_back({MintEnd::Kind::minted, index, {}, minted.lives_s});
  broker::wipe(minted);
}

// The old refresh token may be worth nothing from now on; what the client has of its own stays.
void Mints::rotate(State& state, const std::string& token) {
  std::string client = http::json_value(state.origin.reveal(), "client_secret").value_or("");
  std::string text =
      client.empty()
          ? token
          : base::JsonObject().add("refresh_token", token).add("client_secret", client).text();
  if (auto origin = base::Secret::hold(text)) state.origin = std::move(*origin);
  base::wipe(text);
  base::wipe(client);
}

void Mints::fail(const Job& job, std::string problem, std::vector<MintEnd>& ends) {
  if (job.act == Act::revoke) {
    ends.push_back({MintEnd::Kind::not_revoked, job.index, std::move(problem), 0});
    return;
  }
  State& state = states_[job.index];
  state.minting = false;
  const std::uint64_t pause = kFirstPauseMs << std::min<std::uint64_t>(state.failures, 6);
  state.again_ms = edges_.steady() + std::min(pause, kMostPauseMs);
  ++state.failures;
  state.why = problem;
  ends.push_back({MintEnd::Kind::failed, job.index, std::move(problem), 0});
}

// Nothing is asked of it any more.
void Mints::lose(std::vector<MintEnd>& ends) {
  minter_ = ipc::Channel();
  asked_ms_.reset();
  go_on(ends);
}

}  // namespace broker
