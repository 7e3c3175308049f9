#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <limits>

namespace bide::metrics {
namespace {

TEST(Exposition, HasHelpAndTypeBeforeTheSamplesOfAFamily) {
  Exposition text;
  text.family("bide_jobs_enqueued_total", "counter", "Jobs accepted.");
  text.sample({{"queue", "mail"}}, 3);
  text.sample({{"queue", "a"}, {"outcome", "done"}}, 0.25);
  text.sample({}, std::numeric_limits<double>::infinity());
  EXPECT_EQ(text.take(),
            "# HELP bide_jobs_enqueued_total Jobs accepted.\n"
            "# TYPE bide_jobs_enqueued_total counter\n"
            "bide_jobs_enqueued_total{queue=\"mail\"} 3\n"
            "bide_jobs_enqueued_total{queue=\"a\",outcome=\"done\"} 0.25\n"
            "bide_jobs_enqueued_total +Inf\n");
}

TEST(Exposition, EscapesWhatWouldEndALabelOrALine) {
  Exposition text;
  text.family("x", "gauge", "one \\ two\nthree \"four\"");
  text.sample({{"reason", "a\"b\\c\nd"}}, 1);
  EXPECT_EQ(text.take(),
            "# HELP x one \\\\ two\\nthree \"four\"\n# TYPE x gauge\n"
            "x{reason=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(Exposition, AddsTheBucketsOfAHistogramUp) {
  constexpr std::array kBounds = {0.5, 1.0};
  Histogram histogram(kBounds);
  histogram.observe(std::chrono::milliseconds(250), 2);
  histogram.observe(std::chrono::milliseconds(1000));
  histogram.observe(std::chrono::milliseconds(4000));
  Exposition text;
  text.family("t_seconds", "histogram", "Times.");
  text.sample(histogram.read());
  EXPECT_EQ(text.take(),
            "# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"
            "t_seconds_bucket{le=\"0.5\"} 2\nt_seconds_bucket{le=\"1\"} 3\nt_seconds_bucket{le=\"+Inf\"} 4\n"
            "t_seconds_sum 5.5\nt_seconds_count 4\n");
}

}  // namespace
}  // namespace bide::metrics
