#include "cli/store_compact.h"

#include <algorithm>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "cli/failure.h"
#include "cli/reading_progress.h"
#include "cli/terminal.h"
#include "core/duration.h"
#include "engine/check/check_store.h"
#include "engine/engine.h"

namespace bide::cli {

namespace {

// The engine lets one segment's worth of garbage be, so that it need not copy all the time. Here somebody asked for it.
constexpr std::uint64_t kSmallSegment = 1ull << 20;

std::string reason(const engine::Engine::DiskUse& use, std::uint64_t done, Milliseconds retention) {
  std::string text =
      use.journal_bytes <= use.live_bytes + kSmallSegment
          ? "nearly everything in the journal is needed"
          : "the rest is room written ahead, and garbage among what is needed, at most half of each file";
  if (done > 0) {
    text += "; " + std::to_string(done) +
            " jobs that are done are remembered for " + core::format_duration(retention) + " (result_retention), with their results";
  }
  return text;
}

}  // namespace

CompactReport compact_store(const std::string& store) {
  engine::EngineOptions options;
  options.directory = store;
  if (store.starts_with("bide:")) options = take(brokers::parse_engine_url(store));
  {
    // Not made when it is not there: that would be a typing mistake.
    ReadingDisk disk(options.directory, "checking");
    (void)take(engine::check::check_store(disk, options.directory));
  }
  StatusLine status;
  options.segment_bytes = kSmallSegment;
  options.reserve_bytes = 0;
  const auto engine = take(engine::Engine::open(options));
  CompactReport report;
  report.before_bytes = engine->disk_use().journal_bytes;
  status.show("compacting " + std::to_string(report.before_bytes) + " bytes");
  engine->tidy_up();
  const engine::Engine::DiskUse after = engine->disk_use();
  report.after_bytes = after.journal_bytes;
  report.live_bytes = after.live_bytes;
  const auto audit = wait<AuditReport>([&](auto done) { engine->audit(std::move(done)); });
  if (after.journal_bytes + kSmallSegment / 4 < report.before_bytes &&
      after.journal_bytes < 2 * after.live_bytes + kSmallSegment) {
    return report;
  }
  const auto done = audit ? audit->details.find("done_remembered") : decltype(audit->details.find("")){};
  report.why_not_less = reason(after, audit && done != audit->details.end() ? done->second : 0,
                               options.result_retention);
  return report;
}

}  // namespace bide::cli
