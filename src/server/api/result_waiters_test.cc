#include "server/api/result_waiters.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bide/wait.h"
#include "support/embedded_store.h"
#include "support/temporary_directory.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class ResultWaitersTest : public testing::Test {
 protected:
  JobId enqueue() {
    Job job{.kind = "a", .delay = 1h};
    const auto results =
        bide::wait<std::vector<Result<Enqueued>>>([&](auto done) { store_.broker().enqueue({job}, std::move(done)); });
    return results->at(0)->id;
  }
  // Counts how it is answered: late, or with an error because the job is gone.
  std::shared_ptr<ResultWaiters::Waiter> wait_for(const JobId& id, Moment until) {
    const auto wait = waiters_->make_waiter([this](const std::optional<Result<JobInfo>>& info) {
      std::lock_guard lock(mutex_);
      if (info) {
        errors_ += info->has_value() ? 0 : 1;
      } else {
        ++late_;
      }
    });
    waiters_->wait(wait, id, until);
    return wait;
  }
  int late() {
    std::lock_guard lock(mutex_);
    return late_;
  }
  // Cancels the job, and waits until the inspector has answered once more, which it does in order.
  void cancel(const JobId& id) {
    (void)bide::wait<std::vector<Status>>([&](auto done) { store_.inspector().cancel({id}, {}, std::move(done)); });
    (void)bide::wait<JobInfo>([&](auto done) { (void)store_.inspector().watch(id, std::move(done)); });
  }

  support::TemporaryDirectory folder_;
  support::EmbeddedStore store_{folder_.path() + "/data"};
  int wakes_ = 0;
  std::shared_ptr<ResultWaiters> waiters_ = std::make_shared<ResultWaiters>(store_.inspector(), [this] { ++wakes_; });
  Moment now_ = steady_clock::now();
  std::mutex mutex_;
  int late_ = 0;
  int errors_ = 0;
};

TEST_F(ResultWaitersTest, RequestsShareOneWatchOfAJobWhichEndsWithTheLastOfThem) {
  const JobId id = enqueue();
  for (int i = 0; i < 100; ++i) wait_for(id, now_ + 1s);
  EXPECT_EQ(waiters_->watched(), 1u);
  EXPECT_EQ(waiters_->waiting(), 100u);
  waiters_->tick(now_ + 2s);
  EXPECT_EQ(late(), 100);
  EXPECT_EQ(waiters_->waiting(), 0u);
  EXPECT_EQ(waiters_->watched(), 0u);
  const auto gone = wait_for(id, now_ + 10s);
  waiters_->cancel(gone);
  EXPECT_EQ(waiters_->waiting(), 0u);
  EXPECT_EQ(waiters_->watched(), 0u);
  wait_for(id, now_ + 10s);
  cancel(id);
  EXPECT_EQ(waiters_->watched(), 0u);
  EXPECT_EQ(waiters_->waiting(), 0u);
  EXPECT_EQ(late(), 100);
  std::lock_guard lock(mutex_);
  EXPECT_EQ(errors_, 1);
}

TEST_F(ResultWaitersTest, TheClockIsAskedForWhenAWaitIsTheNextToEnd) {
  const JobId id = enqueue();
  wait_for(id, now_ + 10s);
  EXPECT_EQ(wakes_, 1);
  wait_for(id, now_ + 20s);
  EXPECT_EQ(wakes_, 1);
  wait_for(id, now_ + 5s);
  EXPECT_EQ(wakes_, 2);
  EXPECT_EQ(waiters_->tick(now_ + 6s), now_ + 10s);
}

TEST_F(ResultWaitersTest, WaitsThatTimedOutLeaveTheirPlaceToOthers) {
  const auto refused = [&] {
    std::lock_guard lock(mutex_);
    return errors_;
  };
  std::vector<JobId> jobs;
  for (std::size_t i = 0; i < 8; ++i) jobs.push_back(enqueue());
  // More waits than there are places, a few at a time.
  for (std::size_t i = 0; i < ResultWaiters::kMostJobs + 100; ++i) {
    wait_for(jobs[i % jobs.size()], now_ + 1s);
    if (i % jobs.size() + 1 == jobs.size()) waiters_->tick(now_ + 2s);
  }
  waiters_->tick(now_ + 2s);
  EXPECT_EQ(waiters_->watched(), 0u);
  EXPECT_EQ(refused(), 0);
  EXPECT_EQ(late(), static_cast<int>(ResultWaiters::kMostJobs) + 100);
  // What was given up is not answered when the job ends after all.
  for (const JobId& id : jobs) cancel(id);
  EXPECT_EQ(refused(), 0);
}

TEST_F(ResultWaitersTest, StoppingAnswersAll) {
  const JobId id = enqueue();
  wait_for(id, now_ + 10s);
  waiters_->stop();
  EXPECT_EQ(late(), 1);
  wait_for(id, now_ + 10s);
  EXPECT_EQ(late(), 2);
}

}  // namespace
}  // namespace bide::server
