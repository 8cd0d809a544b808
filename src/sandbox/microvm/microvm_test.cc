// The parts of a microVM's start that need no machine: archive, command line, records of the guest.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "os/os.h"
#include "sandbox/microvm/archive.h"
#include "sandbox/microvm/microvm.h"
#include "sandbox/microvm/qemu.h"

namespace sandbox {
namespace {

struct Entry {
  std::string path;
  std::uint32_t mode = 0;
  std::string content;
};

std::uint32_t hex(std::string_view text) {
  return static_cast<std::uint32_t>(std::stoul(std::string(text), nullptr, 16));
}

// A reader of our own, by the kernel's description of the format.
std::vector<Entry> entries(const std::string& bytes) {
  std::vector<Entry> all;
  for (std::size_t at = 0; at + 110 <= bytes.size();) {
    const std::string_view head = std::string_view(bytes).substr(at, 110);
    EXPECT_EQ(head.substr(0, 6), "070701");
    const std::size_t size = hex(head.substr(54, 8));
    const std::size_t name = hex(head.substr(94, 8));
    const std::size_t content = (at + 110 + name + 3) / 4 * 4;
    all.push_back(
        {bytes.substr(at + 110, name - 1), hex(head.substr(14, 8)), bytes.substr(content, size)});
    at = (content + size + 3) / 4 * 4;
  }
  return all;
}

TEST(Archive, HoldsWhatWasPutIn) {
  Archive archive;
  archive.folder("dev");
  archive.device("dev/console", 5, 1);
  archive.file("init", "12345", 0500);
  const auto all = entries(archive.finish());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].mode, 0040755U);
  EXPECT_EQ(all[1].mode, 0020600U);
  EXPECT_EQ(all[2].path, "init");
  EXPECT_EQ(all[2].mode, 0100500U);
  EXPECT_EQ(all[2].content, "12345");
  EXPECT_EQ(all[3].path, "TRAILER!!!");
}

plan::Machine machine() {
  plan::Machine machine;
  machine.vmm = "/usr/bin/qemu-system-x86_64";
  machine.memory = std::uint64_t{512} << 20;
  machine.processors = 2;
  return machine;
}

TEST(Qemu, HasTheDevicesOfAGuestAndNoOther) {
  const auto argv = qemu_arguments(machine(), Memory::own);
  std::vector<std::string> devices;
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] == "-device") devices.push_back(argv[i + 1].substr(0, argv[i + 1].find(',')));
  }
  EXPECT_EQ(devices, (std::vector<std::string>{"virtio-serial-device", "virtserialport",
                                               "virtserialport", "virtio-blk-device",
                                               "virtio-blk-device", "virtio-net-device"}));
  for (const char* word : {"-nodefaults", "-no-user-config", "-no-reboot"}) {
    EXPECT_NE(std::ranges::find(argv, word), argv.end()) << word;
  }
  // Its disks are descriptors: no path of the host is on the command line.
  EXPECT_TRUE(std::ranges::none_of(
      argv, [](const auto& word) { return word.contains("/var/") || word.contains("/home/"); }));
}

bool has(const std::vector<std::string>& argv, std::string_view text) {
  return std::ranges::any_of(argv, [&](const auto& word) { return word.contains(text); });
}

// Nobody can command a VMM whose memory is its own; a copy maps its template's memory privately.
TEST(Qemu, OnlyAMachineWithAFileAsMemoryHasAMonitor) {
  const auto own = qemu_arguments(machine(), Memory::own);
  EXPECT_FALSE(has(own, "monitor,"));
  EXPECT_FALSE(has(own, "memory-backend"));
  const auto recorded = qemu_arguments(machine(), Memory::recorded);
  EXPECT_TRUE(has(recorded, "size=536870912,mem-path=/memory,share=on"));
  EXPECT_FALSE(has(recorded, "-incoming"));
  const auto restored = qemu_arguments(machine(), Memory::restored);
  EXPECT_TRUE(has(restored, "size=536870912,mem-path=/memory,share=off"));
  EXPECT_TRUE(has(restored, "-incoming"));
  // It runs by itself once its devices are read; `cont` before that hangs the guest for ever.
  EXPECT_EQ(std::ranges::find(restored, "-S"), restored.end());
  EXPECT_FALSE(restore_words().contains("cont\""));
  EXPECT_TRUE(restore_words().contains("x-ignore-shared"));
}

// E107: nothing is loaded into the guest's kernel, and no debug interface is open.
TEST(Qemu, TheKernelIsLockedDown) {
  const std::string line = kernel_command_line(machine());
  for (const char* word : {"lockdown=confidentiality", "module.sig_enforce=1", "debugfs=off",
                           "panic=-1", "oops=panic", "vsyscall=none"}) {
    EXPECT_NE(line.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(line.find("console="), std::string::npos);
}

TEST(Qemu, OnlyAnEmulatedClockIsTold) {
  plan::Machine emulated = machine();
  emulated.accelerator = plan::Accelerator::emulation;
  emulated.tsc_khz = 2'600'000;
  EXPECT_NE(kernel_command_line(emulated).find("tsc_early_khz=2600000"), std::string::npos);
  EXPECT_EQ(kernel_command_line(machine()).find("tsc_early_khz"), std::string::npos);
}

// The guest's end of a watch port.
class WatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ends = os::socket_pair(SOCK_STREAM);
    ASSERT_TRUE(ends);
    watch_.emplace(std::move(ends->first));
    guest_ = std::move(ends->second);
  }
  void say(const GuestNote& note) const {
    ASSERT_TRUE(write_whole(guest_.get(), record_bytes(note), 1000));
  }
  // Answers one request as a guest does.
  void answer_one(const std::function<void(GuestNote&)>& fill) const {
    GuestRequest request;
    ASSERT_EQ(::read(guest_.get(), &request, sizeof request), ssize_t{sizeof request});
    GuestNote note;
    note.kind = GuestSays::answer;
    note.sequence = request.sequence;
    fill(note);
    say(note);
  }

  std::optional<GuestWatch> watch_;
  base::Fd guest_;
};

TEST_F(WatchTest, CountersComeBackAsTheyWere) {
  Counters counters;
  counters.memory_peak = 1;
  counters.oom_kills = 2;
  counters.processes_peak = 3;
  counters.process_limit_hits = 4;
  counters.cpu_ms = 5;
  counters.disk_used = 6;
  counters.disk_full = true;
  std::thread guest([&] { answer_one([&](GuestNote& note) { put_counters(counters, note); }); });
  const auto note = watch_->ask(GuestAsk::counters, 0);
  guest.join();
  ASSERT_TRUE(note);
  const Counters back = counters_in(*note);
  EXPECT_EQ(back.memory_peak, 1U);
  EXPECT_EQ(back.oom_kills, 2U);
  EXPECT_EQ(back.processes_peak, 3U);
  EXPECT_EQ(back.process_limit_hits, 4U);
  EXPECT_EQ(back.cpu_ms, 5U);
  EXPECT_EQ(back.disk_used, 6U);
  EXPECT_TRUE(back.disk_full);
}

TEST_F(WatchTest, AnErrorOfTheGuestIsAnErrorAndThePortStaysGood) {
  std::thread guest([&] {
    answer_one([](GuestNote& note) {
      note.number = ESRCH;
      note.say("command");
    });
    answer_one([](GuestNote&) {});
  });
  const auto refused = watch_->ask(GuestAsk::kill_command, 7);
  const auto next = watch_->ask(GuestAsk::counters, 0);
  guest.join();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number, ESRCH);
  EXPECT_TRUE(next);
}

TEST_F(WatchTest, WhatWasTheCaseAtTheEndIsKnownAfterIt) {
  GuestNote over;
  over.kind = GuestSays::over;
  over.values[1] = 1;
  say(over);
  guest_.reset();
  EXPECT_FALSE(watch_->ask(GuestAsk::counters, 0));
  ASSERT_TRUE(watch_->over());
  EXPECT_EQ(watch_->over()->oom_kills, 1U);
  EXPECT_FALSE(watch_->ask(GuestAsk::counters, 0));
}

// E106: nonsense from the guest is refused at once, and nobody listens again.
TEST_F(WatchTest, NonsenseEndsTheTalk) {
  GuestNote wrong;
  std::memset(static_cast<void*>(&wrong), 0xff, sizeof wrong);
  say(wrong);
  const auto first = watch_->ask(GuestAsk::counters, 0);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().number, EPROTO);
  const auto second = watch_->ask(GuestAsk::counters, 0);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().number, ESHUTDOWN);
}

TEST_F(WatchTest, AnAnswerToAnotherQuestionIsNonsense) {
  GuestNote early;
  early.kind = GuestSays::answer;
  early.sequence = 99;
  say(early);
  EXPECT_EQ(watch_->ask(GuestAsk::counters, 0).error().number, EPROTO);
}

TEST_F(WatchTest, AGuestThatIsGoneIsNotWaitedFor) {
  guest_.reset();
  EXPECT_FALSE(watch_->ask(GuestAsk::counters, 0));
}

TEST(GuestNote, ATextThatClaimsToBeLongerThanItIsIsCut) {
  GuestNote note;
  note.length = 100'000;
  EXPECT_EQ(note.said().size(), sizeof note.text);
}

}  // namespace
}  // namespace sandbox
