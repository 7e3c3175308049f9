// bench_broker: what a server makes of jobs through bide's seam, whichever it is, and, where it is known, what it makes
// of bare messages.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/figures.h"
#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/result.h"

namespace bide::bench {

struct BrokerFigures {
  bool quick = false;
  std::optional<double> ceiling_enqueue_per_s = {};  // Bare, confirmed; nothing: not known.
  double enqueue_per_s = 0;                          // Confirmed, many under way.
  std::optional<double> enqueue_ratio = {};          // Of the ceiling. These three are of one round, the one in the middle.
  double single_p50_us = 0;                          // One at a time.
  double single_p99_us = 0;
  std::optional<double> ceiling_single_p50_us = {};  // The same, bare.
  std::optional<double> ceiling_single_p99_us = {};
  double cycle_per_s = 0;                            // Enqueued, handed out, settled.
  // Each round by itself: how much the figures above may be trusted.
  std::vector<double> ceiling_rounds = {};
  std::vector<double> enqueue_rounds = {};
  std::vector<double> cycle_rounds = {};
  std::uint64_t lateness_jobs = 0;
  double lateness_p50_ms = 0;  // From the call of enqueue plus the delay to the sink.
  double lateness_p99_ms = 0;
  double lateness_max_ms = 0;
  std::uint64_t lateness_early = 0;
};

struct BrokerBenchOptions {
  bool quick = false;
  std::function<Result<double>(std::uint64_t messages)> bare_enqueue_rate = nullptr;  // May be null.
  std::function<Result<std::vector<double>>(int messages)> bare_single_us = nullptr;  // The same.
  std::function<void(std::string_view what, int part, int parts)> progress = nullptr;
};

// Those that the benchmark uses. Emptied before it returns.
std::vector<std::string> broker_bench_queues();

Result<BrokerFigures> bench_broker(Broker& broker, Inspector& inspector, const BrokerBenchOptions& options);
std::vector<Goal> goals(const BrokerFigures& figures);

}  // namespace bide::bench
