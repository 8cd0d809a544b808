// A folder of the host under a layer of the working disk: three mounts, the host's folder with its
// ids mapped, what nobody in particular may read of that, and the layer over it. The first two stay
// as parts of the third alone.
#include "sandbox/container/scratch.h"

#include "sandbox/container/rights.h"

namespace sandbox {

namespace {

base::Status attach(const priv::Inside& inside, int mount, int disk, const char* name) {
  const base::Fd place = TRY(priv::find_in(disk, name));
  return priv::attach(Rights::badge(), inside, mount, place.get());
}

}  // namespace

base::Result<base::Fd> lay_scratch(const Prepared& prepared, const priv::Inside& inside,
                                   const Layer& layer, const ScratchParts& parts) {
  const priv::Badge badge = Rights::badge();
  const auto reader =
      prepared.has(plan::Protection::base_as_nobody) ? priv::Reader::nobody : priv::Reader::root;
  const base::Fd lower = TRY(priv::clone_tree(badge, inside, parts.source, "", priv::Depth::one));
  TRY(priv::set_attributes(badge, inside, lower.get(),
                           priv::kReadOnly | priv::kNoSuid | priv::kNoDev, priv::Depth::one));
  TRY(priv::map_ids(badge, inside, lower.get(), parts.id_map));
  TRY(attach(inside, lower.get(), parts.disk, kLower));
  const base::Fd seen = TRY(priv::see_as(badge, inside, parts.disk, kLower, kNothing, reader));
  TRY(attach(inside, seen.get(), parts.disk, kSeen));
  base::Fd whole = TRY(
      priv::lay_over(badge, inside, parts.disk, kSeen, layer.upper.c_str(), layer.work.c_str()));
  TRY(priv::detach(badge, inside, parts.disk, kSeen));
  TRY(priv::detach(badge, inside, parts.disk, kLower));
  return whole;
}

}  // namespace sandbox
