// bench_steps: how long one step of the engine's thread takes at most, when something concerns every job of a large store.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide::bench {

struct StepsBenchOptions {
  std::string directory = {};  // As for EngineBenchOptions.
  std::uint64_t jobs = 10'000'000;
  std::function<void(std::string_view what, int part, int parts)> progress = nullptr;
};

struct StepsFigure {
  std::string what;
  std::uint64_t steps = 0;
  double longest_ms = 0;      // On the wall clock, with whatever else the machine did meanwhile.
  double longest_cpu_ms = 0;  // Of the thread.
};

// The steps are those of the engine's thread: the clock, requests, leases, commit with sync, a piece of housekeeping.
Result<std::vector<StepsFigure>> bench_steps(const StepsBenchOptions& options);

}  // namespace bide::bench
