// Lines of a journal file as verification and `cerco log` read them: whatever stands in it, the
// answer is printable and no byte is read past the end.
#include <cstdint>
#include <cstdlib>

#include "journal/journal.h"
#include "journal/members.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  const std::string shown = journal::describe(line);
  if (shown != base::printable(shown) || shown.find('\n') != std::string::npos) std::abort();
  (void)journal::tone(line);
  (void)journal::describe_whole(line);
  if (const auto members = journal::Members::parse_object(line)) {
    // What is accepted is one line of valid UTF-8, and every string in it decodes to valid UTF-8.
    for (const auto& member : members->all()) {
      for (std::string_view rest = member.value; !rest.empty();) {
        const std::size_t length = base::utf8_length(rest);
        if (length == 0 || static_cast<unsigned char>(rest[0]) < 0x09) std::abort();
        rest.remove_prefix(length);
      }
      const std::string text = members->text(member.key);
      for (std::string_view rest = text; !rest.empty();) {
        const std::size_t length = base::utf8_length(rest);
        if (length == 0) std::abort();
        rest.remove_prefix(length);
      }
    }
  }
  return 0;
}
