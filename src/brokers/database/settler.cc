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

Error closed_error() { return {ErrorCode::kUnavailable, "the broker is closed"}; }

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
    if (Status kept = core::check_kept(effect, kKept); !kept) return kept;
  }
  return {};
}

}  // namespace

Settler::Settler(JobStore& store, IdSource& ids, Granter& granter, Keeper& keeper)
    : ids_(ids), granter_(granter), keeper_(keeper), lane_(store, [this](Lane& lane) { return step(lane); }) {}

template <class Calls, class Call>
bool Settler::add(Calls& calls, Call call) {
  {
    std::unique_lock lock(mutex_);
    if (closed_) {
      lock.unlock();
      call.done(closed_error());
      return false;
    }
    calls.push_back(std::move(call));
  }
  lane_.wake();
  return true;
}

void Settler::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  if (settlements.empty()) return done(std::vector<Status>());
  SettleCall call{.done = std::move(done)};
  for (const Settlement& settlement : settlements) {
    call.statuses.push_back(check_effects(settlement));
    call.bytes += bytes_of(settlement);
  }
  call.settlements = std::move(settlements);
  add(settles_, std::move(call));
}

void Settler::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  if (leases.empty()) return done(std::vector<Extended>());
  add(extends_, ExtendCall{std::move(leases), std::move(done)});
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
  add(saves_, SaveCall{lease, std::move(body), std::move(done)});
}

void Settler::stop(Milliseconds at_most) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  lane_.stop(at_most);
  // What came while the lane looked for the last time.
  for (SettleCall& call : std::exchange(settles_, {})) call.done(closed_error());
  for (ExtendCall& call : std::exchange(extends_, {})) call.done(closed_error());
  for (SaveCall& call : std::exchange(saves_, {})) call.done(closed_error());
}

std::optional<Moment> Settler::step(Lane& lane) {
  keeper_.await_first_look();
  do {
    run_extends(lane);
    run_saves(lane);
  } while (run_settles(lane));
  return std::nullopt;
}

void Settler::run_extends(Lane& lane) {
  std::vector<ExtendCall> calls;
  std::vector<LeaseRef> delivered;
  {
    const std::lock_guard lock(mutex_);
    calls = std::exchange(extends_, {});
    delivered = std::exchange(delivered_, {});
  }
  if (!delivered.empty()) (void)lane.call_repeatable([&](Session& on) { return on.mark_delivered(delivered); });
  if (calls.empty()) return;
  std::vector<LeaseRef> all;
  for (const ExtendCall& call : calls) all.insert(all.end(), call.leases.begin(), call.leases.end());
  const auto answers = lane.look([&](Session& on) { return on.extend(all); });
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
  std::deque<SaveCall> calls;
  {
    const std::lock_guard lock(mutex_);
    calls = std::exchange(saves_, {});
  }
  for (SaveCall& call : calls) {
    call.done(lane.call_repeatable([&](Session& on) { return on.save_body(call.lease, call.body); }));
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
        auto info = lane.look([&](Session& on) { return on.find(settlement.lease.id); });
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
    const bool goes_on = endings[i].how == Ends::kRetry || endings[i].how == Ends::kReturned;
    const auto held = goes_on ? granter_.find(endings[i].lease) : std::nullopt;
    if (core::ends_lease(*places[i])) granter_.ended(endings[i].lease);
    // The server tells everybody; we know it sooner.
    if (held) granter_.look_at(held->queue, steady_clock::now() + std::min(endings[i].after, Milliseconds(Limits::kDelay)));
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

}  // namespace bide::brokers::database
