// The other processes of a run.
#include "supervisor/parts.h"

#include <sys/socket.h>

#include <array>

#include "publish/publish.h"

namespace supervisor {

namespace {

// Starts `program` with the Plan at its number and one end of a new control channel.
base::Result<Part> start_part(const plan::Plan& plan, const std::string& program, int plan_memfd,
                              std::vector<std::pair<int, int>> more) {
  auto [ours, theirs] = TRY(ipc::make_pair());
  more.emplace_back(plan_memfd, plan::kFdPlan);
  more.emplace_back(theirs.fd(), plan::kFdControl);
  const std::array<std::string, 1> argv = {plan.helper_dir + "/" + program};
  // Nothing of the caller's environment reaches a process of ours; sanitizer builds need no more
  // either.
  os::Child child = TRY(os::spawn(argv, {}, more));
  return Part{std::move(child), std::move(ours)};
}

}  // namespace

journal::Actions actions_of(const policy::Policy& policy) {
  const policy::Alerts& alerts = policy.alerts;
  const auto text = [](policy::Action action) { return std::string(policy::to_string(action)); };
  return {{{"blocked_range", text(alerts.blocked_range)},
           {"new_destination", text(alerts.new_destination)},
           {"request_spike", text(alerts.request_spike)},
           {"placeholder_misuse", text(alerts.placeholder_misuse)},
           {"placeholder_in_body", text(alerts.placeholder_in_body)},
           {"canary", text(alerts.canary)}}};
}

base::Result<Part> start_journal(const plan::Plan& plan, int plan_memfd) {
  const std::vector<base::Fd> files = TRY(journal::open_files(plan.state_dir, plan.run));
  Part part = TRY(start_part(plan, "cerco-journal", plan_memfd, {}));

  const journal::ToJournal open = journal::Open{
      plan.run, plan.policy.task, actions_of(plan.policy).actions, journal::kFileBytes};
  std::vector<int> fds;
  for (const auto& file : files) fds.push_back(file.get());
  TRY_IN("journal", ipc::send_value(part.control, open, fds));
  return part;
}

base::Status give_next_file(const Part& journal, const plan::Plan& plan, std::uint64_t number) {
  const base::Fd file = TRY(journal::open_next(plan.state_dir, plan.run, number));
  const std::array<int, 1> fds = {file.get()};
  return ipc::send_value(journal.control, journal::ToJournal(journal::File{number}), fds);
}

base::Result<ipc::Channel> add_producer(const Part& journal, const std::string& who) {
  auto [theirs, ours] = TRY(ipc::make_pair());
  const journal::ToJournal message = journal::AddProducer{who};
  const std::array<int, 1> fds = {theirs.fd()};
  TRY_IN("journal", ipc::send_value(journal.control, message, fds));
  return std::move(ours);
}

base::Result<Part> start_minter(const plan::Plan& plan, int plan_memfd, int roots) {
  return start_part(plan, "cerco-minter", plan_memfd, {{roots, plan::kFdRoots}});
}

base::Result<Part> start_broker(const plan::Plan& plan, int plan_memfd, const Part& journal,
                                const std::vector<base::Fd>& secrets, int lease_end,
                                std::optional<Part>& minter) {
  const ipc::Channel record = TRY(add_producer(journal, "broker"));
  std::vector<std::pair<int, int>> given = {{record.fd(), plan::kFdJournal},
                                            {lease_end, plan::kFdBroker}};
  if (minter) given.emplace_back(minter->control.fd(), plan::kFdMinter);
  Part part = TRY(start_part(plan, "cerco-broker", plan_memfd, std::move(given)));
  // The broker's end is the minter's end then.
  if (minter) minter->control = ipc::Channel();
  const plan::ToBroker message = plan::BrokerSecrets{secrets.size()};
  std::vector<int> fds;
  for (const auto& secret : secrets) fds.push_back(secret.get());
  TRY_IN("broker", ipc::send_value(part.control, message, fds));
  return part;
}

base::Result<Part> start_gateway(const plan::Plan& plan, int plan_memfd, int roots,
                                 const Part& journal, int lease_end) {
  const ipc::Channel record = TRY(add_producer(journal, "gateway"));
  std::vector<std::pair<int, int>> fds = {{record.fd(), plan::kFdJournal}, {roots, plan::kFdRoots}};
  if (lease_end >= 0) fds.emplace_back(lease_end, plan::kFdBroker);
  return start_part(plan, "cerco-gateway", plan_memfd, std::move(fds));
}

base::Result<std::uint16_t> loopback_port(int listener) {
  int listens = 0;
  socklen_t size = sizeof listens;
  const bool asked =
      ::getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 1;
  const auto at = asked ? os::local_endpoint(listener)
                        : base::Result<os::Endpoint>(std::unexpected(base::Error{}));
  if (!at || at->v6 || at->address[0] != 127) {
    return base::bad_input("publish", "its socket does not listen on the loopback", {});
  }
  return at->port;
}

base::Result<Part> start_publisher(const plan::Plan& plan, int listener) {
  auto [ours, theirs] = TRY(ipc::make_pair());
  const std::array<std::pair<int, int>, 2> fds = {
      {{listener, publish::kFdListener}, {theirs.fd(), publish::kFdControl}}};
  const std::array<std::string, 1> argv = {plan.helper_dir + "/cerco-publisher"};
  os::Child child = TRY(os::spawn(argv, {}, fds));
  return Part{std::move(child), std::move(ours)};
}

base::Status give_proxy_password(const Part& gateway, base::Fd& password) {
  const std::array<int, 1> fds = {password.get()};
  const plan::ToGateway message = plan::GatewayProxyPassword{};
  TRY_IN("gateway", ipc::send_value(gateway.control, message, fds));
  password.reset();
  return {};
}

base::Status serve_capture(const Part& gateway, sandbox::CaptureSockets& sockets) {
  const std::array<int, 7> fds = {
      sockets.tcp4.get(),     sockets.tcp6.get(),     sockets.dns4.get(),   sockets.dns6.get(),
      sockets.dns_tcp4.get(), sockets.dns_tcp6.get(), sockets.refused.get()};
  const plan::ToGateway message = plan::GatewayServe{};
  TRY_IN("gateway", ipc::send_value(gateway.control, message, fds));
  sockets = {};
  return {};
}

}  // namespace supervisor
