// What a minted key needs at most, read from the hosts, methods and paths that it is bound to.
// Sources: GitHub's "Permissions required for GitHub Apps", AWS's "Actions, resources, and
// condition keys for Amazon S3" and AssumeRole, Google's "Downscoped credentials".
#include <fmt/format.h>

#include <algorithm>

#include "policy/policy.h"

namespace policy {
namespace {

bool only_reads(const Credential& credential) {
  return std::ranges::all_of(credential.methods, [](const std::string& method) {
    return method == "GET" || method == "HEAD" || method == "OPTIONS";
  });
}

bool has_method(const Credential& credential, std::string_view method) {
  return std::ranges::find(credential.methods, method) != credential.methods.end();
}

std::vector<std::string_view> segments_of(std::string_view pattern) {
  return base::split(pattern.substr(pattern.starts_with('/') ? 1 : 0), '/');
}

bool is_literal(std::string_view segment) {
  return !segment.empty() && segment.find_first_of("*?%$") == std::string_view::npos;
}

std::unexpected<base::Error> too_wide(std::string_view pattern, std::string expected) {
  return base::bad_input("", fmt::format("{} is wider than the minted key can be", pattern),
                         std::move(expected));
}

// --- GitHub ------------------------------------------------------------------------------------

struct Area {
  std::string_view segment;  // behind /repos/OWNER/REPO/
  std::string_view permission;
};
constexpr Area kAreas[] = {
    {"contents", "contents"},   {"git", "contents"},      {"commits", "contents"},
    {"branches", "contents"},   {"compare", "contents"},  {"tarball", "contents"},
    {"zipball", "contents"},    {"releases", "contents"}, {"readme", "contents"},
    {"merges", "contents"},     {"tags", "contents"},     {"issues", "issues"},
    {"labels", "issues"},       {"milestones", "issues"}, {"assignees", "issues"},
    {"pulls", "pull_requests"}, {"actions", "actions"},   {"check-runs", "checks"},
    {"check-suites", "checks"}, {"statuses", "statuses"}, {"deployments", "deployments"},
    {"pages", "pages"}};

void raise(std::map<std::string, std::string>& permissions, std::string_view name, bool write) {
  std::string& level = permissions[std::string(name)];
  if (level != "write") level = write ? "write" : "read";
}

struct Named {
  std::string owner;
  std::string repository;
  std::size_t rest = 0;  // index of the segment behind
};

base::Result<Named> repository_of(std::string_view pattern) {
  constexpr std::string_view kExpected =
      "expected paths below /repos/OWNER/REPO/, or /OWNER/REPO.git/ of a server of git";
  const auto parts = segments_of(pattern);
  const bool api = parts[0] == "repos";
  const std::size_t at = api ? 1 : 0;
  if (parts.size() < at + 2 || !is_literal(parts[at]) || !is_literal(parts[at + 1])) {
    return too_wide(pattern, std::string(kExpected));
  }
  std::string_view repository = parts[at + 1];
  if (!api) {
    if (!repository.ends_with(".git")) return too_wide(pattern, std::string(kExpected));
    repository.remove_suffix(4);
  }
  return Named{std::string(parts[at]), std::string(repository), at + 2};
}

base::Status add_permission(const Credential& credential, std::string_view pattern,
                            const Named& named, std::map<std::string, std::string>& permissions) {
  const auto parts = segments_of(pattern);
  const bool writes = !only_reads(credential);
  if (parts[0] != "repos") {
    // Fetching posts as well; what is pushed goes to another place.
    const bool fetch = parts.back() == "git-upload-pack" || pattern.ends_with("/info/refs");
    raise(permissions, "contents", writes && !fetch);
    return {};
  }
  if (parts.size() == named.rest && !writes) {
    raise(permissions, "metadata", false);
    return {};
  }
  const std::string_view area = parts.size() > named.rest ? parts[named.rest] : std::string_view();
  const auto found = std::ranges::find(kAreas, area, &Area::segment);
  if (found == std::end(kAreas)) {
    return too_wide(
        pattern, "expected a path such as /repos/OWNER/REPO/issues/**, or github_app.permissions");
  }
  raise(permissions, found->permission, writes);
  return {};
}

// --- AWS ---------------------------------------------------------------------------------------

// The bucket that a host names by itself, "" where it stands in the path.
std::string_view bucket_of(std::string_view host) {
  const auto at = host.find(".s3.");
  return at != std::string_view::npos && host.ends_with(".amazonaws.com") ? host.substr(0, at)
                                                                          : std::string_view();
}

struct Objects {
  std::string bucket;
  std::string keys;    // "*", "a/b*"
  bool whole = false;  // the bucket itself as well
};

base::Result<Objects> objects_of(std::string_view host, std::string_view pattern) {
  constexpr std::string_view kExpected = "expected paths that name one bucket such as /BUCKET/**";
  Objects objects;
  std::string_view key = pattern.substr(pattern.starts_with('/') ? 1 : 0);
  if (const std::string_view own = bucket_of(host); !own.empty()) {
    objects.bucket = own;
  } else {
    objects.bucket = key.substr(0, key.find('/'));
    key = key.contains('/') ? key.substr(key.find('/') + 1) : std::string_view();
  }
  if (!is_literal(objects.bucket)) return too_wide(pattern, std::string(kExpected));
  objects.whole = key.empty() || key == "**";
  if (key.find_first_of("?%$") != std::string_view::npos) {
    return too_wide(pattern, "expected a path without escapes, ? and $");
  }
  for (const char c : key) {
    if (c != '*' || !objects.keys.ends_with('*')) objects.keys += c;
  }
  return objects;
}

std::string statement(const std::vector<std::string>& actions,
                      const std::vector<std::string>& resources) {
  return base::JsonObject()
      .add("Effect", "Allow")
      .raw("Action", base::json_strings(actions))
      .raw("Resource", base::json_strings(resources))
      .text();
}

std::string with_statements(const std::vector<std::string>& statements) {
  return base::JsonObject()
      .add("Version", "2012-10-17")
      .raw("Statement", base::json_array(statements))
      .text();
}

std::vector<std::string> object_actions(const Credential& credential) {
  std::vector<std::string> actions;
  const bool writes = has_method(credential, "PUT") || has_method(credential, "POST");
  if (has_method(credential, "GET") || has_method(credential, "HEAD")) {
    actions.emplace_back("s3:GetObject");
  }
  if (writes) actions.emplace_back("s3:PutObject");
  if (writes) actions.emplace_back("s3:ListMultipartUploadParts");
  if (writes || has_method(credential, "DELETE")) actions.emplace_back("s3:AbortMultipartUpload");
  if (has_method(credential, "DELETE")) actions.emplace_back("s3:DeleteObject");
  return actions;
}

base::Result<std::string> s3_policy(const Credential& credential) {
  std::vector<std::string> objects;
  std::vector<std::string> buckets;
  for (const std::string& host : credential.hosts) {
    for (const std::string& pattern : credential.paths) {
      const Objects found = TRY(objects_of(host, pattern));
      const std::string bucket = "arn:aws:s3:::" + found.bucket;
      if (!found.keys.empty()) objects.push_back(bucket + "/" + found.keys);
      if (found.whole) buckets.push_back(bucket);
    }
  }
  std::vector<std::string> statements;
  const std::vector<std::string> actions = object_actions(credential);
  if (!objects.empty() && !actions.empty()) statements.push_back(statement(actions, objects));
  if (!buckets.empty() && has_method(credential, "GET")) {
    statements.push_back(statement({"s3:ListBucket", "s3:GetBucketLocation"}, buckets));
  }
  if (statements.empty()) return too_wide("a binding without objects", "expected GET, PUT, POST");
  return with_statements(statements);
}

// Where the name in a signature is not the one in a policy.
std::string_view iam_name(std::string_view service) {
  if (service == "monitoring") return "cloudwatch";
  if (service == "email") return "ses";
  return service;
}

// --- Google ------------------------------------------------------------------------------------

// The bucket of a path of Cloud Storage's JSON API or of its XML API; "" where there is none.
std::string google_bucket(std::string_view pattern) {
  const auto parts = segments_of(pattern);
  std::size_t at = 0;
  if (parts.size() > 1 && (parts[0] == "upload" || parts[0] == "download")) ++at;
  const bool json = parts.size() > at + 2 && parts[at] == "storage" && parts[at + 1] == "v1";
  if (json && parts[at + 2] != "b") return {};
  const std::size_t index = json ? at + 3 : 0;
  if (parts.size() <= index || !is_literal(parts[index])) return {};
  return std::string(parts[index]);
}

}  // namespace

base::Result<GithubGrant> github_grant(const Credential& credential) {
  GithubGrant grant;
  for (const std::string& pattern : credential.paths) {
    const Named named = TRY(repository_of(pattern));
    if (!grant.owner.empty() && grant.owner != named.owner) {
      return base::bad_input("", "the binding names repositories of two owners",
                             "expected one [[credential]] for each owner");
    }
    grant.owner = named.owner;
    if (std::ranges::find(grant.repositories, named.repository) == grant.repositories.end()) {
      grant.repositories.push_back(named.repository);
    }
    if (credential.source.mint.permissions.empty()) {
      TRY(add_permission(credential, pattern, named, grant.permissions));
    }
  }
  if (grant.permissions.empty()) grant.permissions = credential.source.mint.permissions;
  return grant;
}

base::Result<std::string> aws_session_policy(const Credential& credential) {
  constexpr std::size_t kMost = 2048;  // characters that AssumeRole takes
  if (credential.inject.kind != InjectKind::sigv4) {
    return base::bad_input("", "keys of AWS are for signatures",
                           "expected inject = { sigv4 = { region, service } }");
  }
  const std::string& service = credential.inject.service;
  std::string text =
      service == "s3"
          ? TRY(s3_policy(credential))
          : with_statements({statement({std::string(iam_name(service)) + ":*"}, {"*"})});
  if (text.size() > kMost) {
    return base::bad_input("", "the binding makes a session policy of more than 2048 characters",
                           "expected fewer hosts and paths");
  }
  return text;
}

base::Result<std::string> gcp_boundary(const Credential& credential) {
  const bool storage = std::ranges::all_of(
      credential.hosts, [](const std::string& host) { return host == "storage.googleapis.com"; });
  if (!storage) {
    if (!credential.source.mint.scope.empty()) return std::string();
    return base::bad_input("", "only keys of storage.googleapis.com are narrowed by the binding",
                           "expected gcp.scope for other hosts");
  }
  const std::string role = only_reads(credential) ? "inRole:roles/storage.objectViewer"
                                                  : "inRole:roles/storage.objectAdmin";
  std::vector<std::string> buckets;
  for (const std::string& pattern : credential.paths) {
    const std::string bucket = google_bucket(pattern);
    if (bucket.empty()) return too_wide(pattern, "expected paths that name one bucket");
    if (std::ranges::find(buckets, bucket) == buckets.end()) buckets.push_back(bucket);
  }
  std::vector<std::string> rules;
  for (const std::string& bucket : buckets) {
    rules.push_back(
        base::JsonObject()
            .add("availableResource", "//storage.googleapis.com/projects/_/buckets/" + bucket)
            .raw("availablePermissions", base::json_strings(std::vector{role}))
            .text());
  }
  return base::JsonObject()
      .raw("accessBoundary",
           base::JsonObject().raw("accessBoundaryRules", base::json_array(rules)).text())
      .text();
}

}  // namespace policy
