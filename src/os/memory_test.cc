// Tests of secrets in memfds.
#include "os/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/os.h"

namespace {

TEST(Memory, SecretsAreTakenOutOfAMemfd) {
  const base::Fd fd(::memfd_create("secret", MFD_CLOEXEC));
  ASSERT_TRUE(os::write_all(fd.get(), "hush", "secret"));
  const auto secret = os::take_secret(fd.get(), 4);
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->reveal(), "hush");
  EXPECT_EQ(os::read_all(fd.get(), 16, "secret"), "");
  ASSERT_TRUE(os::write_all(fd.get(), "longer", "secret"));
  EXPECT_FALSE(os::take_secret(fd.get(), 4));
}

TEST(Memory, ASealedMemfdGivesItsSecretToo) {
  const auto fd = os::sealed_memfd("secret", "hush");
  ASSERT_TRUE(fd);
  EXPECT_EQ(os::take_secret(fd->get(), 64)->reveal(), "hush");
}

}  // namespace
