// What it is like to have many jobs waiting: no work while none is due, and little delay once some are.

#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "bench/child.h"
#include "bench/delayed_jobs.h"
#include "bench/figures.h"
#include "bench/open_engine.h"
#include "bench/parts.h"
#include "bench/process_use.h"
#include "bench/producers.h"
#include "bench/settlers.h"
#include "bench/stopwatch.h"

namespace bide::bench {

namespace {

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

Status measure_lateness(engine::Engine& engine, int seconds, WaitingPart& part) {
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
  part.early = lateness.early;
  part.lateness_p50_ms = quantile(lateness.ms, 0.5);
  part.lateness_p99_ms = quantile(lateness.ms, 0.99);
  return {};
}

Result<WaitingPart> run(const std::string& directory, std::uint64_t waiting, int seconds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  if (Status loaded = load_delayed(**engine, waiting); !loaded) return loaded.error();
  (*engine)->tidy_up();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  WaitingPart part;
  part.idle_cpu_ms_per_s = idle_cpu_ms_per_s();
  if (Status measured = measure_lateness(**engine, seconds, part); !measured) return measured.error();
  return part;
}

}  // namespace

Result<WaitingPart> measure_waiting(const std::string& directory, std::uint64_t waiting, int seconds) {
  return run_in_child<WaitingPart>(Ending::kByItself, [&](auto report) { report(run(directory, waiting, seconds)); });
}

}  // namespace bide::bench
