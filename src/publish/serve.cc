// The loop of a published port: connections come, get their way inside, and are copied.
#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <vector>

#include "confine/confine.h"
#include "os/duplex.h"
#include "os/os.h"
#include "publish/publish.h"

namespace publish {
namespace {

constexpr std::size_t kMostConnections = 64;  // the others wait in the listener's queue
constexpr std::int64_t kPatienceMs = 20'000;  // for the answer of the server inside

std::int64_t now_ms() {
  const os::Instant now = os::steady_time();
  return now.seconds * 1000 + now.nanoseconds / 1'000'000;
}

struct Connection {
  base::Fd outside;
  base::Fd way;  // not open: asked for
  std::int64_t deadline = 0;
  std::optional<os::Duplex> copying;  // once the server inside has been reached
  bool over = false;
};

class Publisher {
 public:
  Publisher(ipc::Channel control, base::Fd listener)
      : control_(std::move(control)), listener_(std::move(listener)) {}

  base::Status run() {
    TRY(os::set_nonblocking(listener_.get()));
    if (!TRY(look())) return {};
    std::vector<pollfd> polled;
    while (!gone_) {
      watch(polled);
      (void)TRY(os::wait_for(polled, patience()));
      act(polled);
    }
    return {};
  }

 private:
  // Whether somebody listens inside; says so.
  base::Result<bool> look() {
    TRY(say(Want{true}));
    const base::Fd way = TRY(next_way());
    if (gone_) return false;
    std::uint32_t error = ETIMEDOUT;
    std::vector<pollfd> polled = {{way.get(), POLLIN, 0}, {control_.fd(), 0, 0}};
    (void)TRY(os::wait_for(polled, static_cast<int>(kPatienceMs)));
    if (const auto answer = answer_of(way.get())) error = *answer;
    TRY(say(Opened{error}));
    return error == 0;
  }

  // How the connection inside went: one byte. nullopt while it has not come. Descriptors that come
  // along are not taken.
  static std::optional<std::uint32_t> answer_of(int way) {
    std::array<char, 1> byte{};
    const os::Moved moved = os::receive(way, byte);
    if (moved.error == EAGAIN) return std::nullopt;
    if (moved.bytes == 0) return ECONNRESET;
    return static_cast<unsigned char>(byte[0]);
  }

  template <class Word>
  base::Status say(const Word& word) {
    return ipc::send_value(control_, FromPublisher(word), {});
  }

  base::Result<base::Fd> next_way() {
    auto message = TRY(control_.receive());
    gone_ = !message;
    if (gone_) return base::Fd();
    (void)TRY(base::decode<ToPublisher>(message->bytes, "supervisor"));
    if (message->fds.size() != 1) return base::bad_input("supervisor", "no way", {});
    TRY(os::set_nonblocking(message->fds[0].get()));
    return std::move(message->fds[0]);
  }

  void watch(std::vector<pollfd>& polled) const {
    const bool more = connections_.size() < kMostConnections;
    polled.assign({{control_.fd(), POLLIN, 0}, {more ? listener_.get() : -1, POLLIN, 0}});
    for (const Connection& connection : connections_) {
      std::array<pollfd, os::Duplex::kPolled> wanted = {{{-1, 0, 0}, {-1, 0, 0}}};
      if (connection.copying) {
        wanted = connection.copying->wants();
      } else if (connection.way.open()) {
        wanted[1] = {connection.way.get(), POLLIN, 0};
      }
      polled.insert(polled.end(), wanted.begin(), wanted.end());
    }
  }

  [[nodiscard]] int patience() const {
    const bool some = std::ranges::any_of(
        connections_, [](const Connection& connection) { return !connection.copying; });
    return some ? 1000 : -1;
  }

  void act(std::span<const pollfd> polled) {
    std::span<const pollfd> rest = polled.subspan(2);
    for (Connection& connection : connections_) {
      act_on(connection, rest.first<os::Duplex::kPolled>());
      rest = rest.subspan(os::Duplex::kPolled);
    }
    std::erase_if(connections_, [&](const Connection& connection) {
      if (!connection.over) return false;
      if (!say(Closed{})) gone_ = true;
      return true;
    });
    if (polled[0].revents != 0) give_way();
    if (polled[1].revents != 0) accept();
  }

  static void act_on(Connection& connection, std::span<const pollfd, os::Duplex::kPolled> polled) {
    if (!connection.copying && polled[1].revents != 0) {
      const auto answer = answer_of(connection.way.get());
      if (answer == 0U) {
        connection.copying.emplace(connection.outside.get(), connection.way.get());
        return;
      }
      connection.over = answer.has_value();
    }
    if (!connection.copying && now_ms() > connection.deadline) connection.over = true;
    if (connection.copying) {
      connection.copying->act(polled);
      connection.over = connection.copying->over();
    }
    // What was not reached inside, or was cut there, is cut outside as well.
    const bool whole = connection.copying && !connection.copying->failed();
    if (connection.over && !whole) (void)os::reset_at_close(connection.outside.get());
  }

  // For the connection that has waited longest.
  void give_way() {
    auto way = next_way();
    if (!way) gone_ = true;
    const auto waiting = std::ranges::find_if(
        connections_, [](const Connection& connection) { return !connection.way.open(); });
    if (!gone_ && waiting != connections_.end()) waiting->way = std::move(*way);
  }

  void accept() {
    auto accepted = os::accept(listener_.get());
    if (!accepted) return;
    (void)os::set_no_delay(accepted->get());
    connections_.push_back({std::move(*accepted), {}, now_ms() + kPatienceMs, {}, false});
    if (!say(Want{})) gone_ = true;
  }

  ipc::Channel control_;
  base::Fd listener_;
  std::list<Connection> connections_;
  bool gone_ = false;  // the supervisor, and the run with it
};

base::Status serve_shut_in(ipc::Channel control, base::Fd listener, std::uint32_t id) {
  TRY(confine::shut_in(confine::Own::publisher, id, {}));
  return Publisher(std::move(control), std::move(listener)).run();
}

}  // namespace

int serve(ipc::Channel control, base::Fd listener, std::uint32_t id) {
  const base::Status status = serve_shut_in(std::move(control), std::move(listener), id);
  if (status) return 0;
  (void)os::write_all(2, "cerco-publisher: " + status.error().line() + "\n", "standard error");
  return 125;
}

}  // namespace publish
