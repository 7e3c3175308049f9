// LeaseDispatcher: long polls of workers over HTTP. Polls with the same parameters share one subscription at the
// broker, so a thousand that wait cost no more than their memory.
//
//     poll ──► LeasePool (queues, lease time, worker) ──► one Subscription, limited to what polls want
//                 ▲                                          │
//                 └─────────────── leases ◄──────────────────┘    shared evenly, longest wait first
//                 │
//                 └──► answer ──► LeaseRegistry, until they are settled or run out
//
// - A lease whose poll has gone is held briefly for the next one, then returned uncharged; so is one whose answer could
//   not be written.
// - The delivery limit does not depend on what becomes of leases, only on what polls want.
// - A named poller that got less than it asked for is expected to poll again at once: the broker goes on delivering
//   meanwhile, which saves a round trip with each answer.
// - A subscription without polls is closed after a while; its leases stay valid.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bide/broker.h"
#include "platform/timer_thread.h"
#include "server/api/lease_pool.h"
#include "server/api/lease_registry.h"
#include "wire/lease_json.h"

namespace bide::server {

struct LeaseDispatcherOptions {
  Milliseconds shortest_wait{200};  // The broker's time to answer a poll that does not wait.
  Milliseconds hold{100};           // A lease without a poll.
  Milliseconds idle{10'000};        // A subscription without polls.
  Milliseconds back_within{20};     // Until a named poller that got too little has polled again.
  std::size_t most_pools = 4096;
  std::size_t most_named = 64;                    // More workers share subscriptions, without their names.
  std::function<void()> wake = [] {};             // tick() is due earlier than it said.
  std::function<void()> wake_subscriber = [] {};  // subscribe_pending() is due.
};

class LeaseDispatcher {
 public:
  using Poll = LeasePoll;
  using Answer = std::function<void(Result<std::vector<Lease>>)>;

  // The broker must outlive it.
  LeaseDispatcher(Broker& broker, LeaseDispatcherOptions options);
  ~LeaseDispatcher();  // Stops; not on a thread of the broker, unless it was stopped before.

  // Two steps, so that cancel() can be set up in between.
  std::shared_ptr<Poll> make_poll(Answer answer) const;
  // kOverloaded: too many different requests. Otherwise the broker's error to the subscription.
  void start(const std::shared_ptr<Poll>& poll, wire::LeaseRequest request);
  // Its client has gone. Its leases go to the next poll.
  void cancel(const std::shared_ptr<Poll>& poll);
  // The answer to a poll was written, or certainly did not arrive: then its leases are returned.
  void answer_written(const std::vector<LeaseRef>& leases);
  void answer_lost(const std::vector<LeaseRef>& leases);
  // Answers the polls of that poller now and closes subscriptions that nobody else uses. Then `done`, on any thread.
  // Its leases stay valid.
  void leave(const std::string& poller, std::function<void()> done);

  LeaseRegistry& registry() { return registry_; }

  // Does what is due by now and returns when to call again. Does not block.
  std::optional<Moment> tick(Moment now);
  // Opens and closes subscriptions, which may block: for a thread of its own.
  void subscribe_pending();

  // Answers all polls with nothing, returns held leases, closes all subscriptions. Later polls are refused.
  void stop();

  struct Counts {
    std::size_t pools = 0;
    std::size_t polls = 0;
    std::size_t out = 0;  // In the registry.
    std::size_t held = 0;
    std::size_t pollers = 0;  // Named.
  };
  Counts counts() const;

 private:
  using Key = std::string;
  using PoolPtr = std::shared_ptr<LeasePool>;
  using Pools = std::map<Key, PoolPtr>;
  using Answers = std::vector<std::function<void()>>;
  struct Closing {
    std::vector<std::unique_ptr<Subscription>> subscriptions = {};
    std::function<void()> done = nullptr;
  };

  Key key_of(const wire::LeaseRequest& request) const;
  Result<PoolPtr> pool_for(wire::LeaseRequest& request);
  void on_leases(std::uint64_t pool, std::vector<Lease> leases);
  void on_failed(std::uint64_t number, const Error& error);
  // These with the lock held. dispatch() gives held leases to polls, and returns when tick() is due because of it.
  Moment dispatch(LeasePool& pool, Answers& answers, std::vector<LeaseRef>& back);
  void answer_with_nothing(std::shared_ptr<Poll> poll, Answers& answers);
  void remove(std::shared_ptr<Poll> poll);
  bool arm(Moment moment);  // True: wake.
  void close(LeasePool& pool);

  void return_leases(std::vector<LeaseRef> leases, const char* note);
  void open(const PoolPtr& pool);
  static void finish(std::vector<Closing> closing);
  std::optional<Moment> sweep(Moment now);

  Broker& broker_;
  const LeaseDispatcherOptions options_;
  LeaseRegistry registry_;

  mutable std::mutex mutex_;  // Guards everything below. Taken before the registry's.
  bool stopped_ = false;
  std::uint64_t last_number_ = 0;
  Pools pools_;
  std::unordered_map<std::uint64_t, PoolPtr> by_number_;
  std::vector<PoolPtr> to_open_;
  std::vector<Closing> closing_;  // For subscribe_pending().
  std::multimap<Moment, std::shared_ptr<Poll>> deadlines_;
  Moment armed_ = Moment::max();  // The latest time at which tick() will be called.
};

}  // namespace bide::server
