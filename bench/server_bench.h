// bench_server: what `bide serve` makes of jobs over loopback HTTP, and in the same run what the engine makes of them
// in process, and what the disk and a loopback round trip take by themselves. The server runs in a process of its own.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bide/result.h"

namespace bide::bench {

struct ServerFigures {
  bool quick = false;
  // Enqueued, leased and settled by one client in batches of 100.
  double local_jobs_per_s = 0;   // The engine in process.
  double remote_jobs_per_s = 0;  // Over HTTP.
  double remote_ratio = 0;

  double fdatasync_p50_us = 0;
  double round_trip_p50_us = 0;
  double enqueue_p50_us = 0;         // One job a request, on a kept connection, by bare system calls.
  double enqueue_ratio = 0;          // Of the two above together.
  double client_enqueue_p50_us = 0;  // The same through bide's client.

  std::uint64_t idle_connections = 0;
  double idle_bytes_per_connection = 0;  // Of the server's memory.

  std::uint64_t pollers = 0;
  double woken_p50_ms = 0;  // From sending the job to the worker that has it, one job at a time.
  double woken_p99_ms = 0;
  double all_woken_p99_ms = 0;  // As many jobs as workers, in one request.
};

// `program`: the bide command. The calling process must have no other threads.
Result<ServerFigures> bench_server(const BenchOptions& options, const std::string& program);
std::vector<Goal> goals(const ServerFigures& figures);

}  // namespace bide::bench
