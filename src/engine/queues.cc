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
  lane(queues_[static_cast<std::uint16_t>(entry.queue)], static_cast<int>(entry.priority))
      .list_of(entry)
      .insert_by_due(slab_, slot);
}

void Queues::insert_first(Slot slot) {
  const Entry& entry = slab_[slot];
  lane(queues_[static_cast<std::uint16_t>(entry.queue)], static_cast<int>(entry.priority))
      .list_of(entry)
      .push_front(slab_, slot);
}

void Queues::clear_lanes() {
  for (Queue& queue : queues_) queue.lanes.clear();
}

}  // namespace bide::engine
