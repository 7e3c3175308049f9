#include "metrics/metrics.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/url_escape.h"

namespace bide::metrics {
namespace {

// From a moment to an hour, which is as far apart as jobs are.
constexpr std::array kJobBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,   0.25,   0.5,
                                   1.0,   2.5,    5.0,   10.0, 30.0,  60.0, 300.0, 1800.0, 3600.0};
constexpr std::array kDiskBounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                    0.025,   0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   10.0};

struct QueueSums {
  std::array<std::uint64_t, 5> jobs = {};
  double oldest_seconds = 0;
};

constexpr std::array<JobState, 5> kStates = {JobState::kScheduled, JobState::kReady, JobState::kRunning,
                                             JobState::kDead, JobState::kDone};

// A reason is a sentence for people and may name how many, whom and why; as a label it must stay the same. So numbers
// become N, and what comes after a colon is left out.
std::string reason_label(std::string_view reason) {
  std::string label;
  const std::string shown = core::without_secrets(reason);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    if (c == ':') break;
    if (c >= '0' && c <= '9') {
      if (label.empty() || label.back() != 'N') label += 'N';
    } else {
      label += c;
    }
  }
  return label;
}

}  // namespace

OutcomeLabel label_of(const Outcome& outcome) { return static_cast<OutcomeLabel>(outcome.index()); }
static_assert(std::is_same_v<std::variant_alternative_t<0, Outcome>, Done>);
static_assert(std::is_same_v<std::variant_alternative_t<1, Outcome>, RetryAt>);
static_assert(std::is_same_v<std::variant_alternative_t<2, Outcome>, Dead>);
static_assert(std::is_same_v<std::variant_alternative_t<3, Outcome>, Returned>);

Metrics::QueueCounters::QueueCounters() : lateness(kJobBounds) {}
Metrics::KindCounters::KindCounters() : duration(kJobBounds) {}

Metrics::Metrics()
    : job_duration_(kJobBounds),
      job_lateness_(kJobBounds),
      commit_duration_(kDiskBounds),
      confirm_duration_(kDiskBounds) {
  // There from the start, so that a rate over the first failure is not zero.
  for (const std::string_view outcome : {"done", "accepted", "failed", "dead"}) callback_attempts_.at(outcome);
}

void Metrics::damage_found(std::string_view file, std::uint64_t offset) {
  const std::lock_guard lock(damage_mutex_);
  if (damage_.size() < kMostLabels) damage_.emplace(file, offset);
}

void Metrics::write(Exposition& text) const {
  text.family("bide_jobs_enqueued_total", "counter",
              "Jobs that the broker has accepted, effects of other jobs among them.");
  queues_.each([&](std::string_view name, const QueueCounters& queue) {
    text.sample({{"queue", name}}, queue.enqueued.value());
  });
  text.family("bide_jobs_finished_total", "counter", "Attempts that were settled, by what they came to.");
  queues_.each([&](std::string_view name, const QueueCounters& queue) {
    for (std::size_t i = 0; i < kOutcomeNames.size(); ++i) {
      text.sample({{"queue", name}, {"outcome", kOutcomeNames[i]}}, queue.finished[i].value());
    }
  });
  text.family("bide_duplicate_starts_total", "counter",
              "Attempts started although an earlier one may have done the work, by how that one ended.");
  for (const Fault fault : {Fault::kTimedOut, Fault::kLost, Fault::kCrashed}) {
    text.sample({{"reason", to_string(fault)}}, duplicate_starts_[static_cast<std::size_t>(fault)].value());
  }
  text.family("bide_job_duration_seconds", "histogram", "From the lease of an attempt to its settlement.");
  text.sample(job_duration_.read());
  text.family("bide_job_lateness_seconds", "histogram", "From the moment a job was due to its lease.");
  text.sample(job_lateness_.read());
  text.family("bide_queue_lateness_seconds", "histogram", "The same, by queue.");
  queues_.each([&](std::string_view name, const QueueCounters& queue) { text.sample({{"queue", name}}, queue.lateness.read()); });
  text.family("bide_kind_jobs_finished_total", "counter", "Attempts that were settled, by kind and what they came to.");
  kinds_.each([&](std::string_view name, const KindCounters& kind) {
    for (std::size_t i = 0; i < kOutcomeNames.size(); ++i) {
      text.sample({{"kind", name}, {"outcome", kOutcomeNames[i]}}, kind.finished[i].value());
    }
  });
  text.family("bide_kind_job_duration_seconds", "histogram", "From the lease of an attempt to its settlement, by kind.");
  kinds_.each([&](std::string_view name, const KindCounters& kind) { text.sample({{"kind", name}}, kind.duration.read()); });
  text.family("bide_commit_duration_seconds", "histogram",
              "Writing a batch to the embedded engine's disk, and syncing it.");
  text.sample(commit_duration_.read());
  {
    const std::lock_guard lock(damage_mutex_);
    text.family("bide_store_damaged_places", "gauge",
                "Places of the embedded engine's store that could not be read since the process started.");
    text.sample({}, damage_.size());
    text.family("bide_store_damage_info", "gauge", "Always 1; the labels name the file and the offset in it.");
    for (const auto& [file, offset] : damage_) text.sample({{"file", file}, {"offset", std::to_string(offset)}}, 1);
  }
  text.family("bide_broker_confirm_duration_seconds", "histogram",
              "From handing jobs or outcomes to the broker until it has confirmed them.");
  text.sample(confirm_duration_.read());
  text.family("bide_callback_attempts_total", "counter",
              "Deliveries of jobs to their callback URL, by what they came to.");
  callback_attempts_.each([&](std::string_view outcome, const Counter& counter) {
    text.sample({{"outcome", outcome}}, counter.value());
  });
}

void Metrics::write_queues(Exposition& text, const std::vector<QueueInfo>& queues, Time now) {
  std::map<std::string, QueueSums, std::less<>> sums;
  for (const QueueInfo& queue : queues) {
    QueueSums& sum = sums[std::string(queues_.label_of(queue.name))];
    const std::array counts = {queue.scheduled, queue.ready, queue.running, queue.dead, queue.done};
    for (std::size_t i = 0; i < counts.size(); ++i) sum.jobs[i] += counts[i];
    if (!queue.oldest_ready) continue;
    const double age = std::chrono::duration<double>(now - *queue.oldest_ready).count();
    sum.oldest_seconds = std::max(sum.oldest_seconds, age);
  }
  text.family("bide_queue_jobs", "gauge", "Jobs in a queue, by their state. Done: those still remembered.");
  for (const auto& [name, sum] : sums) {
    for (std::size_t i = 0; i < kStates.size(); ++i) {
      text.sample({{"queue", name}, {"state", to_string(kStates[i])}}, sum.jobs[i]);
    }
  }
  text.family("bide_queue_oldest_age_seconds", "gauge",
              "For how long the job that has waited longest has been due; 0: none waits.");
  for (const auto& [name, sum] : sums) text.sample({{"queue", name}}, sum.oldest_seconds);
}

void Metrics::write_pressure(Exposition& text, const Pressure& pressure) {
  const bool ok = pressure.level == Pressure::Level::kOk;
  const std::string label = reason_label(pressure.reason);
  const std::string current = ok ? "none" : std::string(pressure_reasons_.label_of(label.empty() ? "unnamed" : label));
  text.family("bide_pressure", "gauge", "What the broker wants: 0 go on, 1 less (high), 2 nothing more (blocked).");
  text.sample({{"reason", "none"}}, 0);
  // A reason that has gone is told as 0 from then on: a gauge that only vanishes keeps an alert open for minutes.
  pressure_reasons_.each([&](std::string_view reason, const Seen&) {
    text.sample({{"reason", reason}}, reason == current ? static_cast<int>(pressure.level) : 0);
  });
}

void Metrics::write_outbox(Exposition& text, const OutboxFigures& outbox) {
  text.family("bide_outbox_jobs", "gauge", "Jobs on this machine that wait for the broker, and those that it refused for good.");
  text.sample({{"state", "waiting"}}, outbox.waiting);
  text.sample({{"state", "dead"}}, outbox.dead);
  text.family("bide_outbox_disk_bytes", "gauge", "Of the outbox's directory.");
  text.sample({}, outbox.disk_bytes);
  text.family("bide_outbox_oldest_age_seconds", "gauge", "For how long the first job in the outbox has waited; 0: none waits.");
  text.sample({}, outbox.oldest_seconds);
  text.family("bide_outbox_reached", "gauge", "1: jobs are handed on; 0: the broker behind the outbox takes none.");
  text.sample({}, outbox.reached ? 1 : 0);
  text.family("bide_outbox_forwarded_total", "counter", "Jobs that this process has handed on.");
  text.sample({}, outbox.forwarded);
  text.family("bide_outbox_failures_total", "counter",
              "What was not taken: jobs refused for good, jobs whose unique key was held, batches to be sent again.");
  text.sample({{"reason", "refused"}}, outbox.refused);
  text.sample({{"reason", "duplicate"}}, outbox.duplicates);
  text.sample({{"reason", "unconfirmed"}}, outbox.retried);
}

void Metrics::write_build(Exposition& text, std::string_view version) {
  text.family("bide_build_info", "gauge", "Always 1; the labels say which bide this is.");
  text.sample({{"version", version}, {"compiler", __VERSION__}}, 1);
}

}  // namespace bide::metrics
