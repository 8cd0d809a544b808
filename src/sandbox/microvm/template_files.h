// Names and places of templates, for who finds one and who makes one.
#pragma once

#include <string>

#include "sandbox/microvm/qemu.h"
#include "sandbox/microvm/template.h"

namespace sandbox {

// Made where there is none; nobody but us may write there.
[[nodiscard]] base::Result<std::string> templates_folder(const plan::Plan& plan);
// The digest of all that a template for such a plan depends on.
[[nodiscard]] base::Result<std::string> template_name(const plan::Plan& plan, const Inputs& inputs);

[[nodiscard]] inline std::string memory_path(const std::string& path, const std::string& serial) {
  return path + "." + serial + ".memory";
}
[[nodiscard]] inline std::string devices_path(const std::string& path, const std::string& serial) {
  return path + "." + serial + ".devices";
}

}  // namespace sandbox
