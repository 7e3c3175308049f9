#include "bench/cycle.h"

#include "bench/producers.h"
#include "bench/settlers.h"
#include "bench/stopwatch.h"

namespace bide::bench {

namespace {

constexpr int kProducers = 2;
constexpr int kSettlers = 2;
constexpr int kCredit = 32'768;

}  // namespace

Result<double> cycle_rate(Broker& broker, std::uint64_t jobs) {
  Settlers settlers(broker, "cycle", kSettlers, kCredit);
  const Stopwatch watch;
  const Status produced = produce(broker, {.jobs = jobs, .threads = kProducers},
                                  [](std::uint64_t number) { return make_bench_job(number, "cycle"); });
  if (!produced) return produced.error();
  if (Status settled = settlers.wait_for(jobs); !settled) return settled.error();
  return static_cast<double>(jobs) / watch.seconds();
}

}  // namespace bide::bench
