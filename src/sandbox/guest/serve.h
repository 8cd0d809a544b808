// What a guest's pid 1 does while its sandbox lives.
#pragma once

#include <map>
#include <memory>

#include "os/os.h"
#include "sandbox/microvm/guest_frames.h"

namespace sandbox {

// Carries frames between the tunnel and cerco-init, and answers the host's requests.
class GuestService {
 public:
  GuestService(std::unique_ptr<Sandbox> sandbox, base::Fd watch, base::Fd tunnel_end);

  // Until cerco-init or the host has gone; the host is told how it stood at the end.
  void serve();

 private:
  bool hear_host();
  bool carry_in();
  bool carry_out();
  void answer(const GuestRequest& request);
  [[nodiscard]] base::Status act(const GuestRequest& request, GuestNote& note);
  void tell_over();

  std::unique_ptr<Sandbox> sandbox_;
  base::Fd watch_;
  base::Fd tunnel_end_;
  std::map<std::uint64_t, std::unique_ptr<CommandProcesses>> commands_;
};

}  // namespace sandbox
