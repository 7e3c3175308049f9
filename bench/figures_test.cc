#include "bench/figures.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bide::bench {
namespace {

TEST(Figures, TheRoundInTheMiddleIsFoundByItsPlace) {
  EXPECT_EQ(middle_of({7}), 0u);
  EXPECT_EQ(middle_of({9, 1, 5}), 2u);
  EXPECT_EQ(middle_of({4, 3, 2, 1}), 2u);
}

TEST(Figures, TheMedianIsTheMiddleOne) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
}

TEST(Figures, AQuantileLiesWhereItsShareOfTheValuesEnds) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  EXPECT_EQ(quantile(values, 0.99), 99);
  EXPECT_EQ(quantile(values, 0), 0);
  EXPECT_EQ(quantile(values, 1), 100);
}

std::size_t met(const EngineFigures& figures) {
  const std::vector<Goal> all = goals(figures);
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Goal& goal) { return goal.met; }));
}

EngineFigures good() {
  EngineFigures figures;
  figures.cycle_ratio = 0.5;
  figures.enqueue_ratio = 1.3;
  figures.delayed_bytes_per_job = 64;
  figures.delayed_load_ratio = 0.5;
  figures.lateness_p99_ms = 1;
  figures.recovery_seconds = 5;
  figures.depth_ratio = 0.8;
  figures.disk_bytes = 300;
  figures.disk_live_bytes = 100;
  figures.disk_segment_bytes = 100;
  return figures;
}

TEST(Figures, GoalsAreMetAtTheirLimitAndMissedBehindIt) {
  const std::size_t all = goals(good()).size();
  EXPECT_EQ(met(good()), all);
  const auto missed = [&](auto change) {
    EngineFigures figures = good();
    change(figures);
    return all - met(figures);
  };
  EXPECT_EQ(missed([](EngineFigures& f) { f.cycle_ratio = 0.49; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.enqueue_ratio = 1.31; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.delayed_bytes_per_job = 64.1; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.delayed_load_ratio = 0.49; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.lateness_p99_ms = 1.01; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.lateness_early = 1; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.recovery_seconds = 5.1; }), 1u);
  const auto reopened_in = [](double seconds) {
    return [seconds](EngineFigures& f) {
      f.recovery_jobs = 100'000'000;
      f.recovery_seconds = seconds;
    };
  };
  EXPECT_EQ(missed(reopened_in(15)), 0u);
  EXPECT_EQ(missed(reopened_in(15.1)), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.depth_ratio = 0.79; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.idle_cpu_ms_per_s = 10; }), 1u);
  EXPECT_EQ(missed([](EngineFigures& f) { f.disk_bytes = 301; }), 1u);
}

}  // namespace
}  // namespace bide::bench
