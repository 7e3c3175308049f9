#include "brokers/database/keeper.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "core/broker_answers.h"

namespace bide::brokers::database {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t kLeasesEndedAStep = 500;
constexpr std::size_t kForgottenAStep = 2000;
constexpr Milliseconds kForgetPeriod{1'000};
constexpr Milliseconds kShortestCheck{20};  // Leases may run out that much late.
constexpr Milliseconds kAfterTrouble{200};
constexpr Milliseconds kLongestAwait{5'000};

}  // namespace

Keeper::Keeper(JobStore& store, ClientId client, IdSource& ids, Granter& granter, KeepingOptions options)
    : client_(client), options_(options), ids_(ids), granter_(granter), lane_(store, [this](Lane& lane) { return step(lane); }) {}

void Keeper::subscriptions_changed() {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  lane_.wake();
}

void Keeper::await(const std::function<bool()>& holds) {
  std::unique_lock lock(mutex_);
  const std::uint64_t failures = failures_;
  changed_.wait_for(lock, kLongestAwait, [&] { return stopped_ || failures_ != failures || holds(); });
}

void Keeper::await_subscriptions_told() {
  await([this] { return told_ == changes_; });
}

void Keeper::await_first_look() {
  await([this] { return has_looked_; });
}

void Keeper::stop(Milliseconds at_most) {
  lane_.stop(at_most);
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void Keeper::tell_subscriptions(Lane& lane) {
  std::uint64_t changes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (changes_ == 0 || (told_ == changes_ && next_alive_ > steady_clock::now())) return;
    changes = changes_;
  }
  next_alive_ = steady_clock::now() + options_.client_timeout / 4;
  const std::vector<std::string> queues = granter_.queues();
  const Status told = lane.call_repeatable([&](Session& on) { return on.keep_alive(client_, queues, options_.client_timeout); });
  if (!told) next_alive_ = steady_clock::now() + kAfterTrouble;
  const std::lock_guard lock(mutex_);
  if (told) {
    told_ = changes;
  } else {
    ++failures_;
  }
  changed_.notify_all();
}

std::optional<Moment> Keeper::step(Lane& lane) {
  tell_subscriptions(lane);
  if (lane.is_stopping()) {
    bool is_known = false;
    {
      const std::lock_guard lock(mutex_);
      is_known = changes_ > 0;
    }
    if (is_known) {
      (void)lane.call_repeatable([&](Session& on) { return on.close_client(client_, "the process that ran it was stopped"); });
    }
    return std::nullopt;
  }
  const auto now = [] { return steady_clock::now(); };
  const auto deadline = granter_.earliest_deadline();
  if (next_overdue_ <= now() || (deadline && *deadline <= now())) {
    const Result<bool> more = end_overdue(lane);
    const Moment latest = now() + options_.client_timeout / 4;
    next_overdue_ = std::max(std::min(next_lease_end_.value_or(latest), latest), now() + kShortestCheck);
    if (more && *more) next_overdue_ = now();
    const std::lock_guard lock(mutex_);
    if (more) {
      has_looked_ = true;
    } else {
      ++failures_;
    }
    changed_.notify_all();
  }
  if (next_forget_ <= now()) {
    const auto forgotten = lane.call_repeatable([&](Session& on) { return on.forget(options_.retention, kForgottenAStep); });
    next_forget_ = forgotten && *forgotten == kForgottenAStep ? now() : now() + kForgetPeriod;
  }
  Moment next = std::min(next_overdue_, next_forget_);
  // Not at once, also when the server refuses to be asked.
  if (const auto earliest = granter_.earliest_deadline()) next = std::min(next, std::max(*earliest, now() + kShortestCheck));
  const std::lock_guard lock(mutex_);
  return changes_ > 0 ? std::min(next, std::max(next_alive_, now() + kShortestCheck)) : next;
}

Result<bool> Keeper::end_overdue(Lane& lane) {
  const Moment asked = steady_clock::now();
  const auto overdue = lane.call_repeatable([&](Session& on) { return on.overdue(options_.client_timeout, kLeasesEndedAStep); });
  next_lease_end_ = asked + kAfterTrouble;
  if (!overdue) return overdue.error();
  next_lease_end_ = overdue->next ? std::optional(asked + *overdue->next) : std::nullopt;
  std::vector<Ending> endings;
  for (const OverdueLease& lease : overdue->leases) {
    endings.push_back(faulted(lease, ids_));
    endings.back().stamp = lease.stamp;
  }
  if (!endings.empty()) {
    const auto statuses = lane.call([&](Session& on) { return on.end(endings); });
    if (!statuses) return statuses.error();
    for (std::size_t i = 0; i < endings.size(); ++i) {
      if (core::status_at(statuses, i)) granter_.ended(endings[i].lease);
    }
    granter_.look_everywhere();
  }
  if (overdue->leases.size() == kLeasesEndedAStep) return true;
  forget_lost(lane, asked);
  return false;
}

// Leases whose time is over by our own clock were ended by somebody else, or the server gave them more time: it knows.
void Keeper::forget_lost(Lane& lane, Moment now) {
  const std::vector<LeaseRef> over = granter_.overdue(now);
  if (over.empty()) return;
  const auto leases = lane.call_repeatable([&](Session& on) { return on.leases_of(client_); });
  if (!leases) return;
  std::set<std::pair<JobId, std::uint64_t>> held;
  for (const LeaseRef& lease : *leases) held.emplace(lease.id, lease.token);
  for (const LeaseRef& lease : over) {
    if (held.contains({lease.id, lease.token})) {
      granter_.extended(lease, steady_clock::now());
    } else {
      granter_.ended(lease);
    }
  }
}

}  // namespace bide::brokers::database
