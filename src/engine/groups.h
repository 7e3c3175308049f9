// GroupTable: the groups of jobs (Job::group), which of them a job is in, and how many jobs of each run. A group of one queue
// is not that of another with the same name. It is there while a job is in it, a line waits for it, or its rate remembers it.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/queue_rules.h"
#include "engine/slab.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

using GroupNumber = std::uint32_t;
inline constexpr GroupNumber kNoGroup = 0;

struct Group {
  std::string name;  // Empty: the number is free.
  core::TokenBucket starts;
  std::int64_t turn = 0;  // Where the queue is fair: when it is served next. See QueueLines.
  std::uint32_t jobs = 0;     // That are not done.
  std::uint32_t running = 0;
  std::uint32_t taken = 0;  // Out of its line, about to be granted.
  std::uint32_t lines = 0;
  std::uint32_t first_line = std::numeric_limits<std::uint32_t>::max();
  std::uint16_t queue = 0;
  bool held = false;   // It is at a limit: some of its lines are out of the order.
  std::int64_t noted_ms = kNever;  // It is looked at then.

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::uint32_t starting() const { return running + taken; }
};

class GroupTable {
 public:
  GroupTable() { groups_.emplace_back(); }

  Group& operator[](GroupNumber group) { return groups_[group]; }
  const Group& operator[](GroupNumber group) const { return groups_[group]; }
  // Numbers are below this; not each of them has a group.
  GroupNumber size() const { return static_cast<GroupNumber>(groups_.size()); }

  GroupNumber find(std::uint16_t queue, std::string_view name) const {
    const auto& part = parts_[part_of(queue, name)];
    const auto found = part.find(Key{queue, name});
    return found == part.end() ? kNoGroup : *found;
  }
  GroupNumber find_or_make(std::uint16_t queue, std::string_view name);
  // The number is free when nothing needs the group any more.
  void drop_if_unused(GroupNumber group, std::int64_t span_ms);
  // Of all groups of the queue: their buckets are full.
  void forget_starts(std::uint16_t queue);

  // Of a job with Entry::has_group.
  GroupNumber of(Slot slot) const { return chunks_[slot >> Slab::kChunkBits][slot & kChunkMask]; }
  void put(Slot slot, GroupNumber group);

  // The group is looked at again then, by the clock of spans, or at an earlier time that was noted.
  void note_time(GroupNumber group, std::int64_t span_ms);
  std::optional<std::int64_t> next_time() const {
    return times_.empty() ? std::nullopt : std::optional(times_.top().first);
  }
  // One that was noted for now or before; kNoGroup: none.
  GroupNumber take_timed(std::int64_t span_ms);

 private:
  struct Key {
    std::uint16_t queue;
    std::string_view name;
  };
  // Groups are found by their names, which are kept once.
  struct Hash {
    using is_transparent = void;
    const GroupTable* table;
    std::size_t operator()(const Key& key) const { return platform::KeyedHash()(key.name) + key.queue * 0x9e3779b97f4a7c15u; }
    std::size_t operator()(GroupNumber group) const { return (*this)(table->key_of(group)); }
  };
  struct Equal {
    using is_transparent = void;
    const GroupTable* table;
    static bool same(const Key& a, const Key& b) { return a.queue == b.queue && a.name == b.name; }
    bool operator()(GroupNumber a, GroupNumber b) const { return a == b; }
    bool operator()(const Key& a, GroupNumber b) const { return same(a, table->key_of(b)); }
    bool operator()(GroupNumber a, const Key& b) const { return same(table->key_of(a), b); }
  };
  using Part = std::unordered_set<GroupNumber, Hash, Equal>;

  static constexpr std::size_t kParts = 256;  // So that growing one never takes long.
  static constexpr Slot kChunkMask = (1u << Slab::kChunkBits) - 1;

  Key key_of(GroupNumber group) const { return {groups_[group].queue, groups_[group].name}; }
  static std::size_t part_of(std::uint16_t queue, std::string_view name) {
    return ((platform::KeyedHash()(name) >> 56) + queue) % kParts;
  }

  template <std::size_t... I>
  std::array<Part, kParts> make_parts(std::index_sequence<I...>) {
    return {((void)I, Part(0, Hash{this}, Equal{this}))...};
  }

  std::deque<Group> groups_;
  std::vector<GroupNumber> free_;
  std::array<Part, kParts> parts_ = make_parts(std::make_index_sequence<kParts>());
  std::vector<std::unique_ptr<GroupNumber[]>> chunks_;  // By slot; a chunk without a group is not there.
  using Timed = std::pair<std::int64_t, GroupNumber>;
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> times_;  // Some were replaced by an earlier one.
};

}  // namespace bide::engine
