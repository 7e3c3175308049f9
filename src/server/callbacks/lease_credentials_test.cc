#include "server/callbacks/lease_credentials.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace bide::server {
namespace {

const LeaseRef kLease{JobId::parse("0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1").value(), 17};

TEST(LeaseCredentials, OneIsForTheLeaseItWasMadeFor) {
  const LeaseCredentials credentials = LeaseCredentials::open("").value();
  const std::string made = credentials.make(kLease);
  EXPECT_TRUE(made.starts_with("bide_lease.0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1.17."));
  const auto lease = credentials.check(made);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->id, kLease.id);
  EXPECT_EQ(lease->token, kLease.token);
}

TEST(LeaseCredentials, NoOtherTextIsOne) {
  const LeaseCredentials credentials = LeaseCredentials::open("").value();
  const std::string made = credentials.make(kLease);
  for (std::size_t i = 0; i < made.size(); ++i) {
    std::string changed = made;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(credentials.check(changed)) << changed;
    EXPECT_FALSE(credentials.check(made.substr(0, i)));
  }
  std::string upper = made;
  for (char& c : upper) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  EXPECT_FALSE(credentials.check(upper));
  EXPECT_FALSE(credentials.check(made + "0"));
  EXPECT_FALSE(LeaseCredentials::open("").value().check(made)) << "another key";
}

TEST(LeaseCredentials, TheKeyOutlivesTheProcessAndIsForNobodyElse) {
  const support::TemporaryDirectory directory;
  const std::string folder = directory.path() + "/callback_key";
  const std::string made = LeaseCredentials::open(folder).value().make(kLease);
  EXPECT_TRUE(LeaseCredentials::open(folder).value().check(made));
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace bide::server
