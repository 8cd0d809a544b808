// `cerco why`: which rule allows or denies a request, from the matcher that the gateway asks.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"
#include "cli/run_policy.h"
#include "http/request.h"
#include "os/interfaces.h"

namespace cli {
namespace {

struct Asked {
  std::string url;
  policy::Request request;
  std::string target;  // as in the URL, with its query
};

struct Answer {
  policy::Verdict verdict;
  std::string detail;  // what stands behind the reason: "metadata", "an encoded dot"
  std::string where;   // of the rule that decided
  std::vector<std::string> credentials;  // that the request may use
};

std::unexpected<base::Error> bad_url(const std::string& url, std::string what) {
  return base::bad_input("why " + base::printable(url), std::move(what),
                         "expected a URL such as https://api.example.com/v1/me");
}

base::Result<std::uint16_t> default_port(const std::string& url, std::string_view scheme,
                                         policy::Scheme& out) {
  if (scheme == "https") {
    out = policy::Scheme::tls;
    return 443;
  }
  if (scheme == "http") {
    out = policy::Scheme::http;
    return 80;
  }
  if (scheme == "tcp") {
    out = policy::Scheme::tcp;
    return 0;
  }
  return bad_url(url, "no http, https or tcp URL");
}

base::Status read_authority(const std::string& url, std::string_view authority, Asked& asked) {
  if (authority.contains('@')) return bad_url(url, "a user in the URL");
  const auto bracket = authority.rfind(']');
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  auto host = policy::canonical_host(authority.substr(0, colon));
  if (!host) return bad_url(url, host.error().what);
  asked.request.host = std::move(*host);
  if (colon != std::string_view::npos) {
    const auto port = base::parse_number(authority.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return bad_url(url, "no port from 1 to 65535");
    asked.request.port = static_cast<std::uint16_t>(*port);
  }
  if (asked.request.port == 0) return bad_url(url, "a tcp URL without a port");
  return {};
}

// What follows # never leaves a client, so it is cut off.
base::Result<Asked> read_url(const std::string& url, const std::string& method) {
  Asked asked{.url = url, .request = {}, .target = {}};
  if (base::has_control(url)) return bad_url(url, "a control character");
  if (base::has_control(method)) {
    return base::bad_input("--method " + base::printable(method), "a control character",
                           "expected a method such as GET");
  }
  const auto colon = url.find("://");
  if (colon == std::string::npos) return bad_url(url, "no URL");
  asked.request.port =
      TRY(default_port(url, base::to_lower(url.substr(0, colon)), asked.request.scheme));
  std::string_view rest = std::string_view(url).substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  const auto end = rest.find_first_of("/?");
  TRY(read_authority(url, rest.substr(0, end), asked));
  asked.target = end == std::string_view::npos ? "/" : std::string(rest.substr(end));
  if (asked.target.starts_with('?')) asked.target.insert(0, "/");
  asked.request.method = method;
  return asked;
}

std::string detail_of(const policy::Verdict& verdict, const policy::Request& request) {
  if (verdict.reason == "blocked-name") return policy::blocked_name(request.host.name);
  if (verdict.reason != "range") return "";
  const auto address = policy::parse_address(request.host.name);
  return address ? policy::judge(*address).reason : "";
}

// What the gateway's admission of heads has against the request; "" when it takes it. Its path is
// made canonical on the way.
std::string rejection(const policy::Policy& policy, Asked& asked) {
  policy::Request& request = asked.request;
  const bool v6 = request.host.name.contains(':');
  const std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}{}{}:{}\r\n\r\n", request.method, asked.target,
                  v6 ? "[" : "", request.host.name, v6 ? "]" : "", request.port);
  const http::Admission admission = {
      .leg = request.scheme == policy::Scheme::tls ? http::Leg::tls : http::Leg::plain};
  const auto admitted = http::parse_request(head, admission);
  if (!admitted) return admitted.error().text;
  auto path = policy::canonical_path(
      admitted->target, policy::encoded_slash_allowed(policy, request.host.name, request.port));
  if (!path) return path.error().what;
  request.path = std::move(*path);
  return {};
}

// Whether the address is one of this host's own, which no rule opens (gateway/guard.cc).
base::Result<bool> is_own(const policy::Address& address) {
  os::Interfaces interfaces = TRY(os::Interfaces::open());
  const os::LocalNetworks* local = TRY(interfaces.now());
  return std::ranges::any_of(local->own, [&](const os::Network& network) {
    return network.v6 == address.v6 && network.address == address.bytes &&
           network.bits == (network.v6 ? 128U : 32U);
  });
}

// The gateway's refusal of a literal address that the policy alone does not know of.
base::Status judge_own(const policy::Request& request, Answer& answer) {
  const auto address = policy::parse_address(request.host.name);
  if (!request.host.is_address || !address) return {};
  if (!answer.verdict.allow && answer.verdict.reason != "host") return {};
  if (!TRY(is_own(*address))) return {};
  answer = {};
  answer.verdict.reason = "range";
  answer.detail = "own-address";
  return {};
}

// The connection first, then the request where the gateway looks inside: its own order.
Answer answer(const policy::Effective& effective, Asked& asked) {
  const policy::Policy& policy = effective.policy;
  policy::Request& request = asked.request;
  Answer out;
  out.verdict = policy::decide_connection(policy, request);
  const std::string rejected = rejection(policy, asked);
  if (out.verdict.allow && out.verdict.treatment == policy::Treatment::inspect) {
    if (!rejected.empty()) {
      out.verdict = {};
      out.verdict.reason = "malformed";
      out.detail = rejected;
      return out;
    }
    out.verdict = policy::decide_request(policy, request);
  }
  out.detail = detail_of(out.verdict, request);
  if (!out.verdict.allow) return out;
  const auto place = effective.origins.find(fmt::format("egress[{}]", out.verdict.rule_index));
  if (place != effective.origins.end()) out.where = place->second;
  if (out.verdict.rule == policy::kPublicRule) out.where = effective.origins.at("network.default");
  for (const policy::Credential& credential : policy.credentials) {
    if (policy::covers(credential, request)) out.credentials.push_back(credential.name);
  }
  return out;
}

std::string_view treatment_text(policy::Treatment treatment) {
  switch (treatment) {
    case policy::Treatment::refuse:
      return "refused";
    case policy::Treatment::tunnel:
      return "tunnelled";
    case policy::Treatment::inspect:
      return "looked into";
  }
  return "";
}

// The rest of the sentence after "denied: URL: ".
std::string reason_text(const Answer& answer, const policy::Request& request) {
  const std::string& reason = answer.verdict.reason;
  const std::string host = base::printable(request.host.name);
  if (reason == "host") return fmt::format("no rule names {}", host);
  if (reason == "port") return fmt::format("no rule of {} has port {}", host, request.port);
  if (reason == "method") {
    return fmt::format("no rule of that path allows {}", base::printable(request.method));
  }
  if (reason == "path") return fmt::format("no rule of {} allows that path", host);
  if (reason == "header") return "the rule of that path wants other headers";
  if (reason == "range") return fmt::format("{} is never or not opened ({})", host, answer.detail);
  if (reason == "deny-rule") return "a [[deny]] rule forbids it";
  if (reason == "blocked-name")
    return fmt::format("{} is never resolved ({})", host, answer.detail);
  if (reason == "protocol") {
    return fmt::format("port {} of {} does not carry these bytes", request.port, host);
  }
  return fmt::format("the gateway rejects it: {}", answer.detail);
}

std::string text_of(const Asked& asked, const Answer& answer) {
  const std::string url = base::printable(asked.url);
  if (!answer.verdict.allow) {
    std::string out = fmt::format("denied: {} {}: {}\n", base::printable(asked.request.method), url,
                                  reason_text(answer, asked.request));
    if (!answer.verdict.fix.empty()) out += "this would allow it:\n" + answer.verdict.fix;
    return out;
  }
  std::string out;
  if (answer.verdict.audit) {
    out = fmt::format("allowed: {} {}: network.mode = \"audit\" lets it go, {}; enforced, {}\n",
                      base::printable(asked.request.method), url,
                      treatment_text(answer.verdict.treatment), reason_text(answer, asked.request));
    if (!answer.verdict.fix.empty()) out += "this would allow it:\n" + answer.verdict.fix;
    return out;
  }
  out =
      fmt::format("allowed: {} {}: rule \"{}\" ({}), {}\n", base::printable(asked.request.method),
                  url, answer.verdict.rule, answer.where, treatment_text(answer.verdict.treatment));
  for (const std::string& name : answer.credentials) {
    out += fmt::format("credential \"{}\" may be used\n", name);
  }
  return out;
}

std::string json_of(const Asked& asked, const Answer& answer) {
  base::JsonObject out;
  out.add("url", asked.url)
      .add("method", asked.request.method)
      .add("verdict", answer.verdict.audit   ? "audit"
                      : answer.verdict.allow ? "allow"
                                             : "deny")
      .add("reason", answer.verdict.reason)
      .add("detail", answer.detail)
      .add("treatment", treatment_text(answer.verdict.treatment))
      .add("rule", answer.verdict.rule)
      .add("where", answer.where)
      .add("host", asked.request.host.name)
      .add("port", asked.request.port)
      .add("path", asked.request.path)
      .raw("credentials", base::json_strings(answer.credentials))
      .raw("fix", answer.verdict.fix.empty() ? "null" : base::json_string(answer.verdict.fix));
  return out.text() + "\n";
}

}  // namespace

base::Result<int> why(const World& world, const Parsed& parsed) {
  TRY(want_words("why", parsed, 1, "URL [--method M] [POLICY FLAGS]"));
  const std::string method = parsed.value("--method").value_or("GET");
  Asked asked = TRY(read_url(parsed.words[0], method));
  const auto run = parsed.value("--run");
  if (run) TRY(want_no_policy_flags(parsed, "why --run"));
  const policy::Effective effective =
      run ? TRY(effective_of_run(world, *run)) : TRY(load_policy(world, parsed, {}));
  Answer result = answer(effective, asked);
  TRY(judge_own(asked.request, result));
  print(world, parsed.has("--json") ? json_of(asked, result) : text_of(asked, result));
  return result.verdict.allow ? 0 : 1;
}

}  // namespace cli
