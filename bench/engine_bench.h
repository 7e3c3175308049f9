// bench_engine: measures the embedded engine and, in the same run, the limits of the machine it runs on.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bench/figures.h"
#include "bide/result.h"

namespace bide::bench {

struct EngineBenchOptions {
  std::string directory = {};  // Work goes into a directory of its own in here. Empty: the current directory.
  bool quick = false;          // With a tenth of the jobs.
  std::uint64_t delayed_jobs = 0;  // To load, and to reopen with. 0: ten million, or with `quick` one.
  std::function<void(std::string_view what, int part, int parts)> progress = nullptr;
};

// The calling process must have no other threads.
Result<EngineFigures> bench_engine(const EngineBenchOptions& options);

}  // namespace bide::bench
