// c-ares on the gateway's own event loop.
#include "gateway/resolver.h"

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <map>

#include "gateway/wake.h"

namespace gateway {
namespace {

// One lookup. Shared with the callback, which may come after the asker has gone.
struct Lookup {
  Wake wake;
  bool done = false;
  int status = ARES_ETIMEOUT;
  std::vector<policy::Address> addresses;
};

void take_addresses(Lookup& lookup, const ares_addrinfo& found) {
  constexpr std::size_t kMost = 64;
  for (const ares_addrinfo_node* node = found.nodes; node != nullptr; node = node->ai_next) {
    policy::Address address;
    if (node->ai_family == AF_INET) {
      sockaddr_in v4{};
      std::memcpy(&v4, node->ai_addr, sizeof v4);
      std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
    } else if (node->ai_family == AF_INET6) {
      sockaddr_in6 v6{};
      std::memcpy(&v6, node->ai_addr, sizeof v6);
      address.v6 = true;
      std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
    } else {
      continue;
    }
    if (lookup.addresses.size() < kMost) lookup.addresses.push_back(address);
  }
}

void answered(void* argument, int status, int /*timeouts*/, ares_addrinfo* found) {
  const std::unique_ptr<std::shared_ptr<Lookup>> lookup(
      static_cast<std::shared_ptr<Lookup>*>(argument));
  (*lookup)->status = status;
  (*lookup)->done = true;
  if (found != nullptr) {
    take_addresses(**lookup, *found);
    ares_freeaddrinfo(found);
  }
  (*lookup)->wake.notify();
}

class Ares final : public Resolver {
 public:
  Ares(asio::io_context& io, ares_channel* channel) : io_(io), channel_(channel), timer_(io) {}
  ~Ares() override {
    ending_ = true;
    if (*channel_ != nullptr) ares_destroy(*channel_);
    delete channel_;
  }

  asio::awaitable<base::Result<std::vector<policy::Address>>> resolve(std::string name) override {
    auto lookup = std::make_shared<Lookup>();
    const ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT,
                                       .ai_family = AF_UNSPEC,
                                       .ai_socktype = SOCK_STREAM,
                                       .ai_protocol = 0};
    // A trailing dot makes the name absolute.
    const std::string absolute = name + ".";
    ares_getaddrinfo(*channel_, absolute.c_str(), nullptr, &hints, answered,
                     new std::shared_ptr<Lookup>(lookup));
    set_timer();
    while (!lookup->done) co_await lookup->wake.wait();
    if (lookup->status == ARES_ENOTFOUND || lookup->status == ARES_ENODATA ||
        (lookup->status == ARES_SUCCESS && lookup->addresses.empty())) {
      co_return base::fail(base::Kind::not_found, "resolve " + name, "no such name", {});
    }
    if (lookup->status != ARES_SUCCESS) {
      co_return base::fail(base::Kind::peer, "resolve " + name, ares_strerror(lookup->status), {});
    }
    co_return std::move(lookup->addresses);
  }

  // c-ares opens and closes sockets; what it waits for is told here.
  static void socket_state(void* self, ares_socket_t socket, int readable, int writable) {
    static_cast<Ares*>(self)->watch(socket, readable != 0, writable != 0);
  }
  void adopt(ares_channel channel) { *channel_ = channel; }

 private:
  struct Watched {
    Watched(asio::io_context& io, int socket) : descriptor(io, socket) {}
    asio::posix::stream_descriptor descriptor;
    bool read = false;
    bool write = false;
    bool read_armed = false;
    bool write_armed = false;
    bool gone = false;
  };

  void watch(ares_socket_t socket, bool readable, bool writable) {
    const auto found = watched_.find(socket);
    if (!readable && !writable) {
      if (found == watched_.end()) return;
      // The socket is c-ares' to close.
      found->second->gone = true;
      found->second->descriptor.release();
      watched_.erase(found);
      return;
    }
    if (ending_) return;
    auto watched =
        found != watched_.end()
            ? found->second
            : watched_.emplace(socket, std::make_shared<Watched>(io_, socket)).first->second;
    watched->read = readable;
    watched->write = writable;
    arm(socket, watched);
  }

  void arm(ares_socket_t socket, const std::shared_ptr<Watched>& watched) {
    if (watched->gone) return;
    if (watched->read && !watched->read_armed) {
      watched->read_armed = true;
      watched->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                     [this, socket, watched](const boost::system::error_code&) {
                                       if (watched->gone) return;
                                       watched->read_armed = false;
                                       ready(socket, ARES_SOCKET_BAD, watched);
                                     });
    }
    if (watched->write && !watched->write_armed) {
      watched->write_armed = true;
      watched->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                     [this, socket, watched](const boost::system::error_code&) {
                                       if (watched->gone) return;
                                       watched->write_armed = false;
                                       ready(ARES_SOCKET_BAD, socket, watched);
                                     });
    }
  }

  void ready(ares_socket_t readable, ares_socket_t writable,
             const std::shared_ptr<Watched>& watched) {
    ares_process_fd(*channel_, readable, writable);
    arm(readable != ARES_SOCKET_BAD ? readable : writable, watched);
    set_timer();
  }

  void set_timer() {
    if (timer_set_) return;
    timeval most = {.tv_sec = 60, .tv_usec = 0};
    timeval wait{};
    // nullptr is "no query is open", else the time to the next time-out.
    fd_set none;
    FD_ZERO(&none);
    if (ares_fds(*channel_, &none, &none) == 0) return;
    const timeval* next = ares_timeout(*channel_, &most, &wait);
    if (next == nullptr) return;
    timer_set_ = true;
    timer_.expires_after(std::chrono::seconds(next->tv_sec) +
                         std::chrono::microseconds(next->tv_usec) + std::chrono::milliseconds(1));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;  // the resolver is going away
      timer_set_ = false;
      ares_process_fd(*channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      set_timer();
    });
  }

  asio::io_context& io_;
  ares_channel* channel_;
  asio::steady_timer timer_;
  bool timer_set_ = false;
  bool ending_ = false;
  std::map<ares_socket_t, std::shared_ptr<Watched>> watched_;
};

}  // namespace

base::Result<std::unique_ptr<Resolver>> make_resolver(asio::io_context& io,
                                                      const std::vector<std::string>& servers,
                                                      int timeout_ms) {
  if (servers.empty()) return base::fail(base::Kind::missing, "resolvers", "there are none", {});
  if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
    return base::fail(base::Kind::system, "c-ares", "cannot be initialised", {});
  }
  auto made = std::make_unique<Ares>(io, new ares_channel(nullptr));
  static char lookups[] = "b";  // DNS alone, no files
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
  options.timeout = timeout_ms;
  options.tries = 2;
  options.ndots = 0;
  options.lookups = lookups;
  options.domains = nullptr;
  options.ndomains = 0;
  options.sock_state_cb = Ares::socket_state;
  options.sock_state_cb_data = made.get();
  constexpr int kMask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
                        ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS | ARES_OPT_SOCK_STATE_CB;
  ares_channel channel = nullptr;
  if (ares_init_options(&channel, &options, kMask) != ARES_SUCCESS) {
    return base::fail(base::Kind::system, "c-ares", "cannot make a channel", {});
  }
  made->adopt(channel);
  const std::string list = base::join(servers, ",");
  if (ares_set_servers_ports_csv(channel, list.c_str()) != ARES_SUCCESS) {
    return base::bad_input("resolvers", "\"" + list + "\"", "IP addresses with or without a port");
  }
  return made;
}

}  // namespace gateway
