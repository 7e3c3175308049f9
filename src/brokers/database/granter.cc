#include "brokers/database/granter.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/completion.h"
#include "core/retry_decision.h"

namespace bide::brokers::database {

using std::chrono::steady_clock;

namespace {

constexpr int kGrantsAStep = 1000;
// Jobs are ready and others have them locked: they are taken by those, or free again soon.
constexpr Milliseconds kLockedWait{10};
constexpr Milliseconds kTroubleWait{50};
// The next due time was told in the server's time, and a clock may be set: it is asked again after this at the latest.
constexpr Milliseconds kLongestLook{60'000};

}  // namespace

struct Subscriber {
  SubscribeOptions options;
  LeaseSink sink;

  // Guarded by the granter.
  std::vector<QueueTurn> turns;
  int credit = 0;
  std::optional<std::uint64_t> delivery_limit;
  std::uint64_t delivered = 0;
  int unsettled = 0;
  bool one_by_one = false;      // The next job must not be fetched ahead: no more leases than handlers.
  std::optional<Moment> look;   // When there may be something; nothing: not before somebody says so.
  std::uint64_t told = 0;       // How often it was told to look: a notice during a grant is not lost.

  std::mutex delivery;  // Held while the sink runs. Guards everything below.
  bool ended = false;
  std::atomic<std::thread::id> delivering;

  int room() const {
    if (!delivery_limit) return std::max(0, (one_by_one ? std::min(credit, options.handlers) : credit) - unsettled);
    return *delivery_limit <= delivered ? 0 : static_cast<int>(std::min<std::uint64_t>(*delivery_limit - delivered, kGrantsAStep));
  }
  bool takes(const std::string& queue) const {
    return std::any_of(turns.begin(), turns.end(), [&](const QueueTurn& turn) { return turn.name == queue; });
  }
};

Granter::Granter(JobStore& store, ClientId client, IdSource& ids)
    : client_(client), ids_(ids), lane_(store, [this](Lane& lane) { return step(lane); }) {}

std::shared_ptr<Subscriber> Granter::subscribe(SubscribeOptions options, LeaseSink sink) {
  auto subscriber = std::make_shared<Subscriber>();
  for (const QueueShare& share : options.queues) {
    const int weight = std::max(1, share.weight);
    const auto same = std::find_if(subscriber->turns.begin(), subscriber->turns.end(),
                                   [&](const QueueTurn& turn) { return turn.name == share.name; });
    if (same != subscriber->turns.end()) {
      same->weight += weight;
    } else {
      subscriber->turns.push_back({.name = share.name, .weight = weight});
    }
  }
  subscriber->credit = options.credit;
  subscriber->options = std::move(options);
  subscriber->sink = std::move(sink);
  subscriber->look = Moment{};
  {
    const std::lock_guard lock(mutex_);
    subscribers_.push_back(subscriber);
  }
  lane_.wake();
  return subscriber;
}

void Granter::unsubscribe(const std::shared_ptr<Subscriber>& subscriber) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(subscribers_, subscriber);
  }
  if (subscriber->delivering == std::this_thread::get_id()) {
    subscriber->ended = true;  // From within the sink, which holds the lock.
    return;
  }
  const std::lock_guard lock(subscriber->delivery);
  subscriber->ended = true;
  subscriber->sink = {};
}

void Granter::set_credit(Subscriber& subscriber, int credit) {
  {
    const std::lock_guard lock(mutex_);
    subscriber.credit = std::max(0, credit);
  }
  lane_.wake();
}

void Granter::set_delivery_limit(Subscriber& subscriber, std::uint64_t deliveries) {
  {
    const std::lock_guard lock(mutex_);
    subscriber.delivery_limit = deliveries;
  }
  lane_.wake();
}

void Granter::stop(Milliseconds at_most) {
  {
    const std::lock_guard lock(mutex_);
    subscribers_.clear();
  }
  lane_.stop(at_most);
}

void Granter::look_at(const std::string& queue, Moment from) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& subscriber : subscribers_) {
      if (!subscriber->takes(queue)) continue;
      ++subscriber->told;
      if (subscriber->look && *subscriber->look <= from) continue;
      subscriber->look = from;
      wake = true;
    }
  }
  if (wake) lane_.wake();
}

void Granter::look_at(const std::string& queue, Time due) {
  Moment from{};
  {
    const std::lock_guard lock(mutex_);
    if (clocks_) from = clocks_->first + (due - clocks_->second);
  }
  look_at(queue, from);
}

void Granter::look_everywhere(Moment from) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& subscriber : subscribers_) {
      subscriber->look = std::min(subscriber->look.value_or(from), from);
      ++subscriber->told;
    }
  }
  lane_.wake();
}

bool Granter::runs_last_chance(const Subscriber& subscriber) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& item) {
    const Held& held = item.second;
    if (!held.is_last_chance || held.subscriber->options.outlives_process != subscriber.options.outlives_process) return false;
    // All workers of this process end with it; others each by themselves.
    return !subscriber.options.outlives_process || held.subscriber.get() == &subscriber;
  });
}

std::optional<Moment> Granter::step(Lane& lane) {
  if (is_unsure_) give_back_unknown(lane);
  std::vector<std::shared_ptr<Subscriber>> all;
  {
    const std::lock_guard lock(mutex_);
    all = subscribers_;
    if (!all.empty()) std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first_++ % all.size()), all.end());
  }
  for (const auto& subscriber : all) {
    GrantRequest request;
    {
      const std::lock_guard lock(mutex_);
      const int room = std::min(subscriber->room(), kGrantsAStep);
      if (room == 0 || !subscriber->look || *subscriber->look > steady_clock::now()) continue;
      const SubscribeOptions& options = subscriber->options;
      request = {.client = client_,
                 .worker = options.worker,
                 .lease = options.lease,
                 .outlives_process = options.outlives_process,
                 .room = room,
                 .free_handlers = options.handlers > 0 ? std::max(0, options.handlers - subscriber->unsettled) : -1,
                 .may_take_last_chance = !runs_last_chance(*subscriber)};
      subscriber->one_by_one = false;
    }
    if (lane.is_stopping()) return std::nullopt;
    grant_to(lane, subscriber, std::move(request));
  }
  std::optional<Moment> next;
  if (is_unsure_) next = steady_clock::now() + kTroubleWait;
  const std::lock_guard lock(mutex_);
  for (const auto& subscriber : subscribers_) {
    if (subscriber->room() == 0 || !subscriber->look) continue;
    next = std::min(next.value_or(*subscriber->look), *subscriber->look);
  }
  return next;
}

void Granter::grant_to(Lane& lane, const std::shared_ptr<Subscriber>& subscriber, GrantRequest request) {
  std::vector<QueueTurn> turns;
  std::uint64_t told = 0;
  {
    const std::lock_guard lock(mutex_);
    turns = subscriber->turns;
    told = subscriber->told;
  }
  const std::uint64_t session = lane.sessions();
  Moment asked;
  auto granted = lane.call([&](Session& on) {
    asked = steady_clock::now();
    return on.grant(request, turns);
  });
  const Moment answered = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    // Not told of in the meantime; otherwise it looks again at once.
    const bool quiet = told == subscriber->told && (session == 0 || session == lane.sessions());
    if (!granted) {
      subscriber->look = answered + kTroubleWait;
      is_unsure_ = is_unsure_ || granted.error().code != ErrorCode::kUnavailable;
      return;
    }
    clocks_ = {asked, granted->now};
    subscriber->turns = std::move(turns);
    const int given = static_cast<int>(granted->leases.size());
    if (granted->held_back) subscriber->one_by_one = true;
    const bool took_all = given >= request.room || !granted->expired.empty();
    if (took_all || granted->held_back || !quiet) {
      subscriber->look = Moment{};
    } else if (!granted->next_due) {
      subscriber->look = std::nullopt;
    } else {
      subscriber->look = granted->next_due->count() > 0 ? asked + std::min(*granted->next_due, kLongestLook)
                         : given > 0                    ? Moment{}
                                                        : answered + kLockedWait;
    }
    subscriber->unsettled += given;
    subscriber->delivered += static_cast<std::uint64_t>(given);
    for (const Lease& lease : granted->leases) {
      Held held{.subscriber = subscriber,
                .queue = lease.job.queue,
                .length = request.lease,
                .deadline = answered + request.lease,
                .limit = answered + lease.job.time_limit,
                .is_last_chance = core::is_last_chance(lease.counts),
                .told = nullptr,
                .attempt = lease.attempt};
      if (core::wants_completion(lease.job)) {
        auto brief = std::make_shared<Job>();
        brief->id = lease.job.id;
        brief->kind = lease.job.kind;
        brief->queue = lease.job.queue;
        brief->headers = lease.job.headers;
        held.told = std::move(brief);
      }
      held_.emplace(std::pair(lease.job.id, lease.token), std::move(held));
    }
  }
  if (!granted->leases.empty()) {
    const auto age = std::chrono::ceil<Milliseconds>(steady_clock::now() - asked);
    for (Lease& lease : granted->leases) lease.age = age;
    deliver(lane, subscriber, std::move(granted->leases));
  }
  if (granted->expired.empty()) return;
  std::vector<Ending> endings;
  for (const auto& [lease, info] : granted->expired) endings.push_back(expired(lease, info, ids_));
  if (!lane.call([&](Session& on) { return on.end(endings); })) {
    const std::lock_guard lock(mutex_);
    subscriber->look = steady_clock::now() + kTroubleWait;
    return;
  }
  for (const Ending& ending : endings) {
    for (const Job& made : ending.effects) look_at(made.queue, Moment{});
  }
}

// The answer to a grant was lost. Leases that were given and never arrived must neither wait for their end nor be charged.
void Granter::give_back_unknown(Lane& lane) {
  const auto leases = lane.call_repeatable([&](Session& on) { return on.leases_of(client_); });
  if (!leases) return;
  std::vector<Ending> endings;
  {
    const std::lock_guard lock(mutex_);
    for (const LeaseRef& lease : *leases) {
      if (!held_.contains({lease.id, lease.token})) endings.push_back(given_back(lease, ""));
    }
  }
  if (!endings.empty() && !lane.call([&](Session& on) { return on.end(endings); })) return;
  is_unsure_ = false;
  if (!endings.empty()) look_everywhere();
}

void Granter::deliver(Lane& lane, const std::shared_ptr<Subscriber>& subscriber, std::vector<Lease> leases) {
  {
    std::unique_lock lock(subscriber->delivery);
    if (!subscriber->ended) {
      subscriber->delivering = std::this_thread::get_id();
      subscriber->sink(std::move(leases));
      subscriber->delivering = std::thread::id();
      return;
    }
  }
  std::vector<Ending> endings;
  for (const Lease& lease : leases) {
    endings.push_back(given_back({lease.job.id, lease.token}, ""));
    ended(endings.back().lease);
  }
  if (!lane.call([&](Session& on) { return on.end(endings); })) is_unsure_ = true;
  look_everywhere();
}

std::optional<Granter::Held> Granter::find(const LeaseRef& lease) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find({lease.id, lease.token});
  if (found == held_.end()) return std::nullopt;
  return found->second;
}

void Granter::extended(const LeaseRef& lease, Moment asked) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find({lease.id, lease.token});
  if (found != held_.end()) found->second.deadline = asked + found->second.length;
}

void Granter::ended(const LeaseRef& lease) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find({lease.id, lease.token});
    if (found == held_.end()) return;
    --found->second.subscriber->unsettled;
    held_.erase(found);
  }
  lane_.wake();
}

std::vector<LeaseRef> Granter::overdue(Moment now) {
  const std::lock_guard lock(mutex_);
  std::vector<LeaseRef> over;
  for (const auto& [key, held] : held_) {
    if (std::min(held.deadline, held.limit) <= now) over.push_back({key.first, key.second});
  }
  return over;
}

std::optional<Moment> Granter::earliest_deadline() {
  const std::lock_guard lock(mutex_);
  std::optional<Moment> earliest;
  for (const auto& [key, held] : held_) {
    const Moment deadline = std::min(held.deadline, held.limit);
    earliest = std::min(earliest.value_or(deadline), deadline);
  }
  return earliest;
}

std::vector<std::string> Granter::queues() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& subscriber : subscribers_) {
    for (const QueueTurn& turn : subscriber->turns) names.push_back(turn.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Granter::Takers Granter::takers_of(const std::string& queue) {
  const std::lock_guard lock(mutex_);
  Takers takers;
  for (const auto& subscriber : subscribers_) {
    if (!subscriber->takes(queue)) continue;
    ++takers.subscriptions;
    takers.room += subscriber->room();
  }
  return takers;
}

}  // namespace bide::brokers::database
