// Runs a seccomp program on one call, as the kernel would (net/core/filter.c, kernel/seccomp.c).
#include <linux/bpf_common.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "confine/confine.h"

namespace confine {
namespace {

struct Machine {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory = {};
};

std::optional<std::uint32_t> arithmetic(std::uint16_t code, std::uint32_t a,
                                        std::uint32_t operand) {
  switch (BPF_OP(code)) {
    case BPF_ADD:
      return a + operand;
    case BPF_SUB:
      return a - operand;
    case BPF_MUL:
      return a * operand;
    case BPF_AND:
      return a & operand;
    case BPF_OR:
      return a | operand;
    case BPF_XOR:
      return a ^ operand;
    case BPF_LSH:
      return operand < 32 ? a << operand : 0;
    case BPF_RSH:
      return operand < 32 ? a >> operand : 0;
    case BPF_NEG:
      return 0 - a;
    default:
      return std::nullopt;  // divisions: no program of ours has them
  }
}

std::optional<bool> holds(std::uint16_t code, std::uint32_t a, std::uint32_t operand) {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return a == operand;
    case BPF_JGT:
      return a > operand;
    case BPF_JGE:
      return a >= operand;
    case BPF_JSET:
      return (a & operand) != 0;
    default:
      return std::nullopt;
  }
}

// Everything but jumps and returns; false for what the kernel's seccomp_check_filter refuses.
bool step(Machine& machine, const sock_filter& at, const seccomp_data& data) {
  switch (BPF_CLASS(at.code)) {
    case BPF_LD:
      if (at.code == (BPF_LD | BPF_IMM)) {
        machine.a = at.k;
      } else if (at.code == (BPF_LD | BPF_MEM) && at.k < BPF_MEMWORDS) {
        machine.a = machine.memory[at.k];
      } else if (at.code == (BPF_LD | BPF_W | BPF_ABS) && at.k % 4 == 0 && at.k < sizeof data) {
        std::memcpy(&machine.a, reinterpret_cast<const char*>(&data) + at.k, sizeof machine.a);
      } else {
        return false;
      }
      return true;
    case BPF_ST:
      if (at.k >= BPF_MEMWORDS) return false;
      machine.memory[at.k] = machine.a;
      return true;
    case BPF_MISC:
      (BPF_MISCOP(at.code) == BPF_TAX ? machine.x : machine.a) =
          BPF_MISCOP(at.code) == BPF_TAX ? machine.a : machine.x;
      return true;
    case BPF_ALU: {
      const auto result =
          arithmetic(at.code, machine.a, BPF_SRC(at.code) == BPF_X ? machine.x : at.k);
      machine.a = result.value_or(0);
      return result.has_value();
    }
    default:
      return false;
  }
}

}  // namespace

std::uint32_t evaluate(std::span<const sock_filter> filter, std::uint32_t nr, std::uint32_t arch,
                       const std::array<std::uint64_t, 6>& args) {
  seccomp_data data = {};
  data.nr = static_cast<int>(nr);
  data.arch = arch;
  std::memcpy(data.args, args.data(), sizeof data.args);
  Machine machine;
  if (filter.size() > BPF_MAXINSNS) return SECCOMP_RET_KILL_PROCESS;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& now = filter[at];
    if (BPF_CLASS(now.code) == BPF_RET) return BPF_RVAL(now.code) == BPF_A ? machine.a : now.k;
    if (now.code == (BPF_JMP | BPF_JA)) {
      at += now.k;
    } else if (BPF_CLASS(now.code) == BPF_JMP) {
      const auto yes = holds(now.code, machine.a, BPF_SRC(now.code) == BPF_X ? machine.x : now.k);
      if (!yes) return SECCOMP_RET_KILL_PROCESS;
      at += *yes ? now.jt : now.jf;
    } else if (!step(machine, now, data)) {
      return SECCOMP_RET_KILL_PROCESS;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

}  // namespace confine
