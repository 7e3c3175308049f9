// What is measured on this machine alone, in directories of its own: the embedded engine, the longest steps of its thread,
// and a worker on top of it. The limits of the machine are measured in the same run. The calling process must have no
// other threads.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bide/result.h"

namespace bide::bench {

// `delayed_jobs`: to load, and to reopen with. 0: ten million, or with `quick` one.
Result<EngineFigures> bench_engine(const BenchOptions& options, std::uint64_t delayed_jobs = 0);

struct StepsFigure {
  std::string what;
  std::uint64_t steps = 0;
  double longest_ms = 0;      // On the wall clock, with whatever else the machine did meanwhile.
  double longest_cpu_ms = 0;  // Of the thread.
};

// How long one step of the engine's thread takes at most, when something concerns every job of a large store. The steps are
// the clock, requests, leases, commit with sync, a piece of housekeeping.
Result<std::vector<StepsFigure>> bench_steps(const BenchOptions& options, std::uint64_t jobs);

struct WorkerFigures {
  bool quick = false;
  double log_jobs_per_s = 0;
  double jobs_per_s = 0;          // Enqueued, run by an empty handler and settled, all durable, in one process.
  double ratio = 0;               // Of the bare log.
  double effects_jobs_per_s = 0;  // Handlers that enqueue; the effects themselves are not counted.
  double effects_ratio = 0;       // Of the rate without.
};

Result<WorkerFigures> bench_worker(const BenchOptions& options);
std::vector<Goal> goals(const WorkerFigures& figures);

struct CoroutineFigures {
  std::uint64_t handlers = 0;
  std::uint64_t threads = 2;
  double begun_seconds = 0;      // Until all of them wait.
  double seconds = 0;            // Until all outcomes are confirmed. Each waits for one.
  double bytes_per_handler = 0;  // Resident, without page cache, with its lease and job.
};

// Handlers that are coroutines and wait.
Result<CoroutineFigures> bench_coroutines(const BenchOptions& options, std::uint64_t handlers);
std::vector<Goal> goals(const CoroutineFigures& figures);

}  // namespace bide::bench
