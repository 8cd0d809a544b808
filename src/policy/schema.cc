// The readers of the policy, asked for the shapes of what they read.
#include "policy/schema.h"

#include "policy/reader.h"

namespace policy {
namespace {

struct Described {
  std::string shape;
  std::vector<std::string> paths;
};

Described describe() {
  static const Node kNothing;
  Described described;
  Reading reading;
  reading.shape = &described.shape;
  Policy policy = defaults({});
  // No reader refuses to say what it reads; where one did, the schema would lack its key, which the
  // test of all keys notices.
  if (const auto done = read_policy({reading, kNothing, ""}, policy); !done)
    described.shape.clear();
  for (const auto& [path, origin] : reading.origins) described.paths.push_back(path);
  return described;
}

}  // namespace

std::string schema() {
  std::string shape = describe().shape;
  if (!shape.starts_with('{')) return shape;
  return R"({"$schema":"https://json-schema.org/draft/2020-12/schema","title":"cerco policy",)" +
         shape.substr(1);
}

const std::vector<std::string>& key_paths() {
  static const std::vector<std::string> kPaths = describe().paths;
  return kPaths;
}

}  // namespace policy
