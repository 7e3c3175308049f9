#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bide::metrics {
namespace {

using namespace std::chrono_literals;

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::string counted(const Metrics& metrics) {
  Exposition text;
  metrics.write(text);
  return text.take();
}

TEST(Metrics, CountByQueueAndOutcome) {
  Metrics metrics;
  metrics.queue("mail").enqueued.add(7);
  metrics.queue("mail").count(label_of(Outcome(Dead{})));
  metrics.duplicate_start(Fault::kLost);
  metrics.callback_attempt("failed");
  const std::string text = counted(metrics);
  EXPECT_TRUE(has_line(text, "bide_jobs_enqueued_total{queue=\"mail\"} 7")) << text;
  EXPECT_TRUE(has_line(text, "bide_jobs_finished_total{queue=\"mail\",outcome=\"dead\"} 1")) << text;
  EXPECT_TRUE(has_line(text, "bide_jobs_finished_total{queue=\"mail\",outcome=\"done\"} 0")) << text;
  EXPECT_TRUE(has_line(text, "bide_duplicate_starts_total{reason=\"lost\"} 1")) << text;
  EXPECT_TRUE(has_line(text, "bide_duplicate_starts_total{reason=\"crashed\"} 0")) << text;
  EXPECT_TRUE(has_line(text, "bide_callback_attempts_total{outcome=\"failed\"} 1")) << text;
}

TEST(Metrics, CountByKind) {
  Metrics metrics;
  metrics.kind("resize").count(OutcomeLabel::kDone);
  metrics.kind("resize").duration.observe(20ms);
  metrics.queue("mail").lateness.observe(3s);
  for (std::size_t i = 0; i < Metrics::kMostLabels + 50; ++i) metrics.kind("k" + std::to_string(i)).count(OutcomeLabel::kDead);
  const std::string text = counted(metrics);
  EXPECT_TRUE(has_line(text, "bide_kind_jobs_finished_total{kind=\"resize\",outcome=\"done\"} 1")) << text;
  EXPECT_TRUE(has_line(text, "bide_kind_job_duration_seconds_bucket{kind=\"resize\",le=\"0.01\"} 0")) << text;
  EXPECT_TRUE(has_line(text, "bide_kind_job_duration_seconds_bucket{kind=\"resize\",le=\"0.025\"} 1")) << text;
  EXPECT_TRUE(has_line(text, "bide_kind_jobs_finished_total{kind=\"(other)\",outcome=\"dead\"} 51")) << text;
  EXPECT_TRUE(has_line(text, "bide_queue_lateness_seconds_count{queue=\"mail\"} 1")) << text;
}

TEST(Metrics, AddUpTheQueuesBeyondTheLimit) {
  Metrics metrics;
  const Time now = Time(std::chrono::hours(500'000));
  std::vector<QueueInfo> queues;
  for (std::size_t i = 0; i < Metrics::kMostLabels + 50; ++i) {
    queues.push_back({.name = "q" + std::to_string(i), .ready = 1, .oldest_ready = now - std::chrono::seconds(i)});
  }
  Exposition text;
  metrics.write_queues(text, queues, now);
  const std::string written = text.take();
  EXPECT_TRUE(has_line(written, "bide_queue_jobs{queue=\"q0\",state=\"ready\"} 1")) << written;
  EXPECT_TRUE(has_line(written, "bide_queue_jobs{queue=\"(other)\",state=\"ready\"} 50")) << written;
  EXPECT_TRUE(has_line(written, "bide_queue_oldest_age_seconds{queue=\"q3\"} 3")) << written;
  EXPECT_TRUE(has_line(written, "bide_queue_oldest_age_seconds{queue=\"(other)\"} 249")) << written;
}

TEST(Metrics, TellHowAnOutboxIs) {
  Exposition text;
  Metrics::write_outbox(text, {.waiting = 12, .dead = 3, .disk_bytes = 4096, .oldest_seconds = 1.5, .reached = true, .forwarded = 99, .retried = 2});
  const std::string written = text.take();
  for (const std::string line :
       {"bide_outbox_jobs{state=\"waiting\"} 12", "bide_outbox_jobs{state=\"dead\"} 3", "bide_outbox_disk_bytes 4096",
        "bide_outbox_oldest_age_seconds 1.5", "bide_outbox_reached 1", "bide_outbox_forwarded_total 99",
        "bide_outbox_failures_total{reason=\"unconfirmed\"} 2"}) {
    EXPECT_TRUE(has_line(written, line)) << line << '\n' << written;
  }
}

TEST(Metrics, TellAReasonForPressureUntilItHasGoneAndThenZero) {
  Metrics metrics;
  const auto written = [&](const Pressure& pressure) {
    Exposition text;
    metrics.write_pressure(text, pressure);
    return text.take();
  };
  EXPECT_TRUE(has_line(written({}), "bide_pressure{reason=\"none\"} 0"));
  const std::string blocked = written({Pressure::Level::kBlocked, "the disk is full", 1s});
  EXPECT_TRUE(has_line(blocked, "bide_pressure{reason=\"the disk is full\"} 2")) << blocked;
  EXPECT_TRUE(has_line(written({}), "bide_pressure{reason=\"the disk is full\"} 0"));
}

TEST(Metrics, HaveOneLabelForAReasonWhateverNumbersAndNamesAreInIt) {
  Metrics metrics;
  std::string written;
  for (int i = 0; i < 100; ++i) {
    Exposition text;
    metrics.write_pressure(text, {Pressure::Level::kHigh, std::to_string(i) + " messages wait: see amqp://a:b@c/", 1s});
    written = text.take();
  }
  EXPECT_TRUE(has_line(written, "bide_pressure{reason=\"N messages wait\"} 1")) << written;
  EXPECT_EQ(written.find("amqp"), std::string::npos);
}

TEST(Metrics, SayWhichBideThisIs) {
  Exposition text;
  Metrics::write_build(text, "1.2.3");
  EXPECT_NE(text.take().find("bide_build_info{version=\"1.2.3\",compiler=\""), std::string::npos);
}

TEST(Metrics, NameDamageOfTheStoreByFileAndOffsetOnce) {
  Metrics metrics;
  for (int i = 0; i < 2; ++i) metrics.damage_found("/data/journal/0000000000000000.seg", 4711);
  Exposition text;
  metrics.write(text);
  const std::string written = text.take();
  EXPECT_NE(written.find("bide_store_damaged_places 1\n"), std::string::npos) << written;
  EXPECT_NE(written.find("bide_store_damage_info{file=\"/data/journal/0000000000000000.seg\",offset=\"4711\"} 1\n"),
            std::string::npos)
      << written;
}

}  // namespace
}  // namespace bide::metrics
