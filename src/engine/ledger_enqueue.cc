// Ledger, enqueueing: jobs of a call, the effects of a settlement, and the jobs that announce the end of another.

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "core/completion.h"
#include "core/quote.h"
#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

namespace {

// Each job once.
void await_instead(std::vector<JobId>& after, const std::map<JobId, JobId>& instead) {
  std::vector<JobId> awaited;
  for (const JobId& id : after) {
    const auto found = instead.find(id);
    const JobId& other = found == instead.end() ? id : found->second;
    if (std::find(awaited.begin(), awaited.end(), other) == awaited.end()) awaited.push_back(other);
  }
  after = std::move(awaited);
}

}  // namespace

Error too_many_names() {
  return Error{ErrorCode::kOverloaded,
               "there are " + std::to_string(kMaxNames) + " different queues or kinds already: use fewer names"};
}

std::size_t room_for(const Job& job) {
  std::size_t bytes = 512 + job.body.size() + job.kind.size() + job.queue.size() + job.content_type.size() +
                      job.unique_key.size() + job.retry.waits.size() * 10 + job.group.size() + job.after.size() * JobId::kSize;
  for (const auto& [name, value] : job.headers) bytes += name.size() + value.size() + 8;
  if (job.past) bytes += kRoomForChange;
  return bytes;
}

std::vector<Result<Enqueued>> Ledger::enqueue(EnqueueBatch batch) {
  const JobCache::BatchNumber cached = cache_.open(std::move(batch.jobs));
  std::vector<Job>& jobs = cache_.jobs(cached);
  std::vector<Result<Enqueued>> results;
  results.reserve(jobs.size());
  // Every id is at another place of a large table: the next ones are prefetched.
  constexpr std::size_t kAhead = 8;
  std::size_t given = 0;
  std::vector<bool> is_ours(jobs.size());  // A generated id needs no look-up: nobody else can have it.
  const auto give_id = [&] {
    if (given == jobs.size()) return;
    Job& next = jobs[given];
    is_ours[given++] = next.id.is_nil();
    if (next.id.is_nil()) next.id = ids_.next(now_ms(), random_.next());
    state_.prefetch(next.id);
    if (!is_ours[given - 1]) finished_ids_.prefetch(next.id);
  };
  while (given < kAhead && given < jobs.size()) give_id();
  auto refused = batch.refused.begin();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    give_id();
    const Job& job = jobs[i];
    if (refused != batch.refused.end() && refused->first == i) {
      results.push_back(std::move((refused++)->second));
    } else if (!is_ours[i] && state_.find(job.id) != kNoSlot) {
      results.push_back(Enqueued{job.id, true});
    } else if (const auto done = is_ours[i] ? false : finished_ids_.contains(job.id); !done || *done) {
      results.push_back(done ? Result<Enqueued>(Enqueued{job.id, true}) : done.error());
    } else if (auto conflict = conflict_of(job); conflict) {
      results.push_back(std::move(*conflict));
    } else if (Status admitted = admit(job); !admitted) {
      results.push_back(admitted.error());
    } else {
      results.push_back(Enqueued{job.id, false});
      accept(cached, i, batch.encoded[i], is_ours[i]);
      continue;
    }
    cache_.skip(cached, i);
  }
  cache_.close(cached);
  needs_sync_ = true;
  if (batch.order.empty()) return results;
  std::vector<Result<Enqueued>> as_given(results.size(), Enqueued{});
  for (std::size_t i = 0; i < results.size(); ++i) as_given[batch.order[i]] = std::move(results[i]);
  return as_given;
}

// Whether one more job may be accepted, and there is room to write it.
Status Ledger::admit(const Job& job) {
  if (state_.jobs() >= options_.max_jobs) {
    return Error{ErrorCode::kOverloaded, "the store holds " + std::to_string(state_.jobs()) +
                                             " jobs, as many as it may: wait, or raise max_jobs"};
  }
  if (Status admitted = admit_to(job.queue); !admitted) return admitted;
  if (!state_.has_names_left(job, 1)) return too_many_names();
  if (Status known = check_awaited(job); !known) return known;
  return make_room(room_for(job), false);
}

journal::Acceptance Ledger::acceptance_of(const Job& job) const {
  journal::Acceptance record;
  record.accepted_ms = now_ms();
  record.due_is_wall = job.due.has_value();
  if (job.due) {
    record.due_ms = std::max<std::int64_t>(0, job.due->time_since_epoch().count());
    // Due in the past means due now: it must not overtake jobs that wait already. One that was due elsewhere has waited.
    if (record.due_ms <= now_ms()) {
      if (!job.past) record.due_ms = now_ms();
      record.due_is_wall = false;
    }
  } else {
    record.due_ms = due_after(job.delay);
  }
  return record;
}

// The job was admitted and has an id.
void Ledger::accept(JobCache::BatchNumber batch, std::size_t index, const journal::JobFields& encoded, bool is_own_id) {
  Job& job = cache_.jobs(batch)[index];
  const journal::Acceptance record = acceptance_of(job);
  const journal::RecordRef at = append(*journal_, job, record, encoded);
  const auto slot = state_.apply(brief_of(job, record), at, kNoSlot);
  platform::require(slot.has_value(), "an accepted job must fit the state");
  if (is_own_id) state_.set_own_id(*slot);
  if (state_.queues().has_new()) attach_to_new_queues();
  if (job.past) {
    carry(job.id, *std::exchange(job.past, nullptr), record);
    return cache_.skip(batch, index);
  }
  // Jobs of queues that nobody subscribes to must not fill the cache.
  const bool has_subscription = state_.queues()[static_cast<std::uint16_t>(state_[*slot].queue)].subscriptions != 0;
  const bool waits = state_[*slot].entry_state() == EntryState::kWaiting;
  const bool kept = record.due_ms <= now_ms() && !waits && has_subscription && cache_.keep(*slot, batch, index);
  if (!kept) cache_.skip(batch, index);
}

// In the batch that accepts the job. Who ended its attempts was somewhere else: no token of ours is behind it.
void Ledger::carry(const JobId& id, const JobPast& past, const journal::Acceptance& how) {
  journal::Changed record;
  record.id = id;
  record.cause = !past.dead                              ? journal::ChangeCause::kRescheduled
                 : *past.dead == DeadReason::kExpired ? journal::ChangeCause::kExpired
                                                         : journal::ChangeCause::kFault;
  record.at_ms = now_ms();
  if (past.finished) record.at_ms = std::clamp<std::int64_t>(past.finished->time_since_epoch().count(), 0, now_ms());
  record.due_ms = how.due_ms;
  record.due_is_wall = how.due_is_wall;
  record.dead = past.dead;
  record.attempts = past.attempts;
  record.past.counts = past.counts;
  record.past.history = past.history;
  const Status carried = change(record);
  platform::require(carried.has_value(), "the past of an accepted job must fit the state");
}

Result<std::vector<Job>> Ledger::completions_of(Slot slot, const Outcome& outcome) {
  const bool is_end = std::holds_alternative<Done>(outcome) || std::holds_alternative<Dead>(outcome);
  if (!is_end || !lease_of(slot).wants_completion) return std::vector<Job>();
  const auto loaded = load(slot);
  if (!loaded) return loaded.error();
  return completions_of(loaded->job, static_cast<std::uint32_t>(state_[slot].attempts), outcome);
}

std::vector<Job> Ledger::completions_of(const Job& job, std::uint32_t attempts, const Outcome& outcome) {
  std::vector<Job> jobs = core::completion_jobs(job, attempts, outcome);
  // If there is no free name for their queue or kind, the outcome stands without them.
  std::erase_if(jobs, [&](const Job& made) { return !state_.has_names_left(made, jobs.size()); });
  return jobs;
}

void Ledger::accept_effects(std::vector<Job> effects) {
  if (effects.empty()) return;
  EncodedJobs encoded;
  for (const Job& effect : effects) encoded.add(effect);
  accept_effects(std::move(effects), encoded, 0);
}

void Ledger::accept_effects(std::vector<Job> given, const EncodedJobs& encoded, std::size_t first) {
  // Not limited by max_jobs: the outcome cannot wait.
  if (given.empty()) return;
  const JobCache::BatchNumber batch = cache_.open(std::move(given));
  std::vector<Job>& effects = cache_.jobs(batch);
  std::map<JobId, JobId> instead;  // Of those that are skipped: the job that has the key.
  for (std::size_t i = 0; i < effects.size(); ++i) {
    Job& effect = effects[i];
    if (!instead.empty()) await_instead(effect.after, instead);
    // An effect whose id or unique key is taken already is skipped, or has taken the place of the one that had the key.
    const bool is_own_id = effect.id.is_nil();
    bool there = !is_own_id && (state_.find(effect.id) != kNoSlot || finished_ids_.contains(effect.id).value_or(false));
    if (!there && conflict_of(effect)) {
      there = true;
      if (!is_own_id) instead.emplace(effect.id, holder_of(effect.unique_key));
    }
    if (there) {
      cache_.skip(batch, i);
      continue;
    }
    if (is_own_id) effect.id = ids_.next(now_ms(), random_.next());
    accept(batch, i, encoded[first + i], is_own_id);
  }
  cache_.close(batch);
}

}  // namespace bide::engine
