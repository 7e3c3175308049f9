// Metrics of a program that enqueues or works by itself, as `bide serve` has them: what went through its clients, and how
// their queues are, in the text format of Prometheus. See docs/metrics.md.
//
//   auto client = bide::Client::open("bide:./data", {.metrics = true}).value();
//   ...
//   answer(bide::metrics_text());   // By whatever HTTP server the program has; `bide work` has one: --metrics 127.0.0.1:9464.

#pragma once

#include <string>

#include "bide/job.h"

namespace bide {

inline constexpr const char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Of all clients of this process that were opened with metrics, together. Asks their brokers for the queues, and leaves out those
// that do not answer in time. Safe to call from any thread that may block.
std::string metrics_text(Milliseconds patience = Milliseconds(2'000));

}  // namespace bide
