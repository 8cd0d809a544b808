// Templates: what names one, and what is not taken for one.
#include "sandbox/microvm/template.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sandbox/microvm/template_files.h"

namespace sandbox {
namespace {

constexpr const char* kSerial = "abcdefghijklmnop";

void put(const std::string& path, std::string_view text, unsigned mode) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

// A host's files made small, and a template of them.
class TemplateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/cerco-template-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    for (const char* name : {"cerco-guest", "cerco-init", "cerco-vmm-memory.so", "vmlinuz", "qemu",
                             "module", "base.erofs"}) {
      put(of(name), name, 0600);
    }
    plan_.state_dir = plan_.helper_dir = folder;
    plan_.machine.emplace();
    plan_.machine->kernel = of("vmlinuz");
    plan_.machine->files = {of("qemu")};
    plan_.machine->modules = {of("module")};
    plan_.machine->base = of("base.erofs");
    plan_.machine->memory = 4096;
    plan_.machine->processors = 1;
    plan_.machine->tsc_khz = 1'000'000;
    plan_.steps = {plan::MountDisk{.size = 1 << 20, .inodes = 64}};
    inputs_.init_path = of("cerco-init");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string of(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string name() const { return template_name(plan_, inputs_).value_or("none"); }
  void write_template() {
    ASSERT_TRUE(templates_folder(plan_));
    path_ = folder_ + "/templates/" + name();
    note_ = {kSerial, static_cast<std::uint64_t>(os::wall_time().seconds) - 1, 1'000'000, 7,
             base::sha256("devices")};
    put(path_ + ".about", note_text(note_), 0600);
    put(memory_path(path_, kSerial), std::string(4096, 'm'), 0600);
    put(devices_path(path_, kSerial), "devices", 0600);
  }
  // What is wrong with it; "" when it is taken, "none" when there is none.
  [[nodiscard]] std::string found() const {
    const auto kept = find_template(plan_, inputs_);
    if (!kept) return kept.error().line();
    return kept->has_value() ? "" : "none";
  }

  std::string folder_;
  std::string path_;
  TemplateNote note_;
  plan::Plan plan_;
  Inputs inputs_;
};

TEST_F(TemplateTest, OneThatIsWholeIsTakenForReadingAlone) {
  EXPECT_EQ(found(), "none");
  write_template();
  const auto kept = find_template(plan_, inputs_);
  ASSERT_TRUE(kept) << kept.error().line();
  ASSERT_TRUE(*kept);
  EXPECT_EQ(::fcntl((*kept)->memory.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::fcntl((*kept)->devices.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
}

// E113: whoever changes a file of it, or could have, is told of and not started from.
TEST_F(TemplateTest, FilesThatThisProgramDidNotWriteAreRefused) {
  write_template();
  for (const std::string& file :
       {path_ + ".about", memory_path(path_, kSerial), devices_path(path_, kSerial)}) {
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
    EXPECT_NE(found().find("another owner or mode"), std::string::npos) << file << found();
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    ASSERT_EQ(::link(file.c_str(), of("link").c_str()), 0);
    EXPECT_NE(found().find("another owner or mode"), std::string::npos) << file << found();
    ASSERT_EQ(::unlink(of("link").c_str()), 0);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(file.c_str(), 1000, 1000), 0);
      EXPECT_NE(found().find("another owner or mode"), std::string::npos) << file << found();
      ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
    }
    ASSERT_EQ(found(), "");
  }
  put(memory_path(path_, kSerial), "short", 0600);
  EXPECT_NE(found().find("5 bytes"), std::string::npos) << found();
  put(memory_path(path_, kSerial), std::string(4096, 'm'), 0600);
  put(devices_path(path_, kSerial), "Devices", 0600);
  EXPECT_NE(found().find("not what was written"), std::string::npos) << found();
  ASSERT_EQ(::unlink(devices_path(path_, kSerial).c_str()), 0);
  EXPECT_NE(found().find(".devices"), std::string::npos) << found();
}

TEST_F(TemplateTest, AnotherVersionIsRefused) {
  write_template();
  std::string text = note_text(note_);
  text.replace(text.find("template 1"), 10, "template 2");
  put(path_ + ".about", text, 0600);
  EXPECT_NE(found().find("not a template of this program"), std::string::npos) << found();
}

TEST_F(TemplateTest, WhateverChangesLeavesNone) {
  write_template();
  ASSERT_EQ(found(), "");
  for (const char* file : {"cerco-guest", "cerco-init", "cerco-vmm-memory.so", "vmlinuz", "qemu",
                           "module", "base.erofs"}) {
    const std::string before = name();
    put(of(file), std::string(file) + " changed", 0600);
    EXPECT_NE(name(), before) << file;
  }
  EXPECT_EQ(found(), "none");
  const std::vector<void (*)(plan::Plan&)> changes = {
      [](plan::Plan& plan) { plan.machine->memory += 4096; },
      [](plan::Plan& plan) { plan.machine->processors = 2; },
      [](plan::Plan& plan) { plan.machine->accelerator = plan::Accelerator::emulation; },
      [](plan::Plan& plan) { std::get<plan::MountDisk>(plan.steps[0]).size += 4096; }};
  for (const auto& change : changes) {
    const plan::Plan kept = plan_;
    const std::string before = name();
    change(plan_);
    EXPECT_NE(name(), before);
    plan_ = kept;
  }
}

TEST(TemplateNote, OldOnesAndOtherClocksAreNotCurrent) {
  const TemplateNote note = {kSerial, 1'000'000, 2'000'000, 7, base::sha256("")};
  EXPECT_TRUE(is_current(note, 1'000'000, 2'000'000));
  EXPECT_TRUE(is_current(note, 1'000'000 + kTemplateSeconds, 2'005'000));
  EXPECT_FALSE(is_current(note, 1'000'001 + kTemplateSeconds, 2'000'000));
  EXPECT_FALSE(is_current(note, 999'999, 2'000'000));
  EXPECT_FALSE(is_current(note, 1'000'000, 2'100'000));
  EXPECT_FALSE(is_current(note, 1'000'000, 0));
}

TEST(TemplateNote, WhatIsWrittenIsRead) {
  const TemplateNote note = {kSerial, 5, 6, 7, base::sha256("x")};
  const auto read = parse_note(note_text(note));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, note);
  std::string text = note_text(note);
  for (const auto& [from, to] : {std::pair("abcd", "../."), std::pair("\n5\n", "\n-5\n"),
                                 std::pair("\n7\n", "\n99999999999\n"), std::pair("cerco", "Cerco"),
                                 std::pair("\n6\n", "\n\n")}) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), std::strlen(from), to);
    EXPECT_FALSE(parse_note(wrong)) << wrong;
  }
  EXPECT_FALSE(parse_note(text + "\n"));
  EXPECT_FALSE(parse_note(""));
}

}  // namespace
}  // namespace sandbox
