#include "bench/engine_bench.h"

#include "bench/bare_log.h"
#include "bench/parts.h"
#include "bench/work_directory.h"

namespace bide::bench {

namespace {

struct Scale {
  std::uint64_t cycle_jobs;
  int cycle_rounds;
  int single_rounds;
  std::uint64_t delayed_jobs;
  std::uint64_t depth_jobs;
  int depth_rounds;
  std::uint64_t waiting_jobs;
  int lateness_seconds;
  std::uint64_t disk_jobs;
};

constexpr Scale kFull = {.cycle_jobs = 1'000'000,
                         .cycle_rounds = 5,
                         .single_rounds = 80,
                         .delayed_jobs = 10'000'000,
                         .depth_jobs = 1'000'000,
                         .depth_rounds = 5,
                         .waiting_jobs = 1'000'000,
                         .lateness_seconds = 10,
                         .disk_jobs = 2'000'000};
constexpr Scale kQuick = {.cycle_jobs = 200'000,
                          .cycle_rounds = 3,
                          .single_rounds = 20,
                          .delayed_jobs = 1'000'000,
                          .depth_jobs = 200'000,
                          .depth_rounds = 3,
                          .waiting_jobs = 1'000'000,
                          .lateness_seconds = 3,
                          .disk_jobs = 400'000};

constexpr int kParts = 7;

}  // namespace

Result<EngineFigures> bench_engine(const EngineBenchOptions& options) {
  Scale scale = options.quick ? kQuick : kFull;
  if (options.delayed_jobs > 0) scale.delayed_jobs = options.delayed_jobs;
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  int part = 0;
  const auto next = [&](std::string_view what) {
    if (options.progress) options.progress(what, part, kParts);
    ++part;
  };
  EngineFigures figures;
  figures.quick = options.quick;

  next("enqueue, lease, settle");
  const auto cycle = measure_cycle(work->fresh("cycle"), scale.cycle_jobs, scale.cycle_rounds);
  if (!cycle) return cycle.error();
  figures.log_jobs_per_s = cycle->log_jobs_per_s;
  figures.cycle_jobs_per_s = cycle->jobs_per_s;
  figures.cycle_ratio = cycle->ratio;
  work->drop("cycle");

  next("one enqueue at a time");
  const auto single = measure_single_enqueue(work->fresh("single"), scale.single_rounds);
  if (!single) return single.error();
  figures.fdatasync_p50_us = single->fdatasync_p50_us;
  figures.enqueue_p50_us = single->enqueue_p50_us;
  figures.enqueue_ratio = single->ratio;
  work->drop("single");

  next("loading delayed jobs: the bare log");
  const auto bare = bare_load_rate(work->path(), scale.delayed_jobs);
  if (!bare) return bare.error();
  next("loading delayed jobs");
  const auto load = measure_load(work->fresh("deep"), scale.delayed_jobs);
  if (!load) return load.error();
  figures.delayed_jobs = scale.delayed_jobs;
  figures.delayed_jobs_per_s = load->jobs_per_s;
  figures.delayed_bytes_per_job = load->bytes_per_job;
  figures.delayed_load_ratio = load->jobs_per_s / *bare;

  next("reopening after kill -9, then the cycle with all of them waiting");
  const auto deep = measure_recovery_and_depth(work->path() + "/deep", work->fresh("empty"), scale.depth_jobs,
                                               scale.depth_rounds);
  if (!deep) return deep.error();
  figures.recovery_jobs = deep->recovered;
  figures.recovery_seconds = deep->recovery_seconds;
  figures.depth_ratio = deep->depth_ratio;
  work->drop("deep");
  work->drop("empty");

  next("idling, then lateness");
  const auto waiting = measure_waiting(work->fresh("waiting"), scale.waiting_jobs, scale.lateness_seconds);
  if (!waiting) return waiting.error();
  figures.idle_cpu_ms_per_s = waiting->idle_cpu_ms_per_s;
  figures.lateness_waiting = scale.waiting_jobs;
  figures.lateness_p50_ms = waiting->lateness_p50_ms;
  figures.lateness_p99_ms = waiting->lateness_p99_ms;
  figures.lateness_early = waiting->early;
  work->drop("waiting");

  next("disk after 99 % are done");
  const auto disk = measure_disk(work->fresh("disk"), scale.disk_jobs);
  if (!disk) return disk.error();
  figures.disk_bytes = static_cast<double>(disk->bytes);
  figures.disk_live_bytes = static_cast<double>(disk->live_bytes);
  figures.disk_segment_bytes = static_cast<double>(disk->segment_bytes);
  figures.disk_amplification = figures.disk_bytes / figures.disk_live_bytes;
  return figures;
}

}  // namespace bide::bench
