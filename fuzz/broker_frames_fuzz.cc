// Any bytes as what the broker hears: decoding bounds itself, and no request outside of the binding
// is served.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "broker/broker.h"
#include "os/os.h"

namespace {

plan::Plan make_plan() {
  plan::Plan plan;
  plan.protections = {plan::Protection::binding, plan::Protection::upstream_verify};
  policy::Credential credential;
  credential.name = "a";
  credential.hosts = {"**.b"};
  credential.ports = {443};
  credential.methods = {"GET"};
  credential.paths = {"/v1/**"};
  plan.placeholders = {{"a", "secret", "p"}};
  plan.policy.credentials = {credential};
  return plan;
}

broker::Vault make_vault(const plan::Plan& plan) {
  base::Fd fd(::memfd_create("secret", MFD_CLOEXEC));
  if (!os::write_all(fd.get(), "hush", "secret")) __builtin_trap();
  std::vector<base::Fd> secrets;
  secrets.push_back(std::move(fd));
  auto vault = broker::Vault::open(plan, std::move(secrets), [] { return std::uint64_t{0}; });
  return std::move(vault.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const plan::Plan kPlan = make_plan();
  static broker::Vault vault = make_vault(kPlan);
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  (void)base::decode<plan::ToBroker>(text, "message");
  const auto request = base::decode<plan::LeaseRequest>(text, "request");
  if (!request) return 0;
  const auto decision = vault.decide(*request);
  const bool right = request->credential == "a" && request->port == 443 && request->verified_tls &&
                     request->placeholder == "p" && request->host.ends_with(".b") &&
                     request->path.starts_with("/v1/") &&
                     (request->method == "GET" || request->method == "HEAD");
  if (decision.refusal.empty() && !right) __builtin_trap();
  return 0;
}
