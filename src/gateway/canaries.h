// Canaries at the gateway: whether what leaves the sandbox shows one, in whatever form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/recorder.h"
#include "http/http.h"
#include "plan/plan.h"

namespace gateway {

class Canaries {
 public:
  explicit Canaries(const std::vector<plan::Canary>& canaries);

  struct Sight {
    std::string canary;  // "canary:aws"
    std::string where;   // "header x", "url", "body", "name", "bytes"
  };

  [[nodiscard]] bool any() const { return !needles_.empty(); }
  // As it is, in Base64 wherever it stands in what was encoded, in hexadecimal, percent-encoded or
  // escaped; in a head also behind three rounds of percent-encoding.
  [[nodiscard]] std::optional<Sight> in(const http::RequestHead& head) const;
  [[nodiscard]] std::optional<Sight> in(const std::vector<http::Field>& fields) const;
  // In a name, where letters have no case.
  [[nodiscard]] std::optional<Sight> in_name(std::string_view name) const;
  // What to look for in bytes that stream by, and what was found there.
  [[nodiscard]] const std::vector<http::Marked>& needles() const { return needles_; }
  [[nodiscard]] Sight at(std::size_t needle, std::string_view where) const;

 private:
  [[nodiscard]] std::optional<std::size_t> find(std::string_view text) const;

  std::vector<http::Marked> needles_;
  std::vector<std::string> names_;     // of the canary, by needle
  std::vector<std::string> lower_;     // the bare values in lower case
  std::vector<std::string> of_lower_;  // of the canary, by those
};

// The record of a sight, on which the journal raises its alert.
struct Destination {
  std::string host;
  std::uint16_t port = 0;
  std::string method;
  std::string path;
};
[[nodiscard]] base::Status record_sight(Recorder& recorder, const Canaries::Sight& sight,
                                        const Destination& to);

}  // namespace gateway
