// Settlers: a subscription and threads that settle every lease as done, in batches.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/bare_log.h"
#include "bide/broker.h"
#include "bide/result.h"

namespace bide::bench {

class Settlers {
 public:
  // `seen` runs in the sink for each delivery, before anything else.
  Settlers(Broker& broker, std::string queue, int threads, int credit,
           std::function<void(const std::vector<Lease>&)> seen = nullptr, std::size_t batch = kBatch);
  ~Settlers();
  Settlers(const Settlers&) = delete;
  Settlers& operator=(const Settlers&) = delete;

  // Blocks until so many settles are confirmed in all, or something failed.
  Status wait_for(std::uint64_t settled);

 private:
  void receive(std::vector<Lease> leases);
  void work();
  void confirmed(const Result<std::vector<Status>>& answer);

  Broker& broker_;
  const std::function<void(const std::vector<Lease>&)> seen_;
  const std::size_t batch_;  // Settlements a call, at most.

  std::mutex mutex_;  // Guards everything up to the next blank line.
  std::condition_variable arrived_;
  std::condition_variable progressed_;
  std::vector<LeaseRef> waiting_;
  std::uint64_t settled_ = 0;
  std::uint64_t under_way_ = 0;
  std::optional<Error> error_;
  bool stop_ = false;

  std::vector<std::thread> threads_;
  std::unique_ptr<Subscription> subscription_;
};

struct CycleOptions {
  int threads = 2;  // That enqueue, and as many that settle.
  int credit = 32'768;
  std::size_t enqueue_batch = 256;
  std::size_t settle_batch = kBatch;
  int window = 16;  // Enqueues under way, for each thread.
};

// The whole life of jobs: enqueued by some threads, leased, settled by others; every step durable. From the first enqueue to the last confirmed
// settle, in jobs a second. In the queue `cycle`.
Result<double> cycle_rate(Broker& broker, std::uint64_t jobs, const CycleOptions& options = {});

}  // namespace bide::bench
