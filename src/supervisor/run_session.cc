// What others ask of a living run over the socket in its folder.
#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "supervisor/record.h"
#include "supervisor/run.h"

namespace supervisor {

namespace {

constexpr std::size_t kMostClients = 128;  // each holds up to five descriptors with its command
constexpr int kFlushMs = 5'000;  // longest wait for a client that does not read, at the end
constexpr std::size_t kPiece = std::size_t{64} * 1024;

// Whoever may use the state folder may use what lives in it; the kernel says who connected.
bool is_ours(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

StartFailed refused(std::string message, std::uint32_t status = 125) {
  StartFailed failed;
  failed.status = status;
  failed.message = std::move(message);
  failed.ending.kind = EndingKind::start_failed;
  return failed;
}

}  // namespace

// Nothing of the caller's is held from here on but what it handed over. The command reads the end
// of a file, or a terminal at which whoever attaches types, and what it writes comes here.
base::Status Run::detach() {
  os::let_go_of_streams();
  if (::chdir("/") != 0) return base::system_error("chdir /");
  if (plan_.session) return {};
  auto [input, typing] = TRY(os::pipe());
  streams_[0] = std::move(input);
  if (launch_.terminal) typing_ = std::move(typing);
  for (std::size_t i = 0; i < 2; ++i) {
    auto [reader, writer] = TRY(os::pipe());
    TRY(os::set_nonblocking(reader.get()));
    pipes_[i] = std::move(reader);
    streams_[i + 1] = std::move(writer);
  }
  return {};
}

void Run::leave_caller() {
  detached_ = caller_gone_ = finished_ = true;
  caller_ = {};
  (void)::malloc_trim(0);  // the start took more than waiting does
}

void Run::watch_session(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.open() ? listener_.get() : -1, POLLIN, 0});
  for (const base::Fd& pipe : pipes_) polled.push_back({pipe.get(), POLLIN, 0});
  for (const auto& published : published_) {
    polled.push_back({published->part.control.fd(), POLLIN, 0});
  }
  for (const auto& client : clients_) {
    const bool more = client->has_more(ring());
    polled.push_back({client->channel.fd(), static_cast<short>(POLLIN | (more ? POLLOUT : 0)), 0});
  }
}

void Run::act_session(std::span<const pollfd> polled) {
  if (polled[1].revents != 0) read_pipe(Stream::output);
  if (polled[2].revents != 0) read_pipe(Stream::error);
  const std::span<const pollfd> of_published = polled.subspan(3, published_.size());
  const std::span<const pollfd> of_clients = polled.subspan(3 + published_.size());
  act_published(of_published);
  // Those that come meanwhile have their turn next time.
  const std::size_t count = std::min(clients_.size(), of_clients.size());
  for (std::size_t i = 0; i < count; ++i) {
    if ((of_clients[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) on_client(*clients_[i]);
    clients_[i]->pump(ring());
  }
  for (const auto& client : clients_) {
    if (client->last_said && !client->has_more(ring())) client->gone = true;
    if (client->gone) lose_client(*client);
  }
  if (std::erase_if(clients_, [](const auto& client) { return client->gone; }) > 0) {
    if (active_) active_ = Clock::now();
  }
  if (polled[0].revents != 0) accept_client();
}

void Run::accept_client() {
  base::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.open() || !is_ours(socket.get()) || clients_.size() >= kMostClients) return;
  clients_.push_back(std::make_unique<Client>());
  clients_.back()->channel = ipc::Channel(std::move(socket));
  if (active_) active_ = Clock::now();
}

void Run::on_client(Client& client) {
  auto message = client.channel.receive();
  if (!message && message.error().number == EAGAIN) return;
  const auto request = message && *message
                           ? base::decode<FromClient>((*message)->bytes, "client")
                           : base::Result<FromClient>(std::unexpected(base::Error{}));
  if (!request) {
    client.gone = true;
    return;
  }
  std::visit([&](const auto& held) { answer(client, held, (*message)->fds); }, *request);
}

// Whoever went without waiting for its command has given it up.
void Run::lose_client(Client& client) {
  if (Command* command = command_of(client.command)) {
    end_command(*command, Cut::killed, "caller gone");
  }
  client.command = 0;
  // A port that nobody was told of.
  for (const auto& published : published_) {
    if (published->id == client.publication && !published->served) published->gone = true;
  }
}

void Run::answer(Client& client, const Exec& request, std::vector<base::Fd>& fds) {
  if (client.command != 0 || request.argv.empty() || fds.size() != 3) {
    client.gone = true;
    return;
  }
  if (plan_.tier == policy::Tier::isolate) {
    // It would run without the engine's own filter.
    client.say_last(refused("exec: a run of the isolate tier has its one script and no commands"));
    return;
  }
  for (const base::Fd& stream : fds) {
    struct stat status = {};
    // They are given to the workload's user: a file or a device would be the host's.
    if (::fstat(stream.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
      client.say_last(refused("exec: its streams are no pipes"));
      return;
    }
  }
  if (over_ || !command_started_) {
    client.say_last(refused("exec: the run is not ready"));
    return;
  }
  if (const auto started = start_further(client, request, fds); !started) {
    StartFailed failed = refused(started.error().line());
    failed.ending.step = started.error().where;
    client.say_last(failed);
  }
}

void Run::answer(Client& client, const Signal& request, std::vector<base::Fd>&) {
  if (client.command != 0) signal_command(client.command, request.number);
}

void Run::answer(Client& client, const End& request, std::vector<base::Fd>&) {
  Command* command = command_of(client.command);
  if (command == nullptr) return;
  const bool output = request.reason == "output_limit";
  end_command(*command, output ? Cut::output_limit : Cut::killed, output ? "" : "operator");
}

void Run::answer(Client& client, const Attach&, std::vector<base::Fd>&) {
  if (!ring_) {
    client.say_last(refused(plan_.session ? "attach: a session has no command of its own; see "
                                            "cerco exec"
                                          : "attach: its streams are with whoever started it"));
    return;
  }
  client.reading.emplace();
  if (!typing_.open()) return;
  const std::array<int, 1> fds = {typing_.get()};
  client.attached_terminal = true;
  if (!ipc::send_value(client.channel, ToClient(Typing{}), fds)) client.gone = true;
}

void Run::answer(Client& client, const Resize& request, std::vector<base::Fd>&) {
  const std::uint64_t id = client.attached_terminal ? kCommand : client.command;
  if (id != 0) resize(id, request.window);
}

void Run::answer(Client& client, const SendSignal& request, std::vector<base::Fd>&) {
  if (request.number == 0 || request.number >= NSIG) {
    client.gone = true;
    return;
  }
  if (plan_.session && commands_.empty()) {
    client.say_last(
        refused("kill: the session has no command that runs; without -s kill ends it", 1));
    return;
  }
  record(operator_action("signal " + signal_name(request.number)));
  if (plan_.session) {
    signal_all(request.number);
  } else {
    signal_command(kCommand, request.number);
  }
  client.say_last(Done{});
}

void Run::answer(Client& client, const EndRun&, std::vector<base::Fd>&) {
  client.awaits_end = true;
  record(operator_action("kill"));
  cut(Cut::killed, "operator");
}

void Run::answer(Client& client, const OpenFiles& request, std::vector<base::Fd>& fds) {
  if (fds.size() != 1 || over_ || !command_started_) {
    client.say_last(refused("files: the run is not ready"));
    return;
  }
  record(operator_action("files"));
  const bool absolute = request.root.starts_with('/');
  const std::string root = absolute ? request.root : plan_.command.cwd + "/" + request.root;
  const std::array<int, 1> given = {fds[0].get()};
  const frame::ToInit serve = frame::ServeFiles{1000, 1000, root, frame::Existing::replace};
  if (!ipc::send_value(sandbox_->control(), serve, given)) {
    client.say_last(refused("files: cerco-init does not listen"));
    return;
  }
  client.say(Done{});
}

void Run::answer(Client& client, const RevokeCredential& request, std::vector<base::Fd>&) {
  const auto& all = plan_.policy.credentials;
  const bool known =
      request.credential.empty() ||
      std::ranges::find(all, request.credential, &policy::Credential::name) != all.end();
  if (!known || all.empty()) {
    client.say_last(refused("credential revoke: the run has no credential `" +
                                base::printable(request.credential) + "`",
                            2));
    return;
  }
  record(operator_action("revoke " + request.credential));
  revoke(request.credential, "operator");
  client.revocation = std::max<std::uint64_t>(revocations_asked_, 1);
  tell_revoked();
}

void Run::tell_revoked() {
  for (const auto& client : clients_) {
    if (client->revocation == 0) continue;
    if (broker_ && client->revocation > revocations_done_) continue;
    client->revocation = 0;
    client->say_last(Done{});
  }
}

// What a detached command writes is kept as it comes, whoever is there to read it.
void Run::read_pipe(Stream stream) {
  base::Fd& pipe = pipes_[stream == Stream::output ? 0 : 1];
  const auto bytes = os::read_some(pipe.get(), kPiece, "output");
  if (!bytes && bytes.error().number == EAGAIN) return;
  if (!bytes || bytes->empty()) {
    pipe.reset();
    return;
  }
  ring_->append(stream, *bytes);
  const std::uint64_t all = ring_->bytes(Stream::output) + ring_->bytes(Stream::error);
  if (all > plan_.policy.limits.output) cut(Cut::output_limit, {});
}

// What lies in the pipes when the command is over is all that there will be.
void Run::drain_pipes() {
  for (const Stream stream : {Stream::output, Stream::error}) {
    const base::Fd& pipe = pipes_[stream == Stream::output ? 0 : 1];
    pollfd polled = {pipe.get(), POLLIN, 0};
    while (pipe.open() && ::poll(&polled, 1, 0) > 0) read_pipe(stream);
  }
}

void Run::tell_clients_over() {
  drain_pipes();
  listener_.reset();
  for (const auto& published : published_) lose_publisher(*published, ECONNRESET);
  published_.clear();
  for (const auto& client : clients_) {
    if (client->reading) client->say_last(last_);
  }
}

// Everything is gone: whoever waited for that learns it, and what is left to say is said.
void Run::flush_clients() {
  for (const auto& client : clients_) {
    if (client->awaits_end) client->say_last(Done{});
  }
  std::vector<pollfd> polled;
  while (true) {
    polled.clear();
    for (const auto& client : clients_) {
      client->pump(ring());
      if (client->has_more(ring())) polled.push_back({client->channel.fd(), POLLOUT, 0});
    }
    if (polled.empty() || ::poll(polled.data(), polled.size(), kFlushMs) <= 0) break;
  }
  clients_.clear();
}

}  // namespace supervisor
