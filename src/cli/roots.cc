// Reads the authorities that upstream certificates are judged by.
#include "cli/roots.h"

#include "os/os.h"

namespace cli {
namespace {

constexpr std::size_t kMaxRoots = 8 << 20;

}  // namespace

base::Result<base::Fd> open_roots(const plan::HostFacts& host, const plan::Plan& plan) {
  std::string roots;
  const bool to_proxy = plan.policy.network.upstream_proxy.url.starts_with("https:");
  if (plan.terminates || to_proxy || !plan.policy.credentials.empty()) {
    std::vector<std::string> files = plan.policy.network.ca;
    if (!host.roots_file.empty()) files.insert(files.begin(), host.roots_file);
    for (const std::string& file : files) {
      roots += TRY_IN("roots", os::read_file(file, kMaxRoots));
      if (!roots.ends_with('\n')) roots += '\n';
    }
  }
  return os::sealed_memfd("cerco-roots", roots);
}

}  // namespace cli
