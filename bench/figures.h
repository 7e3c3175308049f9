// What the benchmarks share: their options, goals, and statistics; and EngineFigures, what `bide bench engine` measures.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bide::bench {

struct BenchOptions {
  std::string directory = {};  // Work goes into a directory of its own in here. Empty: the current directory.
  bool quick = false;          // With a tenth of the jobs.
  std::function<void(std::string_view what, int part, int parts)> progress = nullptr;
};

struct EngineFigures {
  bool quick = false;
  double log_jobs_per_s = 0;     // A bare append log doing the writes and syncs of a cycle.
  double fdatasync_p50_us = 0;   // A bare 4 KiB overwrite with fdatasync.

  double cycle_jobs_per_s = 0;   // Enqueue, lease, settle; durable.
  double cycle_ratio = 0;        // Of the bare log.

  double enqueue_p50_us = 0;     // One thread, one at a time.
  double enqueue_ratio = 0;      // Of the bare overwrite.

  std::uint64_t delayed_jobs = 0;
  double delayed_bytes_per_job = 0;  // Resident, without page cache.
  double delayed_jobs_per_s = 0;
  double delayed_load_ratio = 0;     // Of a bare log of the same records.

  std::uint64_t lateness_waiting = 0;  // Jobs that waited meanwhile.
  double lateness_p50_ms = 0;          // From the due time to the sink.
  double lateness_p99_ms = 0;
  std::uint64_t lateness_early = 0;

  std::uint64_t recovery_jobs = 0;
  double recovery_seconds = 0;

  double depth_ratio = 0;  // Rate of the cycle with so many waiting, of that with none.

  double idle_cpu_ms_per_s = 0;

  double disk_bytes = 0;  // Of the directory.
  double disk_live_bytes = 0;
  double disk_segment_bytes = 0;
  double disk_amplification = 0;
};

struct Goal {
  std::string what;
  std::string wanted;
  std::string measured;
  bool met = false;
};

std::vector<Goal> goals(const EngineFigures& figures);

// The middle one; 0 of none.
double median(std::vector<double> values);
// The index of the value in the middle, of two the lesser; there is at least one.
std::size_t middle_of(const std::vector<double>& values);
// The value below which that fraction lies, from 0 to 1.
double quantile(std::vector<double>& values, double fraction);

}  // namespace bide::bench
