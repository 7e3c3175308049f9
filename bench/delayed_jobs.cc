#include "bench/delayed_jobs.h"

#include <chrono>

#include "bench/bare_log.h"
#include "bench/producers.h"

namespace bide::bench {

namespace {

// Scrambles the number of the job (SplitMix64), so that due times come in no order and yet the same in every run.
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::chrono::milliseconds kSoonest = std::chrono::hours(1);
constexpr std::chrono::milliseconds kSpread = std::chrono::hours(24);

}  // namespace

Status load_delayed(Broker& broker, std::uint64_t jobs) {
  return produce(broker, {.jobs = jobs, .threads = 2, .batch = kBatch, .window = 2}, [](std::uint64_t number) {
    Job job = make_bench_job(number, "later");
    const auto spread = static_cast<std::uint64_t>(kSpread.count());
    job.delay = kSoonest + Milliseconds(static_cast<std::int64_t>(scrambled(number) % spread));
    return job;
  });
}

}  // namespace bide::bench
