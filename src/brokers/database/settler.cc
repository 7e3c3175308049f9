#include "brokers/database/settler.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <variant>

#include "core/broker_answers.h"
#include "core/completion.h"
#include "core/job_rules.h"
#include "platform/clock.h"

namespace bide::brokers::database {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t kSettlesAStep = 1000;
constexpr std::size_t kSettleBytesAStep = 8 << 20;
constexpr std::size_t kLeasesEndedAStep = 500;
constexpr std::size_t kForgottenAStep = 2000;
constexpr Milliseconds kForgetPeriod{1'000};
constexpr Milliseconds kShortestCheck{20};  // Leases may run out that much late.

std::size_t bytes_of(const Settlement& settlement) {
  std::size_t bytes = 100;
  for (const Job& effect : settlement.effects) bytes += 300 + effect.body.size();
  if (const auto* done = std::get_if<Done>(&settlement.outcome)) bytes += done->result.size();
  if (const auto* retry = std::get_if<RetryAt>(&settlement.outcome); retry != nullptr && retry->body) bytes += retry->body->size();
  return bytes;
}

Status check_effects(const Settlement& settlement) {
  const Time now{Milliseconds(platform::real_clock().now().wall_us / 1000)};
  for (const Job& effect : settlement.effects) {
    if (Status valid = core::validate(effect, now); !valid) return valid;
  }
  return {};
}

}  // namespace

Settler::Settler(JobStore& store, ClientId client, IdSource& ids, Granter& granter, KeepingOptions options)
    : client_(client), options_(options), ids_(ids), granter_(granter), lane_(store, [this](Lane& lane) { return step(lane); }) {}

void Settler::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  if (settlements.empty()) return done(std::vector<Status>());
  SettleCall call{.done = std::move(done)};
  for (const Settlement& settlement : settlements) {
    call.statuses.push_back(check_effects(settlement));
    call.bytes += bytes_of(settlement);
  }
  call.settlements = std::move(settlements);
  {
    const std::lock_guard lock(mutex_);
    settles_.push_back(std::move(call));
  }
  lane_.wake();
}

void Settler::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  if (leases.empty()) return done(std::vector<Extended>());
  {
    const std::lock_guard lock(mutex_);
    extends_.push_back({std::move(leases), std::move(done)});
  }
  lane_.wake();
}

void Settler::mark_delivered(std::vector<LeaseRef> leases) {
  {
    const std::lock_guard lock(mutex_);
    delivered_.insert(delivered_.end(), leases.begin(), leases.end());
  }
  lane_.wake();
}

void Settler::save_body(const LeaseRef& lease, std::string body, Completion<void> done) {
  if (body.size() > Limits::kBodyBytes) {
    return done(Error{ErrorCode::kInvalidArgument, "body: " + std::to_string(body.size()) +
                                                       " bytes are too many; allowed: " + std::to_string(Limits::kBodyBytes)});
  }
  {
    const std::lock_guard lock(mutex_);
    saves_.push_back({lease, std::move(body), std::move(done)});
  }
  lane_.wake();
}

void Settler::subscriptions_changed() {
  {
    const std::lock_guard lock(mutex_);
    is_known_ = must_tell_ = true;
  }
  lane_.wake();
}

void Settler::tell_subscriptions(Lane& lane) {
  {
    const std::lock_guard lock(mutex_);
    if (!must_tell_ && !(is_known_ && next_alive_ <= steady_clock::now())) return;
    must_tell_ = false;
    next_alive_ = steady_clock::now() + options_.client_timeout / 4;
  }
  const std::vector<std::string> queues = granter_.queues();
  if (lane.call([&](Session& on) { return on.keep_alive(client_, queues, options_.client_timeout); })) return;
  const std::lock_guard lock(mutex_);
  must_tell_ = true;
}

void Settler::stop(Milliseconds at_most) { lane_.stop(at_most); }

std::optional<Moment> Settler::step(Lane& lane) {
  tell_subscriptions(lane);
  // What a dead process left behind comes before what is asked now: the first thing that a new one does.
  Moment next = keep_order(lane);
  run_extends(lane);
  run_saves(lane);
  while (run_settles(lane)) run_extends(lane);
  if (lane.is_stopping()) {
    while (run_settles(lane)) {
    }
    bool known = false;
    {
      const std::lock_guard lock(mutex_);
      known = is_known_;
    }
    if (known) (void)lane.call([&](Session& on) { return on.close_client(client_, "the process that ran it was stopped"); });
    return std::nullopt;
  }
  if (const auto deadline = granter_.earliest_deadline()) next = std::min(next, *deadline);
  const std::lock_guard lock(mutex_);
  if (must_tell_) next = std::min(next, steady_clock::now() + kShortestCheck);
  return is_known_ ? std::min(next, next_alive_) : next;
}

void Settler::run_extends(Lane& lane) {
  std::vector<ExtendCall> calls;
  std::vector<LeaseRef> delivered;
  {
    const std::lock_guard lock(mutex_);
    calls = std::exchange(extends_, {});
    delivered = std::exchange(delivered_, {});
  }
  if (!delivered.empty()) (void)lane.call([&](Session& on) { return on.mark_delivered(delivered); });
  if (calls.empty()) return;
  std::vector<LeaseRef> all;
  for (const ExtendCall& call : calls) all.insert(all.end(), call.leases.begin(), call.leases.end());
  Moment asked;
  const auto answers = lane.call([&](Session& on) {
    asked = steady_clock::now();
    return on.extend(all);
  });
  std::size_t at = 0;
  for (ExtendCall& call : calls) {
    if (!answers) {
      call.done(answers.error());
      continue;
    }
    std::vector<Extended> mine(answers->begin() + static_cast<std::ptrdiff_t>(at),
                               answers->begin() + static_cast<std::ptrdiff_t>(at + call.leases.size()));
    at += call.leases.size();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].lost) {
        granter_.ended(call.leases[i]);
      } else {
        granter_.extended(call.leases[i], steady_clock::now());
      }
    }
    call.done(std::move(mine));
  }
}

void Settler::run_saves(Lane& lane) {
  for (;;) {
    std::deque<SaveCall> calls;
    {
      const std::lock_guard lock(mutex_);
      calls = std::exchange(saves_, {});
    }
    if (calls.empty()) return;
    for (SaveCall& call : calls) call.done(lane.call([&](Session& on) { return on.save_body(call.lease, call.body); }));
  }
}

Result<std::vector<Status>> Settler::end_all(Lane& lane, std::vector<SettleCall>& calls) {
  std::vector<Ending> endings;
  std::vector<Status*> places;
  for (SettleCall& call : calls) {
    for (std::size_t i = 0; i < call.settlements.size(); ++i) {
      if (!call.statuses[i]) continue;
      Settlement settlement = call.settlements[i];
      const bool is_end = std::holds_alternative<Done>(settlement.outcome) || std::holds_alternative<Dead>(settlement.outcome);
      const auto held = is_end ? granter_.find(settlement.lease) : std::nullopt;
      std::shared_ptr<const Job> told = held ? held->told : nullptr;
      std::uint32_t attempt = held ? held->attempt : 0;
      if (is_end && !held) {
        // Given by another process, or by this one before it was started again.
        auto info = lane.call([&](Session& on) { return on.find(settlement.lease.id); });
        if (!info && info.error().code != ErrorCode::kNotFound) return info.error();
        if (info) attempt = info->attempts, told = std::make_shared<Job>(std::move(info->job));
      }
      endings.push_back(settled(std::move(settlement), told.get(), attempt, ids_));
      places.push_back(&call.statuses[i]);
    }
  }
  if (endings.empty()) return std::vector<Status>();
  auto statuses = lane.call([&](Session& on) { return on.end(endings); });
  if (!statuses) return statuses;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    *places[i] = core::status_at(statuses, i);
    if (core::ends_lease(*places[i])) granter_.ended(endings[i].lease);
    if (endings[i].how == Ends::kRetry || endings[i].how == Ends::kReturned) {
      granter_.look_everywhere(steady_clock::now() + endings[i].after);
    }
    for (const Job& made : endings[i].effects) granter_.look_at(made.queue, steady_clock::now() + (made.due ? Milliseconds(0) : made.delay));
  }
  return statuses;
}

bool Settler::run_settles(Lane& lane) {
  std::vector<SettleCall> calls;
  {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    std::size_t bytes = 0;
    while (!settles_.empty() && (calls.empty() || (count < kSettlesAStep && bytes + settles_.front().bytes <= kSettleBytesAStep))) {
      count += settles_.front().settlements.size();
      bytes += settles_.front().bytes;
      calls.push_back(std::move(settles_.front()));
      settles_.pop_front();
    }
  }
  if (calls.empty()) return false;
  auto ended = end_all(lane, calls);
  const bool is_refused = !ended && ended.error().code != ErrorCode::kUnavailable && ended.error().code != ErrorCode::kUnconfirmed;
  if (is_refused && calls.size() > 1) {
    // The server does not like one of them: each for itself.
    for (SettleCall& call : calls) {
      std::vector<SettleCall> alone;
      alone.push_back(std::move(call));
      ended = end_all(lane, alone);
      if (!ended) alone.front().done(ended.error());
      if (ended) alone.front().done(std::move(alone.front().statuses));
    }
    return true;
  }
  for (SettleCall& call : calls) {
    if (!ended) call.done(ended.error());
    if (ended) call.done(std::move(call.statuses));
  }
  return true;
}

bool Settler::end_overdue(Lane& lane) {
  const Moment asked = steady_clock::now();
  const auto overdue = lane.call([&](Session& on) { return on.overdue(options_.client_timeout, kLeasesEndedAStep); });
  if (!overdue) return false;
  next_lease_end_ = overdue->next ? std::optional(asked + *overdue->next) : std::nullopt;
  std::vector<Ending> endings;
  for (const OverdueLease& lease : overdue->leases) endings.push_back(faulted(lease, ids_));
  if (!endings.empty()) {
    const auto statuses = lane.call([&](Session& on) { return on.end(endings); });
    if (!statuses) return false;
    for (std::size_t i = 0; i < endings.size(); ++i) {
      if (core::ends_lease(core::status_at(statuses, i))) granter_.ended(endings[i].lease);
    }
    granter_.look_everywhere();
  }
  // They were ended by us now, or by somebody else before.
  if (overdue->leases.size() < kLeasesEndedAStep) {
    for (const LeaseRef& lease : granter_.overdue(asked)) granter_.ended(lease);
  }
  return overdue->leases.size() == kLeasesEndedAStep;
}

Moment Settler::keep_order(Lane& lane) {
  const auto now = [] { return steady_clock::now(); };
  const auto deadline = granter_.earliest_deadline();
  if (next_overdue_ <= now() || (deadline && *deadline <= now())) {
    const bool more = end_overdue(lane);
    const Moment latest = now() + options_.client_timeout / 2;
    next_overdue_ = more ? now() : std::max(std::min(next_lease_end_.value_or(latest), latest), now() + kShortestCheck);
  }
  if (next_forget_ <= now()) {
    const auto forgotten = lane.call([&](Session& on) { return on.forget(options_.retention, kForgottenAStep); });
    next_forget_ = forgotten && *forgotten == kForgottenAStep ? now() : now() + kForgetPeriod;
  }
  return std::min(next_overdue_, next_forget_);
}

}  // namespace bide::brokers::database
