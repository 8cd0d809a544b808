// From the bytes of a head to a decision: the same for every protocol that requests come in.
#include "gateway/http_session.h"
#include "gateway/proxy_token.h"

namespace gateway {

// Of a proxy's request: where it goes. What was kept open to another place is of no use to it.
std::optional<http::Rejection> HttpSession::go_to(const http::RequestHead& head,
                                                  const Target& before) {
  auto target = find_target(core_, head.host, head.port.value_or(usual_port()));
  if (!target) return http::Rejection{.status = 400, .reason = "host", .text = target.error().what};
  if (head.method == "CONNECT") {
    if (!from_client_.empty()) {
      return http::Rejection{.status = 400, .reason = "connect", .text = "CONNECT in a pipeline"};
    }
    drop_upstream();
    tunnel_ = std::move(*target);
    decided_ = true;  // by whoever carries the tunnel
    return std::nullopt;
  }
  if (target->host != before.host || target->port != before.port) drop_upstream();
  target_ = std::move(*target);
  return std::nullopt;
}

// Whether Host names what the connection was made to; anything else is another origin's business.
bool HttpSession::stands_for_target(const http::RequestHead& head) const {
  const auto host = policy::canonical_host(head.host);
  return host && *host == target_.host && head.port.value_or(usual_port()) == target_.port;
}

// One name has many spellings ("api.test.", ":443"): what goes out is the one that was judged, so
// that no server takes it for another.
void HttpSession::write_host_as_judged(http::RequestHead& head) const {
  const std::string& name = target_.host.name;
  head.host = name.contains(':') ? "[" + name + "]" : name;
  head.port.reset();
  if (target_.port != usual_port()) head.port = target_.port;
}

std::optional<http::Rejection> HttpSession::admit(std::size_t length, Asked& asked) {
  std::vector<http::Field>& dropped = asked.dropped;
  const Target before = leg_ == http::Leg::proxy ? std::exchange(target_, {}) : Target();
  auto head = http::parse_request(from_client_.view().substr(0, length), admission_, &dropped);
  if (!head) return head.error();
  from_client_.consume(length);
  asked.head = std::move(*head);
  if (leg_ == http::Leg::proxy) {
    if (!shows_token(core_, dropped)) {
      return http::Rejection{
          .status = 407, .reason = "proxy-token", .text = "this proxy wants its task's token"};
    }
    if (auto rejection = go_to(asked.head, before)) return rejection;
    if (tunnel_) return std::nullopt;
  }
  if (asked.head.host.empty()) {  // HTTP/1.0
    asked.head.host = target_.host.name;
    if (target_.port != usual_port()) asked.head.port = target_.port;
  } else if (stands_for_target(asked.head)) {
    write_host_as_judged(asked.head);
  }
  asked.request = {.scheme = leg_ == http::Leg::tls ? policy::Scheme::tls : policy::Scheme::http,
                   .host = target_.host,
                   .port = target_.port,
                   .method = asked.head.method};
  if (asked.head.target != "*") {
    auto path = policy::canonical_path(
        asked.head.target,
        policy::encoded_slash_allowed(core_.policy(), target_.host.name, target_.port));
    if (!path) {
      return http::Rejection{.status = 400, .reason = "path", .text = path.error().what};
    }
    asked.request.path = std::move(*path);
  }
  for (const http::Field& field : asked.head.fields) {
    asked.request.headers.emplace_back(field.name, field.value);
  }
  for (const http::Field& field : dropped) {
    asked.request.dropped.emplace_back(field.name, field.value);
  }
  return std::nullopt;
}

void HttpSession::decide(Asked& asked) {
  const auto refuse = [&](std::string reason) {
    asked.verdict.allow = false;
    asked.verdict.audit = false;
    asked.verdict.reason = std::move(reason);
    asked.verdict.fix.clear();
  };
  auto sight = core_.canaries.in(asked.head);
  if (!sight) sight = core_.canaries.in(asked.dropped);
  if (sight) {
    asked.handling = {
        .reason = "canary", .credential = sight->canary, .misuse = true, .where = sight->where};
    return refuse("canary");
  }
  if (core_.cut) return refuse("cut");
  if (!target_.problem.empty()) return refuse(target_.problem);
  if (core_.holds(plan::Protection::sni_check) && !stands_for_target(asked.head)) {
    return refuse("misdirected");
  }
  asked.verdict = policy::decide_request(core_.policy(), asked.request);
  if (!asked.verdict.allow && !core_.holds(plan::Protection::name_filter)) {
    asked.verdict = {.allow = true, .treatment = policy::Treatment::inspect};
  }
  if (asked.verdict.allow) {
    // Names that go out this way are judged by nobody (N94).
    const std::string problem =
        http::carries_dns(asked.head.fields) ? "dns-over-https" : budget_problem(asked);
    if (!problem.empty()) refuse(problem);
  }
  if (!core_.credentials.any()) return;
  // Also where the rules refuse: a placeholder that is out of place is told of in any case.
  asked.handling =
      core_.credentials.handle(asked.head, asked.request, rule_of(core_, asked.verdict));
  const std::string& reason = asked.handling.reason;
  if (!reason.empty() && (asked.verdict.allow || asked.handling.misuse)) refuse(reason);
}

std::string HttpSession::budget_problem(const Asked& asked) const {
  const policy::Egress* rule = rule_of(core_, asked.verdict);
  if (rule == nullptr) return {};
  const Used& used = *used_by(core_, asked.verdict);
  const http::Body& body = asked.head.body;
  if (used.requests >= rule->max_requests) return "max-requests";
  const Budget budget = budget_of(core_, asked.verdict);
  if (budget.up.left() == 0 || budget.down.left() == 0) return "budget";
  if (body.framing == http::Framing::length && body.length > budget.up.left()) return "budget";
  if (body.framing == http::Framing::length && body.length > rule->max_body) return "max-body";
  return {};
}

void HttpSession::count(const Asked& asked, int requests) {
  if (Used* used = used_by(core_, asked.verdict)) used->requests += requests;
}

}  // namespace gateway
