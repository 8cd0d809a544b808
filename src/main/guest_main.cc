// Pid 1 of the guest of a microVM: /init of the archive that the guest's kernel boots with.
//
// SECURITY: everything in this guest is inside. It has all rights over the guest, and none beyond
// it: what leaves the guest are two virtio ports, whose other ends take nothing it says for true,
// and a network card behind which the gateway stands. It holds no secret. The code that the sandbox
// is for runs below it as in the container tier (sandbox/guest/guest.cc), so that it has to break
// out of that before it can even speak to the host in this program's place.
#include <sys/reboot.h>
#include <unistd.h>

#include "sandbox/guest/guest.h"

int main() {
  // Anywhere else it would turn the host off.
  if (::getpid() != 1) return 125;
  sandbox::run_guest();
  ::sync();
  (void)::reboot(RB_POWER_OFF);
  return 0;
}
