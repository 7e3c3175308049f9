#include <vector>

#include "bench/bare_log.h"
#include "bench/child.h"
#include "bench/cycle.h"
#include "bench/figures.h"
#include "bench/open_engine.h"
#include "bench/parts.h"

namespace bide::bench {

namespace {

Result<CyclePart> run(const std::string& directory, std::uint64_t jobs, int rounds) {
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
  return CyclePart{median(log_rates), median(rates), median(ratios)};
}

}  // namespace

Result<CyclePart> measure_cycle(const std::string& directory, std::uint64_t jobs, int rounds) {
  return run_in_child<CyclePart>(Ending::kByItself, [&](auto report) { report(run(directory, jobs, rounds)); });
}

}  // namespace bide::bench
