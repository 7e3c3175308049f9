#include "metrics/metered_broker.h"

#include <chrono>
#include <utility>

namespace bide::metrics {
namespace {

using Micros = std::chrono::microseconds;

// After its time limit an attempt cannot be settled; brokers may be a little late to notice.
constexpr Micros kGrace = std::chrono::minutes(1);

// Where a job is counted.
struct Places {
  Metrics::QueueCounters* queue = nullptr;
  Metrics::KindCounters* kind = nullptr;
  JobHistory::Series* queue_history = nullptr;
  JobHistory::Series* kind_history = nullptr;

  void enqueued(Time now) const {
    queue->enqueued.add();
    queue_history->add(JobEventKind::kEnqueued, now);
    kind_history->add(JobEventKind::kEnqueued, now);
  }
};

// The places of many jobs: most batches are for one queue and of one kind.
class PlaceLookup {
 public:
  PlaceLookup(Metrics& metrics, JobHistory& history) : metrics_(metrics), history_(history) {}

  const Places& operator()(const Job& job) {
    if (last_.queue == nullptr || job.queue != queue_) {
      queue_ = job.queue;
      last_.queue = &metrics_.queue(job.queue);
      last_.queue_history = &history_.queue(job.queue);
    }
    if (last_.kind_history == nullptr || job.kind != kind_) {
      kind_ = job.kind;
      last_.kind = &metrics_.kind(job.kind);
      last_.kind_history = &history_.kind(job.kind);
    }
    return last_;
  }

 private:
  Metrics& metrics_;
  JobHistory& history_;
  std::string queue_;
  std::string kind_;
  Places last_;
};

struct Settling {
  LeaseRef lease;
  OutcomeLabel outcome;
  std::vector<Places> effects;
};

class MeteredSubscription : public Subscription {
 public:
  MeteredSubscription(std::unique_ptr<Subscription> next, std::shared_ptr<WorkerTable::Worker> worker)
      : next_(std::move(next)), worker_(std::move(worker)) {}
  ~MeteredSubscription() override {
    next_.reset();
    worker_->unsubscribed();
  }
  MeteredSubscription(const MeteredSubscription&) = delete;
  MeteredSubscription& operator=(const MeteredSubscription&) = delete;

  void set_credit(int credit) override { next_->set_credit(credit); }
  void set_delivery_limit(std::uint64_t deliveries) override { next_->set_delivery_limit(deliveries); }

 private:
  std::unique_ptr<Subscription> next_;
  const std::shared_ptr<WorkerTable::Worker> worker_;
};

}  // namespace

MeteredBroker::MeteredBroker(std::shared_ptr<Broker> broker, std::shared_ptr<Metrics> metrics, platform::Clock& clock)
    : broker_(std::move(broker)), recorder_(std::make_shared<Recorder>(std::move(metrics), clock)) {}

void MeteredBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  PlaceLookup lookup(*recorder_->metrics, recorder_->history);
  std::vector<Places> places;
  places.reserve(jobs.size());
  for (const Job& job : jobs) places.push_back(lookup(job));
  const std::int64_t begun_us = recorder_->clock.now().elapsed_us;
  broker_->enqueue(std::move(jobs), [recorder = recorder_, places = std::move(places), begun_us,
                                     done = std::move(done)](Result<std::vector<Result<Enqueued>>> results) {
    if (results) {
      recorder->metrics->confirm_took(Micros(recorder->clock.now().elapsed_us - begun_us));
      const Time now = recorder->wall();
      for (std::size_t i = 0; i < results->size() && i < places.size(); ++i) {
        const Result<Enqueued>& result = (*results)[i];
        if (result && !result->existed) places[i].enqueued(now);
      }
    }
    done(std::move(results));
  });
}

void MeteredBroker::Recorder::begin(const std::vector<Lease>& leases, const std::shared_ptr<WorkerTable::Worker>& worker) {
  const platform::Instant now = clock.now();
  const Time at(Milliseconds(now.wall_us / 1000));
  PlaceLookup lookup(*metrics, history);
  for (const Lease& lease : leases) {
    const Places& places = lookup(lease.job);
    const std::int64_t age_us = Micros(lease.age).count();
    const std::int64_t started_us = now.elapsed_us - age_us;
    const bool known = running.add(lease.job.id, {.token = lease.token,
                                                  .started_us = started_us,
                                                  .over_us = started_us + Micros(lease.job.time_limit).count() + kGrace.count(),
                                                  .queue = places.queue,
                                                  .kind = places.kind,
                                                  .queue_history = places.queue_history,
                                                  .kind_history = places.kind_history,
                                                  .worker = worker});
    worker->started(at);
    if (!known) worker->ended();
    const Micros late(now.wall_us - age_us - Micros(lease.due.time_since_epoch()).count());
    metrics->job_was_late(late);
    places.queue->lateness.observe(late);
    places.queue_history->started(at, std::chrono::ceil<Milliseconds>(late));
    places.kind_history->started(at, std::chrono::ceil<Milliseconds>(late));
    // The attempt before this one ended without a word from its worker, who may have done the work.
    if (lease.history.empty() || lease.history.back().attempt + 1 != lease.attempt) continue;
    const Fault fault = lease.history.back().fault;
    if (fault == Fault::kFailed) continue;
    metrics->duplicate_start(fault);
    places.queue_history->add(JobEventKind::kFailed, at);
    places.kind_history->add(JobEventKind::kFailed, at);
  }
}

void MeteredBroker::Recorder::end(const LeaseRef& lease, OutcomeLabel outcome, const platform::Instant& now) {
  const auto attempt = running.take(lease);
  if (!attempt) return metrics->queue(kUnknownQueue).count(outcome);
  attempt->queue->count(outcome);
  attempt->kind->count(outcome);
  if (outcome == OutcomeLabel::kReturned) return;
  const Micros took(now.elapsed_us - attempt->started_us);
  metrics->job_took(took);
  attempt->kind->duration.observe(took);
  const bool well = outcome == OutcomeLabel::kDone;
  attempt->worker->finished(well);
  const Time at(Milliseconds(now.wall_us / 1000));
  for (JobHistory::Series* const series : {attempt->queue_history, attempt->kind_history}) {
    series->add(well ? JobEventKind::kDone : JobEventKind::kFailed, at);
    if (outcome == OutcomeLabel::kDead) series->add(JobEventKind::kDead, at);
  }
}

Result<std::unique_ptr<Subscription>> MeteredBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  const auto worker = recorder_->workers.subscribed(options, recorder_->wall());
  auto subscribed = broker_->subscribe(
      std::move(options), [recorder = recorder_, worker, sink = std::move(sink)](std::vector<Lease> leases) {
        recorder->begin(leases, worker);
        sink(std::move(leases));
      });
  if (subscribed) return std::unique_ptr<Subscription>(std::make_unique<MeteredSubscription>(std::move(*subscribed), worker));
  worker->unsubscribed();
  return subscribed;
}

void MeteredBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  PlaceLookup lookup(*recorder_->metrics, recorder_->history);
  std::vector<Settling> settling;
  settling.reserve(settlements.size());
  for (const Settlement& settlement : settlements) {
    Settling& one = settling.emplace_back(Settling{settlement.lease, label_of(settlement.outcome), {}});
    for (const Job& effect : settlement.effects) one.effects.push_back(lookup(effect));
  }
  const std::int64_t begun_us = recorder_->clock.now().elapsed_us;
  broker_->settle(std::move(settlements), [recorder = recorder_, settling = std::move(settling), begun_us,
                                           done = std::move(done)](Result<std::vector<Status>> statuses) {
    if (statuses) {
      const platform::Instant now = recorder->clock.now();
      const Time at(Milliseconds(now.wall_us / 1000));
      recorder->metrics->confirm_took(Micros(now.elapsed_us - begun_us));
      for (std::size_t i = 0; i < statuses->size() && i < settling.size(); ++i) {
        if (!(*statuses)[i]) continue;
        const Settling& one = settling[i];
        for (const Places& places : one.effects) places.enqueued(at);
        recorder->end(one.lease, one.outcome, now);
      }
    }
    done(std::move(statuses));
  });
}

}  // namespace bide::metrics
