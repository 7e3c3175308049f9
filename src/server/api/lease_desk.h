// LeaseDesk: workers that ask for jobs over HTTP, and the subscriptions at the broker behind them. Polls that ask for
// the same share one subscription, so a thousand that wait cost no more than their memory.
//
//     poll ──► LeasePool (queues, lease time, worker) ──► one Subscription, which may deliver what polls want
//                 ▲                                          │
//                 └─────────────── leases ◄──────────────────┘    shared out evenly, the poll that waits longest first
//                 │
//                 └──► answer ──► LeaseRegistry, until they are settled or run out
//
// - A lease that comes when its poll has gone is held for a moment for the next one, and then returned uncharged; so is
//   one whose answer could not be written.
// - What leases come to has no influence on how many are delivered: the broker may deliver as many as polls want.
// - A poller that gave its name and got less than it asked for is expected back at once: until then the broker goes on
//   handing out, so that nobody waits for a way there and back with each answer.
// - A subscription without polls for a while is ended; leases that are out stay valid.

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
#include "server/api/alarm.h"
#include "server/api/lease_pool.h"
#include "server/api/lease_registry.h"
#include "wire/lease_json.h"

namespace bide::server {

struct LeaseDeskOptions {
  // Even a poll that does not want to wait gives the broker so much time to answer.
  Milliseconds shortest_wait{200};
  Milliseconds hold{100};     // A lease without a poll.
  Milliseconds idle{10'000};  // A subscription without polls.
  Milliseconds back_within{20};  // A poller with a name that got some of what it wants asks for the rest.
  std::size_t most_pools = 4096;
  std::size_t most_named = 64;         // Beyond it, workers share subscriptions and lose their names.
  std::function<void()> poke = [] {};  // tick() wants to be called soon.
  std::function<void()> poke_subscriber = [] {};  // subscribe_pending() likewise.
};

class LeaseDesk {
 public:
  using Poll = LeasePoll;
  using Answer = std::function<void(Result<std::vector<Lease>>)>;

  // The broker must outlive the desk.
  LeaseDesk(Broker& broker, LeaseDeskOptions options);
  ~LeaseDesk();  // Stops; not on a thread of the broker, unless it was stopped before.

  // Made first and asked for afterwards, so that it can be given up at any time in between.
  std::shared_ptr<Poll> make_poll(Answer answer) const;
  // kOverloaded: there are too many different requests. Otherwise what the broker says when it refuses to subscribe us.
  void take(const std::shared_ptr<Poll>& poll, wire::LeaseRequest request);
  // Its client has gone. Leases that come for it go to the next.
  void give_up(const std::shared_ptr<Poll>& poll);
  // The answer to a poll was written, or can certainly not have arrived whole: then its leases are returned.
  void answer_written(const std::vector<LeaseRef>& leases);
  void answer_lost(const std::vector<LeaseRef>& leases);
  // The poller of that name wants nothing more: its polls are answered now, and a subscription that nobody else uses is
  // ended. Then `done`, on any thread. Leases that are out stay valid.
  void leave(const std::string& poller, std::function<void()> done);

  // The leases that polls were answered with.
  LeaseRegistry& out() { return registry_; }

  // Does what is due by now; when to call again. Does not block.
  std::optional<Moment> tick(Moment now);
  // Makes and ends subscriptions, which may block: to be called on a thread that nobody waits for.
  void subscribe_pending();

  // Answers all polls, with nothing; returns what is held; ends all subscriptions. Later polls are refused.
  void stop();

  struct Counts {
    std::size_t pools = 0;
    std::size_t polls = 0;
    std::size_t out = 0;  // Leases given out and not settled, as far as we know.
    std::size_t held = 0;
    std::size_t pollers = 0;  // With a name, that are expected to ask again.
  };
  Counts counts() const;

 private:
  using Key = std::string;
  using PoolPtr = std::shared_ptr<LeasePool>;
  using Pools = std::map<Key, PoolPtr>;
  using Answers = std::vector<std::function<void()>>;
  struct Leaving {
    std::vector<std::unique_ptr<Subscription>> subscriptions = {};
    std::function<void()> done = nullptr;
  };

  Key key_of(const wire::LeaseRequest& request) const;
  Result<PoolPtr> pool_for(wire::LeaseRequest& request);
  void arrived(std::uint64_t pool, std::vector<Lease> leases);
  // With the lock held: gives what the pool has to its polls; when tick() is wanted because of it.
  Moment hand_out(LeasePool& pool, Answers& answers, std::vector<LeaseRef>& back);
  void answer_with_nothing(std::shared_ptr<Poll> poll, Answers& answers);
  void remove(std::shared_ptr<Poll> poll);
  bool arm(Moment moment);  // True: poke.
  void give_back(std::vector<LeaseRef> leases, const char* note);
  void open(const PoolPtr& pool);
  void failed(std::uint64_t number, const Error& error);
  std::optional<Moment> sweep(Moment now);

  Broker& broker_;
  const LeaseDeskOptions options_;
  LeaseRegistry registry_;

  mutable std::mutex mutex_;  // Guards everything below. The registry's own is only taken after it.
  bool stopped_ = false;
  std::uint64_t last_number_ = 0;
  Pools pools_;
  std::unordered_map<std::uint64_t, PoolPtr> by_number_;
  std::vector<PoolPtr> to_open_;
  std::vector<Leaving> leaving_;  // Out of everything else already.
  std::multimap<Moment, std::shared_ptr<Poll>> deadlines_;
  Moment armed_ = Moment::max();  // When tick() will be called, at the latest.
};

}  // namespace bide::server
