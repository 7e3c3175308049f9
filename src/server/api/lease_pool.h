// LeasePool: the polls that ask for the same queues, lease time and worker, and the leases that their one subscription
// has delivered and nobody has yet. It says how many leases the subscription may deliver in all, so that what is on its
// way never exceeds what is wanted:
//
//     delivery limit = arrived + wanted by waiting polls + expected by pollers that are about to be back - held
//
// Not safe to share between threads: LeaseDesk has the lock.

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
#include "server/api/alarm.h"

namespace bide::server {

class LeasePool;

// One request for leases.
struct LeasePoll {
  // Called once, on any thread; not when the poll was given up.
  std::function<void(Result<std::vector<Lease>>)> answer;
  int max = 1;
  std::string poller;
  std::shared_ptr<LeasePool> pool;  // Null when it does not wait: not yet, or no more.
  std::list<std::shared_ptr<LeasePoll>>::iterator place;
  std::multimap<Moment, std::shared_ptr<LeasePoll>>::iterator deadline;
  bool gone = false;
};

class LeasePool {
 public:
  using Poll = std::shared_ptr<LeasePoll>;

  LeasePool(std::string key, std::uint64_t number, SubscribeOptions options, bool named)
      : key_(std::move(key)), number_(number), options_(std::move(options)), named_(named) {}

  const std::string& key() const { return key_; }
  std::uint64_t number() const { return number_; }
  const SubscribeOptions& options() const { return options_; }
  bool is_named() const { return named_; }  // For one worker, by its name.

  // The subscription; it is told the limit whenever that has changed.
  void open(std::unique_ptr<Subscription> subscription);
  bool is_open() const { return subscription_ != nullptr; }
  // To be destroyed without the lock.
  std::unique_ptr<Subscription> close() { return std::move(subscription_); }
  void renew_limit();
  std::uint64_t delivery_limit() const;

  void add(const Poll& poll, Moment now);
  void remove(Poll poll);
  const std::list<Poll>& waiting() const { return waiting_; }
  // False: the poller is not known here.
  bool forget_poller(const std::string& poller);
  std::size_t pollers() const { return pollers_.size(); }
  // Those that have not asked since then and do not wait: they went without a word.
  void forget_pollers(Moment before);

  void arrived(std::vector<Lease> leases, Moment now);

  struct Share {
    Poll poll;  // It waits no more.
    std::vector<Lease> leases;
  };
  struct HandedOut {
    std::vector<Share> shares = {};
    std::vector<LeaseRef> too_old = {};  // Their time is over: nobody gets them.
    Moment expected_until = Moment::max();
  };
  // Each of those that wait gets its share of what is held, and not more than it asked for. A poller with a name that got
  // less is expected back within `back_within`.
  HandedOut hand_out(Moment now, Milliseconds back_within);

  // What has been held since before that moment, or all of it.
  std::vector<LeaseRef> take_held(Moment before = Moment::max());
  std::size_t held() const { return held_.size(); }
  std::optional<Moment> held_since() const;

  // When the next poller is no longer expected; nothing: none is.
  std::optional<Moment> give_up_expected(Moment now);

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
  void forget_expected(const std::string& poller);

  const std::string key_;
  const std::uint64_t number_;
  const SubscribeOptions options_;
  const bool named_;
  std::unique_ptr<Subscription> subscription_;  // Null until it is open.
  std::uint64_t given_limit_ = 0;               // As the subscription was told.
  std::uint64_t arrived_ = 0;                   // Leases since it was opened.
  std::list<Poll> waiting_;
  int wanted_ = 0;  // By those.
  std::deque<Held> held_;
  std::map<std::string, Moment> pollers_;  // That gave a name, have not left, and when each asked last.
  std::map<std::string, Expected> expected_;
  int expected_leases_ = 0;  // By those.
};

}  // namespace bide::server
