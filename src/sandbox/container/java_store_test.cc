// The trust store for Java, byte by byte where that is short; tests/clients has Java itself.
#include "sandbox/container/java_store.h"

#include <gtest/gtest.h>

namespace sandbox {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// The digest is what keytool writes for an empty store with this password.
TEST(JavaStore, AnEmptyOneIsWhatJavaItselfWrites) {
  EXPECT_EQ(hex(*java_store("")),
            "feedfeed0000000200000000e2686e45fb43dfa4d992dd41ceb6b21c6330d792");
}

TEST(JavaStore, EveryCertificateIsAnEntryOfItsOwn) {
  const std::string one = "-----BEGIN CERTIFICATE-----\nAQID\nBAUG\n-----END CERTIFICATE-----\n";
  const std::string made = *java_store("a comment\n" + one + one);
  const std::string entry = std::string("\0\0\0\2\0\6root-1", 12) + std::string(8, '\0') +
                            std::string("\0\5X.509\0\0\0\6\1\2\3\4\5\6", 17);
  EXPECT_TRUE(made.starts_with(std::string("\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2", 12) + entry))
      << hex(made);
  EXPECT_EQ(made.size(), 12 + 2 * entry.size() + 20);
}

TEST(JavaStore, WhatIsNoCertificateIsAnError) {
  for (const char* text : {"-----BEGIN CERTIFICATE-----\nAQID\n",
                           "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n"}) {
    EXPECT_FALSE(java_store(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sandbox
