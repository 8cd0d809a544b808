// How the gateway finds the addresses of a name that the policy allows.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/base.h"
#include "policy/policy.h"

namespace gateway {

namespace asio = boost::asio;

// The edge that tests replace.
class Resolver {
 public:
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  virtual ~Resolver() = default;
  // All A and AAAA addresses of an absolute name, one lookup, CNAMEs followed by the resolver.
  // Errors: not_found (no such name, no address), peer (no answer in time, a broken one).
  virtual asio::awaitable<base::Result<std::vector<policy::Address>>> resolve(std::string name) = 0;
};

// Asks exactly these servers ("IP" or "IP:port", in order): no hosts file, no search list, no
// aliases (N87). Make it before the process confines itself. `timeout_ms` is a try's, and there are
// two tries.
[[nodiscard]] base::Result<std::unique_ptr<Resolver>> make_resolver(
    asio::io_context& io, const std::vector<std::string>& servers, int timeout_ms);

}  // namespace gateway
