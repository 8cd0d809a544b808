// When keys are made, renewed and revoked, with a minter and clocks in the test's hands.
#include "broker/mints.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "os/os.h"

namespace {

using broker::MintEnd;
using Ready = broker::Mints::Ready;

plan::Plan plan_of(policy::MintKind kind) {
  plan::Plan plan;
  plan.run = "aaaaaaaaaaaa";
  for (const char* name : {"api", "other"}) {
    policy::Credential& one = plan.policy.credentials.emplace_back();
    one.name = name;
    one.hosts = {"api.example.com"};
    one.source.mint.kind = kind;
    one.source.mint.url = "https://auth.example.com/token";
    one.source.mint.second_url = "https://auth.example.com/revoke";
    one.source.mint.client = "me";
    one.source.mint.read = "db/creds/app";
    one.source.mint.field = "password";
  }
  return plan;
}

class Fixture {
 public:
  explicit Fixture(policy::MintKind kind) : plan_(plan_of(kind)) {
    std::vector<base::Fd> secrets;
    for (int i = 0; i < 2; ++i) {
      base::Fd fd(::memfd_create("secret", MFD_CLOEXEC));
      EXPECT_TRUE(os::write_all(fd.get(), "hush-hush", "secret"));
      secrets.push_back(std::move(fd));
    }
    vault_.emplace(*broker::Vault::open(plan_, std::move(secrets), edges_.steady));
    auto pair = std::move(*ipc::make_pair());
    EXPECT_TRUE(os::set_nonblocking(pair.first.fd()));
    EXPECT_TRUE(os::set_nonblocking(pair.second.fd()));
    minter = std::move(pair.second);
    mints.emplace(plan_, *vault_, std::move(pair.first), edges_);
  }
  std::uint64_t now = 1'000'000;
  ipc::Channel minter;
  std::optional<broker::Mints> mints;

  Ready ready(std::size_t index) {
    why.clear();
    return mints->ready(index, why);
  }
  std::string why;
  std::string lent(std::size_t index) { return std::string(vault_->secret(index)); }
  // What the minter is asked now; nothing where it is not.
  std::optional<plan::MintAsk> asked() {
    const auto message = minter.receive();
    if (!message || !*message) return std::nullopt;
    last_ = *base::decode<plan::MintAsk>((*message)->bytes, "ask");
    return last_;
  }
  std::vector<MintEnd> tell(plan::MintTold told) {
    told.id = last_.id;
    EXPECT_TRUE(ipc::send_value(minter, plan::FromMinter(std::move(told)), {}));
    return mints->on_minter();
  }
  std::vector<MintEnd> give(const std::string& token, const std::string& life) {
    EXPECT_TRUE(asked());
    return tell({.status = 200, .found = {{"access_token", token}, {"expires_in", life}}});
  }

 private:
  plan::Plan plan_;
  broker::Edges edges_ = {[this] { return now; }, [] { return std::int64_t{1'440'938'160}; }};
  std::optional<broker::Vault> vault_;
  plan::MintAsk last_;
};

TEST(Mints, OneMintingForAllThatWait) {
  Fixture f(policy::MintKind::oauth2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f.ready(0), Ready::wait);
  const auto ends = f.give("t1", "100");
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].kind, MintEnd::Kind::minted);
  EXPECT_EQ(f.ready(0), Ready::yes);
  EXPECT_EQ(f.lent(0), "t1");
  EXPECT_FALSE(f.asked());
}

TEST(Mints, TheOldKeyServesWhileTheNewOneIsMade) {
  Fixture f(policy::MintKind::oauth2);
  EXPECT_EQ(f.ready(0), Ready::wait);
  (void)f.give("t1", "100");
  f.now += 79'000;
  EXPECT_EQ(f.ready(0), Ready::yes);
  EXPECT_FALSE(f.asked());
  f.now += 2'000;
  EXPECT_EQ(f.ready(0), Ready::yes);
  EXPECT_EQ(f.ready(0), Ready::yes);
  (void)f.give("t2", "100");
  EXPECT_EQ(f.lent(0), "t2");
  EXPECT_FALSE(f.asked()) << "asked once";
  // A key that is over is lent no more, whatever comes of the new one.
  f.now += 100'000;
  EXPECT_EQ(f.ready(0), Ready::wait);
  ASSERT_TRUE(f.asked());
  const auto ends = f.tell({.problem = "timeout"});
  EXPECT_EQ(ends.at(0).kind, MintEnd::Kind::failed);
  EXPECT_EQ(f.ready(0), Ready::failed);
  EXPECT_EQ(f.why, "timeout");
}

TEST(Mints, AfterAFailureNobodyIsAskedForAWhile) {
  Fixture f(policy::MintKind::oauth2);
  for (const std::uint64_t pause : {1'000, 2'000, 4'000}) {
    EXPECT_EQ(f.ready(0), Ready::wait);
    ASSERT_TRUE(f.asked());
    EXPECT_EQ(f.tell({.status = 500}).at(0).problem, "status 500");
    f.now += pause - 1;
    EXPECT_EQ(f.ready(0), Ready::failed);
    EXPECT_FALSE(f.asked());
    f.now += 1;
  }
  EXPECT_EQ(f.ready(0), Ready::wait);
}

TEST(Mints, OneRequestAtATimeAndEachGetsItsOwn) {
  Fixture f(policy::MintKind::oauth2);
  EXPECT_EQ(f.ready(0), Ready::wait);
  EXPECT_EQ(f.ready(1), Ready::wait);
  (void)f.give("t1", "100");
  EXPECT_EQ(f.ready(0), Ready::yes);
  EXPECT_EQ(f.ready(1), Ready::wait);
  (void)f.give("t2", "100");
  EXPECT_EQ(f.lent(0) + f.lent(1), "t1t2");
}

TEST(Mints, RevokedAtTheVendor) {
  Fixture f(policy::MintKind::oauth2);
  EXPECT_EQ(f.ready(0), Ready::wait);
  (void)f.give("t1", "100");
  f.mints->revoke(0);
  EXPECT_TRUE(f.mints->revoking());
  const auto ask = f.asked();
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->target, "/revoke");
  EXPECT_TRUE(ask->body.starts_with("token=t1&"));
  EXPECT_EQ(f.tell({.status = 200}).at(0).kind, MintEnd::Kind::revoked);
  EXPECT_FALSE(f.mints->revoking());
  EXPECT_EQ(f.ready(0), Ready::failed);
  EXPECT_FALSE(f.asked()) << "nothing is made any more";
}

// What is made while it is revoked is revoked as well, and what waits to be made is not.
TEST(Mints, RevokedWhileItIsMade) {
  Fixture f(policy::MintKind::oauth2);
  EXPECT_EQ(f.ready(0), Ready::wait);
  EXPECT_EQ(f.ready(1), Ready::wait);
  f.mints->revoke(0);
  f.mints->revoke(1);
  EXPECT_TRUE(f.mints->revoking());
  EXPECT_TRUE(f.give("t1", "100").empty());
  const auto ask = f.asked();
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->body.starts_with("token=t1&")) << ask->body;
  EXPECT_EQ(f.tell({.status = 503}).at(0).kind, MintEnd::Kind::not_revoked);
  EXPECT_FALSE(f.mints->revoking());
  EXPECT_FALSE(f.asked());
  EXPECT_EQ(f.lent(0), "");
}

TEST(Mints, LeasesOfVault) {
  Fixture f(policy::MintKind::vault);
  const auto lease = [&](const std::string& id, const std::string& life) {
    EXPECT_TRUE(f.asked());
    return f.tell(
        {.status = 200,
         .found = {{"data.password", "p" + id}, {"lease_id", id}, {"lease_duration", life}}});
  };
  EXPECT_EQ(f.ready(0), Ready::wait);
  (void)lease("l1", "100");
  f.now += 81'000;
  EXPECT_EQ(f.ready(0), Ready::yes);
  EXPECT_EQ(f.asked()->target, "/token/v1/sys/leases/renew");
  EXPECT_EQ(f.tell({.status = 200, .found = {{"lease_duration", "100"}}}).at(0).kind,
            MintEnd::Kind::renewed);
  EXPECT_EQ(f.lent(0), "pl1");
  // At the end of what it may be renewed for another one is read.
  f.now += 81'000;
  EXPECT_EQ(f.ready(0), Ready::yes);
  EXPECT_TRUE(f.asked());
  EXPECT_TRUE(f.tell({.status = 200, .found = {{"lease_duration", "19"}}}).empty());
  EXPECT_EQ(f.ready(0), Ready::yes);
  (void)lease("l2", "100");
  EXPECT_EQ(f.lent(0), "pl2");
  f.mints->revoke(0);
  EXPECT_EQ(f.asked()->body, R"({"lease_id":"l2"})");
}

TEST(Mints, AMinterThatIsGoneSilentOrOddGivesNothing) {
  for (int way = 0; way < 4; ++way) {
    Fixture f(policy::MintKind::oauth2);
    EXPECT_EQ(f.ready(0), Ready::wait);
    EXPECT_EQ(f.ready(1), Ready::wait);
    ASSERT_TRUE(f.asked());
    std::vector<MintEnd> ends;
    if (way == 0) f.minter = ipc::Channel();
    if (way == 1) EXPECT_TRUE(f.minter.send("odd", {}));
    if (way == 2)
      EXPECT_TRUE(ipc::send_value(f.minter,
                                  plan::FromMinter(plan::MintTold{
                                      .id = 99, .status = 200, .found = {{"access_token", "t"}}}),
                                  {}));
    if (way == 3) {
      EXPECT_GT(f.mints->wait_ms(), 0);
      EXPECT_TRUE(f.mints->on_time().empty());
      f.now += 60'000;
      EXPECT_EQ(f.mints->wait_ms(), 0);
      ends = f.mints->on_time();
    } else {
      ends = f.mints->on_minter();
    }
    EXPECT_EQ(ends.size(), 2U) << way;
    EXPECT_EQ(f.ready(0), Ready::failed) << way;
    EXPECT_EQ(f.lent(0), "") << way;
    EXPECT_EQ(f.mints->fd(), -1);
  }
}

}  // namespace
