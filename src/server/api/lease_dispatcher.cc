#include "server/api/lease_dispatcher.h"

#include <algorithm>
#include <utility>

namespace bide::server {

namespace {

using std::chrono::steady_clock;

constexpr std::string_view kSharedName = "http";

constexpr char kPollGone[] = "the poll that it was for has gone";
constexpr char kAnswerLost[] = "the answer with it could not be sent to the worker";
constexpr char kTooOld[] = "it was on its way for longer than its lease";

}  // namespace

LeaseDispatcher::LeaseDispatcher(Broker& broker, LeaseDispatcherOptions options)
    : broker_(broker), options_(std::move(options)), registry_(options_.wake) {}

LeaseDispatcher::~LeaseDispatcher() { stop(); }

LeaseDispatcher::Key LeaseDispatcher::key_of(const wire::LeaseRequest& request) const {
  // With their numbers: the name of a worker cannot be taken for another queue or kind.
  std::string key = std::to_string(request.lease.count()) + " " + std::to_string(request.queues.size()) + " " +
                    std::to_string(request.kinds.size());
  for (const QueueShare& share : request.queues) key += " " + share.name + "*" + std::to_string(share.weight);
  for (const std::string& kind : request.kinds) key += " " + kind;
  return key + " ";  // The worker follows.
}

std::shared_ptr<LeaseDispatcher::Poll> LeaseDispatcher::make_poll(Answer answer) const {
  auto poll = std::make_shared<Poll>();
  poll->answer = std::move(answer);
  return poll;
}

Result<LeaseDispatcher::PoolPtr> LeaseDispatcher::pool_for(wire::LeaseRequest& request) {
  const Key key = key_of(request);
  auto found = pools_.find(key + request.worker);
  if (found == pools_.end() && !request.worker.empty()) {
    const auto named = static_cast<std::size_t>(
        std::count_if(pools_.begin(), pools_.end(), [](const auto& each) { return each.second->is_named(); }));
    if (named >= options_.most_named) {
      request.worker.clear();
      found = pools_.find(key);
    }
  }
  if (found != pools_.end()) return found->second;
  if (pools_.size() >= options_.most_pools) {
    return Error{ErrorCode::kOverloaded,
                 "there are too many different lease requests (queues, kinds and lease times) at a time"};
  }
  const bool named = !request.worker.empty();
  auto pool = std::make_shared<LeasePool>(key + request.worker, ++last_number_,
                                          SubscribeOptions{.queues = std::move(request.queues),
                                                           .kinds = std::move(request.kinds),
                                                           .credit = 0,
                                                           .lease = request.lease,
                                                           .worker = named ? request.worker : std::string(kSharedName),
                                                           .outlives_process = true},
                                          named);
  pools_.emplace(pool->key(), pool);
  by_number_.emplace(pool->number(), pool);
  to_open_.push_back(pool);
  return pool;
}

void LeaseDispatcher::start(const std::shared_ptr<Poll>& poll, wire::LeaseRequest request) {
  poll->max = request.max;
  const Moment now = steady_clock::now();
  Answers answers;
  std::vector<LeaseRef> too_old;
  std::unique_lock lock(mutex_);
  const auto refuse = [&](Error error) {
    lock.unlock();
    poll->answer(std::move(error));
  };
  if (poll->cancelled) return;
  if (stopped_) return refuse({ErrorCode::kUnavailable, "the server is shutting down"});
  const Result<PoolPtr> found = pool_for(request);
  if (!found) return refuse(found.error());
  LeasePool& pool = **found;
  pool.last_used = now;
  poll->poller = std::move(request.poller);
  poll->pool = *found;
  pool.add(poll, now);
  const Moment deadline = now + std::max(request.wait, options_.shortest_wait);
  poll->deadline = deadlines_.emplace(deadline, poll);
  Moment next = deadline;
  if (pool.held() != 0) next = std::min(next, dispatch(pool, answers, too_old));
  pool.update_limit();
  const bool wake = arm(next);
  const bool wake_subscriber = !to_open_.empty();
  lock.unlock();
  for (const auto& each : answers) each();
  return_leases(std::move(too_old), kTooOld);
  if (wake_subscriber) options_.wake_subscriber();
  if (wake) options_.wake();
}

bool LeaseDispatcher::arm(Moment moment) {
  if (moment >= armed_) return false;
  armed_ = moment;
  return true;
}

// By value: the reference may be into one of the tables.
void LeaseDispatcher::remove(std::shared_ptr<Poll> poll) {
  deadlines_.erase(poll->deadline);
  std::exchange(poll->pool, nullptr)->remove(poll);
}

void LeaseDispatcher::answer_with_nothing(std::shared_ptr<Poll> poll, Answers& answers) {
  remove(poll);
  answers.push_back([poll] { poll->answer(std::vector<Lease>()); });
}

void LeaseDispatcher::cancel(const std::shared_ptr<Poll>& poll) {
  std::lock_guard lock(mutex_);
  poll->cancelled = true;
  if (!poll->pool) return;
  const PoolPtr pool = poll->pool;
  remove(poll);
  pool->update_limit();
}

void LeaseDispatcher::answer_written(const std::vector<LeaseRef>& leases) {
  registry_.written(leases, steady_clock::now());
  bool stopped = false;
  {
    std::lock_guard lock(mutex_);
    stopped = stopped_;
  }
  if (stopped) broker_.mark_delivered(leases);
}

void LeaseDispatcher::answer_lost(const std::vector<LeaseRef>& leases) {
  std::vector<LeaseRef> back;
  for (const LeaseOut& out : registry_.take(leases)) back.push_back(out.lease);
  return_leases(std::move(back), kAnswerLost);
}

void LeaseDispatcher::leave(const std::string& poller, std::function<void()> done) {
  Answers answers;
  std::vector<LeaseRef> back;
  {
    std::unique_lock lock(mutex_);
    if (stopped_) {
      lock.unlock();
      return done();
    }
    Closing closing{.done = std::move(done)};
    for (auto at = pools_.begin(); at != pools_.end();) {
      const PoolPtr pool = at->second;
      if (!pool->remove_poller(poller)) {
        ++at;
        continue;
      }
      const auto waiting = pool->waiting();
      for (const std::shared_ptr<Poll>& poll : waiting) {
        if (poll->poller == poller) answer_with_nothing(poll, answers);
      }
      if (!pool->waiting().empty() || pool->pollers() != 0) {
        pool->update_limit();
        ++at;
        continue;
      }
      for (const LeaseRef& lease : pool->take_held()) back.push_back(lease);
      by_number_.erase(pool->number());
      at = pools_.erase(at);
      if (pool->is_open()) closing.subscriptions.push_back(pool->close());
    }
    closing_.push_back(std::move(closing));
  }
  for (const auto& each : answers) each();
  return_leases(std::move(back), kPollGone);
  options_.wake_subscriber();
}

Moment LeaseDispatcher::dispatch(LeasePool& pool, Answers& answers, std::vector<LeaseRef>& back) {
  const Moment now = steady_clock::now();
  LeasePool::HandedOut out = pool.hand_out(now, options_.back_within);
  back.insert(back.end(), out.too_old.begin(), out.too_old.end());
  for (LeasePool::Share& share : out.shares) {
    const std::shared_ptr<Poll> poll = std::move(share.poll);
    deadlines_.erase(poll->deadline);
    poll->pool = nullptr;
    // Known before the worker can settle them.
    registry_.add(share.leases, pool.options().lease, now);
    answers.push_back([poll, leases = std::move(share.leases)]() mutable { poll->answer(std::move(leases)); });
  }
  return out.expected_until;
}

void LeaseDispatcher::on_leases(std::uint64_t number, std::vector<Lease> leases) {
  Answers answers;
  std::vector<LeaseRef> too_old;
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) {
      lock.unlock();
      std::vector<LeaseRef> refs;
      for (const Lease& lease : leases) refs.push_back({lease.job.id, lease.token});
      return return_leases(std::move(refs), kPollGone);
    }
    LeasePool& pool = *found->second;
    const Moment now = steady_clock::now();
    pool.arrived(std::move(leases), now);
    Moment next = dispatch(pool, answers, too_old);
    pool.update_limit();
    if (pool.held() != 0) next = std::min(next, now + options_.hold);
    wake = arm(next);
  }
  for (const auto& each : answers) each();
  return_leases(std::move(too_old), kTooOld);
  if (wake) options_.wake();
}

void LeaseDispatcher::return_leases(std::vector<LeaseRef> leases, const char* note) {
  if (leases.empty()) return;
  std::vector<Settlement> settlements;
  for (const LeaseRef& lease : leases) settlements.push_back({.lease = lease, .outcome = Returned{.note = note}});
  // A lease that is not returned runs out.
  broker_.settle(std::move(settlements), [](const Result<std::vector<Status>>&) {});
}

void LeaseDispatcher::open(const PoolPtr& pool) {
  // `this` is valid: all subscriptions are closed before the destructor returns.
  SubscribeOptions options = pool->options();
  options.on_failed = [this, number = pool->number()](const Error& error) { on_failed(number, error); };
  auto subscription = broker_.subscribe(std::move(options), [this, number = pool->number()](std::vector<Lease> leases) {
    on_leases(number, std::move(leases));
  });
  if (!subscription) return on_failed(pool->number(), subscription.error());
  std::lock_guard lock(mutex_);
  if (by_number_.count(pool->number()) != 0) return pool->open(std::move(*subscription));
  // All its polls have gone meanwhile, or it has failed already.
  closing_.emplace_back().subscriptions.push_back(std::move(*subscription));
}

// The broker refuses the subscription, at once or later. All polls get the error; the next poll tries again.
void LeaseDispatcher::on_failed(std::uint64_t number, const Error& error) {
  Answers answers;
  std::vector<LeaseRef> back;
  {
    std::lock_guard lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    const PoolPtr pool = found->second;
    while (!pool->waiting().empty()) {
      const std::shared_ptr<Poll> poll = pool->waiting().front();
      remove(poll);
      answers.push_back([poll, error] { poll->answer(error); });
    }
    back = pool->take_held();
    pools_.erase(pool->key());
    by_number_.erase(found);
    close(*pool);
  }
  for (const auto& each : answers) each();
  return_leases(std::move(back), kPollGone);
  options_.wake_subscriber();
}

void LeaseDispatcher::close(LeasePool& pool) {
  if (pool.is_open()) closing_.emplace_back().subscriptions.push_back(pool.close());
}

void LeaseDispatcher::finish(std::vector<Closing> closing) {
  for (Closing& each : closing) {
    each.subscriptions.clear();
    if (each.done) each.done();
  }
}

void LeaseDispatcher::subscribe_pending() {
  for (;;) {
    std::vector<Closing> closing;
    PoolPtr pool;
    {
      std::lock_guard lock(mutex_);
      closing.swap(closing_);
      if (!to_open_.empty()) {
        pool = to_open_.front();
        to_open_.erase(to_open_.begin());
      }
    }
    finish(std::move(closing));
    if (!pool) return;
    open(pool);
  }
}

// Returns leases held too long, drops pollers that did not come back, closes idle subscriptions.
std::optional<Moment> LeaseDispatcher::sweep(Moment now) {
  std::vector<LeaseRef> back;
  bool wake_subscriber = false;
  std::optional<Moment> next;
  const auto not_later = [&](Moment moment) { next = next ? std::min(*next, moment) : moment; };
  {
    std::lock_guard lock(mutex_);
    for (auto at = pools_.begin(); at != pools_.end();) {
      const PoolPtr pool = at->second;
      if (const auto moment = pool->drop_expected(now)) not_later(*moment);
      pool->remove_pollers(now - options_.idle);
      for (const LeaseRef& lease : pool->take_held(now - options_.hold)) back.push_back(lease);
      pool->update_limit();
      if (const auto since = pool->held_since()) not_later(*since + options_.hold);
      const bool unused = pool->waiting().empty() && pool->held() == 0 && pool->is_open();
      if (unused && pool->last_used + options_.idle <= now) {
        close(*pool);
        by_number_.erase(pool->number());
        at = pools_.erase(at);
        wake_subscriber = true;
        continue;
      }
      if (unused) not_later(pool->last_used + options_.idle);
      if (!pool->waiting().empty()) pool->last_used = now;
      ++at;
    }
    if (const auto moment = registry_.next_sweep()) not_later(*moment);
    if (!deadlines_.empty()) not_later(deadlines_.begin()->first);
    // A pool becomes idle without an event.
    if (!pools_.empty()) not_later(now + options_.idle);
    armed_ = next.value_or(Moment::max());
  }
  return_leases(std::move(back), kPollGone);
  if (wake_subscriber) options_.wake_subscriber();
  return next;
}

std::optional<Moment> LeaseDispatcher::tick(Moment now) {
  Answers answers;
  {
    std::lock_guard lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      const std::shared_ptr<Poll> poll = deadlines_.begin()->second;
      const PoolPtr pool = poll->pool;
      answer_with_nothing(poll, answers);
      pool->update_limit();
      pool->last_used = now;
    }
  }
  for (const auto& each : answers) each();
  std::vector<LeaseRef> delivered = registry_.sweep(now);
  if (!delivered.empty()) broker_.mark_delivered(std::move(delivered));
  return sweep(now);
}

void LeaseDispatcher::stop() {
  Answers answers;
  std::vector<LeaseRef> back;
  std::vector<std::unique_ptr<Subscription>> subscriptions;
  std::vector<Closing> closing;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    to_open_.clear();
    closing.swap(closing_);
    while (!deadlines_.empty()) answer_with_nothing(deadlines_.begin()->second, answers);
    for (const auto& [key, pool] : pools_) {
      for (const LeaseRef& lease : pool->take_held()) back.push_back(lease);
      if (pool->is_open()) subscriptions.push_back(pool->close());
    }
    pools_.clear();
    by_number_.clear();
  }
  for (const auto& each : answers) each();
  subscriptions.clear();
  return_leases(std::move(back), kPollGone);
  // Workers keep their leases over a restart, and are charged if they lose them.
  std::vector<LeaseRef> delivered = registry_.take_unmarked();
  if (!delivered.empty()) broker_.mark_delivered(std::move(delivered));
  finish(std::move(closing));
}

LeaseDispatcher::Counts LeaseDispatcher::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts{.pools = pools_.size(), .polls = deadlines_.size(), .out = registry_.size(), .held = 0};
  for (const auto& [key, pool] : pools_) {
    counts.held += pool->held();
    counts.pollers += pool->pollers();
  }
  return counts;
}

}  // namespace bide::server
