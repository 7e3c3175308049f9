#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "bench/child.h"
#include "bench/engine_bench.h"
#include "bench/producers.h"
#include "bench/resources.h"
#include "bench/work_directory.h"
#include "bide/coroutine.h"
#include "bide/worker.h"

namespace bide::bench {

namespace {

// From the start of the worker, with all jobs waiting, to the last outcome that the engine has confirmed, durably.
Status measure_coroutines(CoroutineFigures& figures, const std::string& directory) {
  auto opened = open_engine(directory);
  if (!opened) return opened.error();
  const std::shared_ptr<engine::Engine> engine = std::move(*opened);
  const std::uint64_t jobs = figures.handlers;
  const Status produced =
      produce(*engine, {.jobs = jobs}, [](std::uint64_t number) { return make_bench_job(number, "wait"); });
  if (!produced) return produced.error();
  Worker worker(Client(engine, engine), {.queues = {"wait"},
                                         .concurrency = static_cast<int>(figures.threads),
                                         .credit = static_cast<int>(jobs),
                                         .name = "bench"});
  worker.handle("bench", [](Context& context) -> Task<> { (void)co_await context.sleep(std::chrono::seconds(1)); });
  const std::uint64_t before = resident_bytes();
  const Stopwatch watch;
  if (Status started = worker.start(); !started) return started;
  // When all of them wait.
  while (static_cast<std::uint64_t>(worker.stats().running) < jobs && worker.stats().done == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  figures.begun_seconds = watch.seconds();
  const std::uint64_t during = resident_bytes();
  figures.bytes_per_handler = static_cast<double>(during - std::min(during, before)) / static_cast<double>(jobs);
  while (worker.stats().done < jobs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  figures.seconds = watch.seconds();
  worker.stop();
  return {};
}

}  // namespace

Result<CoroutineFigures> bench_coroutines(const BenchOptions& options, std::uint64_t handlers) {
  auto work = WorkDirectory::create(options.directory);
  if (!work) return work.error();
  CoroutineFigures figures;
  figures.handlers = handlers;
  if (options.progress) options.progress("handlers that wait", 0, 1);
  const Status measured =
      measure_in_child(figures, [&](CoroutineFigures& f) { return measure_coroutines(f, work->fresh("coroutines")); });
  if (!measured) return measured.error();
  return figures;
}

std::vector<Goal> goals(const CoroutineFigures& f) {
  char took[64];
  std::snprintf(took, sizeof took, "%.2f s", f.seconds);
  return {{"handlers that each wait 1 s, on 2 threads: all done in", "<= 1.5 s", took, f.seconds <= 1.5}};
}

}  // namespace bide::bench
