#include "bench/engine_bench.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bare_log.h"
#include "bench/child.h"
#include "bench/producers.h"
#include "bench/resources.h"
#include "bench/settlers.h"
#include "bench/work_directory.h"
#include "bide/wait.h"

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

// The engine and the bare log take turns, so that a noisy machine hits both.
Status measure_cycle(EngineFigures& figures, const std::string& directory, std::uint64_t jobs, int rounds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  std::vector<double> log_rates, rates, ratios;
  for (int i = 0; i < rounds; ++i) {
    const auto log = bare_cycle_rate(directory, jobs);
    if (!log) return log.error();
    const auto rate = cycle_rate(**engine, jobs);
    if (!rate) return rate.error();
    log_rates.push_back(*log);
    rates.push_back(*rate);
    ratios.push_back(*rate / *log);
  }
  figures.log_jobs_per_s = median(log_rates);
  figures.cycle_jobs_per_s = median(rates);
  figures.cycle_ratio = median(ratios);
  return {};
}

constexpr int kInARow = 25;  // Of the one, then of the other: a noisy moment hits both.

Status measure_single_enqueue(EngineFigures& figures, const std::string& directory, int rounds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  auto bare = BareOverwrite::create(directory + "/bare.overwrite");
  if (!bare) return bare.error();
  std::vector<double> bare_us, enqueue_us;
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kInARow; ++i) {
      const Stopwatch watch;
      if (Status ok = bare->overwrite(); !ok) return ok.error();
      bare_us.push_back(watch.microseconds());
    }
    for (int i = 0; i < kInARow; ++i) {
      const Result<double> took = single_enqueue_us(**engine, number++);
      if (!took) return took.error();
      enqueue_us.push_back(*took);
    }
  }
  figures.fdatasync_p50_us = median(bare_us);
  figures.enqueue_p50_us = median(enqueue_us);
  figures.enqueue_ratio = figures.enqueue_p50_us / figures.fdatasync_p50_us;
  return {};
}

// Leaves the engine open, with that many delayed jobs in its store.
Status measure_load(EngineFigures& figures, const std::string& directory, std::uint64_t jobs,
                    std::unique_ptr<engine::Engine>& engine) {
  auto opened = open_engine(directory);
  if (!opened) return opened.error();
  engine = std::move(*opened);
  const std::uint64_t before = resident_bytes();
  const Stopwatch watch;
  if (Status loaded = load_delayed(*engine, jobs); !loaded) return loaded;
  const double seconds = watch.seconds();
  const std::uint64_t after = resident_bytes();
  figures.delayed_jobs = jobs;
  figures.delayed_jobs_per_s = static_cast<double>(jobs) / seconds;
  figures.delayed_bytes_per_job =
      (static_cast<double>(after) - static_cast<double>(before)) / static_cast<double>(jobs);
  return {};
}

// Of the store that measure_load() has left behind.
Status measure_recovery_and_depth(EngineFigures& figures, const std::string& directory,
                                  const std::string& empty_directory, std::uint64_t cycle_jobs, int rounds) {
  const Stopwatch watch;
  auto deep = open_engine(directory);
  if (!deep) return deep.error();
  figures.recovery_seconds = watch.seconds();
  figures.recovery_jobs = (*deep)->open_report().jobs;

  auto empty = open_engine(empty_directory);
  if (!empty) return empty.error();
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    const auto without = cycle_rate(**empty, cycle_jobs);
    if (!without) return without.error();
    const auto with = cycle_rate(**deep, cycle_jobs);
    if (!with) return with.error();
    ratios.push_back(*with / *without);
  }
  figures.depth_ratio = median(ratios);
  return {};
}

constexpr int kDuePerSecond = 5000;
constexpr Milliseconds kLead{1500};  // Until the first is due: all must have been accepted by then.

double idle_cpu_ms_per_s() {
  const double before = cpu_seconds();
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return (cpu_seconds() - before) * 1e3 / watch.seconds();
}

struct Lateness {
  std::vector<double> ms;
  std::uint64_t early = 0;

  // In the sink, on the engine's thread only.
  void note(const std::vector<Lease>& leases) {
    const auto now = std::chrono::system_clock::now();
    for (const Lease& lease : leases) {
      const double late = std::chrono::duration<double, std::milli>(now - lease.due).count();
      if (late < 0) ++early;
      ms.push_back(late);
    }
  }
};

Status measure_lateness(EngineFigures& figures, engine::Engine& engine, int seconds) {
  const auto jobs = static_cast<std::uint64_t>(seconds * kDuePerSecond);
  Lateness lateness;
  lateness.ms.reserve(jobs);
  Settlers settlers(engine, "due", 1, 16'384, [&](const std::vector<Lease>& leases) { lateness.note(leases); });
  const Time first = std::chrono::ceil<Milliseconds>(std::chrono::system_clock::now()) + kLead;
  const Status produced = produce(engine, {.jobs = jobs, .threads = 1, .batch = 4096}, [&](std::uint64_t number) {
    Job job = make_bench_job(number, "due");
    job.due = first + Milliseconds(number * 1000 / kDuePerSecond);
    return job;
  });
  if (!produced) return produced;
  if (std::chrono::system_clock::now() > first) {
    return Error{ErrorCode::kOverloaded, "lateness cannot be measured: the machine is too busy to accept the jobs in time"};
  }
  if (Status settled = settlers.wait_for(jobs); !settled) return settled;
  figures.lateness_early = lateness.early;
  figures.lateness_p50_ms = quantile(lateness.ms, 0.5);
  figures.lateness_p99_ms = quantile(lateness.ms, 0.99);
  return {};
}

// What it is like to have many jobs waiting: no work while none is due, and little delay once some are.
Status measure_waiting(EngineFigures& figures, const std::string& directory, std::uint64_t waiting, int seconds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  if (Status loaded = load_delayed(**engine, waiting); !loaded) return loaded;
  (*engine)->tidy_up();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  figures.idle_cpu_ms_per_s = idle_cpu_ms_per_s();
  figures.lateness_waiting = waiting;
  return measure_lateness(figures, **engine, seconds);
}

Status measure_disk(EngineFigures& figures, const std::string& directory, std::uint64_t jobs) {
  engine::EngineOptions options;
  options.directory = directory;
  // Done jobs are remembered for a while, which is live data too; here they would hide what the goal is about.
  options.done_limit = 1000;
  auto engine = engine::Engine::open(options);
  if (!engine) return engine.error();
  // One in a hundred stays, spread over the whole journal.
  constexpr std::uint64_t kPieces = 10;
  for (std::uint64_t piece = 0; piece < kPieces; ++piece) {
    if (Status loaded = load_delayed(**engine, jobs / 100 / kPieces); !loaded) return loaded;
    if (const auto rate = cycle_rate(**engine, jobs / 100 * 99 / kPieces); !rate) return rate.error();
  }
  (*engine)->tidy_up();
  figures.disk_bytes = static_cast<double>(directory_bytes(directory));
  figures.disk_live_bytes = static_cast<double>((*engine)->disk_use().live_bytes);
  figures.disk_segment_bytes = static_cast<double>(options.segment_bytes);
  figures.disk_amplification = figures.disk_bytes / figures.disk_live_bytes;
  return {};
}

}  // namespace

Result<EngineFigures> bench_engine(const BenchOptions& options, std::uint64_t delayed_jobs) {
  Scale scale = options.quick ? kQuick : kFull;
  if (delayed_jobs > 0) scale.delayed_jobs = delayed_jobs;
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  EngineFigures figures;
  figures.quick = options.quick;
  int part = 0;
  const auto measure = [&](std::string_view what, auto run, Ending ending = Ending::kByItself) {
    if (options.progress) options.progress(what, part, kParts);
    ++part;
    return measure_in_child(figures, run, ending);
  };

  Status status = measure("enqueue, lease, settle", [&](EngineFigures& f) {
    return measure_cycle(f, work->fresh("cycle"), scale.cycle_jobs, scale.cycle_rounds);
  });
  if (!status) return status.error();
  work->drop("cycle");

  status = measure("one enqueue at a time", [&](EngineFigures& f) {
    return measure_single_enqueue(f, work->fresh("single"), scale.single_rounds);
  });
  if (!status) return status.error();
  work->drop("single");

  if (options.progress) options.progress("loading delayed jobs: the bare log", part, kParts);
  ++part;
  const auto bare = bare_load_rate(work->path(), scale.delayed_jobs);
  if (!bare) return bare.error();
  std::unique_ptr<engine::Engine> loaded;  // Of the child.
  const auto load = [&](EngineFigures& f) { return measure_load(f, work->fresh("deep"), scale.delayed_jobs, loaded); };
  status = measure("loading delayed jobs", load, Ending::kKilled);
  if (!status) return status.error();
  figures.delayed_load_ratio = figures.delayed_jobs_per_s / *bare;

  status = measure("reopening after kill -9, then the cycle with all of them waiting", [&](EngineFigures& f) {
    return measure_recovery_and_depth(f, work->path() + "/deep", work->fresh("empty"), scale.depth_jobs,
                                      scale.depth_rounds);
  });
  if (!status) return status.error();
  work->drop("deep");
  work->drop("empty");

  status = measure("idling, then lateness", [&](EngineFigures& f) {
    return measure_waiting(f, work->fresh("waiting"), scale.waiting_jobs, scale.lateness_seconds);
  });
  if (!status) return status.error();
  work->drop("waiting");

  status = measure("disk after 99 % are done",
                   [&](EngineFigures& f) { return measure_disk(f, work->fresh("disk"), scale.disk_jobs); });
  if (!status) return status.error();
  return figures;
}

}  // namespace bide::bench
