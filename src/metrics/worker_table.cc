#include "metrics/worker_table.h"

#include "metrics/labelled.h"

namespace bide::metrics {

std::shared_ptr<WorkerTable::Worker> WorkerTable::subscribed(const SubscribeOptions& options, Time now) {
  const std::lock_guard lock(mutex_);
  auto found = workers_.find(options.worker);
  if (found == workers_.end()) {
    if (workers_.size() >= kMost) forget_one();
    const std::string name(workers_.size() < kMost ? std::string_view(options.worker) : kOverflowLabel);
    found = workers_.try_emplace(name, nullptr).first;
    if (!found->second) found->second = std::make_shared<Worker>(name, now);
  }
  Worker& worker = *found->second;
  worker.subscriptions_.fetch_add(1, std::memory_order_relaxed);
  worker.queues_.clear();
  for (const QueueShare& share : options.queues) worker.queues_.push_back(share.name);
  return found->second;
}

// The one that has been gone for longest; none when all are there.
void WorkerTable::forget_one() {
  auto oldest = workers_.end();
  for (auto each = workers_.begin(); each != workers_.end(); ++each) {
    if (each->second->subscriptions_ > 0) continue;
    if (oldest == workers_.end() || each->second->last_start_.load() < oldest->second->last_start_.load()) oldest = each;
  }
  if (oldest != workers_.end()) workers_.erase(oldest);
}

std::vector<WorkerCounts> WorkerTable::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerCounts> all;
  for (const auto& [name, worker] : workers_) {
    all.push_back({.name = name,
                   .queues = worker->queues_,
                   .subscriptions = worker->subscriptions_,
                   .running = worker->running_,
                   .started = worker->started_,
                   .done = worker->done_,
                   .failed = worker->failed_,
                   .since = worker->since_,
                   .last_start = worker->last_start_});
  }
  return all;
}

}  // namespace bide::metrics
