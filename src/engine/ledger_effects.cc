// Ledger, jobs that become real together with an outcome: the effects of a settlement, and those that tell of an end.

#include <utility>
#include <variant>

#include "core/completion.h"
#include "engine/ledger.h"

namespace bide::engine {

std::size_t room_for(const Job& job) {
  std::size_t bytes = 512 + job.body.size() + job.kind.size() + job.queue.size() + job.content_type.size() +
                      job.unique_key.size() + job.retry.waits.size() * 10;
  for (const auto& [name, value] : job.headers) bytes += name.size() + value.size() + 8;
  return bytes;
}

Result<std::vector<Job>> Ledger::completions_of(Slot slot, const Outcome& outcome) {
  const bool is_end = std::holds_alternative<Done>(outcome) || std::holds_alternative<Dead>(outcome);
  if (!is_end || !state_.leases()[state_[slot].next].wants_completion) return std::vector<Job>();
  const auto loaded = load(slot);
  if (!loaded) return loaded.error();
  return completions_of(loaded->job, static_cast<std::uint32_t>(state_[slot].attempts), outcome);
}

std::vector<Job> Ledger::completions_of(const Job& job, std::uint32_t attempts, const Outcome& outcome) {
  std::vector<Job> jobs = core::completion_jobs(job, attempts, outcome);
  // Without a name for their queue or kind the outcome is still real.
  std::erase_if(jobs, [&](const Job& made) { return !state_.has_names_left(made, jobs.size()); });
  return jobs;
}

void Ledger::accept_effects(std::vector<Job> effects) {
  if (effects.empty()) return;
  WrittenJobs written;
  for (const Job& effect : effects) written.add(effect);
  accept_effects(std::move(effects), written, 0);
}

void Ledger::accept_effects(std::vector<Job> given, const WrittenJobs& written, std::size_t first) {
  // Effects are not held to max_jobs, since the outcome cannot wait; there are never more of them than there are leases.
  if (given.empty()) return;
  const WarmJobs::BatchNumber batch = warm_.open(std::move(given));
  std::vector<Job>& effects = warm_.jobs(batch);
  for (std::size_t i = 0; i < effects.size(); ++i) {
    Job& effect = effects[i];
    // One that is there already, by its id or its unique key, need not be made.
    const bool is_own_id = effect.id.is_nil();
    const bool there = (!is_own_id && (state_.find(effect.id) != kNoSlot ||
                                       finished_ids_.contains(effect.id).value_or(false))) ||
                       (!effect.unique_key.empty() && state_.unique_keys().holder(effect.unique_key) != kNoSlot);
    if (there) {
      warm_.pass_over(batch, i);
      continue;
    }
    if (is_own_id) effect.id = ids_.next(now_ms(), random_.next());
    accept(batch, i, written[first + i], is_own_id);
  }
  warm_.close(batch);
}

}  // namespace bide::engine
