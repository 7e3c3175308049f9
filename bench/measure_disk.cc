#include "bench/child.h"
#include "bench/cycle.h"
#include "bench/delayed_jobs.h"
#include "bench/parts.h"
#include "bench/process_use.h"
#include "engine/engine.h"

namespace bide::bench {

namespace {

Result<DiskPart> run(const std::string& directory, std::uint64_t jobs) {
  engine::EngineOptions options;
  options.directory = directory;
  // Done jobs are remembered for a while, which is live data too; here they would hide what the goal is about.
  options.done_limit = 1000;
  DiskPart part;
  part.segment_bytes = options.segment_bytes;
  auto engine = engine::Engine::open(options);
  if (!engine) return engine.error();
  // One in a hundred stays, spread over the whole journal.
  constexpr std::uint64_t kPieces = 10;
  for (std::uint64_t piece = 0; piece < kPieces; ++piece) {
    if (Status loaded = load_delayed(**engine, jobs / 100 / kPieces); !loaded) return loaded.error();
    if (const auto rate = cycle_rate(**engine, jobs / 100 * 99 / kPieces); !rate) return rate.error();
  }
  (*engine)->tidy_up();
  part.live_bytes = (*engine)->disk_use().live_bytes;
  part.bytes = directory_bytes(directory);
  return part;
}

}  // namespace

Result<DiskPart> measure_disk(const std::string& directory, std::uint64_t jobs) {
  return run_in_child<DiskPart>(Ending::kByItself, [&](auto report) { report(run(directory, jobs)); });
}

}  // namespace bide::bench
