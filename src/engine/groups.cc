#include "engine/groups.h"

#include "platform/fatal.h"

namespace bide::engine {

GroupNumber GroupTable::find_or_make(std::uint16_t queue, std::string_view name) {
  const GroupNumber known = find(queue, name);
  if (known != kNoGroup) return known;
  GroupNumber group = size();
  if (free_.empty()) {
    groups_.emplace_back();
  } else {
    group = free_.back();
    free_.pop_back();
  }
  groups_[group].name = name;
  groups_[group].queue = queue;
  parts_[part_of(queue, name)].insert(group);
  return group;
}

void GroupTable::drop_if_unused(GroupNumber number, std::int64_t span_ms) {
  const Group& group = groups_[number];
  if (number == kNoGroup || group.name.empty() || group.jobs != 0 || group.lines != 0 || group.noted_ms != Group::kNever) return;
  if (!group.starts.is_full(span_ms)) {
    constexpr std::int64_t kNsInMs = 1'000'000;
    return note_time(number, group.starts.full_at_ns() / kNsInMs + 1);
  }
  platform::require(group.starting() == 0, "a group without jobs has some that run");
  parts_[part_of(group.queue, group.name)].erase(number);
  groups_[number] = Group{};
  free_.push_back(number);
}

void GroupTable::forget_starts(std::uint16_t queue) {
  for (Group& group : groups_) {
    if (group.queue == queue) group.starts = {};
  }
}

void GroupTable::put(Slot slot, GroupNumber group) {
  const std::size_t chunk = slot >> Slab::kChunkBits;
  if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
  if (chunks_[chunk] == nullptr) chunks_[chunk] = std::make_unique_for_overwrite<GroupNumber[]>(kChunkMask + 1);
  chunks_[chunk][slot & kChunkMask] = group;
}

void GroupTable::note_time(GroupNumber group, std::int64_t span_ms) {
  if (groups_[group].noted_ms <= span_ms) return;
  groups_[group].noted_ms = span_ms;
  times_.emplace(span_ms, group);
}

GroupNumber GroupTable::take_timed(std::int64_t span_ms) {
  while (!times_.empty() && times_.top().first <= span_ms) {
    const auto [at_ms, group] = times_.top();
    times_.pop();
    if (groups_[group].noted_ms != at_ms) continue;
    groups_[group].noted_ms = Group::kNever;
    return group;
  }
  return kNoGroup;
}

}  // namespace bide::engine
