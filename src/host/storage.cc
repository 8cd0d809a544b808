// What the base and the working disk lie on.
#include <algorithm>

#include "host/host.h"
#include "os/os.h"

namespace host {

void look_at_storage(plan::HostFacts& facts) {
  facts.overlays = os::has_file_system("overlay");
  facts.base_stacked = os::is_overlay("/usr");
  facts.disks.clear();
  for (const std::string& path : {std::string("/usr"), facts.state_dir}) {
    const auto disk = os::disk_under(path);
    // One that cannot be told apart would be a hole in the limit.
    if (!disk) return facts.disks.clear();
    if (std::ranges::find(facts.disks, *disk) == facts.disks.end()) facts.disks.push_back(*disk);
  }
}

}  // namespace host
