// `cerco proxy`: gateway, broker and journal without a sandbox, and their end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/parts.h"
#include "supervisor/supervisor.h"

namespace supervisor {

struct ProxyLaunch {
  plan::Plan plan;                // of plan::make_proxy()
  base::Fd roots;                 // memfd
  std::vector<base::Fd> secrets;  // one memfd a credential, then the upstream proxy's password
};

struct ProxyEnd {
  Ending ending;
  std::uint32_t status = 0;
  journal::Summary summary;
  std::vector<std::string> notes;
};

class Proxy {
 public:
  // Starts the processes; on error nothing of them is left.
  [[nodiscard]] static base::Result<std::unique_ptr<Proxy>> start(ProxyLaunch launch);
  // PEM of the authority that clients have to trust, "" where no TLS is ended.
  [[nodiscard]] const std::string& authority() const { return authority_; }
  // Serves on these from now on, whoever shows the token whose SHA-256 this is. The calling process
  // gives up every right but that of ending its parts.
  [[nodiscard]] base::Status open(std::vector<base::Fd> listeners, std::string token_sha256);
  // Until a signal comes from `signals` (os::signal_descriptor) or a part is gone.
  [[nodiscard]] ProxyEnd serve(int signals);

 private:
  explicit Proxy(plan::Plan plan) : plan_(std::move(plan)) {}
  base::Status start_parts(ProxyLaunch& launch);
  base::Status start_lending(const ProxyLaunch& launch, int plan_memfd);
  void record(const journal::Draft& draft);
  void on_journal();
  void contain(const journal::Alarm& alarm);
  void revoke(const std::string& credential, const std::string& why);
  void lose(std::string_view who);
  void end(std::string by, std::uint32_t status);
  void drain();
  [[nodiscard]] journal::Summary finish_journal();

  plan::Plan plan_;
  Part journal_;
  std::optional<Part> minter_;  // where the policy mints
  std::optional<Part> broker_;
  std::optional<Part> gateway_;
  base::Fd lease_end_;
  std::uint64_t revocations_due_ = 0;
  std::string authority_;
  bool over_ = false;
  bool journal_lost_ = false;
  ProxyEnd end_;
};

}  // namespace supervisor
