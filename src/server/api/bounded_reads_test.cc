#include "server/api/bounded_reads.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "support/fake_inspector.h"

namespace bide::server {
namespace {

class SlowInspector : public support::FakeInspector {
 public:
  void find(JobId, Completion<JobInfo> done) override {
    if (answers_at_once) return done(JobInfo{});
    asked.push_back(std::move(done));
  }

  std::vector<Completion<JobInfo>> asked;
  bool answers_at_once = false;
};

TEST(BoundedReads, NoMoreThanAFewAreUnderWayAtATime) {
  SlowInspector inspector;
  const auto finds = std::make_shared<BoundedReads>(inspector);
  std::size_t found = 0;
  for (int i = 0; i < 100; ++i) finds->find({}, [&](const Result<JobInfo>& info) { found += info ? 1 : 0; });
  while (!inspector.asked.empty()) {
    EXPECT_LE(inspector.asked.size(), std::size_t{BoundedReads::kAtOnce});
    const Completion<JobInfo> first = std::move(inspector.asked.front());
    inspector.asked.erase(inspector.asked.begin());
    first(JobInfo{});
  }
  EXPECT_EQ(found, 100u);
}

TEST(BoundedReads, ManyThatAreAnsweredAtOnceDoNotUseUpTheStack) {
  SlowInspector inspector;
  const auto finds = std::make_shared<BoundedReads>(inspector);
  std::size_t found = 0;
  const auto count = [&](const Result<JobInfo>&) { ++found; };
  for (int i = 0; i < 200'000; ++i) finds->find({}, count);
  inspector.answers_at_once = true;
  for (const Completion<JobInfo>& each : std::exchange(inspector.asked, {})) each(JobInfo{});
  EXPECT_EQ(found, 200'000u);
}

}  // namespace
}  // namespace bide::server
