// Capability sets of the calling process (capabilities(7)).
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "confine/confine.h"

// linux/securebits.h defines these through a macro that wants the kernel's own header order.
#include <linux/securebits.h>

namespace confine {
namespace {

Outcome failed(const char* step) {
  return std::unexpected(Failure{step, errno});
}

struct Sets {
  Capabilities effective = 0;
  Capabilities permitted = 0;
  Capabilities inheritable = 0;
};

Outcome set(const Sets& sets) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  for (int i = 0; i < 2; ++i) {
    data[i].effective = static_cast<std::uint32_t>(sets.effective >> (32 * i));
    data[i].permitted = static_cast<std::uint32_t>(sets.permitted >> (32 * i));
    data[i].inheritable = static_cast<std::uint32_t>(sets.inheritable >> (32 * i));
  }
  if (::syscall(SYS_capset, &header, data) != 0) return failed("capset");
  return {};
}

std::expected<Capabilities, Failure> permitted() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return std::unexpected(Failure{"capget", errno});
  return data[0].permitted | static_cast<Capabilities>(data[1].permitted) << 32;
}

// A kernel that has no ambient set (gVisor's) has nothing in it.
Outcome ambient(Capabilities raise) {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 &&
      (errno != EINVAL || raise != kNone)) {
    return failed("prctl PR_CAP_AMBIENT");
  }
  for (int capability = 0; capability < 64; ++capability) {
    if ((raise & bit(capability)) == 0) continue;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) {
      return failed("prctl PR_CAP_AMBIENT_RAISE");
    }
  }
  return {};
}

}  // namespace

Outcome drop_bounding() {
  // The kernel answers EINVAL past its last capability.
  for (int capability = 0; capability < 64; ++capability) {
    const int held = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0 && errno == EINVAL && capability > 0) return {};
    if (held < 0) return failed("prctl PR_CAPBSET_READ");
    if (held == 1 && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      return failed("prctl PR_CAPBSET_DROP");
  }
  return {};
}

Outcome keep_capabilities(Capabilities keep) {
  if (const Outcome done = ambient(kNone); !done) return done;
  return set({keep, keep, keep});
}

Outcome start_with(Capabilities keep) {
  // CAP_SETPCAP stays until the bounding set is empty and the bits are locked. The inheritable set
  // comes first, since with an empty bounding set nothing can be added to it.
  const Capabilities meanwhile = keep | bit(CAP_SETPCAP);
  if (const Outcome done = set({meanwhile, meanwhile, keep}); !done) return done;
  if (const Outcome done = ambient(keep); !done) return done;
  if (const Outcome done = drop_bounding(); !done) return done;
  constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                                  SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED |
                                  SECBIT_KEEP_CAPS_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kBits, 0, 0, 0) != 0) return failed("prctl PR_SET_SECUREBITS");
  return set({keep, keep, keep});
}

Outcome become_with_capabilities(std::uint32_t uid, std::uint32_t gid) {
  const auto held = permitted();
  if (!held) return std::unexpected(held.error());
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return failed("prctl PR_SET_KEEPCAPS");
  if (const Outcome done = become(uid, gid); !done) return done;
  if (const Outcome done = set({*held, *held, *held}); !done) return done;
  return ambient(*held);
}

}  // namespace confine
