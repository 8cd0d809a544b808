// The name of a Step's type, as plan.h spells it.
#include "sandbox/container/step_name.h"

#include <array>

namespace sandbox {

namespace {

constexpr std::array<std::string_view, 24> kNames = {
    "EnterCgroup", "CloneNamespaces",  "MapUsers",   "SetHostname",  "Capture",    "MakeTap",
    "MountRoot",   "MakeFolder",       "MakeLink",   "BindReadOnly", "LayScratch", "WriteFile",
    "TrustBundle", "MountDisk",        "MountDev",   "MountCgroups", "MountProc",  "PivotRoot",
    "Landlock",    "DropCapabilities", "NoNewPrivs", "Rlimits",      "Seccomp",    "RunGvisor"};
static_assert(kNames.size() == std::variant_size_v<plan::Step>);

}  // namespace

std::string_view step_name(const plan::Step& step) {
  return kNames.at(step.index());
}

}  // namespace sandbox
