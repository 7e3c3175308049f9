#include "metrics/metered_broker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_broker.h"
#include "support/virtual_clock.h"

namespace bide::metrics {
namespace {

using namespace std::chrono_literals;

// Answers at once, on the caller's thread, what the test has put down.
class EchoBroker : public Broker {
 public:
  std::deque<Result<Enqueued>> enqueue_answers;
  std::deque<Status> settle_answers;
  LeaseSink sink;

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    std::vector<Result<Enqueued>> answers;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      answers.push_back(enqueue_answers.empty() ? Result<Enqueued>(Enqueued{}) : enqueue_answers.front());
      if (!enqueue_answers.empty()) enqueue_answers.pop_front();
    }
    done(std::move(answers));
  }
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions, LeaseSink given) override {
    sink = std::move(given);
    return std::unique_ptr<Subscription>();
  }
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override {
    done(std::vector<Extended>(leases.size()));
  }
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
    std::vector<Status> answers;
    for (std::size_t i = 0; i < settlements.size(); ++i) {
      answers.push_back(settle_answers.empty() ? Status() : settle_answers.front());
      if (!settle_answers.empty()) settle_answers.pop_front();
    }
    done(std::move(answers));
  }
  Pressure pressure() const override { return {Pressure::Level::kHigh, "test", 1s}; }
  Capabilities capabilities() const override { return {.priorities = false}; }
};

class MeteredBrokerTest : public testing::Test {
 protected:
  std::string text() const {
    Exposition exposition;
    metrics->write(exposition);
    return exposition.take();
  }
  bool says(const std::string& line) const { return ("\n" + text()).find("\n" + line + "\n") != std::string::npos; }

  // As the broker hands it out, at its due time.
  Lease deliver(const std::string& queue, std::uint32_t attempt = 1, std::vector<AttemptError> history = {}) {
    Lease lease = support::FakeBroker::lease_of(Job{.kind = "k", .queue = queue});
    lease.attempt = attempt;
    lease.history = std::move(history);
    lease.due = Time(std::chrono::duration_cast<Milliseconds>(std::chrono::microseconds(clock.now().wall_us)));
    echo->sink({lease});
    return lease;
  }
  void settle(const Lease& lease, Outcome outcome, std::vector<Job> effects = {}) {
    broker.settle(
        {{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome), .effects = std::move(effects)}},
        [](auto) {});
  }

  support::VirtualClock clock;
  std::shared_ptr<EchoBroker> echo = std::make_shared<EchoBroker>();
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  MeteredBroker broker{echo, metrics, clock};
  std::vector<Lease> given;
  bool subscribed = broker.subscribe({}, [this](std::vector<Lease> leases) { given = std::move(leases); }).has_value();
};

TEST_F(MeteredBrokerTest, CountsTheJobsThatWereAcceptedAndNew) {
  echo->enqueue_answers = {Enqueued{}, Enqueued{.existed = true}, Error{ErrorCode::kOverloaded, "no"}, Enqueued{}};
  std::size_t answers = 0;
  broker.enqueue({{.kind = "k", .queue = "a"},
                  {.kind = "k", .queue = "a"},
                  {.kind = "k", .queue = "b"},
                  {.kind = "k", .queue = "b"}},
                 [&](auto results) { answers = results->size(); });
  EXPECT_EQ(answers, 4u);
  EXPECT_TRUE(says("bide_jobs_enqueued_total{queue=\"a\"} 1")) << text();
  EXPECT_TRUE(says("bide_jobs_enqueued_total{queue=\"b\"} 1")) << text();
  EXPECT_TRUE(says("bide_broker_confirm_duration_seconds_count 1")) << text();
}

TEST_F(MeteredBrokerTest, CountsAndTimesASettledAttemptForItsQueue) {
  const Lease lease = deliver("mail");
  ASSERT_EQ(given.size(), 1u);
  clock.advance(2s);
  settle(lease, Done{});
  EXPECT_TRUE(says("bide_jobs_finished_total{queue=\"mail\",outcome=\"done\"} 1")) << text();
  EXPECT_TRUE(says("bide_job_duration_seconds_sum 2")) << text();
  EXPECT_TRUE(says("bide_job_duration_seconds_bucket{le=\"1\"} 0")) << text();
  EXPECT_TRUE(says("bide_job_duration_seconds_bucket{le=\"2.5\"} 1")) << text();
}

TEST_F(MeteredBrokerTest, CountsEffectsAsEnqueuedTogetherWithTheOutcome) {
  settle(deliver("mail"), Done{}, {{.kind = "k", .queue = "next"}, {.kind = "k", .queue = "next"}});
  EXPECT_TRUE(says("bide_jobs_enqueued_total{queue=\"next\"} 2")) << text();
  echo->settle_answers = {Error{ErrorCode::kLeaseLost, "stale"}};
  settle(deliver("mail"), Done{}, {{.kind = "k", .queue = "next"}});
  EXPECT_TRUE(says("bide_jobs_enqueued_total{queue=\"next\"} 2")) << text();
  EXPECT_TRUE(says("bide_jobs_finished_total{queue=\"mail\",outcome=\"done\"} 1")) << text();
}

TEST_F(MeteredBrokerTest, TimesNoAttemptThatWasReturned) {
  settle(deliver("mail"), Returned{});
  EXPECT_TRUE(says("bide_jobs_finished_total{queue=\"mail\",outcome=\"returned\"} 1")) << text();
  EXPECT_TRUE(says("bide_job_duration_seconds_count 0")) << text();
}

TEST_F(MeteredBrokerTest, CountsWhatWasLeasedBeforeItBeganForAQueueItDoesNotKnow) {
  settle(support::FakeBroker::lease_of(Job{.kind = "k", .queue = "mail"}), Dead{});
  EXPECT_TRUE(says("bide_jobs_finished_total{queue=\"(unknown)\",outcome=\"dead\"} 1")) << text();
}

TEST_F(MeteredBrokerTest, CountsAStartAfterALostAttemptAsADuplicateAndOneAfterAFailureNot) {
  deliver("mail", 2, {{.attempt = 1, .fault = Fault::kFailed}});
  deliver("mail", 3, {{.attempt = 1, .fault = Fault::kLost}, {.attempt = 2, .fault = Fault::kFailed}});
  EXPECT_TRUE(says("bide_duplicate_starts_total{reason=\"lost\"} 0")) << text();
  deliver("mail", 3, {{.attempt = 2, .fault = Fault::kLost}});
  deliver("mail", 2, {{.attempt = 1, .fault = Fault::kCrashed}});
  EXPECT_TRUE(says("bide_duplicate_starts_total{reason=\"lost\"} 1")) << text();
  EXPECT_TRUE(says("bide_duplicate_starts_total{reason=\"crashed\"} 1")) << text();
}

TEST_F(MeteredBrokerTest, MeasuresLatenessFromTheDueTimeToTheLeaseWithoutTheWayItCame) {
  Lease lease = support::FakeBroker::lease_of(Job{.kind = "k"});
  lease.due = Time(std::chrono::duration_cast<Milliseconds>(std::chrono::microseconds(clock.now().wall_us)));
  clock.advance(5s);
  lease.age = 2s;
  echo->sink({lease});
  EXPECT_TRUE(says("bide_job_lateness_seconds_sum 3")) << text();
}

TEST_F(MeteredBrokerTest, AnswersAsTheBrokerBehindItDoes) {
  EXPECT_EQ(broker.pressure().reason, "test");
  EXPECT_FALSE(broker.capabilities().priorities);
  bool extended = false;
  broker.extend({{}}, [&](auto answers) { extended = answers->size() == 1; });
  EXPECT_TRUE(extended);
}

}  // namespace
}  // namespace bide::metrics
