// The other processes of a run: how each is started and spoken to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "ipc/ipc.h"
#include "journal/journal.h"
#include "os/os.h"
#include "plan/plan.h"
#include "sandbox/sandbox.h"

namespace supervisor {

// One process of ours with its control channel.
struct Part {
  os::Child child;
  ipc::Channel control;
};

// The journal of the run: files made, Open sent. The answer (Opened) is awaited by the caller.
[[nodiscard]] base::Result<Part> start_journal(const plan::Plan& plan, int plan_memfd);
// What the detectors are to do, by the policy.
[[nodiscard]] journal::Actions actions_of(const policy::Policy& policy);
// Answers NextFile: makes RUN.`number`.jsonl and hands it over. An error when there is one already.
[[nodiscard]] base::Status give_next_file(const Part& journal, const plan::Plan& plan,
                                          std::uint64_t number);
// Gives the journal a new producer and returns the producer's end.
[[nodiscard]] base::Result<ipc::Channel> add_producer(const Part& journal, const std::string& who);
// The minter; the broker has its channel, and `control` of this part is that end.
[[nodiscard]] base::Result<Part> start_minter(const plan::Plan& plan, int plan_memfd, int roots);
// The broker with the caller's secrets; `lease_end` is its end of the channel to the gateway. Takes
// the minter's channel, where there is a minter.
[[nodiscard]] base::Result<Part> start_broker(const plan::Plan& plan, int plan_memfd,
                                              const Part& journal,
                                              const std::vector<base::Fd>& secrets, int lease_end,
                                              std::optional<Part>& minter);
// The gateway, told by message which sockets to serve.
[[nodiscard]] base::Result<Part> start_gateway(const plan::Plan& plan, int plan_memfd, int roots,
                                               const Part& journal, int lease_end);
// Hands over the password of network.upstream_proxy and closes our copy.
[[nodiscard]] base::Status give_proxy_password(const Part& gateway, base::Fd& password);
// Hands the capture sockets over and closes our copies, so that the kernel refuses when the gateway
// dies.
[[nodiscard]] base::Status serve_capture(const Part& gateway, sandbox::CaptureSockets& sockets);

// The port of a TCP socket of version 4 that listens on the loopback; bad_input for all else.
[[nodiscard]] base::Result<std::uint16_t> loopback_port(int listener);
// The process behind one published port, with its listener. It tells by itself when it serves
// (publish::Opened).
[[nodiscard]] base::Result<Part> start_publisher(const plan::Plan& plan, int listener);

// Waits for one message of a part; an error names the part when it ended or sent something else.
template <class Value>
[[nodiscard]] base::Result<Value> receive(const ipc::Channel& channel, std::string_view who) {
  auto message = TRY_IN(std::string(who), channel.receive());
  if (!message) {
    return base::fail(base::Kind::peer, std::string(who), "ended before it answered", {});
  }
  return base::decode<Value>(message->bytes, who);
}

}  // namespace supervisor
