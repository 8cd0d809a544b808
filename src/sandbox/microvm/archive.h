// The archive that a guest kernel unpacks as its first root: cpio, "newc" (Linux,
// Documentation/driver-api/early-userspace/buffer-format.rst).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sandbox {

// Puts entries one behind another; a folder comes before what lies in it. Paths are relative. Pure.
class Archive {
 public:
  void folder(std::string_view path);
  void file(std::string_view path, std::string_view content, std::uint32_t mode);
  // A character device, for what the kernel opens before there is a /dev.
  void device(std::string_view path, std::uint32_t major, std::uint32_t minor);
  // The whole, closed; nothing may be added afterwards.
  [[nodiscard]] std::string finish();

 private:
  void entry(std::string_view path, std::uint32_t mode, std::string_view content,
             std::uint32_t major, std::uint32_t minor);
  void pad();

  std::string bytes_;
  std::uint32_t number_ = 0;
};

}  // namespace sandbox
