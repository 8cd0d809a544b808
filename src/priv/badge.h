// Who may call into priv, by type.
#pragma once

namespace sandbox {
class Rights;
}
namespace supervisor {
class Rights;
}

namespace priv {

// Every function of priv takes one. Only sandbox::Rights and supervisor::Rights, which live in
// those two modules alone, can make it.
class Badge {
 private:
  constexpr Badge() {}  // not defaulted: that would let anyone write Badge{}
  friend class sandbox::Rights;
  friend class supervisor::Rights;
};

}  // namespace priv
