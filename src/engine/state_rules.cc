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
    groups_.forget_starts(number);
    queues_.arrange(number);
    release_queue(number);
    return {};
  }
  const std::uint16_t number = known == ruled_.end() ? hold_queue(record.queue) : known->second;
  Queue& queue = queues_[number];
  if (known == ruled_.end()) {
    ruled_.emplace(record.queue, number);
    queue.limits = std::make_unique<QueueLimits>();
  }
  queue.limits->rules = record;
  queues_.arrange(number);
  return {};
}

void State::count_start(Slot slot, std::int64_t at_ms) {
  const Entry& entry = slab_[slot];
  const std::int64_t span_ms = at_ms - shift_ms_;
  QueueLimits* limits = queues_[static_cast<std::uint16_t>(entry.queue)].limits.get();
  if (limits != nullptr && limits->rules.rate.count != 0) limits->starts.take(limits->rules.rate, span_ms, 1);
  if (!entry.has_group) return;
  if (limits != nullptr && limits->rules.group_rate.count != 0) {
    groups_[groups_.of(slot)].starts.take(limits->rules.group_rate, span_ms, 1);
  }
}

void State::hold_group(Slot slot, std::string_view name) {
  if (name.empty()) return;
  slab_[slot].has_group = 1;
  const GroupNumber group = groups_.find_or_make(static_cast<std::uint16_t>(slab_[slot].queue), name);
  groups_.put(slot, group);
  ++groups_[group].jobs;
}

void State::release_group(Slot slot) {
  if (!slab_[slot].has_group) return;
  slab_[slot].has_group = 0;
  const GroupNumber group = groups_.of(slot);
  --groups_[group].jobs;
  groups_.drop_if_unused(group, now_ms_ - shift_ms_);
}

void State::wake_groups(std::size_t budget) {
  for (; budget > 0; --budget) {
    const GroupNumber group = groups_.take_timed(now_ms_ - shift_ms_);
    if (group == kNoGroup) return;
    queues_.wake(group);
    groups_.drop_if_unused(group, now_ms_ - shift_ms_);
  }
}

std::optional<std::int64_t> State::next_start() const {
  std::optional<std::int64_t> next;
  if (const auto time = groups_.next_time()) next = *time + shift_ms_;
  for (const auto& [name, number] : ruled_) {
    const Queue& queue = queues_[number];
    if (queue.paused || !queue.has_waiting() || queues_.is_at_once(queue) || !queues_.is_at_rate(queue)) continue;
    const std::int64_t at_ms = queues_.next_start(queue) + shift_ms_;
    next = std::min(next.value_or(at_ms), at_ms);
  }
  return next;
}

std::int64_t State::full_at_ns(const core::TokenBucket& starts) const {
  constexpr std::int64_t kNsInMs = 1'000'000;
  return starts.is_full(now_ms_ - shift_ms_) ? 0 : starts.full_at_ns() + shift_ms_ * kNsInMs;
}

void State::restore_full_at(std::uint16_t queue, std::int64_t ns) {
  if (ns != 0) queues_[queue].limits->starts = core::TokenBucket(ns);
}

void State::restore_full_at(std::uint16_t queue, std::string_view group, std::int64_t ns) {
  groups_[groups_.find_or_make(queue, group)].starts = core::TokenBucket(ns);
}

}  // namespace bide::engine
