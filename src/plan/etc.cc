// What /etc holds inside: written by us, so that nothing of the host's accounts, names or networks
// shows.
#include <fmt/format.h>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/usr/sbin/nologin\n"
    "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
constexpr std::string_view kGroup =
    "root:x:0:\n"
    "tty:x:5:\n"
    "agent:x:1000:\n"
    "nogroup:x:65534:\n";
constexpr std::string_view kHosts =
    "127.0.0.1 localhost\n"
    "127.0.1.1 sandbox\n"
    "::1 localhost ip6-localhost ip6-loopback\n";
constexpr std::string_view kNsswitch =
    "passwd: files\n"
    "group: files\n"
    "shadow: files\n"
    "hosts: files dns\n"
    "networks: files\n"
    "protocols: files\n"
    "services: files\n";
constexpr std::string_view kPip =
    "[global]\n"
    "break-system-packages = true\n"
    "disable-pip-version-check = true\n";
// An empty credential helper clears every helper that a system file could have set.
constexpr std::string_view kGit =
    "[user]\n"
    "\tname = agent\n"
    "\temail = agent@sandbox.invalid\n"
    "[safe]\n"
    "\tdirectory = *\n"
    "[init]\n"
    "\tdefaultBranch = main\n"
    "[credential]\n"
    "\thelper =\n";
constexpr std::string_view kProfile =
    "PATH=/home/agent/.local/bin:/usr/local/bin:/usr/bin:/bin\n"
    "export PATH\n"
    "umask 022\n";

}  // namespace

std::map<std::string, std::string> etc_files(std::string_view run) {
  return {
      {"/etc/gitconfig", std::string(kGit)},
      {"/etc/group", std::string(kGroup)},
      {"/etc/hostname", "sandbox\n"},
      {"/etc/hosts", std::string(kHosts)},
      // Of the run, never of the host: programs that want one find a valid id.
      {"/etc/machine-id", base::sha256(fmt::format("machine-id {}", run)).substr(0, 32) + "\n"},
      {"/etc/nsswitch.conf", std::string(kNsswitch)},
      {"/etc/passwd", std::string(kPasswd)},
      {"/etc/pip.conf", std::string(kPip)},
      {"/etc/profile", std::string(kProfile)},
      {"/etc/resolv.conf", fmt::format("nameserver {}\n", kResolver)},
      {"/etc/shells", "/bin/sh\n/bin/bash\n"},
  };
}

std::vector<std::string> trust_targets() {
  return {std::string(kBundle),
          "/etc/ssl/cert.pem",
          "/etc/ssl/ca-bundle.pem",
          "/etc/pki/tls/certs/ca-bundle.crt",
          "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
          "/etc/ssl/certs/java/cacerts"};
}

std::map<std::string, std::string> trust_variables() {
  std::map<std::string, std::string> variables;
  // PGSSLROOTCERT is left out: its being there turns libpq's `require` into verification.
  for (const char* name :
       {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO",
        "NODE_EXTRA_CA_CERTS", "DENO_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        "NIX_SSL_CERT_FILE", "CONDA_SSL_VERIFY", "MAMBA_SSL_VERIFY", "NPM_CONFIG_CAFILE",
        "YARN_HTTPS_CA_FILE_PATH", "HEX_CACERTS_PATH", "JULIA_SSL_CA_ROOTS_PATH",
        "COMPOSER_CAFILE"}) {
    variables.emplace(name, kBundle);
  }
  variables.emplace("SSL_CERT_DIR", "/etc/ssl/certs");
  variables.emplace("UV_SYSTEM_CERTS", "true");
  return variables;
}

}  // namespace plan
