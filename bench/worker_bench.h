// bench_worker: jobs enqueued, run by an empty handler and settled, all durable, in one process; and the same with
// handlers that each enqueue one more job as an effect.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/figures.h"
#include "bide/result.h"

namespace bide::bench {

struct WorkerFigures {
  bool quick = false;
  double log_jobs_per_s = 0;
  double jobs_per_s = 0;
  double ratio = 0;               // Of the bare log.
  double effects_jobs_per_s = 0;  // Handlers that enqueue; the effects themselves are not counted.
  double effects_ratio = 0;       // Of the rate without.
};

struct WorkerBenchOptions {
  std::string directory = {};  // Work goes into a directory of its own in here. Empty: the current directory.
  bool quick = false;
  std::function<void(std::string_view what, int part, int parts)> progress = nullptr;
};

// The calling process must have no other threads.
Result<WorkerFigures> bench_worker(const WorkerBenchOptions& options);
std::vector<Goal> goals(const WorkerFigures& figures);

}  // namespace bide::bench
