// Numbers are big-endian, texts end with a zero byte, and lengths count themselves.
#include "gateway/postgres_message.h"

#include <algorithm>

namespace gateway::postgres {
namespace {

constexpr std::uint32_t kVersion = 196608;  // 3.0
constexpr std::uint32_t kCancel = 80877102;
constexpr std::uint32_t kTls = 80877103;
constexpr std::uint32_t kGss = 80877104;
constexpr std::size_t kKey = 8;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xff);
  return bytes;
}

std::optional<std::string_view> take_text(std::string_view& rest) {
  const auto end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return text;
}

std::unexpected<base::Error> bad(std::string what) {
  return base::bad_input("postgres", std::move(what), "a start of protocol 3.0");
}

base::Result<Startup> parse_session(std::string_view rest) {
  Startup startup;
  while (true) {
    const auto name = take_text(rest);
    if (!name) return bad("a text without its end");
    if (name->empty()) break;
    const auto value = take_text(rest);
    if (!value) return bad("a text without its end");
    const bool known = std::ranges::any_of(startup.parameters,
                                           [&](const auto& one) { return one.first == *name; });
    if (known) return bad("a parameter twice");
    startup.parameters.emplace_back(*name, *value);
  }
  if (!rest.empty()) return bad("bytes behind the end");
  if (startup.user().empty()) return bad("no user");
  return startup;
}

}  // namespace

std::string Startup::user() const {
  for (const auto& [name, value] : parameters) {
    if (name == "user") return value;
  }
  return {};
}

base::Result<Startup> parse_startup(std::string_view body) {
  if (body.size() < 4 || body.size() > kMostStartup) return bad("a length of its own");
  const std::uint32_t code = length_of(body);
  const std::string_view rest = body.substr(4);
  if (code == kVersion) return parse_session(rest);
  if (code == kCancel && rest.size() == kKey) {
    return Startup{.kind = Startup::Kind::cancel, .key = std::string(rest), .parameters = {}};
  }
  if (code == kTls && rest.empty())
    return Startup{.kind = Startup::Kind::tls, .key = {}, .parameters = {}};
  if (code == kGss && rest.empty())
    return Startup{.kind = Startup::Kind::gss, .key = {}, .parameters = {}};
  return bad("another version");
}

std::string write_startup(const Startup& startup) {
  std::string body;
  switch (startup.kind) {
    case Startup::Kind::tls:
      body = number(kTls);
      break;
    case Startup::Kind::gss:
      body = number(kGss);
      break;
    case Startup::Kind::cancel:
      body = number(kCancel) + startup.key;
      break;
    case Startup::Kind::session:
      body = number(kVersion);
      for (const auto& [name, value] : startup.parameters) {
        body += name + '\0';
        body += value + '\0';
      }
      body += '\0';
      break;
  }
  return number(static_cast<std::uint32_t>(body.size() + 4)) + body;
}

std::uint32_t length_of(std::string_view four_bytes) {
  std::uint32_t value = 0;
  for (const char c : four_bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string message(char type, std::string_view body) {
  return type + number(static_cast<std::uint32_t>(body.size() + 4)) + std::string(body);
}

std::string fatal(std::string_view state, std::string_view text) {
  std::string body;
  for (const auto& [field, value] : {std::pair{'S', std::string_view("FATAL")},
                                     {'V', std::string_view("FATAL")},
                                     {'C', state},
                                     {'M', text}}) {
    body += field;
    body += value;
    body += '\0';
  }
  return message('E', body + '\0');
}

std::optional<Authentication> parse_authentication(std::string_view body) {
  if (body.size() < 4) return std::nullopt;
  return Authentication{.kind = length_of(body), .data = std::string(body.substr(4))};
}

std::string write_authentication(std::uint32_t kind, std::string_view data) {
  return message('R', number(kind) + std::string(data));
}

std::optional<std::vector<std::string>> mechanisms(std::string_view data) {
  std::vector<std::string> names;
  while (true) {
    const auto name = take_text(data);
    if (!name) return std::nullopt;
    if (name->empty()) return names;
    names.emplace_back(*name);
  }
}

std::string write_sasl_initial(std::string_view mechanism, std::string_view data) {
  return message('p', std::string(mechanism) + '\0' +
                          number(static_cast<std::uint32_t>(data.size())) + std::string(data));
}

}  // namespace gateway::postgres
