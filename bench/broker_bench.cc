#include "bench/broker_bench.h"

#include <cstdio>
#include <utility>

#include "bench/cycle.h"
#include "bench/due_load.h"
#include "bench/producers.h"
#include "bench/stopwatch.h"
#include "bide/wait.h"

namespace bide::bench {

namespace {

struct Scale {
  std::uint64_t jobs;  // Of each round.
  int rounds;
  int singles;
  int warm_up_seconds;
  int lateness_seconds;
};

constexpr Scale kFull = {.jobs = 100'000, .rounds = 5, .singles = 2000, .warm_up_seconds = 8, .lateness_seconds = 30};
constexpr Scale kQuick = {.jobs = 20'000, .rounds = 3, .singles = 300, .warm_up_seconds = 4, .lateness_seconds = 8};

constexpr const char* kBurst = "burst";
constexpr const char* kAlone = "alone";
constexpr const char* kCycle = "cycle";  // Of cycle_rate().
constexpr const char* kDue = "due";
constexpr int kParts = 3;

Status purge(Inspector& inspector, const char* queue) {
  const Result<std::uint64_t> purged = wait<std::uint64_t>([&](auto done) { inspector.purge(queue, std::move(done)); });
  if (!purged) return purged.error();
  return {};
}

Result<double> enqueue_rate(Broker& broker, std::uint64_t jobs) {
  const Stopwatch watch;
  const Status produced =
      produce(broker, {.jobs = jobs}, [](std::uint64_t number) { return make_bench_job(number, kBurst); });
  if (!produced) return produced.error();
  return static_cast<double>(jobs) / watch.seconds();
}

Result<std::vector<double>> single_us(Broker& broker, int count) {
  std::vector<double> microseconds;
  for (int i = 0; i < count; ++i) {
    std::vector<Job> jobs;
    jobs.push_back(make_bench_job(static_cast<std::uint64_t>(i), kAlone));
    const Stopwatch watch;
    const auto answer =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
    microseconds.push_back(watch.microseconds());
    if (!answer) return answer.error();
    if (!answer->front()) return answer->front().error();
  }
  return microseconds;
}

Status measure_rates(Broker& broker, Inspector& inspector, const BrokerBenchOptions& options, const Scale& scale,
                     BrokerFigures& figures) {
  std::vector<double> ratios;
  // The first round makes queues and connections and does not count.
  for (int round = 0; round <= scale.rounds; ++round) {
    double ceiling = 0;
    if (options.bare_enqueue_rate) {
      const Result<double> bare = options.bare_enqueue_rate(scale.jobs);
      if (!bare) return bare.error();
      ceiling = *bare;
    }
    const Result<double> rate = enqueue_rate(broker, scale.jobs);
    if (!rate) return rate.error();
    if (Status purged = purge(inspector, kBurst); !purged) return purged;
    const Result<double> cycle = cycle_rate(broker, scale.jobs);
    if (!cycle) return cycle.error();
    if (round == 0) continue;
    if (ceiling > 0) {
      figures.ceiling_rounds.push_back(ceiling);
      ratios.push_back(*rate / ceiling);
    }
    figures.enqueue_rounds.push_back(*rate);
    figures.cycle_rounds.push_back(*cycle);
  }
  figures.enqueue_per_s = median(figures.enqueue_rounds);
  if (!ratios.empty()) {
    // The ratio and the rates that are shown beside it are of one round.
    const std::size_t round = middle_of(ratios);
    figures.enqueue_ratio = ratios[round];
    figures.ceiling_enqueue_per_s = figures.ceiling_rounds[round];
    figures.enqueue_per_s = figures.enqueue_rounds[round];
  }
  figures.cycle_per_s = median(figures.cycle_rounds);
  return {};
}

}  // namespace

std::vector<std::string> broker_bench_queues() { return {kBurst, kAlone, kCycle, kDue}; }

Result<BrokerFigures> bench_broker(Broker& broker, Inspector& inspector, const BrokerBenchOptions& options) {
  const Scale& scale = options.quick ? kQuick : kFull;
  int part = 0;
  const auto next = [&](std::string_view what) {
    if (options.progress) options.progress(what, part, kParts);
    ++part;
  };
  BrokerFigures figures;
  figures.quick = options.quick;

  next("enqueue and cycle, taking turns with bare publishes");
  if (Status rates = measure_rates(broker, inspector, options, scale, figures); !rates) return rates.error();

  next("one enqueue at a time");
  Result<std::vector<double>> single = single_us(broker, scale.singles);
  if (!single) return single.error();
  figures.single_p50_us = quantile(*single, 0.5);
  figures.single_p99_us = quantile(*single, 0.99);
  if (options.bare_single_us) {
    Result<std::vector<double>> bare = options.bare_single_us(scale.singles);
    if (!bare) return bare.error();
    figures.ceiling_single_p50_us = quantile(*bare, 0.5);
    figures.ceiling_single_p99_us = quantile(*bare, 0.99);
  }
  if (Status purged = purge(inspector, kAlone); !purged) return purged.error();

  next("lateness of delayed jobs");
  Result<DueLoad> late = measure_due_load(broker, kDue,
                                          {.per_second = 500,
                                           .longest_delay = Milliseconds(10'000),
                                           .warm_up_seconds = scale.warm_up_seconds,
                                           .seconds = scale.lateness_seconds});
  if (!late) return late.error();
  figures.lateness_jobs = late->late_ms.size();
  figures.lateness_p50_ms = quantile(late->late_ms, 0.5);
  figures.lateness_p99_ms = quantile(late->late_ms, 0.99);
  figures.lateness_max_ms = quantile(late->late_ms, 1);
  figures.lateness_early = late->early;
  return figures;
}

std::vector<Goal> goals(const BrokerFigures& f) {
  char enqueue[96], late[64], early[32];
  std::vector<Goal> all;
  if (f.enqueue_ratio) {
    std::snprintf(enqueue, sizeof enqueue, "%.2f (%.1f k/s of %.1f k/s)", *f.enqueue_ratio, f.enqueue_per_s / 1e3,
                  *f.ceiling_enqueue_per_s / 1e3);
    all.push_back({"confirmed enqueues against bare publishes", ">= 0.7", enqueue, *f.enqueue_ratio >= 0.7});
  }
  std::snprintf(late, sizeof late, "%.1f ms", f.lateness_p99_ms);
  std::snprintf(early, sizeof early, "%llu", static_cast<unsigned long long>(f.lateness_early));
  all.push_back({"lateness of 500 delayed jobs a second: p99", "<= 25 ms", late, f.lateness_p99_ms <= 25});
  all.push_back({"jobs that started early", "none", early, f.lateness_early == 0});
  return all;
}

}  // namespace bide::bench
