// What starts are copied from, made ahead of them.
#include "sandbox/sandbox.h"
#include "supervisor/supervisor.h"

namespace supervisor {

base::Result<std::string> warm(const plan::Plan& plan) {
  TRY(plan::verify(plan));
  TRY(os::make_folders(plan.state_dir, 0700));
  for (const char* folder : {"/.", "/leases", "/patterns"}) {
    TRY_IN("CERCO_STATE_DIR", os::own_folder(plan.state_dir + folder));
  }
  return sandbox::warm_microvm(plan, {{}, plan.helper_dir + "/cerco-init"});
}

}  // namespace supervisor
