// The command line of QEMU's `microvm` machine (qemu docs/system/i386/microvm).
#include "sandbox/microvm/qemu.h"

#include <fmt/format.h>

#include "priv/priv.h"
#include "sandbox/microvm/guest_frames.h"

namespace sandbox {

namespace {

std::string mac() {
  const auto& a = priv::kCardAddress;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", a[0], a[1], a[2], a[3], a[4],
                     a[5]);
}

void add(std::vector<std::string>& argv, std::initializer_list<std::string> words) {
  argv.insert(argv.end(), words);
}

// Its image lies behind a descriptor alone. Nobody else has it, so that no lock is needed.
void add_disk(std::vector<std::string>& argv, const std::string& name, int fd, bool read_only) {
  const int set = fd;
  const std::string mode = read_only ? "on" : "off";
  add(argv, {"-add-fd", fmt::format("fd={},set={}", fd, set), "-blockdev",
             fmt::format("driver=file,node-name={}-file,filename=/dev/fdset/{},locking=off,"
                         "read-only={},auto-read-only=off{}",
                         name, set, mode, read_only ? "" : ",discard=unmap"),
             "-blockdev",
             fmt::format("driver=raw,node-name={0},file={0}-file,read-only={1}{2}", name, mode,
                         read_only ? "" : ",discard=unmap"),
             "-device", fmt::format("virtio-blk-device,drive={}", name)});
}

void add_port(std::vector<std::string>& argv, const std::string& id, int fd, const char* name) {
  add(argv, {"-chardev", fmt::format("socket,id={},fd={}", id, fd), "-device",
             fmt::format("virtserialport,chardev={},name={}", id, name)});
}

// Without the guest's memory, which is a file that the other side has too.
constexpr std::string_view kHello =
    R"({"execute":"qmp_capabilities"}{"execute":"migrate-set-capabilities","arguments":)"
    R"({"capabilities":[{"capability":"x-ignore-shared","state":true}]}})";

// In place of memory of the VMM's own. Private: what a copy writes is its own, page by page.
void add_memory(std::vector<std::string>& argv, const plan::Machine& machine, Memory memory) {
  if (memory == Memory::own) return;
  const char* share = memory == Memory::recorded ? "on" : "off";
  add(argv, {"-object",
             fmt::format("memory-backend-file,id=memory,size={},mem-path=/memory,share={}",
                         machine.memory, share),
             "-machine", "memory-backend=memory", "-chardev",
             fmt::format("socket,id=monitor,fd={}", int{kVmmMonitor}), "-mon",
             "chardev=monitor,mode=control"});
  if (memory == Memory::restored) add(argv, {"-incoming", "defer"});
}

}  // namespace

std::string kernel_command_line(const plan::Machine& machine) {
  std::string line =
      // A failure ends the guest, and -no-reboot the machine with it.
      "quiet loglevel=0 reboot=t panic=-1 oops=panic "
      // Nothing into the kernel but its signed modules, and nothing out of it.
      "lockdown=confidentiality module.sig_enforce=1 lsm=lockdown,landlock,yama debugfs=off "
      "vsyscall=none slab_nomerge "
      "random.trust_cpu=on cryptomgr.notests rcupdate.rcu_expedited=1 nowatchdog "
      "i8042.noaux i8042.nomux i8042.nopnp";
  // The machine has no clock to measure the counter by that a busy host could not disturb.
  if (machine.tsc_khz != 0) line += fmt::format(" tsc_early_khz={}", machine.tsc_khz);
  return line;
}

std::string record_descriptor_words() {
  return std::string(kHello) + R"({"execute":"getfd","arguments":{"fdname":"devices"}})";
}

std::string record_words() {
  return R"({"execute":"migrate","arguments":{"uri":"fd:devices"}})";
}

std::string restore_words() {
  return fmt::format(R"({}{{"execute":"migrate-incoming","arguments":{{"uri":"fd:{}"}}}})", kHello,
                     int{kVmmDevices});
}

std::vector<std::string> qemu_arguments(const plan::Machine& machine, Memory memory) {
  const bool emulated = machine.accelerator == plan::Accelerator::emulation;
  std::vector<std::string> argv = {machine.vmm};
  add(argv,
      {"-M",
       "microvm,acpi=on,x-option-roms=off,pit=on,pic=on,rtc=on,isa-serial=off,usb=off,pcie=off",
       "-accel",
       // One thread for all processors: with one for each a guest stood still for ever now and
       // then.
       emulated ? "tcg,thread=single,tb-size=64" : "kvm", "-cpu", emulated ? "max" : "host", "-m",
       fmt::format("{}M", machine.memory >> 20), "-smp", fmt::format("{}", machine.processors),
       "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "none",
       "-parallel", "none", "-monitor", "none", "-global", "virtio-mmio.force-legacy=off",
       "-kernel", kBoxKernel, "-initrd", kBoxArchive, "-append", kernel_command_line(machine)});
  add_memory(argv, machine, memory);
  add(argv, {"-device", "virtio-serial-device,max_ports=3"});
  add_port(argv, "control", kVmmControl, kControlPort);
  add_port(argv, "watch", kVmmWatch, kWatchPort);
  add_disk(argv, "base", kVmmBase, true);
  add_disk(argv, "disk", kVmmDisk, false);
  add(argv, {"-netdev", fmt::format("tap,id=net,fd={},vhost=off", int{kVmmTap}), "-device",
             "virtio-net-device,netdev=net,mac=" + mac()});
  return argv;
}

}  // namespace sandbox
