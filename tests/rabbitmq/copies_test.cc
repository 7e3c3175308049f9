// A retry is a copy of the job. When settling fails half-way, that copy may be there all the same; what the job comes
// to afterwards must be all that it comes to.

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "rabbitmq/rabbitmq_fixture.h"

namespace bide::rabbitmq_test {
namespace {

class RabbitmqCopies : public RabbitmqTest<1> {
 protected:
  void SetUp() override {
    RabbitmqTest<1>::SetUp();
    if (IsSkipped()) return;
    auto opened = brokers::open_broker(url() + "&max_length=3");
    ASSERT_TRUE(opened) << opened.error().message;
    opened_ = std::move(*opened);
    fill(kFull);
    ASSERT_TRUE(enqueue("default"));
    auto subscription =
        opened_.broker->subscribe({.credit = 10, .lease = std::chrono::minutes(5)}, [this](std::vector<Lease> leases) {
          const std::lock_guard lock(mutex_);
          for (Lease& lease : leases) leases_.push_back(std::move(lease));
        });
    ASSERT_TRUE(subscription) << subscription.error().message;
    subscription_ = std::move(*subscription);
    ASSERT_TRUE(eventually([&] { return leased() == 1; }));
  }
  void TearDown() override {
    subscription_.reset();
    opened_ = {};
    RabbitmqTest<1>::TearDown();
  }

  Status enqueue(const std::string& queue) {
    Job job;
    job.kind = "work";
    job.queue = queue;
    auto results =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { opened_.broker->enqueue({job}, std::move(done)); });
    if (!results) return results.error();
    if (!results->front()) return results->front().error();
    return {};
  }
  // The limit is the server's, and it lets some more in before it notices.
  void fill(const std::string& queue) {
    EXPECT_TRUE(eventually([&] { return !enqueue(queue); })) << "invalid: the queue does not get full";
  }

  Status settle(const Lease& lease, Outcome outcome, std::vector<Job> effects = {}) {
    auto results = wait<std::vector<Status>>([&](auto done) {
      opened_.broker->settle(
          {{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome), .effects = std::move(effects)}},
          std::move(done));
    });
    if (!results) return results.error();
    return results->front();
  }
  // The effect is refused, and the copy is not.
  void retry_and_fail_half_way(const Lease& lease) {
    Job effect;
    effect.kind = "effect";
    effect.queue = kFull;
    const Status refused = settle(lease, RetryAt{.error = "again"}, {effect});
    ASSERT_FALSE(refused) << "invalid: the effect found room";
    ASSERT_TRUE(eventually([&] { return waiting() == 2; })) << "invalid: no copy was written";
    EXPECT_EQ(leased(), 1u) << "the first is still out";
  }

  std::size_t leased() {
    const std::lock_guard lock(mutex_);
    return leases_.size();
  }
  Lease lease(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return leases_.at(index);
  }
  // Those that somebody has included.
  std::uint64_t waiting() const {
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name == queue_name()) return queue.messages;
    }
    return 0;
  }

  static constexpr char kFull[] = "full";
  std::mutex mutex_;  // Guards the leases.
  std::vector<Lease> leases_;
  brokers::OpenedBroker opened_;
  std::unique_ptr<Subscription> subscription_;
};

TEST_F(RabbitmqCopies, JobThatIsDoneAfterARetryFailedHalfWayDoesNotRunAgain) {
  const Lease first = lease(0);
  ASSERT_NO_FATAL_FAILURE(retry_and_fail_half_way(first));
  ASSERT_TRUE(settle(first, Done{}));
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  EXPECT_EQ(leased(), 1u);
}

TEST_F(RabbitmqCopies, JobThatIsDeadAfterARetryFailedHalfWayDoesNotRunAgain) {
  const Lease first = lease(0);
  ASSERT_NO_FATAL_FAILURE(retry_and_fail_half_way(first));
  ASSERT_TRUE(settle(first, Dead{.error = "enough"}));
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  EXPECT_EQ(leased(), 1u);
}

TEST_F(RabbitmqCopies, RetryThatFailedHalfWayAndIsSaidAgainIsOneRetry) {
  const Lease first = lease(0);
  ASSERT_NO_FATAL_FAILURE(retry_and_fail_half_way(first));
  ASSERT_TRUE(settle(first, RetryAt{.error = "again"}));
  ASSERT_TRUE(eventually([&] { return leased() == 2; }));
  EXPECT_EQ(lease(1).attempt, 2u);
  ASSERT_TRUE(settle(lease(1), Done{}));
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  EXPECT_EQ(leased(), 2u);
}

TEST_F(RabbitmqCopies, EffectOfAnOutcomeThatFailedHalfWayIsOneJob) {
  const Lease first = lease(0);
  Job effect, refused_effect;
  effect.kind = refused_effect.kind = "effect";
  refused_effect.queue = kFull;
  ASSERT_FALSE(settle(first, Done{}, {effect, refused_effect})) << "invalid: the effect found room";
  ASSERT_TRUE(eventually([&] { return leased() == 2; })) << "invalid: no effect was written";
  ASSERT_TRUE(settle(first, Done{}, {effect}));
  ASSERT_TRUE(eventually([&] { return waiting() == 2; })) << "invalid: the effect was not written twice";
  ASSERT_TRUE(settle(lease(1), Done{}));
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  EXPECT_EQ(leased(), 2u);
}

}  // namespace
}  // namespace bide::rabbitmq_test
