// One HTTP request on its way out and the answer on its way back, streamed both ways at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/budget.h"
#include "gateway/buffer.h"
#include "gateway/core.h"
#include "http/http.h"

namespace gateway {

enum class Cookies { pass, drop };

// What an exchange works on; everything must outlive it.
struct ExchangeStart {
  Connection& connection;      // both of its streams are open
  http::RequestHead& request;  // as it is to go out
  Buffer& from_client;
  Buffer& from_upstream;
  const std::vector<http::Marked>& marked;                          // looked for in the body
  const std::vector<http::Marked>& canaries;                        // whose sight there ends it
  const std::vector<std::unique_ptr<http::Redaction>>& redactions;  // may grow meanwhile
  std::uint64_t most_body = policy::kUnlimited;
  Budget budget = {};                      // of heads and bodies as they are read
  Cookies cookies = Cookies::pass;         // that the answer sets
  std::vector<std::string> secret_fields;  // of the request: wiped as soon as they are written
  bool secret_target = false;              // and its target
};

struct ExchangeEnd {
  unsigned status = 0;   // of the final answer; 0 when none was passed on
  std::uint64_t up = 0;  // content bytes
  std::uint64_t down = 0;
  bool answered = false;     // something of an answer has gone to the client
  bool keep_client = false;  // another request may follow
  bool keep_upstream = false;
  bool silent = false;    // the upstream closed before a byte of an answer
  bool upgraded = false;  // a WebSocket: relay from here on
  // "": all in order; else "upstream" (broken off, in the reason's words), "client", "max-body",
  // "budget", "idle", or the reason of a response that was rejected.
  std::string problem;
  std::vector<std::size_t> in_body;   // marks that stood in the body
  std::optional<std::size_t> canary;  // that did; the problem is "canary"
};

asio::awaitable<ExchangeEnd> exchange(ExchangeStart start);

}  // namespace gateway
