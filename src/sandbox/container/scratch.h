// A folder of the host under a layer of the working disk, for a scratch root.
#pragma once

#include "base/base.h"
#include "sandbox/container/prepared.h"

namespace sandbox {

struct ScratchParts {
  int source = -1;  // the host's folder
  int disk = -1;    // the top of the working disk, attached in the caller's mount namespace
  int id_map = -1;  // of priv::make_id_map
};
// The whole, attached nowhere. Of the disk it uses `layer`, and its folders kLower and kSeen
// meanwhile. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> lay_scratch(const Prepared& prepared,
                                                 const priv::Inside& inside, const Layer& layer,
                                                 const ScratchParts& parts);

}  // namespace sandbox
