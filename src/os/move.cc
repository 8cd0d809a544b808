// Moving a name from one open folder to another.
#include "os/move.h"

#include <cstdio>

namespace os {

base::Status move_between(int from_dir, const std::string& from, int to_dir,
                          const std::string& to) {
  if (::renameat(from_dir, from.c_str(), to_dir, to.c_str()) != 0) {
    return base::system_error("rename to " + to);
  }
  return {};
}

}  // namespace os
