#include "bench/broker_bench.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "bench/producers.h"
#include "bench/resources.h"
#include "bench/settlers.h"
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
constexpr const char* kAlone = "alone";  // Of single_enqueue_us().
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
    const Result<double> took = single_enqueue_us(broker, static_cast<std::uint64_t>(i));
    if (!took) return took.error();
    microseconds.push_back(*took);
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

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
constexpr int kCredit = 4096;
constexpr std::size_t kPerSecond = 500;
constexpr Milliseconds kLongestDelay{10'000};

// The number that make_bench_job() has written into the body.
std::uint64_t number_of(std::string_view body) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 16 && i < body.size(); ++i) {
    number |= static_cast<std::uint64_t>(body[i] - 'a') << (4 * i);
  }
  return number;
}

struct DueLoad {
  std::vector<double> late_ms = {};  // From the moment of the call plus the delay to the sink, each job once.
  std::uint64_t early = 0;
};

class Arrivals {
 public:
  Arrivals(std::size_t jobs, std::size_t first_counted)
      : due_(jobs), seen_(jobs, false), first_counted_(first_counted) {}

  void expect(std::uint64_t number, steady_clock::time_point due) {
    std::lock_guard lock(mutex_);
    due_[number] = due;
  }
  void note(const std::vector<Lease>& leases) {
    const auto now = steady_clock::now();
    std::lock_guard lock(mutex_);
    for (const Lease& lease : leases) {
      const std::uint64_t number = number_of(lease.job.body);
      if (number >= seen_.size() || seen_[number]) continue;
      seen_[number] = true;
      ++arrived_;
      const double late = std::chrono::duration<double, std::milli>(now - due_[number]).count();
      if (late < 0) ++load_.early;
      if (number >= first_counted_) load_.late_ms.push_back(late);
    }
    changed_.notify_all();
  }
  void fail(const Error& error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    changed_.notify_all();
  }
  bool failed() {
    std::lock_guard lock(mutex_);
    return error_.has_value();
  }
  Result<DueLoad> wait(steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return error_ || arrived_ == seen_.size(); });
    if (error_) return *error_;
    if (arrived_ == seen_.size()) return std::move(load_);
    return Error{ErrorCode::kUnavailable, std::to_string(seen_.size() - arrived_) + " of " +
                                              std::to_string(seen_.size()) + " jobs did not arrive"};
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::vector<steady_clock::time_point> due_;
  std::vector<bool> seen_;
  const std::size_t first_counted_;
  std::size_t arrived_ = 0;
  DueLoad load_;
  std::optional<Error> error_;
};

// Jobs with random delays, enqueued at a steady pace while others arrive, and how late each of them arrives. Those of the
// warm-up do not count: whatever is made at the first use is there afterwards. kUnavailable: a job did not arrive in a minute.
Result<DueLoad> measure_due_load(Broker& broker, const Scale& scale) {
  const auto warm_up = static_cast<std::size_t>(scale.warm_up_seconds) * kPerSecond;
  const std::size_t jobs = warm_up + static_cast<std::size_t>(scale.lateness_seconds) * kPerSecond;
  // Shared with completions that may come after we have given up.
  const auto arrivals = std::make_shared<Arrivals>(jobs, warm_up);
  Settlers settlers(broker, kDue, 1, kCredit, [&](const std::vector<Lease>& leases) { arrivals->note(leases); });
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> delays(0, kLongestDelay.count());
  const auto start = steady_clock::now();
  for (std::size_t number = 0; number < jobs && !arrivals->failed(); ++number) {
    std::this_thread::sleep_until(start + std::chrono::microseconds(number * 1'000'000 / kPerSecond));
    std::vector<Job> one;
    one.push_back(make_bench_job(number, kDue));
    one.back().delay = Milliseconds(delays(random));
    arrivals->expect(number, steady_clock::now() + one.back().delay);
    broker.enqueue(std::move(one), [arrivals](const Result<std::vector<Result<Enqueued>>>& answer) {
      if (!answer) return arrivals->fail(answer.error());
      if (!answer->front()) arrivals->fail(answer->front().error());
    });
  }
  return arrivals->wait(steady_clock::now() + kLongestDelay + kPatience);
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
  Result<DueLoad> late = measure_due_load(broker, scale);
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
