// The parts of `bide bench engine`, each in a file of its own. Each works in a directory that is empty or not there, and
// in a process of its own; depth and recovery go on with the store that load has left behind.

#pragma once

#include <cstdint>
#include <string>

#include "bide/result.h"

namespace bide::bench {

struct CyclePart {
  double log_jobs_per_s = 0;
  double jobs_per_s = 0;
  double ratio = 0;
};
// The engine and the bare log take turns, so that a noisy machine hits both.
Result<CyclePart> measure_cycle(const std::string& directory, std::uint64_t jobs, int rounds);

struct SinglePart {
  double fdatasync_p50_us = 0;
  double enqueue_p50_us = 0;
  double ratio = 0;
};
Result<SinglePart> measure_single_enqueue(const std::string& directory, int rounds);

struct LoadPart {
  double jobs_per_s = 0;
  double bytes_per_job = 0;
};
// Leaves a store with that many delayed jobs, whose process was killed.
Result<LoadPart> measure_load(const std::string& directory, std::uint64_t jobs);

struct DeepPart {
  double recovery_seconds = 0;
  std::uint64_t recovered = 0;
  double depth_ratio = 0;
};
Result<DeepPart> measure_recovery_and_depth(const std::string& directory, const std::string& empty_directory,
                                            std::uint64_t cycle_jobs, int rounds);

struct WaitingPart {
  double idle_cpu_ms_per_s = 0;
  double lateness_p50_ms = 0;
  double lateness_p99_ms = 0;
  std::uint64_t early = 0;
};
Result<WaitingPart> measure_waiting(const std::string& directory, std::uint64_t waiting, int seconds);

struct DiskPart {
  std::uint64_t bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t segment_bytes = 0;
};
Result<DiskPart> measure_disk(const std::string& directory, std::uint64_t jobs);

}  // namespace bide::bench
