// cerco-without P1,P2 ARG…: cerco with single protections taken out of its plan, so that a test can
// show that an attack gets through without them (positive control).
//
// SECURITY. For tests only: it is never installed, and the shipped programs have no way to do what
// it does.
#include "cli/cli.h"

namespace {

constexpr int kUsage = 2;

int usage(const std::string& problem) {
  cli::print_error({}, "cerco-without: " + problem + "; usage: cerco-without P1,P2 run …\n");
  return kUsage;
}

}  // namespace

int main(int argc, char** argv, char** environment) {
  auto world = cli::read_world(argc, argv, environment);
  if (!world) return usage(world.error().line());
  if (world->args.empty()) return usage("no protection is named");
  std::vector<plan::Protection> out;
  for (const std::string_view name : base::split(world->args[0], ',')) {
    const auto protection = plan::protection_named(name);
    if (!protection) return usage("no protection `" + std::string(name) + "`");
    out.push_back(*protection);
  }
  world->args.erase(world->args.begin());
  world->verify = supervisor::Verify::nothing;
  world->edit_plan = [out](plan::Plan& plan) {
    for (const plan::Protection protection : out) plan::take_out(plan, protection);
  };
  return cli::main(*world);
}
