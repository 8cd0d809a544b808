// cerco-broker: the process that holds a run's secrets.
//
// SECURITY. It trusts the supervisor's frames and the Plan. What the gateway asks is a claim: each
// lease is judged here against the credential's binding, the placeholder, the lifetime and the
// uses, so a gateway that is taken over gets secrets for covered requests only, and leaves an event
// for each. It holds the secrets in locked memory that no core dump and no process of another uid
// can see, and writes them to nobody but the gateway and, in a request to an endpoint that the
// policy names, to the minter, whose word is a claim as well; it has no network, no path, no file.
// It confines itself in broker/serve.cc (shut_in: a uid of its own, no capability, no path, its own
// seccomp list), after the secrets have come from the supervisor and before the first request.
#include <cstdio>
#include <ctime>

#include "broker/broker.h"
#include "confine/confine.h"
#include "os/os.h"

namespace {

base::Result<int> run() {
  base::Fd memfd(plan::kFdPlan);
  const std::string bytes = TRY(os::read_all(memfd.get(), std::size_t{16} << 20, "plan"));
  const auto plan = TRY(base::decode<plan::Plan>(bytes, "plan"));
  memfd.reset();
  broker::Channels channels{ipc::Channel(base::Fd(plan::kFdControl)),
                            ipc::Channel(base::Fd(plan::kFdJournal)),
                            ipc::Channel(base::Fd(plan::kFdBroker)),
                            {}};
  if (!policy::mint_rules(plan.policy).empty()) {
    channels.minter = ipc::Channel(base::Fd(plan::kFdMinter));
  }
  const std::uint32_t id = os::effective_uid() == 0 ? confine::kBrokerId : 0;
  const auto steady = [] {
    const os::Instant now = os::steady_time();
    return static_cast<std::uint64_t>(now.seconds * 1000 + now.nanoseconds / 1'000'000);
  };
  const auto wall = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
  return broker::serve(plan, std::move(channels), id, {steady, wall});
}

}  // namespace

int main() {
  const auto status = run();
  if (status) return *status;
  std::fprintf(stderr, "cerco-broker: %s\n", status.error().line().c_str());
  return 125;
}
