#include <utility>
#include <vector>

#include "bench/bare_log.h"
#include "bench/child.h"
#include "bench/figures.h"
#include "bench/open_engine.h"
#include "bench/parts.h"
#include "bench/producers.h"
#include "bench/stopwatch.h"
#include "bide/wait.h"

namespace bide::bench {

namespace {

constexpr int kInARow = 25;  // Of the one, then of the other: a noisy moment hits both.

Result<SinglePart> run(const std::string& directory, int rounds) {
  auto engine = open_engine(directory);
  if (!engine) return engine.error();
  auto bare = BareOverwrite::create(directory + "/bare.overwrite");
  if (!bare) return bare.error();
  std::vector<double> bare_us, enqueue_us;
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kInARow; ++i) {
      const Stopwatch watch;
      if (Status ok = bare->overwrite(); !ok) return ok.error();
      bare_us.push_back(watch.microseconds());
    }
    for (int i = 0; i < kInARow; ++i) {
      std::vector<Job> jobs;
      jobs.push_back(make_bench_job(number++, "alone"));
      const Stopwatch watch;
      const auto answer = wait<std::vector<Result<Enqueued>>>(
          [&](auto done) { (*engine)->enqueue(std::move(jobs), std::move(done)); });
      enqueue_us.push_back(watch.microseconds());
      if (!answer) return answer.error();
      if (!answer->front()) return answer->front().error();
    }
  }
  SinglePart part{median(bare_us), median(enqueue_us), 0};
  part.ratio = part.enqueue_p50_us / part.fdatasync_p50_us;
  return part;
}

}  // namespace

Result<SinglePart> measure_single_enqueue(const std::string& directory, int rounds) {
  return run_in_child<SinglePart>(Ending::kByItself, [&](auto report) { report(run(directory, rounds)); });
}

}  // namespace bide::bench
