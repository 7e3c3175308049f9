#include "metrics/job_history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bide::metrics {
namespace {

using namespace std::chrono_literals;

constexpr Time kNow{1'800'000'000'000ms};

constexpr JobHistory::Window hour(Time until) { return {JobHistory::kFineStep, 360, until}; }
constexpr JobHistory::Window week(Time until) { return {6 * JobHistory::kCoarseStep, 336, until}; }

std::uint64_t total(const JobHistory::Reading& reading, JobEventKind kind) {
  std::uint64_t sum = 0;
  for (const HistoryStep& step : reading.steps) sum += step.count(kind);
  return sum;
}

TEST(JobHistory, CountsAnEventInItsStep) {
  JobHistory history;
  history.queue("mail").add(JobEventKind::kEnqueued, kNow - 20s, 3);
  history.queue("mail").add(JobEventKind::kDone, kNow);
  history.queue("orders").add(JobEventKind::kDone, kNow);
  const auto reading = history.read(hour(kNow));
  ASSERT_EQ(reading.steps.size(), 360u);
  EXPECT_EQ(reading.from + 360 * JobHistory::kFineStep, kNow + JobHistory::kFineStep);
  EXPECT_EQ(reading.steps[357].count(JobEventKind::kEnqueued), 3u);
  EXPECT_EQ(reading.steps[359].count(JobEventKind::kDone), 2u);
  EXPECT_EQ(history.read_queue("mail", hour(kNow)).steps[359].count(JobEventKind::kDone), 1u);
  EXPECT_EQ(total(history.read_queue("nobody", hour(kNow)), JobEventKind::kDone), 0u);
}

TEST(JobHistory, ForgetsTheHourAfterAnHourAndTheWeekAfterAWeek) {
  JobHistory history;
  history.queue("mail").add(JobEventKind::kDone, kNow);
  const Time later = kNow + 2h;
  history.queue("mail").add(JobEventKind::kDone, later);
  EXPECT_EQ(total(history.read(hour(later)), JobEventKind::kDone), 1u);
  EXPECT_EQ(total(history.read(week(later)), JobEventKind::kDone), 2u);
  EXPECT_EQ(total(history.read(week(later + 8 * 24h)), JobEventKind::kDone), 0u);
}

TEST(JobHistory, TellsHowLateTheGivenPartOfJobsWas) {
  JobHistory history;
  for (int i = 0; i < 90; ++i) history.kind("pack").started(kNow, 1ms);
  for (int i = 0; i < 10; ++i) history.kind("pack").started(kNow, 900ms);
  const auto sums = history.kinds(hour(kNow));
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].name, "pack");
  EXPECT_EQ(sums[0].total.count(JobEventKind::kStarted), 100u);
  EXPECT_LE(sums[0].total.lateness_ms(0.5).value(), 1);
  const double late = sums[0].total.lateness_ms(0.95).value();
  EXPECT_GT(late, 500);
  EXPECT_LE(late, 1'000);
  EXPECT_FALSE(HistoryStep().lateness_ms(0.5));
}

TEST(JobHistory, NamesBeyondTheLimitShareASeries) {
  JobHistory history;
  for (std::size_t i = 0; i < 3 * JobHistory::kMostNames; ++i) {
    history.queue("queue-" + std::to_string(i)).add(JobEventKind::kDone, kNow);
  }
  const auto sums = history.queues(hour(kNow));
  EXPECT_EQ(sums.size(), JobHistory::kMostNames + 1);
  EXPECT_EQ(total(history.read(hour(kNow)), JobEventKind::kDone), 3 * JobHistory::kMostNames);
}

TEST(JobHistory, IsTheSameAfterItWasSavedAndLoaded) {
  JobHistory before;
  before.queue("mail").add(JobEventKind::kFailed, kNow - 30min, 7);
  before.queue("mail").started(kNow, 30ms);
  before.kind("send").add(JobEventKind::kDead, kNow - 3 * 24h);
  const std::string saved = before.save();
  JobHistory after;
  ASSERT_TRUE(after.load(saved));
  EXPECT_EQ(total(after.read(hour(kNow)), JobEventKind::kFailed), 7u);
  EXPECT_EQ(after.queues(hour(kNow))[0].total.lateness, before.queues(hour(kNow))[0].total.lateness);
  EXPECT_EQ(total(after.read_kind("send", week(kNow)), JobEventKind::kDead), 1u);
  EXPECT_EQ(after.save(), saved);
}

TEST(JobHistory, RefusesWhatIsDamaged) {
  JobHistory history;
  history.queue("mail").add(JobEventKind::kDone, kNow);
  const std::string saved = history.save();
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    JobHistory other;
    const Status loaded = other.load(damaged);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::kDamaged);
    EXPECT_FALSE(other.load(saved.substr(0, i)));
    EXPECT_TRUE(other.queues(hour(kNow)).empty());
  }
}

}  // namespace
}  // namespace bide::metrics
