// Credentials at the gateway: which placeholder stands where, whether its binding covers the
// request, and the secret in its place at the last moment.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gateway/core.h"
#include "gateway/lease_desk.h"
#include "http/http.h"

namespace gateway {

// A secret that is to go into a request.
struct Injection {
  std::size_t credential = 0;  // into policy.credentials
  std::string placeholder;     // "" where none is required
};

// What the credentials say of one request.
struct Handling {
  std::vector<Injection> injections;
  std::vector<std::size_t> bodies;  // credentials whose place is a field of this body
  std::vector<std::string> strip;   // header fields that must not go on
  bool strip_query = false;         // its parameters that hold the agent's own keys
  bool drop_cookies = false;        // of the answer: none would be let in again
  std::string reason;               // why it is refused; "" when it is not
  std::string credential;           // which credential is concerned; for the record
  bool misuse = false;              // a placeholder where it does not belong: credential.refused
  std::string where;                // and where it stood
};

// The longest body that is looked into for a field.
inline constexpr std::size_t kMostFieldBody = std::size_t{1} << 20;

class Credentials {
 public:
  // `desk` is null where the plan has no credentials. `plan` must outlive this.
  Credentials(const plan::Plan& plan, std::unique_ptr<LeaseDesk> desk);

  [[nodiscard]] bool any() const { return !marked_.empty() || !plan_.policy.credentials.empty(); }
  // Looks at a request that the rules allow. `rule` is the egress rule that does.
  [[nodiscard]] Handling handle(const http::RequestHead& head, const policy::Request& request,
                                const policy::Egress* rule) const;
  // Whether the request is signed for AWS. Its answer may be a part: clients put large objects
  // together from parts, and would take a whole one for a part; the key that signs is never in it.
  [[nodiscard]] bool signs(const Handling& handling) const;
  // The credential whose certificate the upstream connection of this request is to show.
  [[nodiscard]] std::optional<std::size_t> identity(const Handling& handling) const;
  // Its lease: the certificate and its key, which go into a handshake that verifies the peer first.
  // Wipe the answer. An error: the broker is gone.
  asio::awaitable<base::Result<plan::LeaseAnswer>> certificate(Connection& connection,
                                                               policy::Request request,
                                                               std::size_t credential,
                                                               bool verifies);
  // The credential for a user's session with PostgreSQL there, and whether any is bound there.
  [[nodiscard]] std::optional<std::size_t> postgres(const policy::Request& request,
                                                    std::string_view user) const;
  [[nodiscard]] bool speaks_postgres(const policy::Request& request) const;
  [[nodiscard]] bool stands_for(std::size_t credential, std::string_view placeholder) const;
  // Its lease: the password, salted as the server asks. Wipe the answer. An error: the broker is
  // gone.
  asio::awaitable<base::Result<plan::LeaseAnswer>> salted(Connection& connection,
                                                          policy::Request request,
                                                          std::size_t credential, bool verified_tls,
                                                          std::string placeholder,
                                                          http::ScramChallenge challenge);
  // Looks into the body of a request for which handle() named `bodies`: adds injections, or says
  // why it is refused.
  void handle_body(const http::RequestHead& head, const policy::Request& request,
                   std::string_view body, Handling& handling) const;
  // Takes the agent's own keys out, where handle() says so.
  void strip(http::RequestHead& head, const Handling& handling) const;
  // Gets the leases, and once all are there puts the secrets into head and body; wipe both
  // afterwards. The refusal reason, "" when all went in. An error: the broker is gone.
  asio::awaitable<base::Result<std::string>> inject(Connection& connection, http::RequestHead& head,
                                                    std::string& body, policy::Request request,
                                                    Handling handling, bool verified_tls);

  [[nodiscard]] const std::vector<http::Marked>& marked() const { return marked_; }
  [[nodiscard]] const http::Slot& slot_of(std::size_t credential) const {
    return slots_[credential];
  }
  [[nodiscard]] const std::string& name_of_mark(std::size_t mark) const;
  // What has to be taken out of every answer that is looked into, from whatever host: servers share
  // what they were told. Only ever grows, before the secret concerned goes out.
  [[nodiscard]] const std::vector<std::unique_ptr<http::Redaction>>& redactions() const {
    return redactions_;
  }
  // Lower-case names that secrets are injected under.
  [[nodiscard]] std::vector<std::string> header_names() const;
  void revoke(const std::string& name);  // "" for all

 private:
  [[nodiscard]] bool judge_finding(const http::Finding& finding, const policy::Request& request,
                                   Handling& handling) const;
  [[nodiscard]] bool judge_signatures(const http::RequestHead& head, Handling& handling) const;
  [[nodiscard]] bool judge_keys(const policy::Request& request, Handling& handling) const;
  [[nodiscard]] bool judge_own(const http::RequestHead& head, const policy::Request& request,
                               const policy::Egress* rule, Handling& handling) const;
  [[nodiscard]] std::string target_without_own(const http::RequestHead& head) const;
  [[nodiscard]] bool fills_parameter(std::string_view name, std::string_view value) const;
  [[nodiscard]] bool judge_field(std::size_t credential, const std::vector<std::string>& values,
                                 Handling& handling) const;
  struct Owned {
    policy::Own own = policy::Own::pass;
    std::string credential;  // whose word it is; "" for the rule's
  };
  [[nodiscard]] Owned owned_at(const policy::Request& request, const policy::Egress* rule) const;
  [[nodiscard]] bool binds() const;
  [[nodiscard]] bool revoked(const std::string& name) const {
    return revoked_.contains(name) || revoked_.contains("");
  }
  [[nodiscard]] base::Status remember(std::size_t credential, const std::string& placeholder,
                                      const std::string& secret);
  [[nodiscard]] std::string session_mark(std::size_t credential) const;
  [[nodiscard]] bool put(http::RequestHead& head, std::string& body, const Injection& injection,
                         const std::string& secret) const;

  const plan::Plan& plan_;
  std::unique_ptr<LeaseDesk> desk_;

  // Fields and parameters that may hold somebody's key, ours included; lower case.
  std::set<std::string, std::less<>> keys_;
  std::set<std::string, std::less<>> parameters_;
  std::vector<http::Slot> slots_;           // by credential
  std::vector<http::Marked> marked_;        // by placeholder of the plan
  std::vector<std::size_t> credential_of_;  // mark → credential
  std::vector<std::unique_ptr<http::Redaction>> redactions_;
  std::set<std::pair<std::size_t, std::string>> remembered_;  // credential and digest of its secret
  std::set<std::string> revoked_;
};

}  // namespace gateway
