#include "engine/queue_lines.h"

#include <limits>
#include <algorithm>
#include <utility>

#include "platform/fatal.h"

namespace bide::engine {

void QueueLines::tell_apart(bool groups, bool kinds) {
  if (groups == by_group_ && kinds == by_kind_) return;
  std::deque<RunList> lists;
  for (Line& line : lines_) {
    for (RunList* list : {&line.lane.after_a_span, &line.lane.by_the_clock}) {
      if (!list->empty()) lists.push_back(list->take());
    }
  }
  std::deque<RunList> before = std::move(unsorted_);
  clear();
  unsorted_ = std::move(before);
  for (RunList& list : lists) take_in(std::move(list));
  by_group_ = groups;
  by_kind_ = kinds;
}

void QueueLines::take_in(RunList&& jobs) {
  if (!jobs.empty()) unsorted_.push_back(jobs.take());
}

Slot QueueLines::take_unsorted() {
  if (unsorted_.empty()) return kNoSlot;
  const Slot slot = unsorted_.front().pop_front(slab_);
  while (!unsorted_.empty() && unsorted_.front().empty()) unsorted_.pop_front();
  return slot;
}

void QueueLines::clear() {
  for (Line& line : lines_) {
    if (!line.used || line.group == kNoGroup) continue;
    Group& group = groups_[line.group];
    group.first_line = kNoLine;
    group.held = false;
    --group.lines;
  }
  lines_.clear();
  free_.clear();
  used_ = 0;
  sections_.clear();
  unsorted_.clear();
}

QueueLines::Level& QueueLines::level_of(Section& section, int priority) {
  auto at = std::find_if(section.levels.begin(), section.levels.end(),
                         [priority](const Level& level) { return level.priority <= priority; });
  if (at == section.levels.end() || at->priority != priority) {
    at = section.levels.insert(at, Level());
    at->priority = priority;
  }
  return *at;
}

QueueLines::LineNumber QueueLines::find_line(const Level& level, GroupNumber group, std::uint16_t kind) const {
  if (group == kNoGroup) return level.ungrouped;
  LineNumber number = groups_[group].first_line;
  while (number != kNoLine && (lines_[number].lane.priority != level.priority || lines_[number].kind != kind)) {
    number = lines_[number].next;
  }
  return number;
}

QueueLines::LineNumber QueueLines::make_line(Section& section, Level& level, GroupNumber group, std::uint16_t kind) {
  LineNumber number = static_cast<LineNumber>(lines_.size());
  if (free_.empty()) {
    lines_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Line& line = lines_[number];
  line.lane.priority = level.priority;
  line.group = group;
  line.kind = kind;
  line.used = true;
  ++used_;
  ++section.lines;
  if (group == kNoGroup) {
    level.ungrouped = number;
  } else {
    line.next = std::exchange(groups_[group].first_line, number);
    ++groups_[group].lines;
  }
  return number;
}

void QueueLines::drop_line(Section& section, Level& level, LineNumber number, std::int64_t span_ms) {
  take_out_of_order(section, level, number);
  const GroupNumber group = lines_[number].group;
  if (group == kNoGroup) {
    level.ungrouped = kNoLine;
  } else {
    LineNumber* link = &groups_[group].first_line;
    while (*link != number) link = &lines_[*link].next;
    *link = lines_[number].next;
    if (--groups_[group].lines == 0) groups_[group].held = false;
  }
  lines_[number] = Line{};
  free_.push_back(number);
  --used_;
  --section.lines;
  if (group != kNoGroup) groups_.drop_if_unused(group, span_ms);
}

bool QueueLines::is_at_once(const Group& group, const Now& now) const {
  return now.rules.group_at_once != 0 && group.starting() >= now.rules.group_at_once;
}

bool QueueLines::is_at_rate(const Group& group, const Now& now) const {
  return now.rules.group_rate.count != 0 && group.starts.tokens(now.rules.group_rate, now.span_ms) <= group.taken;
}

bool QueueLines::is_held(GroupNumber number, const Now& now) const {
  if (number == kNoGroup) return false;
  return is_at_once(groups_[number], now) || is_at_rate(groups_[number], now);
}

void QueueLines::hold(Group& group, GroupNumber number, const Now& now) {
  group.held = true;
  // Otherwise the end of a lease wakes it.
  if (!is_at_once(group, now)) groups_.note_time(number, group.starts.next_ms(now.rules.group_rate, now.span_ms, group.taken));
}

void QueueLines::wake(GroupNumber number, const Now& now) {
  Group& group = groups_[number];
  if (!group.held) return;
  if (is_held(number, now)) return hold(group, number, now);
  group.held = false;
  for (LineNumber at = group.first_line; at != kNoLine; at = lines_[at].next) {
    Line& line = lines_[at];
    if (line.place != kNotInOrder) continue;
    Section& section = sections_[line.kind];
    put_in_order(section, level_of(section, line.lane.priority), at, head_of(line.lane, now.shift_ms), now);
  }
}

void QueueLines::rules_changed(const Now& now) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].used && lines_[i].group != kNoGroup) wake(lines_[i].group, now);
  }
  for (auto& [kind, section] : sections_) {
    for (Level& level : section.levels) {
      for (Ordered& each : level.order) each = position_of(each.line, head_of(lines_[each.line].lane, now.shift_ms), now);
      for (std::size_t i = level.order.size(); i > 0; --i) sift_down(level, i - 1);
    }
  }
}

QueueLines::Ordered QueueLines::position_of(LineNumber number, Slot head, const Now& now) {
  if (now.rules.fair) return {turn_of(lines_[number].group), ++put_in_order_, number};
  // All of it was cancelled: it comes first, and is dropped.
  if (head == kNoSlot) return {std::numeric_limits<std::int64_t>::min(), 0, number};
  return {span_due(slab_[head], now.shift_ms), slab_[head].body_address, number};
}

void QueueLines::put_in_order(Section& section, Level& level, LineNumber number, Slot head, const Now& now) {
  // Who was away does not get its turns back.
  std::int64_t& turn = turn_of(lines_[number].group);
  turn = std::max(turn, turn_);
  level.order.emplace_back();
  put_at(level, level.order.size() - 1, position_of(number, head, now));
  ++section.in_order;
  sift_up(level, level.order.size() - 1);
}

void QueueLines::take_out_of_order(Section& section, Level& level, LineNumber number) {
  const std::size_t at = std::exchange(lines_[number].place, kNotInOrder);
  if (at == kNotInOrder) return;
  const Ordered last = level.order.back();
  level.order.pop_back();
  --section.in_order;
  if (at == level.order.size()) return;
  put_at(level, at, last);
  sift_up(level, at);
  sift_down(level, lines_[last.line].place);
}

void QueueLines::sift_up(Level& level, std::size_t at) {
  const Ordered moved = level.order[at];
  while (at > 0 && moved < level.order[(at - 1) / 4]) {
    put_at(level, at, level.order[(at - 1) / 4]);
    at = (at - 1) / 4;
  }
  put_at(level, at, moved);
}

void QueueLines::sift_down(Level& level, std::size_t at) {
  const Ordered moved = level.order[at];
  for (std::size_t child = 4 * at + 1; child < level.order.size(); child = 4 * at + 1) {
    const std::size_t end = std::min(child + 4, level.order.size());
    for (std::size_t other = child + 1; other < end; ++other) {
      if (level.order[other] < level.order[child]) child = other;
    }
    if (!(level.order[child] < moved)) break;
    put_at(level, at, level.order[child]);
    at = child;
  }
  put_at(level, at, moved);
}

void QueueLines::add(Slot slot, const Now& now, bool first) {
  const Entry& entry = slab_[slot];
  const GroupNumber group = group_of(entry, slot);
  const std::uint16_t kind = kind_of(entry);
  Section& section = sections_[kind];
  Level& level = level_of(section, static_cast<int>(entry.priority));
  LineNumber number = find_line(level, group, kind);
  if (number == kNoLine) number = make_line(section, level, group, kind);
  Line& line = lines_[number];
  RunList& list = line.lane.list_of(entry);
  if (first) {
    list.push_front(slab_, slot);
  } else {
    list.insert_by_due(slab_, slot);
  }
  if (line.place == kNotInOrder) {
    if (group == kNoGroup || !groups_[group].held) put_in_order(section, level, number, slot, now);
  } else if (!now.rules.fair && list.head() == slot) {
    const Ordered right = position_of(number, slot, now);
    if (!(right < level.order[line.place])) return;
    put_at(level, line.place, right);
    sift_up(level, line.place);
  }
}

bool QueueLines::has_any(KindFilter& takes) {
  return std::any_of(sections_.begin(), sections_.end(), [&](const auto& each) {
    return each.second.in_order != 0 && (!by_kind_ || takes.takes(each.first));
  });
}

Slot QueueLines::head_of(const Lane& lane, std::int64_t shift_ms) const {
  const Slot span = lane.after_a_span.head();
  const Slot clock = lane.by_the_clock.head();
  if (span == kNoSlot || clock == kNoSlot) return span == kNoSlot ? clock : span;
  return span_due(slab_[clock], shift_ms) < slab_[span].due() ? clock : span;
}

void QueueLines::take_turn(GroupNumber group, const Now& now) {
  std::int64_t& turn = turn_of(group);
  turn_ = std::max(turn_, turn);
  turn = turn_ + kTurn / (group == kNoGroup ? 1 : core::weight_of(now.rules, groups_[group].name));
}

Slot QueueLines::take(const Choice& choice, const Now& now) {
  const LineNumber number = choice.level->order.front().line;
  Line& line = lines_[number];
  const Slot slot = choice.list->pop_front(slab_);
  if (now.rules.fair) take_turn(line.group, now);
  if (line.lane.empty()) {
    drop_line(*choice.section, *choice.level, number, now.span_ms);
    return slot;
  }
  // Should it be a tombstone: when the line comes to the front it is looked at again.
  put_at(*choice.level, 0, position_of(number, head_of(line.lane, now.shift_ms), now));
  sift_down(*choice.level, 0);
  return slot;
}

std::optional<std::uint64_t> QueueLines::place_of(Slot slot, std::uint64_t most) const {
  const Entry& entry = slab_[slot];
  const auto section = sections_.find(kind_of(entry));
  if (section == sections_.end()) return std::nullopt;
  for (const Level& level : section->second.levels) {
    if (level.priority != entry.priority) continue;
    const LineNumber number = find_line(level, group_of(entry, slot), section->first);
    if (number == kNoLine) return std::nullopt;
    const Lane& lane = lines_[number].lane;
    return (entry.due_is_wall ? lane.by_the_clock : lane.after_a_span).place_of(slab_, slot, most);
  }
  return std::nullopt;
}

}  // namespace bide::engine
