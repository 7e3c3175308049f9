// State, the rules of queues.

#include <algorithm>

#include "engine/state.h"

namespace bide::engine {

Status State::apply(const QueueRules& record) {
  const auto known = ruled_.find(record.queue);
  if (!core::has_any(record)) {
    if (known == ruled_.end()) return {};
    const std::uint16_t number = known->second;
    ruled_.erase(known);
    queues_[number].limits.reset();
    release_queue(number);
    return {};
  }
  if (known == ruled_.end()) {
    const std::uint16_t number = hold_queue(record.queue);
    ruled_.emplace(record.queue, number);
    queues_[number].limits = std::make_unique<QueueLimits>();
    queues_[number].limits->rules = record;
  } else {
    queues_[known->second].limits->rules = record;
  }
  return {};
}

// At this time, by the ledger's clock then.
void State::count_start(std::uint16_t queue, std::int64_t at_ms) {
  QueueLimits* limits = queues_[queue].limits.get();
  if (limits == nullptr) return;
  if (limits->rules.rate.count != 0) limits->starts.take(limits->rules.rate, at_ms - shift_ms_, 1);
}

std::optional<std::int64_t> State::next_start() const {
  std::optional<std::int64_t> next;
  for (const auto& [name, number] : ruled_) {
    const Queue& queue = queues_[number];
    if (queue.paused || !queue.has_waiting() || queues_.is_at_once(queue) || !queues_.is_at_rate(queue)) continue;
    const std::int64_t at_ms = queues_.next_start(queue) + shift_ms_;
    next = std::min(next.value_or(at_ms), at_ms);
  }
  return next;
}

std::int64_t State::full_at_ns(std::uint16_t queue) const {
  constexpr std::int64_t kNsInMs = 1'000'000;
  const core::TokenBucket& starts = queues_[queue].limits->starts;
  return starts.is_full(now_ms_ - shift_ms_) ? 0 : starts.full_at_ns() + shift_ms_ * kNsInMs;
}

void State::restore_full_at(std::uint16_t queue, std::int64_t ns) {
  if (ns != 0) queues_[queue].limits->starts = core::TokenBucket(ns);
}

}  // namespace bide::engine
