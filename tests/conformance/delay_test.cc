// Time: never early, in the order of due times, and what a stepped wall clock does and does not change.

#include <algorithm>
#include <set>

#include "conformance/broker_conformance.h"

namespace bide::conformance {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::vector<Milliseconds>& clock_steps() {
  static const std::vector<Milliseconds> steps = {seconds(1),    seconds(-1),      hours(1),
                                                  hours(-1),     hours(24 * 365),  hours(-24 * 365)};
  return steps;
}

}  // namespace

TEST_P(BrokerConformance, DelayedJobIsNeverEarly) {
  Consumer consumer = subscribe();
  Job job = make_job();
  job.delay = beats(3);
  const Time accepted = now();
  enqueue_one(job);
  expect_nothing_before(accepted + job.delay, consumer);
  const Lease lease = consumer.leases().take();
  EXPECT_GE(consumer.leases().arrivals().front().at, accepted + job.delay);
  EXPECT_GE(lease.due, accepted + job.delay);
}

TEST_P(BrokerConformance, JobWithADueTimeIsNeverEarly) {
  Consumer consumer = subscribe();
  Job job = make_job();
  job.due = now() + beats(3);
  enqueue_one(job);
  expect_nothing_before(*job.due, consumer);
  EXPECT_EQ(consumer.leases().take().due, *job.due);
  EXPECT_GE(consumer.leases().arrivals().front().at, *job.due);
}

TEST_P(BrokerConformance, EachMillisecondBringsItsOwnJobs) {
  BIDE_NEEDS_VIRTUAL_TIME();
  Consumer consumer = subscribe();
  std::vector<Job> jobs;
  for (int delay : {7, 3, 9, 1, 5, 8, 2, 6, 4, 10}) {
    jobs.push_back(make_job(std::to_string(delay)));
    jobs.back().delay = Milliseconds(delay);
  }
  enqueue_all(jobs);
  for (std::size_t elapsed = 1; elapsed <= jobs.size(); ++elapsed) {
    advance(Milliseconds(1));
    barrier();
    ASSERT_EQ(consumer.leases().count(), elapsed);
    EXPECT_EQ(consumer.leases().take().job.kind, std::to_string(elapsed));
  }
}

TEST_P(BrokerConformance, JobsThatBecomeDueTogetherArriveInTheOrderOfTheirDueTimes) {
  // Where the order is not promised, each must come all the same.
  const bool in_order = can().due_order;
  const int count = in_order ? 100 : 10;
  const Milliseconds apart = in_order ? Milliseconds(3) : beats(1) / 2;
  Consumer consumer = subscribe({.credit = 200});
  std::vector<Job> jobs;
  for (int i = 0; i < count; ++i) {
    const int place = (i * 37) % count;  // Every number below it once.
    jobs.push_back(make_job(std::to_string(place)));
    jobs.back().delay = beats(1) + place * apart;
  }
  enqueue_all(jobs);
  advance(beats(1) + count * apart);
  std::set<std::string> came;
  for (int i = 0; i < count; ++i) {
    const Lease lease = consumer.leases().take();
    if (in_order) {
      EXPECT_EQ(lease.job.kind, std::to_string(i));
    }
    EXPECT_TRUE(came.insert(lease.job.kind).second) << lease.job.kind << " came twice";
  }
}

TEST_P(BrokerConformance, LongDelaysAreKeptToTheMillisecond) {
  BIDE_NEEDS_VIRTUAL_TIME();
  const std::vector<Milliseconds> delays = {hours(25), hours(24 * 400), Limits::kDelay};
  for (const Milliseconds delay : delays) {
    SCOPED_TRACE(delay.count());
    Job job = make_job();
    job.delay = delay;
    const JobId id = enqueue_one(job);
    Consumer consumer = subscribe();
    advance(delay - Milliseconds(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    advance(Milliseconds(1));
    const Lease lease = consumer.leases().take();
    EXPECT_EQ(lease.job.id, id);
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
}

TEST_P(BrokerConformance, RelativeDelayIsNeitherShortenedNorLengthenedByAStepOfTheWallClock) {
  BIDE_NEEDS_VIRTUAL_TIME();
  for (const Milliseconds step : clock_steps()) {
    SCOPED_TRACE(step.count());
    Consumer consumer = subscribe();
    Job job = make_job();
    job.delay = beats(10);
    enqueue_one(job);
    advance(beats(4));
    subject().step_wall_clock(step);
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    advance(beats(6) - Milliseconds(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    advance(Milliseconds(1));
    ASSERT_TRUE(succeeded(settle_one(consumer.leases().take())));
  }
}

TEST_P(BrokerConformance, WaitForTheNextAttemptIsNotChangedByAStepOfTheWallClock) {
  BIDE_NEEDS_VIRTUAL_TIME();
  for (const Milliseconds step : clock_steps()) {
    SCOPED_TRACE(step.count());
    enqueue_one();
    ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.after = beats(10)})));
    subject().step_wall_clock(step);
    Consumer consumer = subscribe();
    advance(beats(10) - Milliseconds(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    advance(Milliseconds(1));
    ASSERT_TRUE(succeeded(settle_one(consumer.leases().take())));
  }
}

TEST_P(BrokerConformance, DueTimeComesEarlierWhenTheWallClockIsSetForward) {
  BIDE_NEEDS_VIRTUAL_TIME();
  Consumer consumer = subscribe();
  Job job = make_job();
  job.due = now() + hours(1);
  enqueue_one(job);
  subject().step_wall_clock(hours(1) - Milliseconds(1));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  subject().step_wall_clock(Milliseconds(1));
  EXPECT_EQ(consumer.leases().take().due, *job.due);
}

TEST_P(BrokerConformance, DueTimeIsObeyedWhenTheWallClockIsSetBack) {
  BIDE_NEEDS_VIRTUAL_TIME();
  Consumer consumer = subscribe();
  Job job = make_job();
  job.due = now() + seconds(10);
  enqueue_one(job);
  subject().step_wall_clock(-hours(1));
  advance(seconds(10));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  advance(hours(1) - Milliseconds(1));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  advance(Milliseconds(1));
  consumer.leases().take();
  EXPECT_GE(consumer.leases().arrivals().front().at, *job.due);
}

TEST_P(BrokerConformance, StepOfTheWallClockLosesNoLease) {
  BIDE_NEEDS_VIRTUAL_TIME();
  for (const Milliseconds step : clock_steps()) {
    SCOPED_TRACE(step.count());
    enqueue_one();
    Consumer consumer = subscribe({.lease = beats(5)});
    const Lease lease = consumer.leases().take();
    subject().step_wall_clock(step);
    advance(beats(5) - Milliseconds(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 1u);
    EXPECT_FALSE(extend_one(lease).lost);
    EXPECT_TRUE(succeeded(settle_one(lease)));
  }
}

TEST_P(BrokerConformance, SilentWorkerLosesItsLeaseInTimeThoughTheWallClockWentBack) {
  BIDE_NEEDS_VIRTUAL_TIME();
  enqueue_one();
  Consumer consumer = subscribe({.lease = beats(5)});
  consumer.leases().take();
  subject().step_wall_clock(-hours(24 * 365));
  advance(beats(5) + grace());
  EXPECT_EQ(consumer.leases().take().attempt, 2u);
}

TEST_P(BrokerConformance, StepBeforeARestartDoesNotChangeARelativeDelay) {
  BIDE_NEEDS_VIRTUAL_TIME();
  for (const Milliseconds step : clock_steps()) {
    SCOPED_TRACE(step.count());
    Job job = make_job();
    job.delay = beats(10);
    enqueue_one(job);
    subject().step_wall_clock(step);
    barrier();
    restart(Restart::kClean);
    Consumer consumer = subscribe();
    advance(beats(10) - Milliseconds(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    advance(Milliseconds(1));
    ASSERT_TRUE(succeeded(settle_one(consumer.leases().take())));
  }
}

}  // namespace bide::conformance
