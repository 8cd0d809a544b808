// `cerco version`.
#include "cli/cli.h"

namespace cli {

base::Result<int> version(const World& world, const Parsed& parsed) {
  TRY(want_words("version", parsed, 0, ""));
  if (parsed.has("--json")) {
    print(world, base::JsonObject().add("version", kVersion).text() + "\n");
  } else {
    print(world, "cerco " + std::string(kVersion) + "\n");
  }
  return 0;
}

}  // namespace cli
