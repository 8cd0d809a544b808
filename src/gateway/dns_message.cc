// DNS messages: reading is strict and bounded, writing starts from values and never from input
// bytes but for the question, which the asker compares.
#include "gateway/dns_message.h"

#include <optional>

namespace gateway {
namespace {

constexpr std::size_t kHeader = 12;
constexpr std::uint16_t kTypeOpt = 41;

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::uint8_t> byte() {
    if (at_ >= bytes_.size()) return std::nullopt;
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::optional<std::uint16_t> number() {
    const auto high = byte();
    const auto low = byte();
    if (!high || !low) return std::nullopt;
    return static_cast<std::uint16_t>(*high << 8 | *low);
  }
  std::optional<std::string_view> take(std::size_t count) {
    if (bytes_.size() - at_ < count) return std::nullopt;
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool end() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// One name without compression, at most 255 bytes (RFC 1035, 2.3.4).
bool read_name(Bytes& bytes, Question& question) {
  std::size_t length = 1;
  while (true) {
    const auto size = bytes.byte();
    if (!size || *size > 63) return false;
    if (*size == 0) return true;
    length += *size + 1U;
    const auto label = bytes.take(*size);
    if (!label || length > 255) return false;
    if (!question.name.empty()) question.name += '.';
    const std::string small = base::to_lower(*label);
    for (const char c : small) question.plain_name = question.plain_name && plain(c);
    question.name += small;
  }
}

// The OPT pseudo-record (RFC 6891, 6.1.2): root name, size in the class, options skipped.
bool read_opt(Bytes& bytes, Question& question) {
  const auto root = bytes.byte();
  const auto type = bytes.number();
  const auto size = bytes.number();
  if (!bytes.take(4)) return false;
  const auto length = bytes.number();
  if (!root || !type || !size || !length) return false;
  if (*root != 0 || *type != kTypeOpt || !bytes.take(*length)) return false;
  question.edns = true;
  question.udp_size = *size < 512 ? 512 : *size;
  return true;
}

void put(std::string& out, std::uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value & 0xff);
}

void put_header(std::string& out, std::uint16_t id, std::uint16_t flags, std::uint16_t questions,
                std::uint16_t answers, std::uint16_t additional) {
  put(out, id);
  put(out, flags);
  put(out, questions);
  put(out, answers);
  put(out, 0);
  put(out, additional);
}

constexpr std::uint16_t kResponse = 0x8000;
constexpr std::uint16_t kTruncated = 0x0200;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kRecursionAvailable = 0x0080;
constexpr std::uint16_t kCheckingDisabled = 0x0010;

void put_opt(std::string& out, const Answer& answer) {
  out += '\0';
  put(out, kTypeOpt);
  put(out, 1232);
  put(out, 0);
  put(out, 0);
  if (answer.error == 0) {
    put(out, 0);
    return;
  }
  const std::string_view text = std::string_view(answer.error_text).substr(0, 200);
  put(out, static_cast<std::uint16_t>(6 + text.size()));
  put(out, 15);  // option code of an extended error
  put(out, static_cast<std::uint16_t>(2 + text.size()));
  put(out, answer.error);
  out += text;
}

}  // namespace

std::expected<Question, Malformed> read_question(std::string_view bytes) {
  Bytes rest(bytes);
  const auto id = rest.number();
  const auto flags = rest.number();
  const auto questions = rest.number();
  const auto answers = rest.number();
  const auto authority = rest.number();
  const auto additional = rest.number();
  if (!additional || (*flags & kResponse) != 0) return std::unexpected(Malformed{});
  const Malformed bad{.drop = false, .id = *id, .code = Rcode::format};

  Question question;
  question.id = *id;
  question.opcode = static_cast<std::uint8_t>((*flags >> 11) & 0xf);
  question.recursion_desired = (*flags & kRecursionDesired) != 0;
  question.checking_disabled = (*flags & kCheckingDisabled) != 0;
  if (question.opcode != 0) {
    return std::unexpected(Malformed{.drop = false, .id = *id, .code = Rcode::not_built});
  }
  if (*questions != 1 || *answers != 0 || *authority != 0 || *additional > 1) {
    return std::unexpected(bad);
  }
  if (!read_name(rest, question)) return std::unexpected(bad);
  const auto type = rest.number();
  const auto klass = rest.number();
  if (!type || !klass) return std::unexpected(bad);
  question.type = *type;
  question.klass = *klass;
  question.raw = bytes.substr(kHeader, rest.at() - kHeader);
  if (*additional == 1 && !read_opt(rest, question)) return std::unexpected(bad);
  if (!rest.end()) return std::unexpected(bad);
  if (!question.plain_name) question.name.clear();
  return question;
}

std::string write_answer(const Question& question, const Answer& answer, std::size_t most) {
  std::string opt;
  if (question.edns) put_opt(opt, answer);
  std::string records;
  std::uint16_t count = 0;
  bool truncated = false;
  for (const std::string& address : answer.addresses) {
    const std::size_t size = 12 + address.size();
    if (kHeader + question.raw.size() + records.size() + size + opt.size() > most) {
      truncated = true;
      break;
    }
    put(records, 0xc000 | kHeader);  // the question's name
    put(records, question.type);
    put(records, kClassIn);
    put(records, static_cast<std::uint16_t>(answer.ttl >> 16));
    put(records, static_cast<std::uint16_t>(answer.ttl & 0xffff));
    put(records, static_cast<std::uint16_t>(address.size()));
    records += address;
    ++count;
  }
  std::uint16_t flags = kResponse | kRecursionAvailable | static_cast<std::uint16_t>(answer.code);
  if (question.recursion_desired) flags |= kRecursionDesired;
  if (question.checking_disabled) flags |= kCheckingDisabled;
  if (truncated) flags |= kTruncated;
  std::string out;
  put_header(out, question.id, flags, 1, count, question.edns ? 1 : 0);
  out += question.raw;
  out += records;
  out += opt;
  return out;
}

std::string write_malformed(const Malformed& malformed) {
  std::string out;
  put_header(out, malformed.id, kResponse | static_cast<std::uint16_t>(malformed.code), 0, 0, 0);
  return out;
}

}  // namespace gateway
