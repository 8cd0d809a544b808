// From a binding to a request that it covers.
#include "cli/credential_test_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace cli {
namespace {

constexpr std::string_view kHole = "{secret}";

std::string where(const policy::Credential& credential) {
  return "credential test " + base::printable(credential.name);
}

base::Result<std::string> method_of(const policy::Credential& credential) {
  for (const char* method : {"GET", "HEAD"}) {
    if (std::ranges::find(credential.methods, method) != credential.methods.end()) {
      return std::string(method);
    }
  }
  return base::bad_input(where(credential), "its methods may change something",
                         "--method M for one of them");
}

base::Result<std::string> url_of(const policy::Credential& credential) {
  const std::string& host = credential.hosts.front();
  const std::string& pattern = credential.paths.front();
  const bool below = pattern.ends_with("/**");
  const std::string path = below ? pattern.substr(0, pattern.size() - 2) : pattern;
  if (host.contains('*') || path.contains('*')) {
    return base::bad_input(where(credential), "its binding names no single place",
                           "--url URL for one that it covers");
  }
  const bool tls = host != policy::kHostName;
  const std::uint16_t port = credential.ports.front();
  const std::string at = tls && port == 443 ? "" : ":" + std::to_string(port);
  return (tls ? "https://" : "http://") + host + at + path;
}

// What stands before and after the placeholder in the one argument of curl that has it.
struct Around {
  std::string flag;
  std::string before;
  std::string after;
};

Around in_query(const policy::Inject& inject, const std::string& url, std::string_view before,
                std::string_view after) {
  const char* sign = url.contains('?') ? "&" : "?";
  return {"", url + sign + inject.field + "=" + std::string(before), std::string(after)};
}

// The segment stands in front of what the URL has there.
Around in_path(const policy::Inject& inject, const std::string& url, std::string_view before,
               std::string_view after) {
  std::size_t at = url.find('/', url.find("://") + 3);
  for (std::uint64_t i = 1; i < inject.segment && at != std::string::npos; ++i) {
    at = url.find('/', at + 1);
  }
  if (at == std::string::npos) at = url.size();
  const std::size_t end = std::min(url.find('/', at + 1), url.size());
  return {"", url.substr(0, std::min(at + 1, url.size())) + std::string(before),
          std::string(after) + url.substr(end)};
}

Around around(const policy::Inject& inject, const std::string& url) {
  const auto hole = inject.format.find(kHole);
  const std::string before = inject.format.substr(0, hole);
  const std::string after =
      inject.format.substr(std::min(hole + kHole.size(), inject.format.size()));
  switch (inject.kind) {
    case policy::InjectKind::header:
      return {"-H", inject.header + ": " + before, after};
    case policy::InjectKind::basic:
      return {"-u", inject.user + ":", ""};
    case policy::InjectKind::query:
      return in_query(inject, url, before, after);
    case policy::InjectKind::path:
      return in_path(inject, url, before, after);
    case policy::InjectKind::body:
      return {"--data-urlencode", inject.field + "=" + before, after};
    case policy::InjectKind::mtls:
    case policy::InjectKind::postgres:
    case policy::InjectKind::sigv4:
      break;
  }
  return {};
}

}  // namespace

base::Result<TestRequest> test_request(const policy::Credential& credential,
                                       const std::string& method, const std::string& url) {
  const bool plain = std::ranges::all_of(
      method, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-'; });
  if (!plain || method.size() > 40) {
    return base::bad_input("--method",
                           "`" + base::printable(method.substr(0, 80)) + "` is no method",
                           "expected one such as GET");
  }
  if (credential.inject.kind == policy::InjectKind::postgres) {
    return base::not_yet(where(credential) + ": a test of a session with PostgreSQL");
  }
  // It takes two variables, and a client that signs.
  if (credential.inject.kind == policy::InjectKind::sigv4) {
    return base::not_yet(where(credential) + ": a test of signatures");
  }
  TestRequest request;
  request.method = method.empty() ? TRY(method_of(credential)) : method;
  request.url = url.empty() ? TRY(url_of(credential)) : url;
  const auto variable =
      std::ranges::find_if(credential.env, [](const auto& one) { return one.second == "secret"; });
  const bool held = variable != credential.env.end();
  if (!held && credential.require) {
    return base::bad_input(where(credential), "nothing inside holds its placeholder",
                           "env = { NAME = \"secret\" } in the credential");
  }
  std::string curl = "exec curl -sS -g -m 30 -o /dev/null -w '%{http_code}' " +
                     std::string(request.method == "HEAD" ? "-I" : "-X " + request.method);
  if (!held) {
    request.argv = {"sh", "-c", curl + R"( -- "$1")", "sh", request.url};
    return request;
  }
  const Around place = around(credential.inject, request.url);
  const std::string argument = R"("$1${)" + variable->first + R"(}$2")";
  if (place.flag.empty()) {
    request.argv = {"sh", "-c", curl + " -- " + argument, "sh", place.before, place.after};
    request.url = place.before + "…" + place.after;
  } else {
    request.argv = {
        "sh",       "-c",         curl + " " + place.flag + " " + argument + R"( -- "$3")",
        "sh",       place.before, place.after,
        request.url};
  }
  return request;
}

}  // namespace cli
