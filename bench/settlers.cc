#include "bench/settlers.h"

#include <algorithm>
#include <utility>

#include "bench/producers.h"
#include "bench/resources.h"

namespace bide::bench {

Settlers::Settlers(Broker& broker, std::string queue, int threads, int credit,
                   std::function<void(const std::vector<Lease>&)> seen, std::size_t batch)
    : broker_(broker), seen_(std::move(seen)), batch_(batch) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  auto subscription = broker.subscribe({.queues = {{std::move(queue), 1}}, .credit = credit, .worker = "bench"},
                                       [this](std::vector<Lease> leases) { receive(std::move(leases)); });
  if (subscription) {
    subscription_ = std::move(*subscription);
  } else {
    std::lock_guard lock(mutex_);
    error_ = subscription.error();
  }
}

Settlers::~Settlers() {
  subscription_.reset();
  std::unique_lock lock(mutex_);
  stop_ = true;
  arrived_.notify_all();
  progressed_.wait(lock, [&] { return under_way_ == 0; });
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
}

void Settlers::receive(std::vector<Lease> leases) {
  if (seen_) seen_(leases);
  std::lock_guard lock(mutex_);
  for (const Lease& lease : leases) waiting_.push_back({lease.job.id, lease.token});
  arrived_.notify_one();
}

void Settlers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), batch_));
    std::vector<LeaseRef> mine(waiting_.end() - count, waiting_.end());
    waiting_.erase(waiting_.end() - count, waiting_.end());
    under_way_ += mine.size();
    lock.unlock();
    std::vector<Settlement> settlements;
    settlements.reserve(mine.size());
    for (const LeaseRef& lease : mine) settlements.push_back({.lease = lease});
    broker_.settle(std::move(settlements), [this](const Result<std::vector<Status>>& answer) { confirmed(answer); });
    lock.lock();
  }
}

void Settlers::confirmed(const Result<std::vector<Status>>& answer) {
  std::lock_guard lock(mutex_);
  if (!answer) {
    error_ = answer.error();
    under_way_ = 0;
  } else {
    for (const Status& status : *answer) {
      if (!status && !error_) error_ = status.error();
    }
    settled_ += answer->size();
    under_way_ -= answer->size();
  }
  progressed_.notify_all();
}

Status Settlers::wait_for(std::uint64_t settled) {
  std::unique_lock lock(mutex_);
  progressed_.wait(lock, [&] { return settled_ >= settled || error_; });
  if (error_) return *error_;
  return {};
}

Result<double> cycle_rate(Broker& broker, std::uint64_t jobs, const CycleOptions& options) {
  Settlers settlers(broker, "cycle", options.threads, options.credit, nullptr, options.settle_batch);
  const Stopwatch watch;
  const Status produced = produce(
      broker,
      {.jobs = jobs, .threads = options.threads, .batch = options.enqueue_batch, .window = options.window},
      [](std::uint64_t number) { return make_bench_job(number, "cycle"); });
  if (!produced) return produced.error();
  if (Status settled = settlers.wait_for(jobs); !settled) return settled.error();
  return static_cast<double>(jobs) / watch.seconds();
}

}  // namespace bide::bench
