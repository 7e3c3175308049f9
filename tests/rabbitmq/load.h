// Load: producers and workers on a broker that is harmed meanwhile, and what they saw, for the checker of tests/crash.
//
// Producers enqueue small batches with ids of their own, some of them delayed, and enqueue again what was not confirmed.
// That has another id: on RabbitMQ the same id enqueued twice is two jobs, and the checker would take a retry of one of
// them for an early retry of the other. Workers settle with every kind of outcome, some with effects. Producers and workers have brokers of
// their own, as if they were different processes.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bide/broker.h"
#include "brokers/open_broker.h"
#include "crash/checker.h"
#include "crash/history.h"
#include "support/seeded_random.h"
#include "support/temporary_directory.h"

namespace bide::rabbitmq_test {

struct LoadOptions {
  std::string producer_url;
  std::string worker_url;
  int producers = 2;
  int batch = 10;
  Milliseconds pause{20};            // Between the batches of one producer.
  Milliseconds longest_delay{1500};  // Every third job waits, up to this.
  int workers = 4;
  Milliseconds handler_time{1};
  int credit = 50;
  std::uint64_t seed = 1;
  bool warm_up = true;  // See Load's constructor.
};

class Load {
 public:
  // For what must come: a server that starts again on a busy machine takes its time.
  static constexpr std::chrono::seconds kPatience{120};

  // With a warm-up, every queue that the load is going to need has been declared when it returns.
  explicit Load(LoadOptions options);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  Broker& producer() { return *producer_.broker; }
  Broker& worker() { return *worker_.broker; }
  Inspector& inspector() { return *worker_.inspector; }

  void start_producing();
  void stop_producing();  // Returns when everything that was begun is confirmed or given up.
  // True when so many have been confirmed, or done, since the beginning; false when patience ran out.
  bool await_confirmed(std::uint64_t count) const;
  bool await_done(std::uint64_t count) const;
  // Jobs that wait for so long, confirmed when it returns.
  void enqueue_delayed(int count, Milliseconds delay);
  // True when every confirmed job has come to its end, or may have: the word that its outcome was accepted can be lost
  // with a connection. False when that took too long.
  bool drain(std::chrono::milliseconds at_most = kPatience) const;

  std::uint64_t confirmed() const;
  std::uint64_t done() const;  // Ended, dead ones included.
  std::uint64_t unfinished() const;
  std::uint64_t refused() const { return refused_; }  // Enqueues of which the broker said that nothing was written.
  // Handed out again after their end. The workers are one process, which remembers what it has
  // settled, so there must be none.
  std::uint64_t forgotten() const;
  // When the last enqueue was confirmed.
  std::chrono::steady_clock::time_point last_confirmed() const;

  // The injector's word: from now on the server may hand out again what the workers have.
  void note_outage(const std::string& what);

  // Ends everything, and says what was seen. The broker's dead set counts as found.
  crash::Findings examine();

 private:
  struct Fate {
    bool confirmed = false;
    bool may_have_ended = false;  // It was asked for.
    bool ended = false;
  };

  void warm_up();
  void produce(std::uint64_t seed);
  void enqueue(std::vector<Job> jobs);
  void work(std::uint64_t seed);
  void settle(const Lease& lease, std::uint64_t chance);
  void send(const Settlement& settlement, const std::string& lease, bool is_final,
            const std::shared_ptr<crash::HistoryWriter>& history);
  void note_confirmed(const JobId& id);
  void note_asked(const JobId& id);
  void note_ended(const JobId& id);
  JobId next_id();
  Job make_job(Milliseconds delay);
  Milliseconds random_delay(support::SeededRandom& random) const;
  bool await(const std::function<bool()>& holds, std::chrono::milliseconds at_most = kPatience) const;
  std::shared_ptr<crash::HistoryWriter> worker_history() const;

  const LoadOptions options_;
  const support::TemporaryDirectory histories_;
  crash::HistoryWriter injector_;
  brokers::OpenedBroker producer_;
  brokers::OpenedBroker worker_;
  std::shared_ptr<Broker> witnessed_producer_;
  std::atomic<bool> producing_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::vector<std::thread> producers_;
  std::vector<std::thread> workers_;
  std::unique_ptr<Subscription> subscription_;

  mutable std::mutex mutex_;  // Guards everything below.
  mutable std::condition_variable changed_;
  std::deque<Lease> leases_;
  std::deque<std::function<void()>> unsaid_;  // Settlements of which nobody knows what became.
  bool closing_ = false;
  std::unordered_map<JobId, Fate> fates_;
  std::uint64_t confirmed_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t unfinished_ = 0;  // Confirmed and not ended.
  std::uint64_t untouched_ = 0;   // Of these, nobody has asked for their end.
  std::uint64_t forgotten_ = 0;
  std::chrono::steady_clock::time_point last_confirmed_;
  std::uint64_t last_id_ = 0;
  int outages_ = 0;
  std::shared_ptr<crash::HistoryWriter> worker_history_;
};

}  // namespace bide::rabbitmq_test
