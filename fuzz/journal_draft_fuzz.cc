// Frames of a producer that was taken over: what the recorder makes of them is always one valid
// line.
#include <cstdint>
#include <cstdlib>

#include "journal/journal.h"
#include "journal/producer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static constexpr const char* kWho[] = {"gateway", "broker", "supervisor"};
  const char* who = kWho[data[0] % 3];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // As a frame, and as the members of a type that is allowed: most inputs are no whole frame.
  journal::Draft draft{"egress.ended", std::string(bytes), 0, 0};
  if (const auto decoded = base::decode<journal::Draft>(bytes, "event")) draft = *decoded;
  if (!journal::admit(who, draft)) return 0;
  const std::string line = R"({"v":1,"type":")" + draft.type + '"' +
                           (draft.members.empty() ? "" : ",") + draft.members + "}";
  const auto read = journal::Members::parse_object(line);
  if (!read || read->text("type") != draft.type || line.find('\n') != std::string::npos)
    std::abort();
  return 0;
}
