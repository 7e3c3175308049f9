// The parts of `bide bench server`, each in a file of its own and in a process of its own, beside the server's.

#pragma once

#include <cstdint>
#include <string>

#include "bench/server_process.h"
#include "bide/result.h"

namespace bide::bench {

struct RemoteCyclePart {
  double local_jobs_per_s = 0;
  double remote_jobs_per_s = 0;
  double ratio = 0;
};
// Engine and server take turns, so that a noisy machine hits both. `directory` is for the engine in process.
Result<RemoteCyclePart> measure_remote_cycle(const ServerProcess& server, const std::string& directory,
                                             std::uint64_t jobs, int rounds);

struct RemoteSinglePart {
  double fdatasync_p50_us = 0;
  double round_trip_p50_us = 0;
  double enqueue_p50_us = 0;
  double ratio = 0;
  double client_p50_us = 0;
};
Result<RemoteSinglePart> measure_remote_single(const ServerProcess& server, const std::string& directory, int rounds);

struct IdlePart {
  std::uint64_t connections = 0;
  double bytes_each = 0;
};
Result<IdlePart> measure_idle_connections(const ServerProcess& server, int connections);

struct WokenPart {
  double p50_ms = 0;
  double p99_ms = 0;
  double all_p99_ms = 0;
};
Result<WokenPart> measure_woken(const ServerProcess& server, int pollers, int jobs, int rounds_of_all);

}  // namespace bide::bench
