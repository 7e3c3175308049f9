#include "server/auth/failure_limiter.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

TEST(CallerAddress, IsLocalOnLoopbackAndOnAUnixSocketOnly) {
  for (const char* peer : {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "unix"})
    EXPECT_TRUE(is_local(peer)) << peer;
  for (const char* peer : {"10.0.0.1", "128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "fe80::1%lo",
                           "127.0.0.1.example.org", "localhost", "", "unix2", "::127.0.0.1"}) {
    EXPECT_FALSE(is_local(peer)) << peer;
  }
}

TEST(CallerAddress, GroupsWhatOneUserHas) {
  EXPECT_NE(address_group("10.0.0.1"), address_group("10.0.0.2"));
  EXPECT_EQ(address_group("10.0.0.1"), address_group("::ffff:10.0.0.1"));
  EXPECT_EQ(address_group("2001:db8:1:2::3"), address_group("2001:db8:1:2:ffff::"));
  EXPECT_NE(address_group("2001:db8:1:2::3"), address_group("2001:db8:1:3::3"));
  EXPECT_LE(address_group(std::string(1'000, 'x')).size(), 64u);
}

}  // namespace
}  // namespace bide::server
