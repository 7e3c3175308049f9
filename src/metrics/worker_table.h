// WorkerTable: who takes jobs through this process, and what became of them. A worker is known by the name that it gives; those
// that have gone are forgotten when the table is full. Safe to use from any thread.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"

namespace bide::metrics {

struct WorkerCounts {
  std::string name = {};
  std::vector<std::string> queues = {};  // Of its newest subscription.
  int subscriptions = 0;                 // Open at the moment. 0: it has gone.
  std::int64_t running = 0;              // Taken and not settled. Those whose lease ran out count until they are run again.
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;              // Dead among them.
  Time since = {};
  Time last_start = {};                  // Equal to `since` before the first.
};

class WorkerTable {
 public:
  static constexpr std::size_t kMost = 500;

  class Worker {
   public:
    explicit Worker(std::string name, Time now) : name_(std::move(name)), since_(now), last_start_(now) {}

    const std::string& name() const { return name_; }
    void started(Time now) {
      started_.fetch_add(1, std::memory_order_relaxed);
      running_.fetch_add(1, std::memory_order_relaxed);
      last_start_.store(now, std::memory_order_relaxed);
    }
    void ended() { running_.fetch_sub(1, std::memory_order_relaxed); }
    void finished(bool well) { (well ? done_ : failed_).fetch_add(1, std::memory_order_relaxed); }
    void unsubscribed() { subscriptions_.fetch_sub(1, std::memory_order_relaxed); }

   private:
    friend class WorkerTable;
    const std::string name_;
    const Time since_;
    std::vector<std::string> queues_;  // Guarded by the table.
    std::atomic<Time> last_start_;
    std::atomic<int> subscriptions_ = 0;
    std::atomic<std::int64_t> running_ = 0;
    std::atomic<std::uint64_t> started_ = 0;
    std::atomic<std::uint64_t> done_ = 0;
    std::atomic<std::uint64_t> failed_ = 0;
  };

  // The worker of this name, with one subscription more.
  std::shared_ptr<Worker> subscribed(const SubscribeOptions& options, Time now);
  // In the order of their names.
  std::vector<WorkerCounts> list() const;

 private:
  void forget_one();

  mutable std::mutex mutex_;  // Guards everything below.
  std::map<std::string, std::shared_ptr<Worker>, std::less<>> workers_;
};

}  // namespace bide::metrics
