// cerco: the command line.
//
// SECURITY. Trusts: the caller, whose rights it has, and the policy file that the caller names.
// Holds: for the length of a run the secrets that the policy names, until they are handed to the
// broker; the pipes of the command; never a descriptor of the sandbox's files. What comes out of a
// sandbox (output, files, names of hosts) is data: it is copied as bytes, written below one folder
// by descriptor, or made printable. It cannot confine itself, since it acts with the caller's
// rights on the caller's files; the supervisor that it forks does everything that needs more.
#include "cli/cli.h"

int main(int argc, char** argv, char** environment) {
  const auto world = cli::read_world(argc, argv, environment);
  if (!world) {
    cli::print_error({}, world.error());
    return cli::exit_status(world.error(), 2);
  }
  return cli::main(*world);
}
