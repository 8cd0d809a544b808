// `cerco publish`: a port of the host's loopback that reaches a server inside a run that lives.
#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "cli/living.h"
#include "os/os.h"

namespace cli {
namespace {

constexpr std::string_view kUsage = "RUN PORT[:HOSTPORT]";
constexpr std::uint64_t kMostPort = 65535;

struct Ports {
  std::uint16_t inside = 0;
  std::uint16_t host = 0;  // 0: one that is free
};

base::Result<Ports> read_ports(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto inside = base::parse_number(text.substr(0, colon));
  const auto host = colon == std::string::npos ? std::optional<std::uint64_t>(0)
                                               : base::parse_number(text.substr(colon + 1));
  const bool good = inside && *inside > 0 && *inside <= kMostPort && host && *host <= kMostPort;
  if (!good) {
    return base::bad_input("publish", "`" + base::printable(text) + "` is no port",
                           "expected PORT or PORT:HOSTPORT, 1 to 65535; without HOSTPORT a free "
                           "port of the host is taken");
  }
  return Ports{static_cast<std::uint16_t>(*inside), static_cast<std::uint16_t>(*host)};
}

// On the loopback alone: a published port is for this host.
base::Result<base::Fd> listen_at(std::uint16_t port) {
  os::Endpoint at;
  at.address = {127, 0, 0, 1};
  at.port = port;
  auto listener = os::listen(at);
  if (listener) return listener;
  const std::string where = fmt::format("publish: 127.0.0.1:{}", port);
  switch (listener.error().number) {
    case EADDRINUSE:
      return base::fail(base::Kind::missing, where, "is in use",
                        "expected another HOSTPORT, or none for a free one");
    case EACCES:
      return base::fail(base::Kind::missing, where, "is a port that this user may not have",
                        "expected a HOSTPORT from 1024 on");
    default:
      return listener;
  }
}

}  // namespace

base::Result<int> publish(const World& world, const Parsed& parsed) {
  TRY(want_words("publish", parsed, 2, kUsage));
  const Ports ports = TRY(read_ports(parsed.words[1]));
  const Reached reached = TRY(reach(world, parsed.words[0]));
  const base::Fd listener = TRY(listen_at(ports.host));
  const os::Endpoint at = TRY(os::local_endpoint(listener.get()));
  const std::array<int, 1> fds = {listener.get()};
  TRY(ask(reached.channel, supervisor::Publish{ports.inside}, fds));
  TRY(await_done(reached.channel));
  const std::string address = fmt::format("127.0.0.1:{}", at.port);
  if (!parsed.has("--json")) {
    print(world, address + "\n");
    return 0;
  }
  print(world, base::JsonObject()
                       .add("run", reached.run.id)
                       .add("port", ports.inside)
                       .add("host_port", at.port)
                       .add("address", address)
                       .text() +
                   "\n");
  return 0;
}

}  // namespace cli
