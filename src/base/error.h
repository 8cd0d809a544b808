// Errors as values: what kind, what was being attempted, what would be right.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace base {

enum class Kind {
  bad_input,    // a flag, key, value or file of the caller's is wrong
  not_found,    // no such run, image, event
  unsupported,  // known to the contract, not carried out yet
  missing,      // a right or a feature that was asked for is not to be had here
  system,       // a system call failed
  peer,         // another process or host answered wrongly or not at all
};

// One error line: `WHERE: WHAT; EXPECTED`. `number` is an errno, or 0.
struct Error {
  Kind kind = Kind::system;
  int number = 0;
  std::string where;
  std::string what;
  std::string expected;

  // The line for people, without the leading `cerco: ` and without a newline.
  [[nodiscard]] std::string line() const;
  // The same error with one phrase put before `where` ("start sandbox: mount /workspace").
  [[nodiscard]] Error within(std::string_view phrase) &&;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

// A system call's failure: errno is read here, so call it before anything else.
[[nodiscard]] std::unexpected<Error> system_error(std::string where);
[[nodiscard]] std::unexpected<Error> system_error(std::string where, int number);
[[nodiscard]] std::unexpected<Error> bad_input(std::string where, std::string what,
                                               std::string expected);
[[nodiscard]] std::unexpected<Error> fail(Kind kind, std::string where, std::string what,
                                          std::string expected);
// `WHERE: not carried out yet`
[[nodiscard]] std::unexpected<Error> not_yet(std::string where);

namespace detail {
template <class T>
T take(std::expected<T, Error>&& result) {
  return std::move(*result);
}
inline void take(std::expected<void, Error>&&) {}
}  // namespace detail

}  // namespace base

// The value of a Result, or return its Error from the function around it.
#define TRY(expression)                                                       \
  ({                                                                          \
    auto try_result_ = (expression);                                          \
    if (!try_result_) return std::unexpected(std::move(try_result_).error()); \
    ::base::detail::take(std::move(try_result_));                             \
  })
// The same with one phrase put before the error.
#define TRY_IN(phrase, expression)                                                           \
  ({                                                                                         \
    auto try_result_ = (expression);                                                         \
    if (!try_result_) return std::unexpected(std::move(try_result_).error().within(phrase)); \
    ::base::detail::take(std::move(try_result_));                                            \
  })
// TRY for coroutines.
#define CO_TRY(expression)                                                       \
  ({                                                                             \
    auto try_result_ = (expression);                                             \
    if (!try_result_) co_return std::unexpected(std::move(try_result_).error()); \
    ::base::detail::take(std::move(try_result_));                                \
  })
