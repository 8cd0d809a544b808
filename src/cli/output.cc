// What goes to the streams of the caller, and what an error's exit status is.
#include "cli/cli.h"
#include "os/os.h"

namespace cli {

void print(const World& world, std::string_view text) {
  (void)os::write_all(world.out, text, "standard output");
}

void print_error(const World& world, std::string_view text) {
  (void)os::write_all(world.err, text, "standard error");
}

void print_error(const World& world, const base::Error& error) {
  print_error(world, "cerco: " + base::printable(error.line()) + "\n");
}

int exit_status(const base::Error& error, int usage_status) {
  static constexpr int kNo = 1;
  static constexpr int kNotFound = 3;
  static constexpr int kInternal = 125;
  if (usage_status == kInternal) return kInternal;
  switch (error.kind) {
    case base::Kind::bad_input:
    case base::Kind::unsupported:
      return usage_status;
    case base::Kind::not_found:
      return kNotFound;
    case base::Kind::missing:
      return kNo;
    case base::Kind::system:
    case base::Kind::peer:
      break;
  }
  return kInternal;
}

}  // namespace cli
