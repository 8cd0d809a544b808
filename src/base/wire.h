// Bounded reading and writing of values as bytes, for frames between our own processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"

namespace base {

// A struct takes part by a member template that lists its fields in order:
//   template <class Wire> void fields(Wire& wire) { wire(name, ports, rules); }
template <class T, class Wire>
concept HasFields = requires(T value, Wire& wire) { value.fields(wire); };

// Appends little-endian integers, length-prefixed strings and containers.
class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  void number(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  template <class T>
  void put(const T& value);
  template <class T>
  void put(const std::vector<T>& values) {
    number(values.size());
    for (const T& value : values) put(value);
  }
  template <class T>
  void put(const std::set<T>& values) {
    number(values.size());
    for (const T& value : values) put(value);
  }
  template <class K, class V>
  void put(const std::map<K, V>& values) {
    number(values.size());
    for (const auto& [key, value] : values) {
      put(key);
      put(value);
    }
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class... T>
  void put(const std::variant<T...>& value) {
    number(value.index());
    std::visit([this](const auto& held) { this->put(held); }, value);
  }
  void put(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }

  std::string bytes_;
};

// Reads what Writer wrote. After the first thing that does not fit, every value is empty and
// `done()` is false; nothing is read past the end and no container is larger than its bytes.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  // True when everything was read and nothing is left over.
  [[nodiscard]] bool done() const { return good_ && rest_.empty(); }
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::uint64_t number();
  std::uint64_t count();
  template <class T>
  void get(T& value);
  template <class T>
  void get(std::vector<T>& values) {
    values.clear();
    for (std::uint64_t left = count(); left > 0 && good_; --left) get(values.emplace_back());
  }
  template <class T>
  void get(std::set<T>& values) {
    values.clear();
    for (std::uint64_t left = count(); left > 0 && good_; --left) {
      T value{};
      get(value);
      values.insert(std::move(value));
    }
  }
  template <class K, class V>
  void get(std::map<K, V>& values) {
    values.clear();
    for (std::uint64_t left = count(); left > 0 && good_; --left) {
      K key{};
      get(key);
      get(values[std::move(key)]);
    }
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool held = false;
    get(held);
    value.reset();
    if (held && good_) get(value.emplace());
  }
  template <std::size_t Index = 0, class... T>
  void alternative(std::variant<T...>& value, std::uint64_t index) {
    if constexpr (Index < sizeof...(T)) {
      if (index == Index) {
        get(value.template emplace<Index>());
      } else {
        alternative<Index + 1>(value, index);
      }
    } else {
      good_ = false;
    }
  }
  template <class... T>
  void get(std::variant<T...>& value) {
    alternative(value, number());
  }
  void get(std::string& value);

  std::string_view rest_;
  bool good_ = true;
};

template <class T>
void Writer::put(const T& value) {
  if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    number(static_cast<std::uint64_t>(value));
  } else {
    // fields() is one list for both directions, so it is not const; writing changes nothing.
    const_cast<T&>(value).fields(*this);
  }
}

template <class T>
void Reader::get(T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::uint64_t raw = number();
    if (raw > 1) good_ = false;
    value = raw == 1;
  } else if constexpr (std::is_enum_v<T>) {
    // An enum on the wire has a last value, so that an unknown one is refused.
    const std::uint64_t raw = number();
    if (raw > static_cast<std::uint64_t>(T::last_)) {
      good_ = false;
      value = T{};
    } else {
      value = static_cast<T>(raw);
    }
  } else if constexpr (std::is_integral_v<T>) {
    const std::uint64_t raw = number();
    value = static_cast<T>(raw);
    if (static_cast<std::uint64_t>(value) != raw) good_ = false;
  } else {
    value.fields(*this);
  }
}

// The bytes of one value.
template <class T>
std::string encode(const T& value) {
  Writer writer;
  writer(value);
  return writer.take();
}

// The value that the bytes hold; bad_input when they hold less, more or something else.
template <class T>
Result<T> decode(std::string_view bytes, std::string_view what) {
  Reader reader(bytes);
  T value{};
  reader(value);
  if (!reader.done()) return bad_input(std::string(what), "malformed frame", {});
  return value;
}

}  // namespace base
