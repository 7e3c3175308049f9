// QueueLines: the ready jobs of a queue where it matters which group or which kind a job is of. Each group has a line of its
// own, and so has each kind once a subscription takes some kinds only, and each priority. The lines of one kind and priority are
// in an order: by the time at which their first job was due, or, where the queue is fair, by turns. So a job is found without
// looking at those that may not start.
//
// A group at one of its limits is held: a line of it that comes to the front leaves the order, and comes back when a lease
// of the group ends or its rate lets another job start.
//
// Turns are start-time fair queueing: a group is served at its `turn`, which then moves by a step that is the smaller the
// greater its weight is; one that comes back does not catch up on what it did not want.

#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/queue_rules.h"
#include "engine/groups.h"
#include "engine/kind_filter.h"
#include "engine/lane.h"

namespace bide::engine {

class QueueLines {
 public:
  // What holds at the moment of a call.
  struct Now {
    const QueueRules& rules;
    std::int64_t span_ms;
    std::int64_t shift_ms;  // See State.
  };

  QueueLines(Slab& slab, GroupTable& groups) : slab_(slab), groups_(groups) {}
  ~QueueLines() { clear(); }

  // What is told apart from now on. Jobs whose place follows from it are unsorted then.
  void tell_apart(bool groups, bool kinds);
  bool by_group() const { return by_group_; }
  bool by_kind() const { return by_kind_; }
  // Jobs that are to be sorted into lines.
  void take_in(RunList&& jobs);
  bool is_unsorted() const { return !unsorted_.empty(); }
  // One of them that is out of any list now, to be given to insert(), or a tombstone; kNoSlot: all are sorted.
  Slot take_unsorted();

  void insert(Slot slot, const Now& now) { add(slot, now, false); }
  // Before all others of its line.
  void insert_first(Slot slot, const Now& now) { add(slot, now, true); }
  // Whether a job may be in a line that is not held.
  bool has_any(KindFilter& takes);
  // See Queues::pop.
  template <class Dropped>
  Slot pop(KindFilter& takes, const Now& now, std::size_t& budget, Dropped&& dropped);
  template <class Dropped>
  std::optional<std::int64_t> oldest(std::int64_t shift_ms, std::size_t& budget, Dropped&& dropped);
  // Its lines come back into their order, if no limit holds it any more.
  void wake(GroupNumber group, const Now& now);
  void rules_changed(const Now& now);
  bool is_at_once(const Group& group, const Now& now) const;
  bool is_at_rate(const Group& group, const Now& now) const;

  // For a walk through all of it: the lines, by number, and what is to be sorted. A job that goes from one to the other has
  // changed.
  std::size_t lines() const { return lines_.size(); }
  Lane& line(std::size_t number) { return lines_[number].lane; }
  std::deque<RunList>& unsorted() { return unsorted_; }
  bool empty() const { return used_ == 0 && unsorted_.empty(); }
  void clear();
  // How many jobs are before this one in its line; nothing: it is in none, or there are more than `most`.
  std::optional<std::uint64_t> place_of(Slot slot, std::uint64_t most) const;

 private:
  using LineNumber = std::uint32_t;
  static constexpr LineNumber kNoLine = std::numeric_limits<LineNumber>::max();
  static constexpr std::uint32_t kNotInOrder = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint16_t kAnyKind = 0xffff;
  static constexpr std::int64_t kTurn = 1 << 20;

  struct Line {
    Lane lane;
    GroupNumber group = kNoGroup;
    std::uint16_t kind = kAnyKind;
    bool used = false;
    std::uint32_t place = kNotInOrder;
    LineNumber next = kNoLine;  // Of the same group.
  };
  struct Ordered {
    std::int64_t key = 0;
    std::uint64_t tie = 0;
    LineNumber line = kNoLine;
    friend bool operator<(const Ordered& a, const Ordered& b) { return a.key != b.key ? a.key < b.key : a.tie < b.tie; }
  };
  // A heap of lines.
  struct Level {
    int priority = 0;
    std::vector<Ordered> order;
    LineNumber ungrouped = kNoLine;
  };
  struct Section {
    std::vector<Level> levels;  // Highest priority first.
    std::uint32_t lines = 0;
    std::uint32_t in_order = 0;
  };
  struct Choice {
    Section* section = nullptr;
    Level* level = nullptr;
    RunList* list = nullptr;
    std::int64_t age_key = 0;
  };

  GroupNumber group_of(const Entry& entry, Slot slot) const {
    return by_group_ && entry.has_group ? groups_.of(slot) : kNoGroup;
  }
  std::uint16_t kind_of(const Entry& entry) const { return by_kind_ ? static_cast<std::uint16_t>(entry.kind) : kAnyKind; }
  void add(Slot slot, const Now& now, bool first);
  LineNumber find_line(const Level& level, GroupNumber group, std::uint16_t kind) const;
  LineNumber make_line(Section& section, Level& level, GroupNumber group, std::uint16_t kind);
  // It is empty.
  void drop_line(Section& section, Level& level, LineNumber number, std::int64_t span_ms);
  static Level& level_of(Section& section, int priority);
  bool is_held(GroupNumber group, const Now& now) const;
  void hold(Group& group, GroupNumber number, const Now& now);
  std::int64_t& turn_of(GroupNumber group) { return group == kNoGroup ? ungrouped_turn_ : groups_[group].turn; }
  Ordered position_of(LineNumber number, Slot head, const Now& now);
  void put_in_order(Section& section, Level& level, LineNumber number, Slot head, const Now& now);
  void take_out_of_order(Section& section, Level& level, LineNumber number);
  void sift_up(Level& level, std::size_t at);
  void sift_down(Level& level, std::size_t at);
  void put_at(Level& level, std::size_t at, const Ordered& ordered) {
    level.order[at] = ordered;
    lines_[ordered.line].place = static_cast<std::uint32_t>(at);
  }
  // Perhaps a tombstone; kNoSlot: it is empty.
  Slot head_of(const Lane& lane, std::int64_t shift_ms) const;
  void take_turn(GroupNumber group, const Now& now);
  // The list that the next job of the level is in, that may start; null: there is none, or the budget is used up.
  template <class Dropped>
  RunList* first_of(Section& section, Level& level, const Now& now, std::size_t& budget, Dropped& dropped);
  Slot take(const Choice& choice, const Now& now);

  Slab& slab_;
  GroupTable& groups_;
  bool by_group_ = false;
  bool by_kind_ = false;
  std::deque<Line> lines_;
  std::vector<LineNumber> free_;
  std::size_t used_ = 0;
  std::map<std::uint16_t, Section> sections_;  // By kind, or one for all.
  std::deque<RunList> unsorted_;
  std::int64_t turn_ = 0;  // Of whoever was served last.
  std::int64_t ungrouped_turn_ = 0;
  std::uint64_t put_in_order_ = 0;
};

template <class Dropped>
RunList* QueueLines::first_of(Section& section, Level& level, const Now& now, std::size_t& budget, Dropped& dropped) {
  while (!level.order.empty()) {
    const Ordered first = level.order.front();
    Line& line = lines_[first.line];
    RunList* list = next_list(slab_, line.lane, now.shift_ms, budget, dropped);
    if (list == nullptr && budget == 0) return nullptr;
    if (list == nullptr) {
      drop_line(section, level, first.line, now.span_ms);
    } else if (is_held(line.group, now)) {
      hold(groups_[line.group], line.group, now);
      take_out_of_order(section, level, first.line);
    } else if (const Ordered right = position_of(first.line, list->head(), now); right.key > first.key) {
      put_at(level, 0, right);
      sift_down(level, 0);
    } else {
      return list;
    }
  }
  return nullptr;
}

template <class Dropped>
Slot QueueLines::pop(KindFilter& takes, const Now& now, std::size_t& budget, Dropped&& dropped) {
  const std::int64_t ageing_ms = now.rules.ageing.count();
  Choice best;
  for (auto next = sections_.begin(); next != sections_.end();) {
    const auto at = next++;  // It may go with its last line.
    if (by_kind_ && !takes.takes(at->first)) continue;
    for (std::size_t i = 0; i < at->second.levels.size(); ++i) {
      Level& level = at->second.levels[i];
      RunList* list = first_of(at->second, level, now, budget, dropped);
      if (budget == 0) return kNoSlot;
      if (list == nullptr) continue;
      const std::int64_t age_key = span_due(slab_[list->head()], now.shift_ms) - level.priority * ageing_ms;
      const auto comes_before = [&] {
        if (best.level == nullptr) return true;
        if (ageing_ms != 0 && age_key != best.age_key) return age_key < best.age_key;
        if (level.priority != best.level->priority) return level.priority > best.level->priority;
        return level.order.front() < best.level->order.front();
      };
      if (comes_before()) best = {&at->second, &level, list, age_key};
      if (ageing_ms == 0) break;
    }
    if (at->second.lines == 0) sections_.erase(at);
  }
  return best.level == nullptr ? kNoSlot : take(best, now);
}

template <class Dropped>
std::optional<std::int64_t> QueueLines::oldest(std::int64_t shift_ms, std::size_t& budget, Dropped&& dropped) {
  constexpr std::size_t kLookedAt = 65'536;  // Of more lines it is the oldest of some.
  std::optional<std::int64_t> oldest;
  const auto see = [&](const RunList& list) {
    if (list.empty() || slab_[list.head()].entry_state() == EntryState::kTombstone) return;
    const std::int64_t due = span_due(slab_[list.head()], shift_ms) + shift_ms;
    oldest = std::min(oldest.value_or(due), due);
  };
  for (std::size_t i = 0; i < std::min(lines_.size(), kLookedAt); ++i) {
    if (!lines_[i].used) continue;
    (void)next_list(slab_, lines_[i].lane, shift_ms, budget, dropped);
    see(lines_[i].lane.after_a_span);
    see(lines_[i].lane.by_the_clock);
  }
  for (const RunList& list : unsorted_) see(list);
  return oldest;
}

}  // namespace bide::engine
