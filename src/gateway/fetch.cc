// From a name to the members of an answer; every step has the same end in time.
#include "gateway/fetch.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

namespace gateway {
namespace {

constexpr std::size_t kRead = std::size_t{16} * 1024;
constexpr int kMostInterim = 8;

// The reason that is told; "" is none.
using Problem = std::string;

class Fetch {
 public:
  Fetch(FetchWorld& world, plan::MintAsk ask)
      : world_(world), ask_(std::move(ask)), timer_(world.io) {
    told_.id = ask_.id;
  }
  ~Fetch() {
    if (stream_) {
      stream_->close();
      stream_->detach();
    }
    base::wipe(received_);
    base::wipe(content_);
    base::wipe(ask_.body);
    base::wipe(ask_.target);
    for (auto& [name, value] : ask_.headers) base::wipe(value);
  }
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  asio::awaitable<plan::MintTold> run() {
    timer_.expires_after(world_.time);
    timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](const auto& error) {
      if (error || alive.expired()) return;
      late_ = true;
      wake_.notify();
    });
    told_.problem = co_await exchange();
    timer_.cancel();
    if (!told_.problem.empty()) told_.status = 0;
    co_return std::move(told_);
  }

 private:
  asio::awaitable<Problem> exchange();
  asio::awaitable<Problem> connect();
  asio::awaitable<Problem> open_tls();
  asio::awaitable<Problem> send();
  asio::awaitable<Problem> read_head();
  asio::awaitable<Problem> read_body();
  asio::awaitable<bool> more();
  [[nodiscard]] http::RequestHead head() const;
  void find_members();

  FetchWorld& world_;
  plan::MintAsk ask_;
  plan::MintTold told_;
  Wake wake_;
  asio::steady_timer timer_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  bool late_ = false;
  std::shared_ptr<Stream> stream_;
  std::string received_;
  bool ended_ = false;
  http::ResponseHead answer_;
  std::string content_;
};

asio::awaitable<Problem> Fetch::exchange() {
  if (Problem problem = co_await connect(); !problem.empty()) co_return problem;
  if (Problem problem = co_await open_tls(); !problem.empty()) co_return problem;
  if (Problem problem = co_await send(); !problem.empty()) co_return problem;
  if (Problem problem = co_await read_head(); !problem.empty()) co_return problem;
  if (Problem problem = co_await read_body(); !problem.empty()) co_return problem;
  told_.status = answer_.status;
  find_members();
  co_return Problem();
}

// Only what the policy names is dialled, at the very address that passed the guard.
asio::awaitable<Problem> Fetch::connect() {
  const auto rule = std::ranges::find_if(world_.policy.egress, [&](const policy::Egress& one) {
    return one.host == ask_.host && one.ports.front() == ask_.port;
  });
  if (rule == world_.policy.egress.end()) co_return "address";
  const auto addresses = co_await world_.resolver.resolve(ask_.host);
  if (late_) co_return "timeout";
  if (!addresses) co_return "resolve";
  const auto vetted = world_.guard.vet(&*rule, {ask_.host, false}, ask_.port, *addresses);
  if (!vetted || vetted->passed.empty()) co_return "address";
  for (const Passed& to : vetted->passed) {
    auto socket = world_.connector.start(to, ask_.port);
    if (!socket) continue;
    stream_ = std::make_shared<SocketStream>(world_.io, std::move(*socket), wake_);
    stream_->arm_write();
    while (stream_->write_armed() && !late_) co_await wake_.wait();
    if (late_) co_return "timeout";
    if (os::connect_result(stream_->fd()) == 0) co_return Problem();
    stream_->close();
    stream_->detach();
    stream_.reset();
  }
  co_return "connect";
}

asio::awaitable<Problem> Fetch::open_tls() {
  const auto context = world_.tls();
  if (!context || !stream_->start_tls(*context, Stream::Side::client, ask_.host)) {
    co_return "certificate";
  }
  while (true) {
    const os::Moved moved = stream_->handshake();
    if (moved.error == 0) co_return Problem();
    if (moved.error != EAGAIN) {
      co_return stream_->certificate_problem().empty() ? "connect" : "certificate";
    }
    stream_->arm_read();
    if (!late_) co_await wake_.wait();
    if (late_) co_return "timeout";
  }
}

http::RequestHead Fetch::head() const {
  http::RequestHead head;
  head.method = ask_.method;
  head.target = ask_.target;
  head.host = ask_.host;
  if (ask_.port != 443) head.port = ask_.port;
  for (const auto& [name, value] : ask_.headers) head.fields.push_back({name, value, {}});
  if (!ask_.body.empty()) {
    head.body = {.framing = http::Framing::length, .length = ask_.body.size()};
  }
  head.keep_alive = false;
  return head;
}

asio::awaitable<Problem> Fetch::send() {
  http::RequestHead request = head();
  std::string bytes = http::write_request(request) + ask_.body;
  for (http::Field& field : request.fields) base::wipe(field.value);
  std::string_view rest = bytes;
  Problem problem;
  while (!rest.empty() && problem.empty()) {
    const os::Moved moved = stream_->try_write(rest);
    if (moved.error == EAGAIN) {
      stream_->arm_write();
      if (!late_) co_await wake_.wait();
      if (late_) problem = "timeout";
    } else if (moved.failed()) {
      problem = "answer";
    } else {
      rest.remove_prefix(moved.bytes);
    }
  }
  base::wipe(bytes);
  co_return problem;
}

// False where nothing more has come: `ended_`, or it is late.
asio::awaitable<bool> Fetch::more() {
  char buffer[kRead];
  while (true) {
    const os::Moved moved = stream_->try_read(buffer);
    if (moved.error == EAGAIN) {
      stream_->arm_read();
      if (!late_) co_await wake_.wait();
      if (late_) co_return false;
      continue;
    }
    if (moved.failed() || moved.end()) {
      ended_ = moved.end();
      co_return false;
    }
    received_.append(buffer, moved.bytes);
    ::explicit_bzero(buffer, moved.bytes);
    co_return true;
  }
}

asio::awaitable<Problem> Fetch::read_head() {
  for (int interim = 0; interim <= kMostInterim; ++interim) {
    std::size_t seen = 0;
    std::size_t length = 0;
    while (true) {
      const auto end = http::find_head_end(received_, seen);
      if (!end) co_return "answer";
      length = *end;
      if (length != 0) break;
      seen = received_.size();
      if (!co_await more()) co_return late_ ? "timeout" : "answer";
    }
    auto parsed = http::parse_response(std::string_view(received_).substr(0, length), head());
    received_.erase(0, length);
    if (!parsed || parsed->status == 101) co_return "answer";
    if (http::interim(*parsed)) continue;
    answer_ = std::move(*parsed);
    const http::Field* packed = http::find_field(answer_.fields, "content-encoding");
    co_return packed != nullptr&& base::to_lower(packed->value) != "identity" ? "encoding" : "";
  }
  co_return "answer";
}

asio::awaitable<Problem> Fetch::read_body() {
  http::BodyReader body(answer_.body, 502, http::Trailers::known);
  while (!body.done()) {
    const auto part = body.read(received_);
    if (!part) co_return "answer";
    content_.append(part->content);
    if (content_.size() > kMostTold) co_return "size";
    received_.erase(0, part->used);
    if (body.done() || part->used != 0) continue;
    if (co_await more()) continue;
    if (late_) co_return "timeout";
    if (!ended_ || !body.closed()) co_return "answer";
    break;
  }
  co_return Problem();
}

void Fetch::find_members() {
  for (const std::string& name : ask_.wanted) {
    auto value = ask_.format == plan::MintFormat::json ? http::json_value(content_, name)
                                                       : http::xml_value(content_, name);
    if (value && value->size() <= plan::kMostMember) told_.found[name] = std::move(*value);
  }
}

}  // namespace

asio::awaitable<plan::MintTold> fetch(FetchWorld& world, plan::MintAsk ask) {
  Fetch one(world, std::move(ask));
  co_return co_await one.run();
}

}  // namespace gateway
