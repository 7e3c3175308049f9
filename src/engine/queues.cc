#include "engine/queues.h"

#include <algorithm>

namespace bide::engine {

bool Queues::is_at_once(const Queue& queue) const {
  const std::uint32_t most = queue.limits->rules.at_once;
  return most != 0 && queue.starting() >= most;
}

bool Queues::is_at_rate(const Queue& queue) const {
  const RateLimit& rate = queue.limits->rules.rate;
  return rate.count != 0 && queue.limits->starts.tokens(rate, span_ms_) <= queue.taken;
}

std::int64_t Queues::next_start(const Queue& queue) const {
  return queue.limits->starts.next_ms(queue.limits->rules.rate, span_ms_, queue.taken);
}

Lane& Queues::lane(Queue& queue, int priority) {
  auto at = std::find_if(queue.lanes.begin(), queue.lanes.end(),
                         [priority](const Lane& lane) { return lane.priority <= priority; });
  if (at == queue.lanes.end() || at->priority != priority) at = queue.lanes.insert(at, Lane{priority, {}, {}});
  return *at;
}

void Queues::insert(Slot slot) {
  const Entry& entry = slab_[slot];
  const auto number = static_cast<std::uint16_t>(entry.queue);
  Queue& queue = queues_[number];
  if (queue.lines && queue.lines->empty()) arrange(number);
  if (queue.lines) return queue.lines->insert(slot, now_of(queue));
  lane(queue, static_cast<int>(entry.priority)).list_of(entry).insert_by_due(slab_, slot);
}

void Queues::insert_first(Slot slot) {
  const Entry& entry = slab_[slot];
  Queue& queue = queues_[static_cast<std::uint16_t>(entry.queue)];
  if (queue.lines) return queue.lines->insert_first(slot, now_of(queue));
  lane(queue, static_cast<int>(entry.priority)).list_of(entry).push_front(slab_, slot);
}

void Queues::clear_lanes() {
  for (Queue& queue : queues_) {
    queue.lanes.clear();
    if (queue.lines) queue.lines->clear();
  }
}

QueueLines::Now Queues::now_of(const Queue& queue) const {
  static const QueueRules none;
  return {queue.limits ? queue.limits->rules : none, span_ms_, shift_ms_};
}

void Queues::arrange(std::uint16_t number) {
  Queue& queue = queues_[number];
  const bool by_group = queue.limits && core::tells_groups_apart(queue.limits->rules);
  const bool by_kind = queue.kind_subscriptions != 0;
  if (!by_group && !by_kind) {
    // Lines go on without it; the lanes are for the next jobs when no job is left in them.
    if (queue.lines && queue.lines->empty()) queue.lines.reset();
    if (queue.lines) queue.lines->rules_changed(now_of(queue));
    return;
  }
  if (!queue.lines) {
    queue.lines = std::make_unique<QueueLines>(slab_, groups_);
    for (Lane& lane : queue.lanes) {
      queue.lines->take_in(std::move(lane.after_a_span));
      queue.lines->take_in(std::move(lane.by_the_clock));
    }
    queue.lanes.clear();
  }
  // What was told apart once stays so while there are jobs: workers that come and go must not have them sorted each time.
  const bool keeps = !queue.lines->empty();
  queue.lines->tell_apart(by_group || (keeps && queue.lines->by_group()), by_kind || (keeps && queue.lines->by_kind()));
  queue.lines->rules_changed(now_of(queue));
  if (queue.lines->is_unsorted()) unsorted_.push_back(number);
}

}  // namespace bide::engine
