// Ports of a run that are reachable from the host's loopback: who holds them, and their ways
// inside.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/frame.h"
#include "publish/publish.h"
#include "supervisor/record.h"
#include "supervisor/run.h"

namespace supervisor {

namespace {

constexpr std::size_t kMostPublished = 16;

StartFailed not_published(std::uint16_t port, std::uint32_t error) {
  StartFailed failed;
  const std::string where = "publish " + std::to_string(port) + ": ";
  failed.status = error == ECONNREFUSED ? 1 : 125;
  failed.message =
      error == ECONNREFUSED
          ? where + "nobody listens on that port inside; start the server first"
          : where + "the port cannot be reached inside: " + std::strerror(static_cast<int>(error));
  failed.ending.kind = EndingKind::start_failed;
  return failed;
}

}  // namespace

void Run::answer(Client& client, const Publish& request, std::vector<base::Fd>& fds) {
  const auto refuse = [&](const base::Error& error) {
    StartFailed failed = not_published(request.port, EINVAL);
    failed.message = error.line();
    client.say_last(failed);
  };
  if (fds.size() != 1 || request.port == 0 || client.publication != 0) {
    client.gone = true;
    return;
  }
  if (over_ || !command_started_ || published_.size() >= kMostPublished) {
    return refuse({base::Kind::system,
                   0,
                   "publish",
                   over_ || !command_started_ ? "the run is not ready" : "16 ports are published",
                   {}});
  }
  auto published = std::make_unique<Published>();
  published->port = request.port;
  const auto outside = loopback_port(fds[0].get());
  if (!outside) return refuse(outside.error());
  auto part = start_publisher(plan_, fds[0].get());
  if (!part) return refuse(part.error());
  published->part = std::move(*part);
  if (const auto done = os::set_nonblocking(published->part.control.fd()); !done) {
    return refuse(done.error());
  }
  published->id = ++publications_;
  client.publication = published->id;
  record(operator_action("publish " + std::to_string(request.port) +
                         " at 127.0.0.1:" + std::to_string(*outside)));
  published_.push_back(std::move(published));
}

void Run::act_published(std::span<const pollfd> polled) {
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) on_publisher(*published_[i]);
  }
  std::erase_if(published_, [](const auto& published) { return published->gone; });
}

// One word at a time: what it has to say of many connections holds nobody else up.
void Run::on_publisher(Published& published) {
  const auto word = receive<publish::FromPublisher>(published.part.control, "publisher");
  if (!word) return lose_publisher(published, ECONNRESET);
  if (const auto* want = std::get_if<publish::Want>(&*word)) {
    if (!give_way(published, want->look)) lose_publisher(published, EIO);
  } else if (const auto* opened = std::get_if<publish::Opened>(&*word)) {
    if (opened->error != 0) return lose_publisher(published, opened->error);
    for (const auto& client : clients_) {
      if (client->publication == published.id) client->say_last(Done{});
    }
    published.served = true;
  } else if (published.connections > 0) {
    --published.connections;
    if (active_) active_ = Clock::now();
  }
}

// Both ends of the way are made here: nothing that it holds goes inside, and nothing comes out.
base::Status Run::give_way(Published& published, bool look) {
  auto [inside, outside] = TRY(os::socket_pair(SOCK_STREAM));
  const std::array<int, 1> to_init = {inside.get()};
  const std::array<int, 1> to_publisher = {outside.get()};
  const frame::Connect order = {1000, 1000, published.port,
                                look ? frame::Reach::look : frame::Reach::connect};
  TRY(ipc::send_value(sandbox_->control(), frame::ToInit(order), to_init));
  TRY(ipc::send_value(published.part.control, publish::ToPublisher(publish::Way{}), to_publisher));
  if (!look) ++published.connections;
  if (active_) active_ = Clock::now();
  return {};
}

void Run::lose_publisher(Published& published, std::uint32_t error) {
  published.gone = true;
  for (const auto& client : clients_) {
    if (client->publication == published.id && !published.served) {
      client->say_last(not_published(published.port, error));
    }
  }
}

bool Run::is_connected() const {
  return std::ranges::any_of(published_,
                             [](const auto& published) { return published->connections > 0; });
}

}  // namespace supervisor
