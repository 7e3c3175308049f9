#include "bench/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace bide::bench {

namespace {

std::string text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string text(const char* format, double first, double second) {
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, format, first, second);
  return buffer;
}

constexpr double kMiB = 1 << 20;
// A thread that wakes a few times a second, for whatever reason, stays below this.
constexpr double kNoCpuMsPerS = 0.5;

}  // namespace

std::vector<Goal> goals(const EngineFigures& f) {
  const double reopening_allowed = std::max(5.0, 15.0 * static_cast<double>(f.recovery_jobs) / 100e6);
  const double disk_allowed = 2 * f.disk_live_bytes + f.disk_segment_bytes;
  return {
      {"enqueue, lease, settle: jobs/s against a bare log", ">= 0.5",
       text("%.2f (%.0f k/s)", f.cycle_ratio, f.cycle_jobs_per_s / 1e3), f.cycle_ratio >= 0.5},
      {"one durable enqueue: p50 against overwrite + fdatasync", "<= 1.3",
       text("%.2f (%.0f us)", f.enqueue_ratio, f.enqueue_p50_us), f.enqueue_ratio <= 1.3},
      {"memory of a delayed job", "<= 64 bytes", text("%.1f bytes", f.delayed_bytes_per_job),
       f.delayed_bytes_per_job <= 64},
      {"loading delayed jobs: rate, or against a bare log", ">= 1 M/s or >= 0.5",
       text("%.2f M/s, %.2f", f.delayed_jobs_per_s / 1e6, f.delayed_load_ratio),
       f.delayed_jobs_per_s >= 1e6 || f.delayed_load_ratio >= 0.5},
      {"lateness of 5000 due jobs a second: p99", "<= 1 ms", text("%.3f ms", f.lateness_p99_ms),
       f.lateness_p99_ms <= 1},
      {"jobs that started early", "none", text("%.0f", static_cast<double>(f.lateness_early)), f.lateness_early == 0},
      {"reopening after kill -9", text("<= %.0f s", reopening_allowed),
       text("%.2f s (%.0f M)", f.recovery_seconds, static_cast<double>(f.recovery_jobs) / 1e6),
       f.recovery_seconds <= reopening_allowed},
      {"rate with that many waiting against empty", ">= 0.8", text("%.2f", f.depth_ratio), f.depth_ratio >= 0.8},
      {"CPU while idle", "none", text("%.2f ms a second", f.idle_cpu_ms_per_s), f.idle_cpu_ms_per_s <= kNoCpuMsPerS},
      {"disk after 99 % are done", "<= 2 x live + a segment",
       text("%.1f MiB of %.1f MiB allowed", f.disk_bytes / kMiB, disk_allowed / kMiB), f.disk_bytes <= disk_allowed},
  };
}

double median(std::vector<double> values) { return quantile(values, 0.5); }

std::size_t middle_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order.at((order.size() - 1) / 2);
}

double quantile(std::vector<double>& values, double fraction) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(std::lround(last * fraction));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace bide::bench
