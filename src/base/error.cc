// How an Error is made and reads.
#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace base {

std::string Error::line() const {
  std::string out = where;
  if (!what.empty()) out += (out.empty() ? "" : ": ") + what;
  if (number != 0) {
    const char* name = strerrorname_np(number);
    const char* text = strerrordesc_np(number);
    out += out.empty() ? "" : ": ";
    out += name != nullptr ? name : "errno " + std::to_string(number);
    if (text != nullptr) out += std::string(" (") + text + ")";
  }
  if (!expected.empty()) out += "; " + expected;
  return out;
}

Error Error::within(std::string_view phrase) && {
  where = where.empty() ? std::string(phrase) : std::string(phrase) + ": " + where;
  return std::move(*this);
}

std::unexpected<Error> system_error(std::string where) {
  return system_error(std::move(where), errno);
}

std::unexpected<Error> system_error(std::string where, int number) {
  return std::unexpected(Error{Kind::system, number, std::move(where), {}, {}});
}

std::unexpected<Error> bad_input(std::string where, std::string what, std::string expected) {
  return fail(Kind::bad_input, std::move(where), std::move(what), std::move(expected));
}

std::unexpected<Error> fail(Kind kind, std::string where, std::string what, std::string expected) {
  return std::unexpected(Error{kind, 0, std::move(where), std::move(what), std::move(expected)});
}

std::unexpected<Error> not_yet(std::string where) {
  return fail(Kind::unsupported, std::move(where), "not carried out yet", {});
}

}  // namespace base
