// What a proxy is asked, and what is taken from its answer.
#include "http/connect.h"

#include <gtest/gtest.h>

namespace {

TEST(Connect, AsksForAnAddressAndShowsAPassword) {
  EXPECT_EQ(http::connect_request("192.0.2.1:443", ""),
            "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443\r\n\r\n");
  EXPECT_EQ(http::connect_request("[2001:db8::1]:443", "ci:secret"),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"
            "Proxy-Authorization: Basic Y2k6c2VjcmV0\r\n\r\n");
}

TEST(Connect, OnlyTheStatusOfAnAnswerCounts) {
  EXPECT_EQ(http::read_connect_answer("HTTP/1.1 200 Connection established\r\n\r\n"), 200U);
  EXPECT_EQ(http::read_connect_answer("HTTP/1.0 407\r\nProxy-Authenticate: NTLM\r\n\r\n"), 407U);
  for (const char* bad : {"", "\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
                          "HTTP/1.1 20\r\n\r\n", "HTTP/1.1  200\r\n\r\n", "SSH-2.0-x\r\n\r\n",
                          "HTTP/1.1 -20\r\n\r\n", "HTTP/1.1 600 x\r\n\r\n"}) {
    EXPECT_FALSE(http::read_connect_answer(bad)) << bad;
  }
}

}  // namespace
