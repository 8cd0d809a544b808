// cerco-isolate: one script in the V8 engine workerd, as a program with standard streams,
// arguments, an environment and an exit status.
//
// It stands inside the sandbox beside the engine and is no boundary itself. It writes the engine's
// configuration, starts the engine with a single use of execveat(2) under the `isolate` filter,
// hands standard input over as the body of one request, and turns the lines that loader.mjs writes
// into output and an exit status. With nothing left to wait for, the engine gives that request up:
// this is the end of the script.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"

namespace isolate {

inline constexpr std::string_view kEngine = "/engine/workerd";
inline constexpr std::string_view kAuthorities = "/etc/ssl/certs/ca-certificates.crt";
inline constexpr std::size_t kMostScript = std::size_t{8} << 20;

struct Script {
  std::string name;  // of the module, as errors show it
  std::string source;
  std::vector<std::string> argv;  // process.argv: the engine, the script's path, its arguments
  std::vector<std::pair<std::string, std::string>> env;
  std::uint64_t heap_mib = 0;  // --max-old-space-size
  bool authorities = false;  // kAuthorities is there: without it the engine does not begin with TLS
};

// The engine's configuration as Cap'n Proto text: the script, the loader before it, nothing bound
// but the network, and no other service.
[[nodiscard]] std::string config_text(const Script& script);

// The next piece of what the engine's lines say: bytes for standard output (1) or error (2), or the
// exit status.
struct Piece {
  int stream = 0;
  std::string bytes;
  std::optional<int> status;
  bool operator==(const Piece&) const = default;
};
// Reads the lines of loader.mjs as they come, in pieces of any size, and keeps nothing of them but
// its place in the line. A line of another kind is the engine's own, for standard error.
class Lines {
 public:
  [[nodiscard]] std::vector<Piece> feed(std::string_view bytes);

 private:
  enum class At { start, text, status, over };
  void take(unsigned char byte);
  void put(unsigned char byte);

  std::vector<Piece> pieces_;
  At at_ = At::start;
  int stream_ = 1;
  bool latin1_ = false;     // each character is a byte
  bool escaped_ = false;    // after a backslash
  unsigned char lead_ = 0;  // of a character of two bytes
  int status_ = 0;
};

// Runs the script that argv[1] names, in the working folder. Returns the exit status.
[[nodiscard]] int run(std::span<const std::string> argv,
                      std::vector<std::pair<std::string, std::string>> env);

}  // namespace isolate
