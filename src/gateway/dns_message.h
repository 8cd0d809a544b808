// DNS messages (RFC 1035, RFC 6891, RFC 8914): one question in, one answer out; nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace gateway {

enum class Rcode : std::uint8_t {
  ok = 0,
  format = 1,
  failure = 2,
  no_name = 3,
  not_built = 4,
  refused = 5
};

inline constexpr std::uint16_t kTypeA = 1;
inline constexpr std::uint16_t kTypeAaaa = 28;
inline constexpr std::uint16_t kClassIn = 1;

// What was asked. `name` is the dotted form with ASCII letters made small, "" for the root; a label
// that holds anything but letters, digits, '-' and '_' leaves it empty and clears `plain_name`.
struct Question {
  std::uint16_t id = 0;
  std::uint8_t opcode = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
  std::string name;
  bool plain_name = true;
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  bool edns = false;
  std::uint16_t udp_size = 512;  // what the asker takes over UDP; at least 512
  std::string raw;               // the question section's bytes, to be repeated as they came
};

// Why a message gets no ordinary answer. `drop`: it is no query at all and is not answered.
struct Malformed {
  bool drop = true;
  std::uint16_t id = 0;
  Rcode code = Rcode::format;
};

// Reads a query of exactly one question. At most 512 bytes of question and an optional OPT record
// are accepted; compression in a question, a second question, answers in a query and bytes left
// over are malformed.
[[nodiscard]] std::expected<Question, Malformed> read_question(std::string_view bytes);

// What is answered. `addresses` are 4 bytes each for A, 16 for AAAA, in network order.
struct Answer {
  Rcode code = Rcode::ok;
  std::vector<std::string> addresses;
  std::uint32_t ttl = 0;  // seconds
  std::uint16_t error =
      0;  // extended error (RFC 8914) when not 0; sent only to askers that speak EDNS
  std::string error_text;  // its words for people
};
inline constexpr std::uint16_t kErrorBlocked = 15;

// The whole answer; at most `most` bytes: what does not fit is left out and the TC bit says so.
[[nodiscard]] std::string write_answer(const Question& question, const Answer& answer,
                                       std::size_t most);
// An answer that holds nothing but the code.
[[nodiscard]] std::string write_malformed(const Malformed& malformed);

}  // namespace gateway
