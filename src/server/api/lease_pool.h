// LeasePool: the polls with the same queues, kinds, lease time and worker, their one subscription, and leases that it delivered
// and no poll has yet. Sets the delivery limit of the subscription, so that no more leases are on their way than wanted:
//
//     delivery limit = arrived + wanted by waiting polls + expected from pollers about to poll again - held
//
// Guarded by the lock of LeaseDispatcher.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "platform/timer_thread.h"

namespace bide::server {

using platform::Moment;

class LeasePool;

struct LeasePoll {
  // Called once, on any thread; not after cancel().
  std::function<void(Result<std::vector<Lease>>)> answer;
  int max = 1;
  std::string poller;
  std::shared_ptr<LeasePool> pool;  // Null unless it waits.
  std::list<std::shared_ptr<LeasePoll>>::iterator place;
  std::multimap<Moment, std::shared_ptr<LeasePoll>>::iterator deadline;
  bool cancelled = false;
};

class LeasePool {
 public:
  using Poll = std::shared_ptr<LeasePoll>;

  LeasePool(std::string key, std::uint64_t number, SubscribeOptions options, bool named)
      : key_(std::move(key)), number_(number), options_(std::move(options)), named_(named) {}

  const std::string& key() const { return key_; }
  std::uint64_t number() const { return number_; }
  const SubscribeOptions& options() const { return options_; }
  bool is_named() const { return named_; }  // For one worker.

  void open(std::unique_ptr<Subscription> subscription);
  bool is_open() const { return subscription_ != nullptr; }
  // The subscription, to be destroyed without the lock.
  std::unique_ptr<Subscription> close() { return std::move(subscription_); }
  void update_limit();
  std::uint64_t delivery_limit() const;

  void add(const Poll& poll, Moment now);
  void remove(Poll poll);
  const std::list<Poll>& waiting() const { return waiting_; }
  // False: unknown.
  bool remove_poller(const std::string& poller);
  std::size_t pollers() const { return pollers_.size(); }
  // Those that have not polled since then and do not wait.
  void remove_pollers(Moment before);

  void arrived(std::vector<Lease> leases, Moment now);

  struct Share {
    Poll poll;  // Removed from waiting().
    std::vector<Lease> leases;
  };
  struct HandedOut {
    std::vector<Share> shares = {};
    std::vector<LeaseRef> too_old = {};  // Run out: no poll gets them.
    Moment expected_until = Moment::max();
  };
  // Shares what is held evenly, longest wait first, no poll more than its max. A named poller that got less is expected
  // to poll again within `back_within`.
  HandedOut hand_out(Moment now, Milliseconds back_within);

  // Leases held since that moment or longer.
  std::vector<LeaseRef> take_held(Moment before = Moment::max());
  std::size_t held() const { return held_.size(); }
  std::optional<Moment> held_since() const;

  // Drops expectations that are over. Returns when the next one is.
  std::optional<Moment> drop_expected(Moment now);

  Moment last_used = {};

 private:
  struct Held {
    Lease lease;
    Moment since;
  };
  struct Expected {
    int leases = 0;
    Moment until;
  };
  void remove_expected(const std::string& poller);

  const std::string key_;
  const std::uint64_t number_;
  const SubscribeOptions options_;
  const bool named_;
  std::unique_ptr<Subscription> subscription_;  // Null until it is open.
  std::uint64_t given_limit_ = 0;               // Of the subscription.
  std::uint64_t arrived_ = 0;                   // Leases since it was opened.
  std::list<Poll> waiting_;
  int wanted_ = 0;  // By waiting_.
  std::deque<Held> held_;
  std::map<std::string, Moment> pollers_;  // Named ones that have not left, with their last poll.
  std::map<std::string, Expected> expected_;
  int expected_leases_ = 0;  // Sum of expected_.
};

}  // namespace bide::server
