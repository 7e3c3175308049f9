#include <memory>
#include <vector>

#include "bench/child.h"
#include "bench/cycle.h"
#include "bench/figures.h"
#include "bench/open_engine.h"
#include "bench/parts.h"
#include "bench/stopwatch.h"

namespace bide::bench {

namespace {

Result<DeepPart> run(const std::string& directory, const std::string& empty_directory, std::uint64_t cycle_jobs,
                     int rounds) {
  const Stopwatch watch;
  auto deep = open_engine(directory);
  if (!deep) return deep.error();
  DeepPart part;
  part.recovery_seconds = watch.seconds();
  part.recovered = (*deep)->open_report().jobs;

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
  part.depth_ratio = median(ratios);
  return part;
}

}  // namespace

Result<DeepPart> measure_recovery_and_depth(const std::string& directory, const std::string& empty_directory,
                                            std::uint64_t cycle_jobs, int rounds) {
  return run_in_child<DeepPart>(Ending::kByItself,
                                [&](auto report) { report(run(directory, empty_directory, cycle_jobs, rounds)); });
}

}  // namespace bide::bench
