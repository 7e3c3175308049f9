// Ledger, events: what is published is given to every queue that is bound to its topic, in one batch of the journal.

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "core/topics.h"
#include "engine/ledger.h"

namespace bide::engine {

std::vector<Result<Published>> Ledger::publish(EventBatch batch) {
  std::vector<Result<Published>> results;
  results.reserve(batch.events.size());
  auto refused = batch.refused.begin();
  for (std::size_t i = 0; i < batch.events.size(); ++i) {
    if (refused != batch.refused.end() && refused->first == i) {
      results.push_back(std::move((refused++)->second));
      continue;
    }
    Job& event = batch.events[i];
    if (event.id.is_nil()) event.id = ids_.next(now_ms(), random_.next());
    results.push_back(publish_one(event));
  }
  needs_sync_ = true;
  return results;
}

Result<Published> Ledger::publish_one(const Job& event) {
  Published published{.id = event.id};
  std::vector<Job> jobs;
  std::size_t bytes = 0;
  for (const auto& [queue, binding] : state_.bindings()) {
    if (!core::is_bound_to(binding, event.kind)) continue;
    const JobId id = core::event_job_id(event.id, queue);
    bool there = state_.find(id) != kNoSlot;
    if (!there) {
      const auto finished = finished_ids_.contains(id);
      if (!finished) return finished.error();
      there = *finished;
    }
    const auto is_full = [&, &queue = queue, &binding = binding] {
      return (binding.most != 0 && state_.queues()[*state_.queues().names().find(queue)].waiting() >= binding.most) ||
             !admit_to(queue);
    };
    if (!there && is_full()) {
      ++published.full;
      continue;
    }
    ++published.groups;
    if (there) continue;
    // Before the copy is made: a large event may go to many.
    bytes += room_for(event) + queue.size() + 64;
    if (journal_->batch_bytes() + bytes > options_.call_bytes) {
      return Error{ErrorCode::kOverloaded, "the event and others beside it are too much for one write, with a copy for each "
                                           "group: publish it again in a moment, or make it smaller"};
    }
    jobs.push_back(core::event_job(event, binding, Time(Milliseconds(now_ms()))));
  }
  if (jobs.empty()) return published;
  // All of them are admitted before the first is accepted.
  if (state_.jobs() + jobs.size() > options_.max_jobs) {
    return Error{ErrorCode::kOverloaded, "the store holds " + std::to_string(state_.jobs()) +
                                             " jobs, nearly as many as it may: wait, or raise max_jobs"};
  }
  if (!state_.has_names_left(jobs.front(), 1)) return too_many_names();
  if (Status roomy = make_room(bytes, false); !roomy) return roomy.error();
  accept_effects(std::move(jobs));
  return published;
}

Status Ledger::bind(Binding binding) {
  if (Status valid = core::validate(binding); !valid) return valid;
  const auto known = state_.bindings().find(binding.queue);
  if (binding.patterns.empty()) {
    if (known == state_.bindings().end()) return {};
    if (known->second.idle != Milliseconds(0)) return retire(known->second);
    return write_binding({.queue = binding.queue});
  }
  const Names& names = state_.queues().names();
  if (names.full() && !names.find(binding.queue)) return too_many_names();
  if (Status written = write_binding(binding); !written) return written;
  note_idle(binding.queue);
  return {};
}

Status Ledger::write_binding(const Binding& binding) {
  std::size_t bytes = 256 + binding.queue.size();
  for (const std::string& pattern : binding.patterns) bytes += pattern.size() + 8;
  if (Status roomy = make_room(bytes, true); !roomy) return roomy;
  append(*journal_, binding);
  needs_sync_ = true;
  if (Status applied = state_.apply(binding); !applied) return applied;
  if (state_.queues().has_new()) attach_to_new_queues();
  return {};
}

std::vector<Binding> Ledger::bindings() const {
  std::vector<Binding> bindings;
  for (const auto& [queue, binding] : state_.bindings()) {
    if (!binding.patterns.empty()) bindings.push_back(binding);
  }
  return bindings;
}

Status Ledger::retire(const Binding& given) {
  // A copy: the binding that was given is about to change. It stays, without patterns, until its queue is empty: whoever
  // opens the store after a crash goes on from there.
  Binding binding = given;
  binding.patterns.clear();
  idle_since_ms_.erase(binding.queue);
  if (Status written = write_binding(binding); !written) return written;
  remove_waiting(binding.queue, [this, queue = binding.queue](const Result<std::uint64_t>& removed) {
    const auto known = state_.bindings().find(queue);
    // Bound again meanwhile: it is somebody's.
    if (known == state_.bindings().end() || !known->second.patterns.empty()) return;
    if (!removed || !write_binding({.queue = queue})) note_idle(queue);
  });
  return {};
}

Status Ledger::retire_idle() {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  std::vector<Binding> idle;
  for (const auto& [queue, since_ms] : idle_since_ms_) {
    const auto known = state_.bindings().find(queue);
    if (known == state_.bindings().end() || elapsed_ms >= since_ms + known->second.idle.count()) {
      idle.push_back(known == state_.bindings().end() ? Binding{.queue = queue} : known->second);
    }
  }
  for (const Binding& binding : idle) {
    idle_since_ms_.erase(binding.queue);
    if (binding.idle == Milliseconds(0)) continue;
    const Status retired = retire(binding);
    if (retired) continue;
    if (retired.error().code != ErrorCode::kDiskFull) return retired;
    note_idle(binding.queue);
  }
  return {};
}

void Ledger::note_idle(const std::string& queue) {
  const auto known = state_.bindings().find(queue);
  if (known == state_.bindings().end() || known->second.idle == Milliseconds(0)) {
    idle_since_ms_.erase(queue);
  } else if (state_.queues()[*state_.queues().names().find(queue)].subscriptions == 0) {
    idle_since_ms_[queue] = elapsed_us_ / 1000;
  }
}

}  // namespace bide::engine
