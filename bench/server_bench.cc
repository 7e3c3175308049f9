#include "bench/server_bench.h"

#include <cstdio>
#include <utility>

#include "bench/server_parts.h"
#include "bench/server_process.h"
#include "bench/work_directory.h"

namespace bide::bench {

namespace {

struct Scale {
  std::uint64_t cycle_jobs;
  int cycle_rounds;
  int single_rounds;
  int idle_connections;
  int pollers;
  int woken_jobs;
  int rounds_of_all;
};

constexpr Scale kFull = {.cycle_jobs = 300'000,
                         .cycle_rounds = 5,
                         .single_rounds = 40,
                         .idle_connections = 5'000,
                         .pollers = 1'000,
                         .woken_jobs = 3'000,
                         .rounds_of_all = 10};
constexpr Scale kQuick = {.cycle_jobs = 50'000,
                          .cycle_rounds = 3,
                          .single_rounds = 10,
                          .idle_connections = 5'000,
                          .pollers = 1'000,
                          .woken_jobs = 1'000,
                          .rounds_of_all = 5};

constexpr int kParts = 4;
constexpr double kKiB = 1024;

std::string text(const char* format, double first, double second) {
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, format, first, second);
  return buffer;
}

}  // namespace

Result<ServerFigures> bench_server(const ServerBenchOptions& options) {
  const Scale& scale = options.quick ? kQuick : kFull;
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  int part = 0;
  // Each part has a server of its own: what one leaves behind does not weigh on the next.
  const auto next = [&](std::string_view what, const char* name) {
    if (options.progress) options.progress(what, part, kParts);
    ++part;
    return ServerProcess::start(options.program, work->fresh(name));
  };
  ServerFigures figures;
  figures.quick = options.quick;
  {
    const auto server = next("enqueue, lease, settle", "cycle");
    if (!server) return server.error();
    const auto cycle = measure_remote_cycle(*server, work->fresh("local"), scale.cycle_jobs, scale.cycle_rounds);
    if (!cycle) return cycle.error();
    figures.local_jobs_per_s = cycle->local_jobs_per_s;
    figures.remote_jobs_per_s = cycle->remote_jobs_per_s;
    figures.remote_ratio = cycle->ratio;
  }
  {
    const auto server = next("one enqueue at a time", "single");
    if (!server) return server.error();
    const auto single = measure_remote_single(*server, work->fresh("bare"), scale.single_rounds);
    if (!single) return single.error();
    figures.fdatasync_p50_us = single->fdatasync_p50_us;
    figures.round_trip_p50_us = single->round_trip_p50_us;
    figures.enqueue_p50_us = single->enqueue_p50_us;
    figures.enqueue_ratio = single->ratio;
    figures.client_enqueue_p50_us = single->client_p50_us;
  }
  {
    const auto server = next("idle connections", "idle");
    if (!server) return server.error();
    const auto idle = measure_idle_connections(*server, scale.idle_connections);
    if (!idle) return idle.error();
    figures.idle_connections = idle->connections;
    figures.idle_bytes_per_connection = idle->bytes_each;
  }
  {
    const auto server = next("workers that wait", "woken");
    if (!server) return server.error();
    const auto woken = measure_woken(*server, scale.pollers, scale.woken_jobs, scale.rounds_of_all);
    if (!woken) return woken.error();
    figures.pollers = static_cast<std::uint64_t>(scale.pollers);
    figures.woken_p50_ms = woken->p50_ms;
    figures.woken_p99_ms = woken->p99_ms;
    figures.all_woken_p99_ms = woken->all_p99_ms;
  }
  return figures;
}

std::vector<Goal> goals(const ServerFigures& f) {
  return {
      {"enqueue, lease, settle over HTTP in batches of 100: rate, or against in process", ">= 100 k/s or >= 0.3",
       text("%.0f k/s, %.2f", f.remote_jobs_per_s / 1e3, f.remote_ratio),
       f.remote_jobs_per_s >= 100e3 || f.remote_ratio >= 0.3},
      {"one durable enqueue over HTTP: p50 against fdatasync + a round trip", "<= 2",
       text("%.2f (%.0f us)", f.enqueue_ratio, f.enqueue_p50_us), f.enqueue_ratio <= 2},
      {"memory of an idle connection, of 5000", "<= 24 KiB", text("%.1f KiB", f.idle_bytes_per_connection / kKiB, 0),
       f.idle_bytes_per_connection <= 24 * kKiB},
      {"a job wakes one of 1000 polling workers: p99", "<= 5 ms",
       text("%.2f ms (p50 %.2f)", f.woken_p99_ms, f.woken_p50_ms), f.woken_p99_ms <= 5},
  };
}

}  // namespace bide::bench
