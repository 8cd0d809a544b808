// What the broker asks of the minter, and what comes back (kFdControl of the minter).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/base.h"

namespace plan {

// How an answer's members are found: of JSON by names joined with dots ("data.lease_id"), of XML as
// the one element of that name.
enum class MintFormat { json, xml, last_ = xml };

// --- broker → minter, one at a time ------------------------------------------------------------

// One request to an endpoint that the policy's mints name. It may hold a secret: wipe it.
struct MintAsk {
  std::uint64_t id = 0;
  std::string host;
  std::uint16_t port = 443;
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  MintFormat format = MintFormat::json;
  std::vector<std::string> wanted;
  bool operator==(const MintAsk&) const = default;
  template <class W>
  void fields(W& w) {
    w(id, host, port, method, target, headers, body, format, wanted);
  }
};

// --- minter → broker ---------------------------------------------------------------------------

// First message: confined and ready, or what is wrong (then it ends).
struct MinterReady {
  std::string problem;
  template <class W>
  void fields(W& w) {
    w(problem);
  }
};
// `problem` is "" where a whole answer came, whatever its status: else "resolve", "address",
// "connect", "certificate", "timeout", "answer" (malformed or cut off), "size", "encoding". `found`
// has the members that were wanted and that are texts, numbers or booleans, each at most
// kMostMember bytes. Wipe them.
inline constexpr std::size_t kMostMember = std::size_t{16} * 1024;
struct MintTold {
  std::uint64_t id = 0;
  std::string problem;
  std::uint64_t status = 0;
  std::map<std::string, std::string> found;
  template <class W>
  void fields(W& w) {
    w(id, problem, status, found);
  }
};
using FromMinter = std::variant<MinterReady, MintTold>;

}  // namespace plan
