// For the tests of module sandbox.
#include "sandbox/container/fixture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/frame.h"
#include "os/os.h"
#include "priv/cgroup.h"
#include "priv/lease.h"

namespace sandbox::testing {

namespace {

constexpr std::size_t kMost = 1 << 20;

template <class T>
base::Result<T> receive(const ipc::Channel& channel) {
  auto message = TRY(channel.receive());
  if (!message) return base::fail(base::Kind::peer, "cerco-init", "ended", {});
  return base::decode<T>(message->bytes, "cerco-init");
}

plan::CgroupPlan cgroups() {
  plan::CgroupPlan made;
  const auto all = controllers();
  const auto add = [&](const std::string& name, std::vector<std::pair<std::string, std::string>> v1,
                       std::vector<std::pair<std::string, std::string>> v2) {
    const auto found = all.find(name);
    if (found == all.end()) return;
    const bool is_v1 = found->second.kind == plan::CgroupKind::v1;
    made.groups.push_back({name, found->second, is_v1 ? std::move(v1) : std::move(v2)});
  };
  add("memory", {{"memory.limit_in_bytes", "268435456"}},
      {{"memory.max", "268435456"}, {"memory.oom.group", "1"}});
  add("pids", {{"pids.max", "64"}}, {{"pids.max", "64"}});
  add("cpu", {}, {});
  add("cpuacct", {}, {});
  add("freezer", {}, {});
  add("unified", {}, {});
  return made;
}

std::string link_of(const std::string& path) {
  std::array<char, PATH_MAX> text = {};
  const ssize_t got = ::readlink(path.c_str(), text.data(), text.size());
  return got < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
}

void add_base(plan::Plan& made) {
  made.steps.emplace_back(plan::BindReadOnly{"/usr", "/usr"});
  for (const std::string name : {"/bin", "/sbin", "/lib", "/lib64"}) {
    if (const std::string text = link_of(name); !text.empty()) {
      made.steps.emplace_back(plan::MakeLink{name, text});
    } else if (::access(name.c_str(), F_OK) == 0) {
      made.steps.emplace_back(plan::BindReadOnly{name, name});
    }
  }
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = "/tmp/cerco-test-XXXXXX";
  if (::mkdtemp(name.data()) != nullptr) path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

std::map<std::string, plan::Controller> controllers() {
  std::map<std::string, plan::Controller> all;
  const std::string top = "/sys/fs/cgroup";
  const auto own = os::read_file("/proc/self/cgroup", kMost).value_or("");
  for (const auto line : base::split(own, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string path(line.substr(second + 1));
    const std::string below = path == "/" ? "" : path;
    if (first + 1 == second) {
      const bool hybrid = ::access((top + "/unified/cgroup.procs").c_str(), F_OK) == 0;
      all["unified"] = {plan::CgroupKind::v2, top + (hybrid ? "/unified" : "") + below};
      continue;
    }
    for (const auto name : base::split(line.substr(first + 1, second - first - 1), ',')) {
      const std::string folder = top + "/" + std::string(name) + below;
      if (::access((folder + "/tasks").c_str(), F_OK) == 0) {
        all[std::string(name)] = {plan::CgroupKind::v1, folder};
      }
    }
  }
  if (all.size() > 1 || !all.contains("unified")) return all;
  for (const std::string name : {"memory", "pids", "cpu"}) all[name] = all["unified"];
  return all;
}

plan::Plan whole_plan(const std::string& state_dir) {
  plan::Plan made;
  made.run = base::random_base32(12);
  made.state_dir = state_dir;
  made.helper_dir = CERCO_BUILD_DIR;
  for (std::uint64_t i = 0; i <= static_cast<std::uint64_t>(plan::Protection::last_); ++i) {
    made.protections.insert(static_cast<plan::Protection>(i));
  }
  made.cgroup = cgroups();
  made.steps = {
      plan::EnterCgroup{},
      plan::CloneNamespaces{{"user", "mount", "pid", "network", "ipc", "uts", "cgroup", "time"}},
      plan::MapUsers{},
      plan::SetHostname{},
      plan::Capture{.steered = {{"198.19.0.0/16", {443, 80}}, {"fd63:6572:636f:1::/64", {443}}}},
      plan::MountRoot{4 << 20}};
  for (const std::string folder : {"/etc", "/home", "/var", "/run"}) {
    made.steps.emplace_back(plan::MakeFolder{folder});
  }
  add_base(made);
  made.steps.emplace_back(plan::WriteFile{
      "/etc/passwd", "root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"});
  made.steps.emplace_back(plan::WriteFile{"/etc/group", "root:x:0:\nagent:x:1000:\n"});
  made.steps.emplace_back(
      plan::MountDisk{64 << 20, 2000, {"/workspace", "/home/agent", "/tmp", "/var/tmp"}});
  made.steps.emplace_back(plan::MountDev{16 << 20});
  made.steps.emplace_back(
      plan::MountProc{{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sysrq-trigger",
                       "/proc/acpi", "/proc/scsi", "/proc/kallsyms", "/proc/interrupts"},
                      {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"}});
  made.steps.emplace_back(plan::PivotRoot{});
  made.steps.emplace_back(
      plan::Landlock{{"/"}, {"/workspace", "/home/agent", "/tmp", "/var/tmp", "/dev", "/proc"}});
  made.steps.emplace_back(plan::DropCapabilities{});
  made.steps.emplace_back(plan::NoNewPrivs{});
  made.steps.emplace_back(plan::Rlimits{1024});
  return made;
}

Inputs inputs() {
  return {"", std::string(CERCO_BUILD_DIR) + "/cerco-init"};
}

std::unique_ptr<Sandbox> start_ready(const plan::Plan& plan) {
  auto sandbox = start_container(plan, inputs());
  EXPECT_TRUE(sandbox) << (sandbox ? "" : sandbox.error().line());
  if (!sandbox) return nullptr;
  const auto answer = receive<frame::FromInit>((*sandbox)->control());
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().line());
  if (!answer || !std::holds_alternative<frame::Ready>(*answer)) return nullptr;
  return std::move(*sandbox);
}

plan::Plan without(plan::Plan plan, const std::set<plan::Protection>& protections) {
  for (const auto protection : protections) plan::take_out(plan, protection);
  return plan;
}

Outcome run(Sandbox& sandbox, const std::string& script, As who) {
  static std::uint64_t last = 0;
  Outcome outcome;
  auto pipe = os::pipe();
  auto null = os::open("/dev/null", O_RDONLY, 0);
  if (!pipe || !null) return outcome;
  frame::Exec exec;
  exec.id = ++last;
  exec.argv = {"/bin/sh", "-c", script};
  exec.env = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME=/home/agent", "LANG=C.UTF-8"};
  exec.cwd = "/";
  exec.uid = exec.gid = who == As::agent ? 1000 : 0;
  exec.drop_capabilities = exec.no_new_privs = who != As::root_with_all;
  const std::array<int, 3> fds = {null->get(), pipe->second.get(), pipe->second.get()};
  if (!ipc::send_value(sandbox.control(), frame::ToInit(exec), fds)) return outcome;
  pipe->second.reset();
  while (true) {
    const auto answer = receive<frame::FromInit>(sandbox.control());
    if (!answer) {
      outcome.output = "no answer: " + answer.error().line();
      return outcome;
    }
    if (const auto* failed = std::get_if<frame::NotStarted>(&*answer)) {
      outcome.output = fmt::format("{}: {}", failed->step, failed->error);
      return outcome;
    }
    outcome.started = true;
    if (const auto* ended = std::get_if<frame::Ended>(&*answer)) {
      outcome.signalled = ended->signalled;
      outcome.code = ended->code;
      break;
    }
  }
  // What the command left running may hold the pipe: no waiting for its end.
  (void)::fcntl(pipe->first.get(), F_SETFL, O_NONBLOCK);
  while (true) {
    const auto part = os::read_some(pipe->first.get(), 65536, "output");
    if (!part || part->empty()) return outcome;
    outcome.output += *part;
  }
}

Outcome run_in_new(const plan::Plan& plan, const std::string& script, As who) {
  const auto sandbox = start_ready(plan);
  if (sandbox == nullptr) return {.output = "not started"};
  Outcome outcome = run(*sandbox, script, who);
  if (const auto gone = sandbox->destroy(); !gone) outcome.output += gone.error().line();
  return outcome;
}

std::size_t processes_of(std::uint32_t first_uid) {
  std::size_t count = 0;
  for (const auto& name : os::list_folder("/proc").value_or(std::vector<std::string>())) {
    struct stat status = {};
    if (!base::parse_number(name) || ::stat(("/proc/" + name).c_str(), &status) != 0) continue;
    if (status.st_uid >= first_uid && status.st_uid - first_uid < priv::kLeaseSize) ++count;
  }
  return count;
}

std::set<std::string> traces(const plan::Plan& plan) {
  std::set<std::string> found;
  const auto mounts = os::read_file("/proc/self/mounts", kMost).value_or("");
  for (const auto line : base::split(mounts, '\n')) {
    // `ip netns`, which cerco never uses, mounts there for whoever calls it.
    if (!line.contains(" /run/netns")) found.insert("mount " + std::string(line));
  }
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block")) {
    const std::string image = entry.path().string() + "/loop/backing_file";
    // Of others' loop devices nothing is said; ours lie below the state folder.
    const std::string file = os::read_file(image, 4096).value_or("");
    if (file.starts_with(plan.state_dir)) found.insert("loop " + file);
  }
  for (const auto& [name, controller] : controllers()) {
    const std::string group = controller.path + "/" + std::string(priv::kGroupPrefix) + plan.run;
    if (::access(group.c_str(), F_OK) == 0) found.insert(group);
  }
  if (const auto leases = os::list_folder(plan.state_dir + "/leases")) {
    for (const auto& lease : *leases) found.insert("lease " + lease);
  }
  const auto children =
      os::read_file(fmt::format("/proc/self/task/{}/children", ::getpid()), kMost).value_or("");
  for (const auto child : base::split(children, ' ')) {
    if (!child.empty()) found.insert("process " + std::string(child));
  }
  return found;
}

}  // namespace sandbox::testing
