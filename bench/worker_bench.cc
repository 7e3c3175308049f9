#include "bench/engine_bench.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "bench/bare_log.h"
#include "bench/child.h"
#include "bench/producers.h"
#include "bench/resources.h"
#include "bench/work_directory.h"
#include "bide/worker.h"

namespace bide::bench {

namespace {

// From the first enqueue to the last outcome that the broker has confirmed.
Result<double> worker_rate(Client& client, std::uint64_t jobs, bool with_effect) {
  Worker worker(client, {.queues = {"cycle"}, .name = "bench"});
  if (with_effect) {
    worker.handle("bench", [](std::string_view body, Context& context) {
      (void)context.enqueue("bench", body, {.queue = "effects"});
    });
  } else {
    worker.handle("bench", [] {});
  }
  if (Status started = worker.start(); !started) return started.error();
  const Stopwatch watch;
  const Status produced = produce(client.broker(), {.jobs = jobs},
                                  [](std::uint64_t number) { return make_bench_job(number, "cycle"); });
  if (!produced) return produced.error();
  while (worker.stats().done < jobs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double rate = static_cast<double>(jobs) / watch.seconds();
  worker.stop();
  return rate;
}

Status measure_worker(WorkerFigures& figures, const std::string& directory, std::uint64_t jobs, int rounds) {
  auto opened = open_engine(directory);
  if (!opened) return opened.error();
  const std::shared_ptr<engine::Engine> engine = std::move(*opened);
  Client client(engine, engine);
  std::vector<double> logs, rates, ratios, effect_rates, effect_ratios;
  for (int i = 0; i < rounds; ++i) {
    const auto log = bare_cycle_rate(directory, jobs);
    if (!log) return log.error();
    const auto plain = worker_rate(client, jobs, false);
    if (!plain) return plain.error();
    const auto effects = worker_rate(client, jobs, true);
    if (!effects) return effects.error();
    logs.push_back(*log);
    rates.push_back(*plain);
    ratios.push_back(*plain / *log);
    effect_rates.push_back(*effects);
    effect_ratios.push_back(*effects / *plain);
  }
  figures.log_jobs_per_s = median(logs);
  figures.jobs_per_s = median(rates);
  figures.ratio = median(ratios);
  figures.effects_jobs_per_s = median(effect_rates);
  figures.effects_ratio = median(effect_ratios);
  return {};
}

}  // namespace

Result<WorkerFigures> bench_worker(const BenchOptions& options) {
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  if (options.progress) options.progress("enqueue, handle, settle", 0, 1);
  const std::uint64_t jobs = options.quick ? 200'000 : 1'000'000;
  WorkerFigures figures;
  figures.quick = options.quick;
  const Status measured = measure_in_child(figures, [&](WorkerFigures& f) {
    return measure_worker(f, work->fresh("worker"), jobs, options.quick ? 3 : 5);
  });
  if (!measured) return measured.error();
  return figures;
}

std::vector<Goal> goals(const WorkerFigures& f) {
  char rate[64], effects[64];
  std::snprintf(rate, sizeof rate, "%.2f (%.0f k/s)", f.ratio, f.jobs_per_s / 1e3);
  std::snprintf(effects, sizeof effects, "%.2f (%.0f k/s)", f.effects_ratio, f.effects_jobs_per_s / 1e3);
  return {{"enqueue, empty handler, settle: jobs/s against a bare log", ">= 0.4", rate, f.ratio >= 0.4},
          {"the same with an effect each, against without", ">= 0.6", effects, f.effects_ratio >= 0.6}};
}

}  // namespace bide::bench
