#include "server/api/lease_desk.h"

#include <algorithm>
#include <set>
#include <utility>

namespace bide::server {

namespace {

using std::chrono::steady_clock;

constexpr std::string_view kSharedName = "http";
constexpr Milliseconds kSweepEvery{1000};

Settlement returned(const LeaseRef& lease) {
  return {.lease = lease, .outcome = Returned{.note = "the poll that it was for has gone"}};
}

}  // namespace

struct LeaseDesk::Poll {
  Answer answer;
  int max = 1;
  std::string poller;
  std::shared_ptr<Pool> pool;  // Null when it does not wait: not yet, or no more.
  std::list<std::shared_ptr<Poll>>::iterator place;
  std::multimap<Moment, std::shared_ptr<Poll>>::iterator deadline;
  bool gone = false;
};

struct LeaseDesk::Pool {
  Key key;
  std::uint64_t number = 0;
  SubscribeOptions options;
  std::unique_ptr<Subscription> subscription;  // Null until it is open.
  std::list<std::shared_ptr<Poll>> waiting;
  int wanted = 0;     // By those.
  int unsettled = 0;  // Leases of this subscription, also those held.
  struct Held {
    Lease lease;
    Moment since;
  };
  std::deque<Held> held;
  Moment last_used = {};
  bool named = false;
  std::set<std::string> pollers;  // That gave a name and have not left.
  // Pollers that got less than they asked for and will be back in a moment: what comes meanwhile is for them.
  struct Expected {
    int leases = 0;
    Moment until;
  };
  std::map<std::string, Expected> expected;
  int expected_leases = 0;

  void expect(const std::string& poller, int leases, Moment until) {
    forget_expected(poller);
    expected_leases += leases;
    expected[poller] = {leases, until};
  }
  void forget_expected(const std::string& poller) {
    const auto found = expected.find(poller);
    if (found == expected.end()) return;
    expected_leases -= found->second.leases;
    expected.erase(found);
  }
  // When the next of them is given up; nothing: there is none.
  std::optional<Moment> give_up_expected(Moment now) {
    std::optional<Moment> next;
    for (auto at = expected.begin(); at != expected.end();) {
      if (at->second.until <= now) {
        expected_leases -= at->second.leases;
        at = expected.erase(at);
      } else {
        next = next ? std::min(*next, at->second.until) : at->second.until;
        ++at;
      }
    }
    return next;
  }
};

LeaseDesk::LeaseDesk(Broker& broker, LeaseDeskOptions options) : broker_(broker), options_(std::move(options)) {}

LeaseDesk::~LeaseDesk() { stop(); }

LeaseDesk::Key LeaseDesk::key_of(const wire::LeaseRequest& request) const {
  std::string key = std::to_string(request.lease.count());
  for (const QueueShare& share : request.queues) key += " " + share.name + "*" + std::to_string(share.weight);
  return key + " ";  // The worker follows.
}

std::shared_ptr<LeaseDesk::Poll> LeaseDesk::make_poll(Answer answer) const {
  auto poll = std::make_shared<Poll>();
  poll->answer = std::move(answer);
  return poll;
}

void LeaseDesk::take(const std::shared_ptr<Poll>& poll, wire::LeaseRequest request) {
  poll->max = request.max;
  const Moment now = steady_clock::now();
  Answers answers;
  std::unique_lock lock(mutex_);
  const auto refuse = [&](Error error) {
    lock.unlock();
    poll->answer(std::move(error));
  };
  if (poll->gone) return;
  if (stopped_) return refuse({ErrorCode::kUnavailable, "the server is shutting down"});
  Key key = key_of(request);
  auto found = pools_.find(key + request.worker);
  if (found == pools_.end() && !request.worker.empty()) {
    const auto named = static_cast<std::size_t>(
        std::count_if(pools_.begin(), pools_.end(), [](const auto& each) { return each.second->named; }));
    if (named >= options_.most_named) {
      request.worker.clear();
      found = pools_.find(key);
    }
  }
  if (found == pools_.end()) {
    if (pools_.size() >= options_.most_pools) {
      return refuse(
          {ErrorCode::kOverloaded, "there are too many different lease requests (queues and lease times) at a time"});
    }
    auto pool = std::make_shared<Pool>();
    pool->key = key + request.worker;
    pool->number = ++last_number_;
    pool->named = !request.worker.empty();
    pool->options = {.queues = std::move(request.queues),
                     .credit = 0,
                     .lease = request.lease,
                     .worker = pool->named ? request.worker : std::string(kSharedName),
                     .outlives_process = true};
    found = pools_.emplace(pool->key, pool).first;
    by_number_.emplace(pool->number, pool);
    to_open_.push_back(std::move(pool));
  }
  const std::shared_ptr<Pool> pool = found->second;
  pool->last_used = now;
  poll->poller = std::move(request.poller);
  if (!poll->poller.empty()) {
    pool->pollers.insert(poll->poller);
    pool->forget_expected(poll->poller);
  }
  poll->pool = pool;
  poll->place = pool->waiting.insert(pool->waiting.end(), poll);
  const Moment deadline = now + std::max(request.wait, options_.shortest_wait);
  poll->deadline = deadlines_.emplace(deadline, poll);
  pool->wanted += poll->max;
  Moment next = deadline;
  if (!pool->held.empty()) next = std::min(next, hand_out(*pool, answers));
  set_credit(*pool);
  const bool poke = next < armed_ || !to_open_.empty();
  armed_ = std::min(armed_, next);
  lock.unlock();
  for (const auto& each : answers) each();
  if (poke) options_.poke();
}

void LeaseDesk::remove(const std::shared_ptr<Poll>& poll) {
  Pool& pool = *poll->pool;
  pool.waiting.erase(poll->place);
  pool.wanted -= poll->max;
  deadlines_.erase(poll->deadline);
  poll->pool = nullptr;
}

void LeaseDesk::give_up(const std::shared_ptr<Poll>& poll) {
  std::lock_guard lock(mutex_);
  poll->gone = true;
  if (!poll->pool) return;
  const std::shared_ptr<Pool> pool = poll->pool;
  remove(poll);
  set_credit(*pool);
}

void LeaseDesk::leave(const std::string& poller, std::function<void()> done) {
  Answers answers;
  std::vector<LeaseRef> back;
  {
    std::unique_lock lock(mutex_);
    if (stopped_) {
      lock.unlock();
      return done();
    }
    Leaving leaving{.pools = {}, .done = std::move(done)};
    for (auto at = pools_.begin(); at != pools_.end();) {
      const std::shared_ptr<Pool> pool = at->second;
      if (pool->pollers.erase(poller) == 0) {
        ++at;
        continue;
      }
      pool->forget_expected(poller);
      const auto waiting = pool->waiting;
      for (const std::shared_ptr<Poll>& poll : waiting) {
        if (poll->poller != poller) continue;
        remove(poll);
        answers.push_back([poll] { poll->answer(std::vector<Lease>()); });
      }
      if (!pool->waiting.empty() || !pool->pollers.empty()) {
        set_credit(*pool);
        ++at;
        continue;
      }
      for (const Pool::Held& held : pool->held) {
        back.push_back({held.lease.job.id, held.lease.token});
        (void)forget(back.back());
      }
      pool->held.clear();
      by_number_.erase(pool->number);
      at = pools_.erase(at);
      leaving.pools.push_back(pool);
    }
    leaving_.push_back(std::move(leaving));
  }
  for (const auto& each : answers) each();
  give_back(std::move(back));
  options_.poke();
}

void LeaseDesk::set_credit(Pool& pool) {
  const int credit = pool.unsettled + pool.wanted + pool.expected_leases;
  if (credit == pool.options.credit) return;
  pool.options.credit = credit;
  if (pool.subscription) pool.subscription->set_credit(credit);
}

// Each of those that wait gets its share of what is there, and not more than it asked for.
Moment LeaseDesk::hand_out(Pool& pool, Answers& answers) {
  const Moment now = steady_clock::now();
  Moment next = Moment::max();
  while (!pool.held.empty() && !pool.waiting.empty()) {
    const std::size_t share = (pool.held.size() + pool.waiting.size() - 1) / pool.waiting.size();
    const std::shared_ptr<Poll> poll = pool.waiting.front();
    const std::size_t count = std::min(share, static_cast<std::size_t>(poll->max));
    std::vector<Lease> leases;
    leases.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      Pool::Held& held = pool.held.front();
      held.lease.age += std::chrono::ceil<Milliseconds>(now - held.since);
      leases.push_back(std::move(held.lease));
      pool.held.pop_front();
    }
    remove(poll);
    if (!poll->poller.empty() && static_cast<int>(count) < poll->max) {
      next = now + options_.back_within;
      pool.expect(poll->poller, poll->max - static_cast<int>(count), next);
    }
    answers.push_back([poll, leases = std::move(leases)]() mutable { poll->answer(std::move(leases)); });
  }
  return next;
}

void LeaseDesk::arrived(std::uint64_t number, std::vector<Lease> leases) {
  Answers answers;
  bool poke = false;
  {
    std::unique_lock lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) {
      lock.unlock();
      std::vector<LeaseRef> refs;
      for (const Lease& lease : leases) refs.push_back({lease.job.id, lease.token});
      return give_back(std::move(refs));
    }
    Pool& pool = *found->second;
    const Moment now = steady_clock::now();
    pool.unsettled += static_cast<int>(leases.size());
    for (Lease& lease : leases) {
      const LeaseRef ref{lease.job.id, lease.token};
      // An earlier lease of the same job has run out, or it would not be here.
      if (const auto older = out_.find(ref.id); older != out_.end()) {
        const std::shared_ptr<Pool> other = pool_of(older->second);
        (void)forget(older->second.lease);
        if (other) set_credit(*other);
      }
      out_.emplace(ref.id, Out{.lease = ref,
                               .pool = number,
                               .deadline = now - lease.age + pool.options.lease,
                               .time = pool.options.lease,
                               .facts = {lease.job.kind, lease.job.queue, lease.job.retry, lease.counts}});
      pool.held.push_back({std::move(lease), now});
    }
    const Moment next = hand_out(pool, answers);
    set_credit(pool);
    poke = next < armed_;
    armed_ = std::min(armed_, next);
    if (next_sweep_ == Moment::max()) {
      next_sweep_ = now + kSweepEvery;
      poke = true;
    }
    // More came than anybody wants: what we take for out may have been lost meanwhile.
    if (!pool.held.empty() && now + options_.hold < next_sweep_) {
      next_sweep_ = now + options_.hold;
      poke = true;
    }
  }
  for (const auto& each : answers) each();
  if (poke) options_.poke();
}

std::shared_ptr<LeaseDesk::Pool> LeaseDesk::pool_of(const Out& out) const {
  const auto found = by_number_.find(out.pool);
  return found == by_number_.end() ? nullptr : found->second;
}

std::optional<LeaseDesk::Out> LeaseDesk::forget(const LeaseRef& lease) {
  const auto found = out_.find(lease.id);
  if (found == out_.end() || found->second.lease.token != lease.token) return std::nullopt;
  Out out = std::move(found->second);
  out_.erase(found);
  if (const auto pool = pool_of(out)) --pool->unsettled;
  return out;
}

std::vector<LeaseDesk::Out> LeaseDesk::settling(const std::vector<LeaseRef>& leases) {
  std::vector<Out> known;
  known.reserve(leases.size());
  std::lock_guard lock(mutex_);
  std::shared_ptr<Pool> last;
  for (const LeaseRef& lease : leases) {
    std::optional<Out> out = forget(lease);
    if (!out) continue;
    // One message for a batch, not one for each of it.
    const std::shared_ptr<Pool> pool = pool_of(*out);
    if (last && last != pool) set_credit(*last);
    last = pool;
    known.push_back(std::move(*out));
  }
  if (last) set_credit(*last);
  return known;
}

void LeaseDesk::not_settled(std::vector<Out> leases) {
  std::lock_guard lock(mutex_);
  for (Out& out : leases) {
    const std::shared_ptr<Pool> pool = pool_of(out);
    const JobId id = out.lease.id;
    if (!out_.emplace(id, std::move(out)).second || !pool) continue;
    ++pool->unsettled;
    set_credit(*pool);
  }
}

void LeaseDesk::extended(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers) {
  const Moment now = steady_clock::now();
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < leases.size() && i < answers.size(); ++i) {
    const auto found = out_.find(leases[i].id);
    if (found == out_.end() || found->second.lease.token != leases[i].token) continue;
    if (!answers[i].lost) {
      found->second.deadline = now + found->second.time;
    } else if (const auto pool = pool_of(*forget(leases[i]))) {
      set_credit(*pool);
    }
  }
}

std::optional<LeaseFacts> LeaseDesk::facts(const LeaseRef& lease) const {
  std::lock_guard lock(mutex_);
  const auto found = out_.find(lease.id);
  if (found == out_.end() || found->second.lease.token != lease.token) return std::nullopt;
  return found->second.facts;
}

void LeaseDesk::give_back(std::vector<LeaseRef> leases) {
  if (leases.empty()) return;
  std::vector<Settlement> settlements;
  for (const LeaseRef& lease : leases) settlements.push_back(returned(lease));
  // What does not get through runs out by itself.
  broker_.settle(std::move(settlements), [](const Result<std::vector<Status>>&) {});
}

void LeaseDesk::open(const std::shared_ptr<Pool>& pool, Answers& answers) {
  SubscribeOptions options;
  {
    std::lock_guard lock(mutex_);
    options = pool->options;
  }
  const int credit = options.credit;
  // No lease arrives once a subscription has ended, and all of them end before the desk does.
  auto subscription = broker_.subscribe(std::move(options), [this, number = pool->number](std::vector<Lease> leases) {
    arrived(number, std::move(leases));
  });
  std::unique_lock lock(mutex_);
  // Everybody who wanted it has left meanwhile.
  if (by_number_.count(pool->number) == 0) {
    lock.unlock();
    return;
  }
  if (subscription) {
    pool->subscription = std::move(*subscription);
    // Polls came and went while it was being made.
    if (pool->options.credit != credit) pool->subscription->set_credit(pool->options.credit);
    return;
  }
  while (!pool->waiting.empty()) {
    const std::shared_ptr<Poll> poll = pool->waiting.front();
    remove(poll);
    answers.push_back([poll, error = subscription.error()] { poll->answer(error); });
  }
  pools_.erase(pool->key);
  by_number_.erase(pool->number);
}

// Forgets leases that ran out, returns what is held too long, ends idle subscriptions.
std::optional<Moment> LeaseDesk::sweep(Moment now) {
  std::vector<LeaseRef> back;
  std::vector<std::shared_ptr<Pool>> idle;  // Ended without the lock, since that waits for the sink.
  std::optional<Moment> next;
  const auto not_later = [&](Moment moment) { next = next ? std::min(*next, moment) : moment; };
  {
    std::lock_guard lock(mutex_);
    if (now >= next_sweep_) {
      std::vector<LeaseRef> lost;
      for (const auto& [id, out] : out_) {
        if (out.deadline <= now) lost.push_back(out.lease);
      }
      for (const LeaseRef& lease : lost) {
        if (const auto pool = pool_of(*forget(lease))) set_credit(*pool);
      }
      next_sweep_ = out_.empty() ? Moment::max() : now + kSweepEvery;
    }
    for (auto at = pools_.begin(); at != pools_.end();) {
      const std::shared_ptr<Pool> pool = at->second;
      const int expected = pool->expected_leases;
      if (const auto moment = pool->give_up_expected(now)) not_later(*moment);
      if (pool->expected_leases != expected) set_credit(*pool);
      std::size_t given_back = 0;
      while (!pool->held.empty() && pool->held.front().since + options_.hold <= now) {
        const Lease& lease = pool->held.front().lease;
        back.push_back({lease.job.id, lease.token});
        (void)forget(back.back());
        pool->held.pop_front();
        ++given_back;
      }
      if (given_back > 0) set_credit(*pool);
      if (!pool->held.empty()) not_later(pool->held.front().since + options_.hold);
      const bool unused = pool->waiting.empty() && pool->held.empty() && pool->subscription;
      if (unused && pool->last_used + options_.idle <= now) {
        by_number_.erase(pool->number);
        at = pools_.erase(at);
        idle.push_back(pool);
        continue;
      }
      if (unused) not_later(pool->last_used + options_.idle);
      if (!pool->waiting.empty()) pool->last_used = now;
      ++at;
    }
    if (next_sweep_ != Moment::max()) not_later(next_sweep_);
    if (!deadlines_.empty()) not_later(deadlines_.begin()->first);
    // A pool becomes idle without anybody saying so.
    if (!pools_.empty()) not_later(now + options_.idle);
    armed_ = next.value_or(Moment::max());
  }
  give_back(std::move(back));
  idle.clear();
  return next;
}

std::optional<Moment> LeaseDesk::tick(Moment now) {
  Answers answers;
  std::vector<std::shared_ptr<Pool>> to_open;
  std::vector<Leaving> leaving;
  {
    std::lock_guard lock(mutex_);
    to_open.swap(to_open_);
    leaving.swap(leaving_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      const std::shared_ptr<Poll> poll = deadlines_.begin()->second;
      const std::shared_ptr<Pool> pool = poll->pool;
      remove(poll);
      set_credit(*pool);
      pool->last_used = now;
      answers.push_back([poll] { poll->answer(std::vector<Lease>()); });
    }
  }
  for (const auto& pool : to_open) open(pool, answers);
  for (const auto& each : answers) each();
  for (Leaving& each : leaving) {
    each.pools.clear();
    each.done();
  }
  return sweep(now);
}

void LeaseDesk::stop() {
  Answers answers;
  std::vector<LeaseRef> back;
  Pools pools;
  std::vector<Leaving> leaving;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    to_open_.clear();
    leaving.swap(leaving_);
    while (!deadlines_.empty()) {
      const std::shared_ptr<Poll> poll = deadlines_.begin()->second;
      remove(poll);
      answers.push_back([poll] { poll->answer(std::vector<Lease>()); });
    }
    for (const auto& [key, pool] : pools_) {
      for (const Pool::Held& held : pool->held) back.push_back({held.lease.job.id, held.lease.token});
    }
    pools.swap(pools_);
    by_number_.clear();
    out_.clear();
    next_sweep_ = Moment::max();
  }
  for (const auto& each : answers) each();
  pools.clear();
  give_back(std::move(back));
  for (Leaving& each : leaving) {
    each.pools.clear();
    each.done();
  }
}

LeaseDesk::Counts LeaseDesk::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts{.pools = pools_.size(), .polls = deadlines_.size(), .out = out_.size(), .held = 0};
  for (const auto& [key, pool] : pools_) counts.held += pool->held.size();
  return counts;
}

}  // namespace bide::server
