#include "metrics/metered_broker.h"

#include <chrono>
#include <utility>

namespace bide::metrics {
namespace {

using Micros = std::chrono::microseconds;

// After its time limit an attempt cannot be settled; brokers may be a little late to notice.
constexpr Micros kGrace = std::chrono::minutes(1);

// The counters of many jobs: most batches are for one queue.
class QueueLookup {
 public:
  explicit QueueLookup(Metrics& metrics) : metrics_(metrics) {}

  Metrics::QueueCounters& operator()(const std::string& name) {
    if (last_ == nullptr || name != name_) {
      name_ = name;
      last_ = &metrics_.queue(name);
    }
    return *last_;
  }

 private:
  Metrics& metrics_;
  std::string name_;
  Metrics::QueueCounters* last_ = nullptr;
};

struct Settling {
  LeaseRef lease;
  OutcomeLabel outcome;
  std::vector<Metrics::QueueCounters*> effects;
};

}  // namespace

MeteredBroker::MeteredBroker(std::shared_ptr<Broker> broker, std::shared_ptr<Metrics> metrics, platform::Clock& clock)
    : broker_(std::move(broker)), recorder_(std::make_shared<Recorder>(std::move(metrics), clock)) {}

void MeteredBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  QueueLookup lookup(*recorder_->metrics);
  std::vector<Metrics::QueueCounters*> queues;
  queues.reserve(jobs.size());
  for (const Job& job : jobs) queues.push_back(&lookup(job.queue));
  const std::int64_t begun_us = recorder_->clock.now().elapsed_us;
  broker_->enqueue(std::move(jobs), [recorder = recorder_, queues = std::move(queues), begun_us,
                                     done = std::move(done)](Result<std::vector<Result<Enqueued>>> results) {
    if (results) {
      recorder->metrics->confirm_took(Micros(recorder->clock.now().elapsed_us - begun_us));
      for (std::size_t i = 0; i < results->size() && i < queues.size(); ++i) {
        const Result<Enqueued>& result = (*results)[i];
        if (result && !result->existed) queues[i]->enqueued.add();
      }
    }
    done(std::move(results));
  });
}

void MeteredBroker::Recorder::begin(const std::vector<Lease>& leases) {
  const platform::Instant now = clock.now();
  QueueLookup lookup(*metrics);
  for (const Lease& lease : leases) {
    const std::int64_t age_us = Micros(lease.age).count();
    const std::int64_t started_us = now.elapsed_us - age_us;
    running.add(lease.job.id, {.token = lease.token,
                               .started_us = started_us,
                               .over_us = started_us + Micros(lease.job.time_limit).count() + kGrace.count(),
                               .queue = &lookup(lease.job.queue)});
    metrics->job_was_late(Micros(now.wall_us - age_us - Micros(lease.due.time_since_epoch()).count()));
    // The attempt before this one ended without a word from its worker, who may have done the work.
    if (lease.history.empty() || lease.history.back().attempt + 1 != lease.attempt) continue;
    const Fault fault = lease.history.back().fault;
    if (fault != Fault::kFailed) metrics->duplicate_start(fault);
  }
}

Result<std::unique_ptr<Subscription>> MeteredBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  return broker_->subscribe(std::move(options), [recorder = recorder_, sink = std::move(sink)](std::vector<Lease> leases) {
    recorder->begin(leases);
    sink(std::move(leases));
  });
}

void MeteredBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  QueueLookup lookup(*recorder_->metrics);
  std::vector<Settling> settling;
  settling.reserve(settlements.size());
  for (const Settlement& settlement : settlements) {
    Settling& one = settling.emplace_back(Settling{settlement.lease, label_of(settlement.outcome), {}});
    for (const Job& effect : settlement.effects) one.effects.push_back(&lookup(effect.queue));
  }
  const std::int64_t begun_us = recorder_->clock.now().elapsed_us;
  broker_->settle(std::move(settlements), [recorder = recorder_, settling = std::move(settling), begun_us,
                                           done = std::move(done)](Result<std::vector<Status>> statuses) {
    if (statuses) {
      const std::int64_t now_us = recorder->clock.now().elapsed_us;
      recorder->metrics->confirm_took(Micros(now_us - begun_us));
      for (std::size_t i = 0; i < statuses->size() && i < settling.size(); ++i) {
        if (!(*statuses)[i]) continue;
        const Settling& one = settling[i];
        for (Metrics::QueueCounters* const queue : one.effects) queue->enqueued.add();
        const auto attempt = recorder->running.take(one.lease);
        (attempt ? *attempt->queue : recorder->metrics->queue(kUnknownQueue)).count(one.outcome);
        if (attempt && one.outcome != OutcomeLabel::kReturned)
          recorder->metrics->job_took(Micros(now_us - attempt->started_us));
      }
    }
    done(std::move(statuses));
  });
}

}  // namespace bide::metrics
