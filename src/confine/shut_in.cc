// What each of our own processes does to itself before it takes the first byte from anyone.
#include "confine/confine.h"

#ifdef CERCO_SANITIZE
namespace {
bool shut = false;
}  // namespace
// The leak checker stops the process with ptrace and a helper, which a confined process refuses.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return shut ? 1 : 0;
}
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace confine {

base::Status shut_in(Own own, std::uint32_t id, std::span<const std::string> write) {
  const std::string where = "confine this process";
  const Filter program = filter(own);
  TRY(as_status(rlimits(0), where));
  TRY(as_status(new_session_keyring(), where));
  TRY(as_status(no_new_privs(), where));
  // Before the change of uid, which may take away the way to these paths.
  TRY(as_status(landlock({}, write), where));
  if (id != 0) {
    TRY(as_status(drop_bounding(), where));
    TRY(as_status(become(id, id), where));
  }
  TRY(as_status(keep_capabilities(kNone), where));
  TRY(as_status(not_dumpable(), where));  // after the change of uid, which sets it anew
  TRY(as_status(install(program), where));
#ifdef CERCO_SANITIZE
  shut = true;
#endif
  return {};
}

}  // namespace confine
