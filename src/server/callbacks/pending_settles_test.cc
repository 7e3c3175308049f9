#include "server/callbacks/pending_settles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class PendingSettlesTest : public testing::Test {
 protected:
  static Lease lease(const std::string& id, std::uint64_t token) {
    Lease made;
    made.job.id = JobId::parse(id).value();
    made.job.kind = "greet";
    made.job.queue = "callbacks";
    made.job.body = "hello";
    made.job.headers = {{"bide-callback", "http://example.org/?token=s3cr3t"}};
    made.job.time_limit = 90s;
    made.job.retry = RetryPolicy::fixed(10ms, 5);
    made.token = token;
    made.attempt = 3;
    made.age = 10s;
    made.counts.failed = 2;
    return made;
  }
  std::string only_entry() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
    return fs::directory_iterator(folder_)->path();
  }

  static constexpr const char* kFirst = "018f3c1e-7d5a-7000-8000-000000000001";
  static constexpr const char* kSecond = "018f3c1e-7d5a-7000-8000-000000000002";
  support::TemporaryDirectory directory_;
  const std::string folder_ = directory_.path() + "/accepted";
  const PendingSettles pending_{folder_};
};

TEST_F(PendingSettlesTest, ALeaseComesBackWithWhatDecidesOverIt) {
  const Lease kept = lease(kFirst, 18'446'744'073'709'551'615u);
  ASSERT_TRUE(pending_.add(kept));
  const std::vector<Lease> read = PendingSettles(folder_).read();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].job.id, kept.job.id);
  EXPECT_EQ(read[0].token, kept.token);
  EXPECT_EQ(read[0].attempt, 3u);
  EXPECT_EQ(read[0].job.time_limit, 90s);
  EXPECT_EQ(read[0].job.retry, kept.job.retry);
  EXPECT_EQ(read[0].counts.failed, 2u);
}

TEST_F(PendingSettlesTest, AgeGoesOnWhileNobodyIsThere) {
  ASSERT_TRUE(pending_.add(lease(kFirst, 1)));
  fs::last_write_time(only_entry(), fs::file_time_type::clock::now() - 60s);
  EXPECT_GE(pending_.read().at(0).age, 70s);
  // The clock was set back: it has not become younger.
  fs::last_write_time(only_entry(), fs::file_time_type::clock::now() + 60s);
  EXPECT_EQ(pending_.read().at(0).age, 10s);
}

TEST_F(PendingSettlesTest, NeitherBodyNorHeadersAreWrittenAndOnlyTheOwnerMayLook) {
  ASSERT_TRUE(pending_.add(lease(kFirst, 1)));
  std::ifstream file(only_entry());
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text.find("s3cr3t"), std::string::npos) << text;
  EXPECT_EQ(text.find("hello"), std::string::npos) << text;
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
}

TEST_F(PendingSettlesTest, WhatIsRemovedDoesNotComeBack) {
  ASSERT_TRUE(pending_.add(lease(kFirst, 1)));
  ASSERT_TRUE(pending_.add(lease(kFirst, 2)));
  ASSERT_TRUE(pending_.add(lease(kSecond, 1)));
  pending_.remove({JobId::parse(kFirst).value(), 1});
  pending_.remove({JobId::parse(kFirst).value(), 1});
  pending_.remove({JobId::parse(kSecond).value(), 1});
  ASSERT_EQ(pending_.read().size(), 1u);
  EXPECT_EQ(pending_.read()[0].token, 2u);
}

TEST_F(PendingSettlesTest, WhatWasCutOffIsLeftOutAndRemoved) {
  ASSERT_TRUE(pending_.add(lease(kFirst, 1)));
  const std::string whole = only_entry();
  for (std::uintmax_t size = 0; size < fs::file_size(whole); size += 7) {
    const std::string torn = folder_ + "/" + kSecond + ".1";
    fs::copy_file(whole, torn);
    fs::resize_file(torn, size);
    EXPECT_EQ(pending_.read().size(), 1u) << size;
    EXPECT_EQ(only_entry(), whole) << size;
  }
  // Under the name of another.
  fs::rename(whole, folder_ + "/" + kSecond + ".1");
  EXPECT_TRUE(pending_.read().empty());
}

TEST_F(PendingSettlesTest, WithoutAFolderNothingIsKept) {
  const PendingSettles none("");
  EXPECT_TRUE(none.add(lease(kFirst, 1)));
  none.remove({JobId::parse(kFirst).value(), 1});
  EXPECT_TRUE(none.read().empty());
  EXPECT_TRUE(pending_.read().empty());
}

TEST_F(PendingSettlesTest, AFolderThatCannotBeMadeIsToldOf) {
  const Status added = PendingSettles(directory_.path() + "/missing/accepted").add(lease(kFirst, 1));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kIoError);
}

}  // namespace
}  // namespace bide::server
