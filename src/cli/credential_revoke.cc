// `cerco credential revoke`: the broker of a living run forgets a secret, and the gateway closes
// the connections on which it went out.
#include "cli/living.h"

namespace cli {

base::Result<int> credential_revoke(const World& world, const Parsed& parsed) {
  TRY(want_words("credential revoke", parsed, 2, "RUN NAME"));
  if (parsed.words[1].empty()) {
    return base::bad_input("credential revoke", "no name", "expected the name of a credential");
  }
  const Reached reached = TRY(reach(world, parsed.words[0]));
  TRY(ask(reached.channel, supervisor::RevokeCredential{parsed.words[1]}, {}));
  TRY(await_done(reached.channel));
  return 0;
}

}  // namespace cli
