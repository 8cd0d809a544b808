// Whether a guest runs on this host's /dev/kvm, by running one (Documentation/virt/kvm/api.rst).
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "host/known.h"
#include "host/machine.h"
#include "os/os.h"

namespace host {
namespace {

// Physical addresses of the guest: its code, and tables that map its first 2 MiB to themselves.
constexpr std::uint64_t kCodeAt = 0x1000;
constexpr std::uint64_t kTablesAt = 0x2000;
constexpr std::uint64_t kMemory = 0x200000;
constexpr std::uint64_t kPresent = 3;  // and writable
constexpr std::uint64_t kLargePage = 0x83;
constexpr int kBudgetMs = 500;
constexpr std::uint16_t kPort = 0xe9;

#if defined(__x86_64__)
// Long mode, ring 0: what every kernel does in its first moments, then a sum.
constexpr std::array kCode = std::to_array<std::uint8_t>({
    0x0f, 0x20, 0xd8,              // mov rax, cr3
    0x0f, 0x22, 0xd8,              // mov cr3, rax
    0xb9, 0x80, 0x00, 0x00, 0xc0,  // mov ecx, EFER
    0x0f, 0x32,                    // rdmsr
    0x0f, 0x30,                    // wrmsr
    0x0f, 0x01, 0xf8,              // swapgs
    0xfa,                          // cli
    0xb9, 0x40, 0x42, 0x0f, 0x00,  // mov ecx, 1000000
    0x31, 0xc0,                    // xor eax, eax
    0xff, 0xc0,                    // again: inc eax
    0xe2, 0xfc,                    // loop again
    0xc1, 0xe8, 0x10,              // shr eax, 16
    0xe6, 0xe9,                    // out 0xe9, al
    0xf4,                          // hlt
});
// In C++ the header's flexible array makes kvm_cpuid2, and with it these numbers, too large.
constexpr std::size_t kHead = 8;
constexpr unsigned long kGetFeatures = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x05, kHead);
constexpr unsigned long kSetFeatures = _IOC(_IOC_WRITE, KVMIO, 0x90, kHead);

constexpr std::uint8_t kSum = 1'000'000 >> 16;

class Trial {
 public:
  // "" when the guest told its sum.
  std::string run() {
    kvm_ = base::Fd(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
    if (!kvm_.open()) return fmt::format("/dev/kvm: {}", strerrorname_np(errno));
    if (::ioctl(kvm_.get(), KVM_GET_API_VERSION, 0) != KVM_API_VERSION) return "another version";
    if (!make()) return fmt::format("/dev/kvm makes no machine: {}", strerrorname_np(errno));
    return steps();
  }

 private:
  bool make() {
    machine_ = base::Fd(::ioctl(kvm_.get(), KVM_CREATE_VM, 0));
    if (!machine_.open()) return false;
    memory_ = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) return false;
    write_memory();
    kvm_userspace_memory_region region = {};
    region.memory_size = kMemory;
    region.userspace_addr = reinterpret_cast<std::uint64_t>(memory_);
    if (::ioctl(machine_.get(), KVM_SET_USER_MEMORY_REGION, &region) != 0) return false;
    processor_ = base::Fd(::ioctl(machine_.get(), KVM_CREATE_VCPU, 0));
    if (!processor_.open()) return false;
    const int size = ::ioctl(kvm_.get(), KVM_GET_VCPU_MMAP_SIZE, 0);
    if (size < static_cast<int>(sizeof(kvm_run))) return false;
    void* const shared = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                                MAP_SHARED, processor_.get(), 0);
    if (shared == MAP_FAILED) return false;
    run_ = static_cast<kvm_run*>(shared);
    if (!give_features()) return false;
    kvm_sregs special = {};
    if (::ioctl(processor_.get(), KVM_GET_SREGS, &special) != 0) return false;
    enter_long_mode(special);
    kvm_regs registers = {};
    registers.rip = kCodeAt;
    registers.rflags = 2;
    return ::ioctl(processor_.get(), KVM_SET_SREGS, &special) == 0 &&
           ::ioctl(processor_.get(), KVM_SET_REGS, &registers) == 0;
  }

  // Without them the processor has no long mode.
  [[nodiscard]] bool give_features() const {
    constexpr std::uint32_t kMost = 256;
    std::vector<char> room(kHead + kMost * sizeof(kvm_cpuid_entry2));
    std::memcpy(room.data(), &kMost, sizeof kMost);
    return ::ioctl(kvm_.get(), kGetFeatures, room.data()) == 0 &&
           ::ioctl(processor_.get(), kSetFeatures, room.data()) == 0;
  }

  void write_memory() const {
    const std::array<std::uint64_t, 3> entries = {(kTablesAt + 0x1000) | kPresent,
                                                  (kTablesAt + 0x2000) | kPresent, kLargePage};
    auto* at = static_cast<char*>(memory_);
    std::memcpy(at + kCodeAt, kCode.data(), kCode.size());
    for (std::size_t level = 0; level < entries.size(); ++level) {
      std::memcpy(at + kTablesAt + level * 0x1000, &entries.at(level), sizeof entries[0]);
    }
  }

  // Flat segments, paging on, ring 0 (Intel SDM vol. 3A, 10.8.5).
  static void enter_long_mode(kvm_sregs& special) {
    special.cr3 = kTablesAt;
    special.cr4 = 0x20;        // PAE
    special.cr0 = 0x80050033;  // PG, AM, WP, NE, ET, MP, PE
    special.efer = 0x500;      // LMA, LME
    kvm_segment code = {};
    code.limit = 0xffffffff;
    code.selector = 8;
    code.type = 11;
    code.present = code.s = code.l = code.g = 1;
    special.cs = code;
    kvm_segment data = code;
    data.selector = 16;
    data.type = 3;
    data.l = 0;
    data.db = 1;
    special.ds = special.es = special.fs = special.gs = special.ss = data;
  }

  std::string steps() {
    bool told = false;
    while (true) {
      if (::ioctl(processor_.get(), KVM_RUN, 0) != 0) {
        return fmt::format("a guest on /dev/kvm does not run: {}", strerrorname_np(errno));
      }
      const auto* data = reinterpret_cast<const char*>(run_) + run_->io.data_offset;
      if (run_->exit_reason == KVM_EXIT_IO && run_->io.port == kPort) {
        told = static_cast<std::uint8_t>(*data) == kSum;
      } else if (run_->exit_reason == KVM_EXIT_HLT) {
        return told ? "" : "a guest on /dev/kvm miscounts";
      } else {
        return fmt::format("a guest on /dev/kvm ends with exit {}", run_->exit_reason);
      }
    }
  }

  base::Fd kvm_, machine_, processor_;
  void* memory_ = nullptr;
  kvm_run* run_ = nullptr;
};
#endif

}  // namespace

// In a process of its own, which is killed when it takes too long: KVM_RUN may never come back.
std::string probe_kvm() {
#if defined(__x86_64__)
  if (!os::may_access("/dev/kvm", os::Access::write)) return "no /dev/kvm that may be opened";
  auto pipe = os::pipe();
  if (!pipe) return pipe.error().line();
  const std::array<int, 1> keep = {pipe->second.get()};
  auto child = os::fork_child(keep, [&] {
    const std::string lack = Trial().run();
    return os::write_all(pipe->second.get(), lack + "\n", "pipe") ? 0 : 1;
  });
  if (!child) return child.error().line();
  pipe->second.reset();
  std::array<pollfd, 1> waiting = {{{pipe->first.get(), POLLIN, 0}}};
  const auto ready = os::wait_for(waiting, kBudgetMs);
  if (!ready || !*ready) {
    child->kill(SIGKILL);
    return fmt::format("a guest on /dev/kvm did nothing for {} ms", kBudgetMs);
  }
  const auto text = os::read_some(pipe->first.get(), 256, "pipe");
  if (!text || text->empty()) return "a guest on /dev/kvm took its process with it";
  return text->substr(0, text->find('\n'));
#else
  return "not on this architecture";
#endif
}

// A guest that hangs takes the whole budget, so that is found out once a boot of the host.
std::string known_kvm_lack(const std::string& state_dir) {
  const auto boot = os::read_file("/proc/sys/kernel/random/boot_id", 64);
  if (!boot) return probe_kvm();
  const std::string name = "kvm-lacks";
  if (auto lack = known(state_dir, name, *boot)) return std::move(*lack);
  std::string lack = probe_kvm();
  if (!lack.empty()) keep(state_dir, name, *boot, lack);
  return lack;
}

std::uint64_t measure_tsc_khz() {
#if defined(__x86_64__)
  constexpr std::int64_t kSpan = 4'000'000;  // ns
  const auto now = [] {
    timespec at = {};
    (void)::clock_gettime(CLOCK_MONOTONIC_RAW, &at);
    return at.tv_sec * std::int64_t{1'000'000'000} + at.tv_nsec;
  };
  // Of several, the one that was disturbed least.
  std::uint64_t best = 0;
  for (int round = 0; round < 3; ++round) {
    const std::int64_t begin = now();
    const std::uint64_t first = __builtin_ia32_rdtsc();
    while (now() - begin < kSpan) {
    }
    const std::uint64_t ticks = __builtin_ia32_rdtsc() - first;
    const auto span = static_cast<std::uint64_t>(now() - begin);
    const std::uint64_t khz = ticks * 1'000'000 / span;
    best = std::max(best, khz);
  }
  return best;
#else
  return 0;
#endif
}

}  // namespace host
