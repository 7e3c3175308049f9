#include "brokers/database/endings.h"

#include <utility>
#include <variant>

#include "core/completion.h"
#include "core/retry_decision.h"
#include "platform/clock.h"

namespace bide::brokers::database {
namespace {

// After so many leases in a row of which nobody was heard, each granted by a process that ended, the job is suspected.
constexpr std::uint32_t kMostUnheard = 3;

// An error text longer than we keep is cut, and says so.
std::string cut(std::string text) {
  if (text.size() <= Limits::kErrorBytes) return text;
  text.resize(Limits::kErrorBytes - 3);
  return text + "...";
}

void take_outcome(Ending& ending, Outcome outcome) {
  if (auto* done = std::get_if<Done>(&outcome)) {
    ending.how = Ends::kDone;
    ending.content_type = done->result.empty() ? std::string() : std::move(done->content_type);
    ending.result = std::move(done->result);
  } else if (auto* retry = std::get_if<RetryAt>(&outcome)) {
    ending.how = Ends::kRetry;
    ending.after = retry->after;
    ending.fault = retry->fault;
    ending.error = cut(std::move(retry->error));
    ending.body = std::move(retry->body);
  } else if (auto* dead = std::get_if<Dead>(&outcome)) {
    ending.how = Ends::kDead;
    ending.reason = dead->reason;
    ending.fault = dead->fault;
    ending.error = cut(std::move(dead->error));
  } else if (auto* returned = std::get_if<Returned>(&outcome)) {
    ending.how = Ends::kReturned;
    ending.after = returned->after;
    ending.note = cut(std::move(returned->note));
  }
}

void add_completions(Ending& ending, const Job& job, std::uint32_t attempts, const Outcome& outcome) {
  for (Job& made : core::completion_jobs(job, attempts, outcome)) ending.effects.push_back(std::move(made));
}

}  // namespace

JobId IdSource::next_id() {
  const std::lock_guard lock(mutex_);
  return ids_.next(platform::real_clock().now().wall_us / 1000, random_.next());
}

std::uint64_t IdSource::random() {
  const std::lock_guard lock(mutex_);
  return random_.next();
}

void IdSource::give_ids(std::vector<Job>& jobs) {
  for (Job& job : jobs) {
    if (job.id.is_nil()) job.id = next_id();
  }
}

Ending settled(Settlement settlement, const Job* job, std::uint32_t attempts, IdSource& ids) {
  Ending ending{.lease = settlement.lease, .effects = std::move(settlement.effects)};
  if (job != nullptr) add_completions(ending, *job, attempts, settlement.outcome);
  ids.give_ids(ending.effects);
  take_outcome(ending, std::move(settlement.outcome));
  return ending;
}

Ending expired(const LeaseRef& lease, const JobInfo& info, IdSource& ids) {
  Ending ending{.lease = lease, .how = Ends::kExpired, .is_settled = false};
  ending.reason = DeadReason::kExpired;
  add_completions(ending, info.job, info.attempts, Dead{DeadReason::kExpired, Fault::kFailed, kExpiredNote});
  ids.give_ids(ending.effects);
  return ending;
}

Ending faulted(const OverdueLease& overdue, IdSource& ids) {
  Ending ending{.lease = overdue.lease, .is_settled = false};
  if (overdue.is_unheard && overdue.unheard_before < kMostUnheard) {
    ending.how = Ends::kUnheard;
    ending.note = "its lease was given by a process that has ended, and nobody was heard of it; not charged";
    return ending;
  }
  Outcome outcome;
  if (overdue.is_unheard) {
    outcome = Dead{.reason = DeadReason::kPoison,
                   .fault = Fault::kLost,
                   .error = "nothing was heard of it " + std::to_string(overdue.unheard_before + 1) +
                            " times in a row, each time after the process that gave its lease had ended"};
  } else {
    const char* const text = overdue.fault == Fault::kTimedOut  ? "ran longer than its time limit"
                             : overdue.fault == Fault::kCrashed ? "the process died during this attempt"
                                                                : "its worker fell silent and lost the lease";
    outcome = core::decide_after_fault(overdue.info.job.retry, overdue.info.counts, overdue.fault, text, ids.random());
  }
  if (!overdue.cancel_requested) add_completions(ending, overdue.info.job, overdue.info.attempts, outcome);
  ids.give_ids(ending.effects);
  take_outcome(ending, std::move(outcome));
  return ending;
}

Ending given_back(const LeaseRef& lease, std::string note) {
  return {.lease = lease, .how = Ends::kReturned, .is_settled = false, .note = std::move(note)};
}

}  // namespace bide::brokers::database
