#include "engine/queues.h"

#include <algorithm>

namespace bide::engine {

SlotList& Queues::lane(Queue& queue, int priority) {
  auto at = std::find_if(queue.lanes.begin(), queue.lanes.end(),
                         [priority](const Lane& lane) { return lane.priority <= priority; });
  if (at == queue.lanes.end() || at->priority != priority) at = queue.lanes.insert(at, Lane{priority, {}});
  return at->list;
}

void Queues::insert(Slot slot) {
  const Entry& entry = slab_[slot];
  SlotList& list = lane(queues_[static_cast<std::uint16_t>(entry.queue)], static_cast<int>(entry.priority));
  if (list.empty() || slab_[list.tail].due_ms <= entry.due_ms) {
    list.push_back(slab_, slot);
    return;
  }
  // A job that comes back: it was due before those that wait, so its place is near the front.
  if (slab_[list.head].due_ms > entry.due_ms) {
    list.push_front(slab_, slot);
    return;
  }
  Slot before = list.head;
  while (slab_[slab_[before].next].due_ms <= entry.due_ms) before = slab_[before].next;
  list.insert_after(slab_, before, slot);
}

void Queues::insert_first(Slot slot) {
  const Entry& entry = slab_[slot];
  lane(queues_[static_cast<std::uint16_t>(entry.queue)], static_cast<int>(entry.priority)).push_front(slab_, slot);
}

void Queues::clear_lanes() {
  for (Queue& queue : queues_) queue.lanes.clear();
}

}  // namespace bide::engine
