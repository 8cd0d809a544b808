// Where the placeholders of credentials stand in a request.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "http/request.h"
#include "http/slot.h"

namespace http {

struct Marked {
  std::string placeholder;
  Slot slot;
};

enum class Where {
  bound,   // the slot, and nothing but the slot's shape around it
  header,  // another header, the name of one, or another shape
  basic,   // inside a Basic value that is not the slot
  url,     // the target or the host, also percent-encoded, but for the slot
};
struct Finding {
  std::size_t marked = 0;  // index into what was searched for
  Where where = Where::header;
  std::string field;  // lower-case header name; "" in the URL
  bool operator==(const Finding&) const = default;
};

// Every occurrence, one entry for each placeholder and place. Decodes percent-encoding (up to three
// times over) and Basic; the scheme word in front of a bound value may differ in case.
[[nodiscard]] std::vector<Finding> find_placeholders(const RequestHead& head,
                                                     const std::vector<Marked>& marked);

// Looks for placeholders in a body that streams by, across the pieces it comes in.
class BodyScan {
 public:
  explicit BodyScan(const std::vector<Marked>& marked);
  // Indices of placeholders seen in this piece for the first time.
  [[nodiscard]] std::vector<std::size_t> scan(std::string_view piece);

 private:
  struct Needle {
    std::string text;
    bool seen = false;
  };
  std::vector<Needle> needles_;
  std::size_t longest_ = 0;
  std::string tail_;
};

}  // namespace http
