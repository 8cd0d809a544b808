// Who shares which connection.
#include "gateway/h2_upstreams.h"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace gateway {
namespace {

constexpr std::size_t kMostIdle = 8;

}  // namespace

std::list<H2Upstreams::Shared>::iterator H2Upstreams::find(const Users& users) {
  for (auto one = shared_.begin(); one != shared_.end();) {
    const bool fit =
        one->link ? one->link->open() && one->link->framing().takes_more() : one->upstream->quiet();
    if (!fit && (!one->link || !one->link->open())) {
      one = shared_.erase(one);
      continue;
    }
    // What was dialled as older rules said serves no further request.
    const bool current = one->revision == core_.policy().revision;
    if (fit && current && one->users == users) return one;
    ++one;
  }
  return shared_.end();
}

const std::string* H2Upstreams::serves(const Users& users) {
  const auto found = find(users);
  return found == shared_.end() ? nullptr : &found->address;
}

H2Upstreams::Joined H2Upstreams::take(Connection& connection, std::list<Shared>::iterator found) {
  Joined joined{.way = Joined::Way::joined,
                .address = found->address,
                .verified = found->verified,
                .problem = {},
                .dial = nullptr};
  if (found->link) {
    connection.upstream = std::make_shared<H2LinkStream>(found->link, found->link->framing().open(),
                                                         http::H2Side::client, connection.wake);
  } else {
    connection.upstream = std::move(found->upstream);
    connection.upstream->attach(connection.wake);
    shared_.erase(found);
  }
  return joined;
}

asio::awaitable<H2Upstreams::Joined> H2Upstreams::join(Connection& connection, Users users) {
  while (true) {
    if (const auto found = find(users); found != shared_.end()) co_return take(connection, found);
    const auto under_way =
        std::ranges::find_if(dialling_, [&](const auto& one) { return one->users == users; });
    if (speaks_http1_ || under_way == dialling_.end()) {
      auto dialling = std::make_shared<Dialling>(Dialling{.users = users, .problem = {}});
      if (!speaks_http1_) dialling_.push_back(dialling);
      co_return Joined{
          .way = Joined::Way::dial, .address = {}, .problem = {}, .dial = std::move(dialling)};
    }
    // It has to outlive its place in the list.
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const std::shared_ptr<Dialling> dialling = *under_way;
    waiters_.push_back(
        {.of = dialling.get(), .client = connection.client, .connection = &connection});
    bool stopped = false;
    while (!dialling->over && !stopped) {
      stopped = !co_await connection.pause() || connection.client->broken();
    }
    std::erase_if(waiters_, [&](const Waiter& one) { return one.connection == &connection; });
    if (stopped) co_return Joined{.way = Joined::Way::stopped};
    if (!dialling->problem.empty()) {
      co_return Joined{.way = Joined::Way::failed, .address = {}, .problem = dialling->problem};
    }
  }
}

void H2Upstreams::settle(Connection& connection, Dialling& dialling, const std::string& address,
                         bool verified, std::string problem) {
  if (problem.empty() && connection.upstream->protocol() == "h2") {
    auto link = H2Link::make(core_, http::H2Side::client, std::move(connection.upstream), wake_);
    connection.upstream.reset();
    if (link) {
      shared_.push_back({.users = dialling.users,
                         .address = address,
                         .verified = verified,
                         .revision = core_.policy().revision,
                         .link = std::move(*link),
                         .upstream = nullptr});
      (void)take(connection, std::prev(shared_.end()));
      shared_.back().link->touch();
    } else {
      problem = "upstream";
    }
  } else if (problem.empty()) {
    speaks_http1_ = true;
  }
  end(dialling, std::move(problem));
}

void H2Upstreams::end(Dialling& dialling, std::string problem) {
  dialling.problem = std::move(problem);
  dialling.over = true;
  for (const Waiter& waiter : waiters_) {
    if (waiter.of != &dialling) continue;
    asio::post(core_.io, [client = waiter.client, connection = waiter.connection] {
      if (client->attached()) connection->wake.notify();
    });
  }
  std::erase_if(dialling_, [&](const auto& one) { return one.get() == &dialling; });
}

void H2Upstreams::keep(Connection& connection, Users users, std::string address, bool verified) {
  auto upstream = std::exchange(connection.upstream, nullptr);
  upstream->detach();
  const bool fit = upstream->fd() >= 0 && upstream->quiet();
  if (!fit || std::ranges::count_if(shared_, [](const Shared& one) {
                return one.upstream != nullptr;
              }) >= static_cast<std::ptrdiff_t>(kMostIdle)) {
    upstream->close();
    return;
  }
  shared_.push_back({.users = std::move(users),
                     .address = std::move(address),
                     .verified = verified,
                     .revision = core_.policy().revision,
                     .link = nullptr,
                     .upstream = std::move(upstream)});
}

void H2Upstreams::pump() {
  for (auto one = shared_.begin(); one != shared_.end();) {
    if (one->link && !one->link->pump()) {
      one->link->detach();
      one = shared_.erase(one);
    } else {
      ++one;
    }
  }
}

void H2Upstreams::close() {
  for (const Shared& one : shared_) {
    if (one.link) {
      one.link->close();
      one.link->detach();
    } else {
      one.upstream->close();
    }
  }
  shared_.clear();
}

}  // namespace gateway
