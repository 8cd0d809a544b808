// The minter's process: made, confined, then one request of the broker's after another.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <csignal>
#include <cstdio>

#include "confine/confine.h"
#include "gateway/fetch.h"
#include "gateway/gateway.h"
#include "ipc/ipc.h"

namespace gateway {
namespace {

constexpr std::size_t kMostPlan = std::size_t{16} << 20;
constexpr std::size_t kMostRoots = std::size_t{8} << 20;
constexpr int kResolveMs = 2500;

class Minter {
 public:
  [[nodiscard]] base::Status make();
  [[nodiscard]] base::Status confine_and_serve();
  void say_ready(std::string problem) {
    // A broker that is gone is seen as the end of its channel.
    (void)ipc::send_value(control_, plan::FromMinter(plan::MinterReady{std::move(problem)}), {});
  }

 private:
  [[nodiscard]] base::Result<http::TlsContext> tls();
  asio::awaitable<void> serve();
  asio::awaitable<void> answer(plan::MintAsk ask);

  asio::io_context io_{1};
  plan::Plan plan_;  // of the policy: the denials, and the endpoints as rules
  ipc::Channel control_{base::Fd(plan::kFdControl)};
  std::unique_ptr<asio::posix::stream_descriptor> watch_;
  std::optional<os::Interfaces> interfaces_;
  std::optional<Guard> guard_;
  std::unique_ptr<Resolver> resolver_;
  TcpConnector connector_;
  std::string roots_;
  http::TlsContext context_;
  std::optional<FetchWorld> world_;
};

base::Status Minter::make() {
  const base::Fd memfd(plan::kFdPlan);
  const std::string bytes = TRY(os::read_all(memfd.get(), kMostPlan, "plan"));
  plan_ = TRY(base::decode<plan::Plan>(bytes, "plan"));
  plan_.policy.egress = policy::mint_rules(plan_.policy);
  // Nothing is sent to whom nobody vouches for, whatever a positive control takes out.
  plan_.protections.insert(plan::Protection::address_guard);
  const base::Fd roots(plan::kFdRoots);
  roots_ = TRY(os::read_all(roots.get(), kMostRoots, "roots"));
  interfaces_.emplace(TRY(os::Interfaces::open()));
  guard_.emplace(plan_, [this] { return interfaces_->now(); });
  if (plan_.resolvers.empty()) {
    return base::fail(base::Kind::missing, "minter", "this host has no resolver", {});
  }
  resolver_ = TRY(make_resolver(io_, plan_.resolvers, kResolveMs));
  world_.emplace(FetchWorld{.io = io_,
                            .policy = plan_.policy,
                            .guard = *guard_,
                            .resolver = *resolver_,
                            .connector = connector_,
                            .tls = [this] { return tls(); }});
  return os::set_nonblocking(control_.fd());
}

base::Result<http::TlsContext> Minter::tls() {
  if (!context_) context_ = TRY(http::client_context(roots_, http::Verification::required));
  return context_;
}

base::Status Minter::confine_and_serve() {
  const std::uint32_t id = ::geteuid() == 0 ? confine::kMinterId : 0;
  TRY(confine::shut_in(confine::Own::minter, id, {}));
  auto watched = TRY(os::duplicate(control_.fd()));
  watch_ = std::make_unique<asio::posix::stream_descriptor>(io_, watched.release());
  say_ready("");
  asio::co_spawn(io_, serve(), [](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
  });
  io_.run();
  return {};
}

// Until the broker's end, or until it says what is no request.
asio::awaitable<void> Minter::serve() {
  os::PacketReader reader(ipc::kMaxMessage, 0);
  while (true) {
    boost::system::error_code error;
    co_await watch_->async_wait(asio::posix::stream_descriptor::wait_read,
                                asio::redirect_error(asio::use_awaitable, error));
    const auto got = error ? base::Result<os::Got>(os::Got::end) : reader.next(control_.fd());
    if (got && *got == os::Got::nothing) continue;
    if (!got || *got == os::Got::end || reader.cut()) break;
    auto ask = base::decode<plan::MintAsk>(reader.bytes(), "mint");
    if (!ask) break;
    co_await answer(std::move(*ask));
  }
  io_.stop();
}

// The broker waits for the answer: what can be read before is its end.
asio::awaitable<void> Minter::answer(plan::MintAsk ask) {
  watch_->async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (!error) io_.stop();
                     });
  plan::MintTold told = co_await fetch(*world_, std::move(ask));
  watch_->cancel();
  plan::FromMinter message(std::move(told));
  std::string bytes = base::encode(message);
  (void)control_.send(bytes, {});
  base::wipe(bytes);
  for (auto& [name, value] : std::get<plan::MintTold>(message).found) base::wipe(value);
}

}  // namespace

int serve_minter() {
  std::signal(SIGPIPE, SIG_IGN);
  // Never destroyed: a fetch that is still open at the end goes with the process.
  Minter& minter = *new Minter;
  auto made = minter.make();
  if (made) made = minter.confine_and_serve();
  if (made) return 0;
  minter.say_ready(made.error().line());
  fmt::print(stderr, "cerco-minter: {}\n", made.error().line());
  return 1;
}

}  // namespace gateway
