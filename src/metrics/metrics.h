// Metrics: every number that bide tells Prometheus, by the name it has there. docs/metrics.md says what each means.
// Safe to use from any thread.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "metrics/counter.h"
#include "metrics/exposition.h"
#include "metrics/histogram.h"
#include "metrics/labelled.h"

namespace bide::metrics {

enum class OutcomeLabel : std::uint8_t { kDone, kRetry, kDead, kReturned };
inline constexpr std::array<std::string_view, 4> kOutcomeNames = {"done", "retry", "dead", "returned"};
OutcomeLabel label_of(const Outcome& outcome);

// How the outbox of this process is.
struct OutboxFigures {
  std::uint64_t waiting = 0;
  std::uint64_t dead = 0;
  std::uint64_t disk_bytes = 0;
  double oldest_seconds = 0;
  bool reached = false;  // It hands jobs on.
  std::uint64_t forwarded = 0;
  std::uint64_t refused = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t retried = 0;
};

class Metrics {
 public:
  // Of queues, of kinds, and of every other label whose values others choose.
  static constexpr std::size_t kMostLabels = 200;

  struct QueueCounters {
    QueueCounters();

    Counter enqueued;
    std::array<Counter, kOutcomeNames.size()> finished;
    Histogram lateness;

    void count(OutcomeLabel outcome) { finished[static_cast<std::size_t>(outcome)].add(); }
  };

  struct KindCounters {
    KindCounters();

    std::array<Counter, kOutcomeNames.size()> finished;
    Histogram duration;

    void count(OutcomeLabel outcome) { finished[static_cast<std::size_t>(outcome)].add(); }
  };

  Metrics();

  QueueCounters& queue(std::string_view name) { return queues_.at(name); }
  KindCounters& kind(std::string_view name) { return kinds_.at(name); }
  void duplicate_start(Fault reason) { duplicate_starts_[static_cast<std::size_t>(reason)].add(); }
  void job_took(std::chrono::nanoseconds time) { job_duration_.observe(time); }
  void job_was_late(std::chrono::nanoseconds time) { job_lateness_.observe(time); }
  // The embedded engine wrote and synced a batch.
  void commit_took(std::chrono::nanoseconds time) { commit_duration_.observe(time); }
  // A place of the embedded engine's store cannot be read.
  void damage_found(std::string_view file, std::uint64_t offset);
  // The broker confirmed an enqueue or a settle.
  void confirm_took(std::chrono::nanoseconds time) { confirm_duration_.observe(time); }
  // "done", "accepted" (the receiver settles later), "failed", "dead", "returned".
  void callback_attempt(std::string_view outcome) { callback_attempts_.at(outcome).add(); }

  // What has been counted.
  void write(Exposition& text) const;
  // What is so at this moment. Queues beyond the limit are added up.
  void write_queues(Exposition& text, const std::vector<QueueInfo>& queues, Time now);
  void write_pressure(Exposition& text, const Pressure& pressure);
  static void write_outbox(Exposition& text, const OutboxFigures& outbox);
  static void write_build(Exposition& text, std::string_view version);

 private:
  struct Seen {};

  Labelled<QueueCounters> queues_{kMostLabels};
  Labelled<KindCounters> kinds_{kMostLabels};
  std::array<Counter, 4> duplicate_starts_;  // By Fault.
  Histogram job_duration_;
  Histogram job_lateness_;
  Histogram commit_duration_;
  Histogram confirm_duration_;
  Labelled<Counter> callback_attempts_{20};
  Labelled<Seen> pressure_reasons_{20};
  mutable std::mutex damage_mutex_;  // Guards damage_.
  std::set<std::pair<std::string, std::uint64_t>> damage_;
};

}  // namespace bide::metrics
