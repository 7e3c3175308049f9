#include "bench/child.h"
#include "bench/delayed_jobs.h"
#include "bench/open_engine.h"
#include "bench/parts.h"
#include "bench/process_use.h"
#include "bench/stopwatch.h"

namespace bide::bench {

Result<LoadPart> measure_load(const std::string& directory, std::uint64_t jobs) {
  return run_in_child<LoadPart>(Ending::kKilled, [&](auto report) {
    auto engine = open_engine(directory);
    if (!engine) return report(engine.error());
    const std::uint64_t before = resident_bytes();
    const Stopwatch watch;
    if (Status loaded = load_delayed(**engine, jobs); !loaded) return report(loaded.error());
    const double seconds = watch.seconds();
    const std::uint64_t after = resident_bytes();
    report(LoadPart{.jobs_per_s = static_cast<double>(jobs) / seconds,
                    .bytes_per_job = (static_cast<double>(after) - static_cast<double>(before)) /
                                     static_cast<double>(jobs)});
  });
}

}  // namespace bide::bench
