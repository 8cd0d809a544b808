// Planting, the run, and looking. The secret's place is a port of this host's loopback on which
// nobody answers: what came to it waits in the kernel until the run is over.
#include "cli/doctor_canary.h"

#include <fcntl.h>

#include <filesystem>
#include <utility>

#include "cli/caught_run.h"
#include "journal/journal.h"
#include "os/net.h"
#include "os/os.h"

namespace cli {
namespace {

constexpr std::size_t kMostText = std::size_t{4} << 20;
constexpr int kMostRequests = 16;

// A folder below /tmp with the planted files, which goes with this.
class Planted {
 public:
  [[nodiscard]] static base::Result<Planted> make(const std::string& secret) {
    constexpr std::size_t kName = 16;
    const std::string name = "/tmp/cerco-canary-" + base::random_base32(kName);
    TRY(os::make_folders(name + "/in", 0755));
    Planted planted(name);
    // Open to all whatever the caller's umask says: that the code inside cannot read them is to be
    // the sandbox's doing.
    TRY(open_to_all(name, 0755));
    TRY(open_to_all(name + "/in", 0755));
    for (const char* file : {"/in/.env", "/in/id_rsa", "/in/plain", "/outside"}) {
      const base::Fd fd = TRY(os::open(name + file, O_WRONLY | O_CREAT | O_EXCL, 0644));
      const bool plain = std::string_view(file).ends_with("plain");
      TRY(os::write_all(fd.get(), plain ? "plain\n" : secret + "\n", name));
      TRY(open_to_all(name + file, 0644));
    }
    return planted;
  }
  Planted(Planted&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  Planted& operator=(Planted&&) = delete;
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
  ~Planted() {
    std::error_code ignored;  // files of ours below /tmp; the host clears what could be left
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  [[nodiscard]] static base::Status open_to_all(const std::string& path, unsigned mode) {
    std::error_code error;
    std::filesystem::permissions(path, std::filesystem::perms(mode), error);
    if (error) return base::system_error("chmod " + path, error.value());
    return {};
  }
  explicit Planted(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

std::vector<std::string> requests_at(int listener) {
  std::vector<std::string> all;
  for (int i = 0; i < kMostRequests; ++i) {
    const auto socket = os::accept(listener);
    if (!socket) break;
    std::string request(std::size_t{16} << 10, '\0');
    const os::Moved got = os::receive(socket->get(), request);
    request.resize(got.bytes);
    all.push_back(std::move(request));
  }
  return all;
}

base::Result<std::string> journal_of(const World& world, const std::string& run) {
  std::string all;
  TRY(journal::read(world.state_dir + "/journal", run, {}, [&](std::string_view line) {
    all += line;
    all += '\n';
  }));
  return all;
}

// Files without a name: nothing of them stays.
base::Result<CanarySeen> run_it(const World& world, const policy::Effective& effective,
                                const CanaryPlan& canary, const std::string& folder) {
  const std::string file = folder + "/policy.toml";
  {
    policy::Effective mine = effective;
    mine.policy = canary_policy(std::move(mine.policy), canary);
    const base::Fd fd = TRY(os::open(file, O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY(os::write_all(fd.get(), policy::show(mine), file));
  }
  World inner = world;
  inner.env["CERCO_CANARY"] = canary.secret;
  Parsed command;
  command.flags = {{"--policy", file}};
  command.rest = {"bash", "-c", canary_script(canary)};
  Caught caught = TRY(caught_run(std::move(inner), std::move(command), kMostText));
  CanarySeen seen;
  seen.status = caught.status;
  seen.inside = std::move(caught.out);
  if (!seen.inside.contains("CANARY began")) print_error(world, caught.errors);
  if (caught.run.empty()) return seen;
  seen.journal = TRY(journal_of(world, caught.run));
  seen.verified = TRY(journal::verify(world.state_dir, caught.run, "", "")).holds;
  return seen;
}

}  // namespace

base::Result<std::vector<CanaryFinding>> try_canary(const World& world,
                                                    const policy::Effective& effective) {
  if (effective.policy.isolation.tier == policy::Tier::isolate) {
    return base::not_yet("doctor --canary in the isolate tier");
  }
  constexpr int kSecret = 32;
  CanaryPlan canary;
  canary.secret = "canary-" + base::random_base32(kSecret);
  const Planted planted = TRY(Planted::make(canary.secret));
  canary.folder = planted.folder() + "/in";
  canary.outside = planted.folder() + "/outside";
  const base::Fd listener = TRY(os::listen(os::Endpoint{.address = {127, 0, 0, 1}}));
  TRY(os::set_nonblocking(listener.get()));
  canary.port = TRY(os::local_endpoint(listener.get())).port;
  CanarySeen seen = TRY(run_it(world, effective, canary, planted.folder()));
  seen.requests = requests_at(listener.get());
  return canary_findings(canary, seen);
}

}  // namespace cli
