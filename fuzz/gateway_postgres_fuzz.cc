// Any bytes as what a client or a server of PostgreSQL begins with: what is read is written back
// the same, and no answer to SCRAM gets further than its form allows.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gateway/postgres_message.h"
#include "http/scram.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto startup = gateway::postgres::parse_startup(bytes)) {
    const std::string written = gateway::postgres::write_startup(*startup);
    if (written.substr(4) != bytes || gateway::postgres::length_of(written) != written.size()) {
      std::abort();
    }
  }
  if (const auto word = gateway::postgres::parse_authentication(bytes)) {
    (void)gateway::postgres::mechanisms(word->data);
  }
  http::Scram scram("", "nonce", {});
  if (const auto challenge = scram.challenge(bytes)) {
    if (!http::is_fair(*challenge) || !bytes.starts_with("r=nonce")) std::abort();
  }
  if (scram.proves(bytes)) std::abort();
  return 0;
}
