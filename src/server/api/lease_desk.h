// LeaseDesk: workers that ask for jobs over HTTP, and the subscriptions at the broker behind them. Polls that ask for
// the same share one subscription, so a thousand that wait cost no more than their memory.
//
//     poll ──► pool (queues, lease time, worker) ──► one Subscription, credit = wanted by polls + out and unsettled
//                 ▲                                     │
//                 └───────────── leases ◄───────────────┘    shared out evenly, the poll that waits longest first
//
// - A lease that comes when its poll has gone is held for a moment for the next one, and then returned uncharged.
// - Before a settlement goes to the broker the credit goes down by it: otherwise the broker would hand out the next
// jobs
//   to a pool in which nobody waits.
// - A poller that gave its name and got less than it asked for is expected back at once: until then the broker goes on
//   handing out, so that nobody waits for a way there and back with each answer.
// - A subscription without polls for a while is ended; leases that are out stay valid.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bide/broker.h"
#include "server/api/alarm.h"
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
};

// What is known of a lease that is out.
struct LeaseFacts {
  std::string kind = {};
  std::string queue = {};
  RetryPolicy retry = {};
  AttemptCounts counts = {};
};

class LeaseDesk {
 public:
  struct Poll;
  // Called once, on any thread; not when the poll was given up.
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
  // The poller of that name wants nothing more: its polls are answered now, and a subscription that nobody else uses is
  // ended. Then `done`, on any thread. Leases that are out stay valid.
  void leave(const std::string& poller, std::function<void()> done);

  // A lease that is with a worker, or held for one.
  struct Out {
    LeaseRef lease = {};
    std::uint64_t pool = 0;
    Moment deadline = {};
    Milliseconds time{0};
    LeaseFacts facts = {};
  };
  // About to be settled: to be said before the broker hears of it. Those of them that are known.
  std::vector<Out> settling(const std::vector<LeaseRef>& leases);
  // They were not, and are still out.
  void not_settled(std::vector<Out> leases);
  void extended(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers);
  // Nothing when the lease was given out by an earlier process, or is not ours any more.
  std::optional<LeaseFacts> facts(const LeaseRef& lease) const;

  // Does what is due by now; when to call again. Subscriptions are made and ended here, so it may block.
  std::optional<Moment> tick(Moment now);

  // Answers all polls, with nothing; returns what is held; ends all subscriptions. Later polls are refused.
  void stop();

  struct Counts {
    std::size_t pools = 0;
    std::size_t polls = 0;
    std::size_t out = 0;  // Leases given out and not settled, as far as we know.
    std::size_t held = 0;
  };
  Counts counts() const;

 private:
  struct Pool;
  using Key = std::string;
  using Pools = std::map<Key, std::shared_ptr<Pool>>;
  using Answers = std::vector<std::function<void()>>;

  Key key_of(const wire::LeaseRequest& request) const;
  void arrived(std::uint64_t pool, std::vector<Lease> leases);
  Moment hand_out(Pool& pool, Answers& answers);  // When tick() is wanted because of it.
  void remove(const std::shared_ptr<Poll>& poll);
  void set_credit(Pool& pool);
  std::optional<Out> forget(const LeaseRef& lease);
  std::shared_ptr<Pool> pool_of(const Out& out) const;
  void give_back(std::vector<LeaseRef> leases);
  void open(const std::shared_ptr<Pool>& pool, Answers& answers);
  std::optional<Moment> sweep(Moment now);

  Broker& broker_;
  const LeaseDeskOptions options_;

  mutable std::mutex mutex_;  // Guards everything below.
  bool stopped_ = false;
  std::uint64_t last_number_ = 0;
  Pools pools_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Pool>> by_number_;
  std::vector<std::shared_ptr<Pool>> to_open_;
  struct Leaving {
    std::vector<std::shared_ptr<Pool>> pools;  // Out of everything else already.
    std::function<void()> done;
  };
  std::vector<Leaving> leaving_;
  std::multimap<Moment, std::shared_ptr<Poll>> deadlines_;
  std::unordered_map<JobId, Out> out_;
  Moment next_sweep_ = Moment::max();
  Moment armed_ = Moment::max();  // When tick() will be called, at the latest.
};

}  // namespace bide::server
