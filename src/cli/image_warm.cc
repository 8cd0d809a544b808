// `cerco image warm host`: the image that microVMs have as their base, made ahead of their start.
#include "cli/cli.h"
#include "host/machine.h"

namespace cli {

base::Result<int> image_warm(const World& world, const Parsed& parsed) {
  TRY(want_words("image warm", parsed, 1, "NAME"));
  if (parsed.words[0] != "host") {
    return base::not_yet("image warm " + base::printable(parsed.words[0]));
  }
  const plan::HostFacts facts = TRY(host_facts(world));
  const std::string path = TRY(host::make_image_of_host(facts));
  print(world, path + "\n");
  return 0;
}

}  // namespace cli
