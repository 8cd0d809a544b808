// Any bytes as a datagram of the kernel's netfilter log.
#include <cstdint>
#include <string_view>
#include <vector>

#include "gateway/refused_packet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<gateway::RefusedPacket> packets;
  (void)gateway::read_refused(bytes, packets);
  gateway::RefusedPacket packet;
  (void)gateway::read_packet(bytes, packet);
  return 0;
}
