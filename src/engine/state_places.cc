// State, the lists: every entry is in the timer wheel, a lane of its queue, the done list or the dead list.

#include <algorithm>

#include "engine/state.h"
#include "platform/fatal.h"

namespace bide::engine {

using journal::RecordRef;

namespace {

// Freed on the way to the next ready job.
constexpr std::size_t kTombstonesAtOnce = 1024;

}  // namespace

void State::count(const Entry& entry, int by) {
  Queue& queue = queues_[static_cast<std::uint16_t>(entry.queue)];
  std::uint64_t& counter = queue.counts[entry.state];
  counter = by > 0 ? counter + 1 : counter - 1;
  if (is_waiting(entry)) queue.waiting_bytes += by > 0 ? entry.body_bytes : -std::uint64_t{entry.body_bytes};
}

void State::set_state(Slot slot, EntryState state) {
  Entry& entry = slab_[slot];
  changing(slot);
  count(entry, -1);
  entry.set_state(state);
  count(entry, +1);
}

void State::set_details(Entry& entry, RecordRef at) {
  live_.subtract(entry.details());
  entry.set_details(at);
  live_.add(at);
}

void State::place(Slot slot) {
  if (!started_) return;
  if (is_due(slab_[slot])) {
    set_state(slot, EntryState::kReady);
    queues_.insert(slot);
  } else {
    wheel_of(slab_[slot]).insert(slot);
  }
}

Slot State::allocate() {
  const Slot slot = slab_.allocate();
  changing(slot);
  return slot;
}

JobState State::shown_state(Slot slot) const {
  switch (slab_[slot].entry_state()) {
    case EntryState::kReady: return is_early(slot) ? JobState::kScheduled : JobState::kReady;
    case EntryState::kRunning: return JobState::kRunning;
    case EntryState::kWaiting: return JobState::kWaiting;
    case EntryState::kDone: return JobState::kDone;
    case EntryState::kDead:
    case EntryState::kQuarantined: return JobState::kDead;
    default: return is_due(slab_[slot]) ? JobState::kReady : JobState::kScheduled;
  }
}

bool State::is_linked(const Entry& entry) const {
  if (!started_) return false;
  switch (entry.entry_state()) {
    case EntryState::kScheduled:
    case EntryState::kDone:
    case EntryState::kDead: return true;
    case EntryState::kReady: return entry.next != kTaken;
    default: return false;
  }
}

void State::unlink(Slot slot) {
  changing(slot);
  if (!is_linked(slab_[slot])) {
    slab_.release(slot);
    return;
  }
  slab_[slot].set_state(EntryState::kTombstone);
  ++tombstones_;
  if (!walking_ && !audit_ && tombstones_ > piece_ / 8 && tombstones_ > ids_.size() / 2) begin_walk();
}

void State::drop_tombstone(Slot slot) {
  slab_.release(slot);
  --tombstones_;
}

void State::begin_walk() {
  walking_ = true;
  ++pass_;
  walk_at_ = 0;
  walk_line_ = 0;
}

bool State::visit(Slot slot, EntryState expected) {
  if (slab_[slot].entry_state() == EntryState::kTombstone) {
    drop_tombstone(slot);
    return false;
  }
  see_for_audit(slot, expected);
  return true;
}

// True: it is over. Within a wheel what is being moved comes last: what has left a list since the walk came there is not
// met a second time, and what left before it came there is met.
bool State::walk(std::size_t& budget) {
  const auto is_over = [&](RunList& list, EntryState expected) {
    while (budget > 0) {
      const std::size_t seen = list.walk(slab_, pass_, [&](Slot slot) { return visit(slot, expected); });
      if (seen == 0) return true;
      budget -= std::min(budget, seen);
    }
    return false;
  };
  const auto is_lane_over = [&](Lane& lane) {
    return is_over(lane.after_a_span, EntryState::kReady) && is_over(lane.by_the_clock, EntryState::kReady);
  };
  const auto is_queue_over = [&](Queue& queue) {
    for (Lane& lane : queue.lanes) {
      if (!is_lane_over(lane)) return false;
    }
    if (!queue.lines) return true;
    for (RunList& list : queue.lines->unsorted()) {
      if (!is_over(list, EntryState::kReady)) return false;
    }
    for (; walk_line_ < queue.lines->lines(); ++walk_line_) {
      if (!is_lane_over(queue.lines->line(walk_line_))) return false;
    }
    return true;
  };
  constexpr std::size_t kWheels = 2 * TimerWheel::kLists;
  for (; walk_at_ < kWheels + 2 + queues_.size(); ++walk_at_) {
    if (walk_at_ < kWheels) {
      TimerWheel& wheel = walk_at_ < TimerWheel::kLists ? wheel_ : wall_wheel_;
      if (!is_over(wheel.list(walk_at_ % TimerWheel::kLists), EntryState::kScheduled)) return false;
    } else if (walk_at_ < kWheels + 2) {
      const bool done = walk_at_ == kWheels;
      if (!is_over(done ? done_ : dead_, done ? EntryState::kDone : EntryState::kDead)) return false;
    } else {
      if (!is_queue_over(queues_[static_cast<std::uint16_t>(walk_at_ - kWheels - 2)])) return false;
      walk_line_ = 0;
    }
  }
  walking_ = false;
  return true;
}

void State::end_lease(Slot slot) {
  Entry& entry = touch(slot);
  if (entry.has_group) {
    const GroupNumber group = groups_.of(slot);
    --groups_[group].running;
    if (groups_[group].held) queues_.wake(group);
  }
  workers_.release(leases_[entry.next].worker);
  leases_.remove(entry.next);
  entry.next = kNoSlot;
}

void State::quarantine(Slot slot, const Quarantine& why) {
  if (slab_[slot].entry_state() == EntryState::kRunning) {
    end_lease(slot);
  } else if (is_linked(slab_[slot])) {
    slot = relocate(slot);
  }
  touch(slot);
  no_longer_taken(slot);
  set_state(slot, EntryState::kQuarantined);
  quarantined_.emplace(slot, why);
}

void State::forget(Slot slot) {
  if (!started_) (void)index_ids();
  if (slab_[slot].entry_state() == EntryState::kRunning) end_lease(slot);
  if (slab_[slot].has_relations) {
    touch(slot);
    if (slab_[slot].entry_state() != EntryState::kDone) end_waits(slot, Relations::End::kRemoved);
    drop_relations(slot);
  }
  quarantined_.erase(slot);
  Entry& entry = touch(slot);
  if (entry.entry_state() == EntryState::kDone) {
    --done_count_;
    names_of_done(entry, false);
    drop_body_of_done(entry);
  }
  count(entry, -1);
  release_group(slot);
  release_names(entry);
  ids_.erase(entry.id);
  keys_.release(slot);
  steps_.remove(slot);
  live_.subtract(entry.body());
  live_.subtract(entry.details());
  unlink(slot);
}

Slot State::relocate(Slot slot) {
  const Entry copy = touch(slot);
  const std::string key(keys_.key_of(slot));
  ids_.erase(copy.id);
  keys_.release(slot);
  unlink(slot);
  const Slot fresh = allocate();
  slab_[fresh] = copy;
  slab_[fresh].next = kNoSlot;
  if (copy.has_group) groups_.put(fresh, groups_.of(slot));
  // After a snapshot that failed the old slot may not be settled yet, and the new one be passed already: with the old epoch
  // the next snapshot would leave the job out.
  slab_[fresh].epoch = epoch_;
  ids_.insert(fresh);
  if (copy.has_relations) relations_.move(slot, fresh);
  steps_.move(slot, fresh);
  if (!key.empty()) keys_.hold(key, fresh);
  return fresh;
}

void State::set_time(std::int64_t now_ms, std::int64_t wall_ms) {
  now_ms_ = now_ms;
  wall_ms_ = wall_ms;
  queues_.set_time(now_ms_ - shift_ms_, shift_ms_);
  if (wall_due_ms() < wall_wheel_.now()) wall_wheel_.turn_back(wall_due_ms());
}

void State::advance(std::int64_t now_ms, std::int64_t wall_ms) {
  set_time(now_ms, wall_ms);
  std::size_t budget = piece_;
  told_at_once_ = 0;
  held_keys_.forget(now_ms_ - shift_ms_, piece_);
  tell_waiters(budget);
  const auto is_there = [&](TimerWheel& wheel, std::int64_t to_ms) {
    return wheel.advance(
        to_ms, budget, [this](Slot slot) { place(slot); }, [this](Slot slot) { drop_tombstone(slot); },
        [this](Slot slot) { changing(slot); });
  };
  const bool spans_are_there = is_there(wheel_, now_ms_ - shift_ms_);
  behind_ = !is_there(wall_wheel_, wall_due_ms()) || !spans_are_there;
  wake_groups(piece_);
  if (!queues_.is_sorted()) {
    queues_.sort(budget, [this](Slot slot) { changing(slot); }, [this](Slot slot) { drop_tombstone(slot); });
  }
  if (walking_ && !audit_) (void)walk(budget);
  handled_ += piece_ - budget;
}

std::optional<std::int64_t> State::next_due() const {
  if (is_behind() || !queues_.is_sorted() || (walking_ && !audit_)) return now_ms_;
  std::optional<std::int64_t> next;
  if (const auto due = wheel_.next()) next = *due + shift_ms_;
  // Our time may be there already, and the wall clock a little behind.
  if (const auto due = wall_wheel_.next()) {
    const std::int64_t by_wall = std::max(*due, now_ms_ + 1);
    next = std::min(next.value_or(by_wall), by_wall);
  }
  return next;
}

Slot State::take_ready(std::uint16_t queue, KindFilter& takes) {
  std::size_t budget = kTombstonesAtOnce;
  const Slot slot = queues_.pop(queue, takes, budget, [this](Slot tombstone) { drop_tombstone(tombstone); });
  if (slot == kNoSlot) {
    // Where there are lines, the others may be held, of other kinds, or not sorted yet.
    platform::require(budget == 0 || queues_[queue].lines, "a queue counts ready jobs that it does not have");
    return kNoSlot;
  }
  changing(slot);
  slab_[slot].next = kTaken;
  ++queues_[queue].taken;
  if (slab_[slot].has_group) ++groups_[groups_.of(slot)].taken;
  return slot;
}

void State::wait_again(Slot slot) {
  no_longer_taken(slot);
  set_state(slot, EntryState::kScheduled);
  place(slot);
}

std::optional<std::int64_t> State::oldest_ready(std::uint16_t queue) {
  std::size_t budget = kTombstonesAtOnce;
  return queues_.oldest(queue, budget, [this](Slot tombstone) { drop_tombstone(tombstone); });
}

void State::apply_saved(Slot slot, RecordRef at, std::int64_t accepted_ms) {
  last_time_ms_ = std::max(last_time_ms_, accepted_ms);
  leases_[slab_[slot].next].body_saved = true;
  Entry& entry = touch(slot);
  live_.subtract(entry.body());
  set_details(entry, {});
  entry.set_body(at);
  live_.add(at);
}

void State::put_back(Slot slot) {
  no_longer_taken(slot);
  queues_.insert_first(slot);
}

void State::no_longer_taken(Slot slot) {
  Entry& entry = slab_[slot];
  if (entry.entry_state() != EntryState::kReady || entry.next != kTaken) return;
  entry.next = kNoSlot;
  --queues_[static_cast<std::uint16_t>(entry.queue)].taken;
  if (!entry.has_group) return;
  const GroupNumber group = groups_.of(slot);
  --groups_[group].taken;
  if (groups_[group].held) queues_.wake(group);
}

void State::forget_done(std::int64_t before_ms, std::size_t most) {
  for (; !done_.empty() && most > 0; --most) {
    const Slot slot = done_.head();
    if (slab_[slot].entry_state() == EntryState::kTombstone) {
      done_.pop_front(slab_);
      drop_tombstone(slot);
      continue;
    }
    if (slab_[slot].due() >= before_ms && done_count_ <= done_limit_) {
      // Neither it nor the one behind it is likely to be in the cache: prefetched for the next call.
      ids_.prefetch(slab_[slot].id);
      if (slab_[slot].next != kNoSlot) __builtin_prefetch(&slab_[slab_[slot].next]);
      return;
    }
    done_.pop_front(slab_);
    Entry& entry = touch(slot);
    --done_count_;
    names_of_done(entry, false);
    count(entry, -1);
    release_names(entry);
    ids_.erase(entry.id);
    drop_body_of_done(entry);
    live_.subtract(entry.details());
    if (entry.has_relations) drop_relations(slot);
    slab_.release(slot);
  }
}

void State::drop_body_of_done(Entry& entry) {
  if (entry.body_bytes == 0) return;
  done_body_bytes_ -= std::min<std::uint64_t>(done_body_bytes_, entry.body_bytes);
  live_.subtract(entry.body());
  entry.set_body({});
}

void State::keep_body_of_done(Slot slot) {
  if (slab_[slot].body_bytes == 0) return;
  done_bodies_.emplace_back(slot, slab_[slot].due());
  done_body_bytes_ += slab_[slot].body_bytes;
  drop_bodies_of_done(most_done_bytes_, done_bodies_.size());
}

void State::drop_bodies_of_done(std::uint64_t keep_bytes, std::size_t most) {
  for (; !done_bodies_.empty() && most > 0; --most) {
    const auto [oldest, finished_ms] = done_bodies_.front();
    const Entry& entry = slab_[oldest];
    const bool is_kept = entry.entry_state() == EntryState::kDone && entry.body_bytes != 0 && entry.due() == finished_ms;
    if (is_kept && done_body_bytes_ <= keep_bytes) return;
    if (is_kept) drop_body_of_done(touch(oldest));
    done_bodies_.pop_front();
  }
}

std::optional<std::int64_t> State::oldest_done() const {
  if (done_.empty()) return std::nullopt;
  return slab_[done_.head()].due();
}

Slot State::dead_before(std::int64_t before_ms) {
  for (std::size_t left = piece_; !dead_.empty() && left > 0; --left) {
    const Slot slot = dead_.head();
    if (slab_[slot].entry_state() != EntryState::kTombstone) return slab_[slot].due() < before_ms ? slot : kNoSlot;
    dead_.pop_front(slab_);
    drop_tombstone(slot);
  }
  return kNoSlot;
}

// What was removed is among them: then it is looked at sooner than need be.
std::optional<std::int64_t> State::oldest_dead() const {
  if (dead_.empty()) return std::nullopt;
  return slab_[dead_.head()].due();
}

void State::place_all() {
  // Tombstones are not linked anywhere once all lists are begun anew.
  wheel_.reset(now_ms_ - shift_ms_);
  wall_wheel_.reset(wall_due_ms());
  queues_.clear_lanes();
  done_ = {};
  dead_ = {};
  done_bodies_.clear();
  done_body_bytes_ = 0;
  std::vector<Slot> ready;
  std::vector<Slot> finished;
  std::vector<Slot> lost;
  for (Slot slot = 0; slot < slab_.size(); ++slot) {
    Entry& entry = slab_[slot];
    switch (entry.entry_state()) {
      case EntryState::kScheduled:
        if (is_due(entry)) {
          ready.push_back(slot);
        } else {
          wheel_of(entry).insert(slot);
        }
        break;
      case EntryState::kDone:
      case EntryState::kDead: finished.push_back(slot); break;
      // What it waits for was lost with a damaged record.
      case EntryState::kWaiting:
        if (!waits(slot)) lost.push_back(slot);
        break;
      default: break;
    }
  }
  const auto by_time = [this](RecordRef (Entry::*record)() const) {
    return [this, record](Slot a, Slot b) {
      const Entry& x = slab_[a];
      const Entry& y = slab_[b];
      return due(x) != due(y) ? due(x) < due(y) : (x.*record)().address < (y.*record)().address;
    };
  };
  std::sort(ready.begin(), ready.end(), by_time(&Entry::body));
  for (const Slot slot : ready) place(slot);
  for (const Slot slot : lost) release(slot, now_ms_ - shift_ms_);
  std::sort(finished.begin(), finished.end(), by_time(&Entry::details));
  for (const Slot slot : finished) {
    const bool is_done = slab_[slot].entry_state() == EntryState::kDone;
    (is_done ? done_ : dead_).push_back(slab_, slot);
    if (is_done) keep_body_of_done(slot);
  }
}

Slot State::start(std::int64_t now_ms, std::int64_t wall_ms, const journal::Journal& journal) {
  const std::vector<journal::Segment>& segments = journal.segments();
  const journal::Segment* recent = nullptr;  // Jobs that came together lie together.
  // Whether a segment holds the record.
  const auto is_held = [&](RecordRef ref) {
    if (ref.bytes == 0) return true;
    if (recent != nullptr && ref.address >= recent->base && ref.address < recent->end) return true;
    const auto after =
        std::upper_bound(segments.begin(), segments.end(), ref.address,
                         [](journal::Address address, const journal::Segment& segment) { return address < segment.base; });
    if (after == segments.begin() || ref.address >= std::prev(after)->end) return false;
    recent = &*std::prev(after);
    return true;
  };
  live_.attach(journal);
  for (Slot slot = 0; slot < slab_.size(); ++slot) {
    Entry& entry = slab_[slot];
    if (entry.entry_state() == EntryState::kFree) continue;
    // Likewise that the record of a done job was dropped.
    if (entry.entry_state() == EntryState::kDone && !is_held(entry.body())) entry.set_body({});
    if (is_held(entry.body()) && is_held(entry.details())) {
      live_.add(entry.body());
      live_.add(entry.details());
      continue;
    }
    if (entry.entry_state() != EntryState::kDone) return slot;
    // That a done job was forgotten is not written down, so a snapshot may show it still, and the segment with its result
    // may be gone since.
    entry.set_body({});
    entry.set_details({});
    forget(slot);
  }
  started_ = true;
  set_time(now_ms, wall_ms);
  for (GroupNumber group = 0; group < groups_.size(); ++group) groups_.drop_if_unused(group, now_ms_ - shift_ms_);
  place_all();
  return kNoSlot;
}

void State::begin_epoch(std::function<void(Slot)> saved) {
  epoch_ ^= 1u;
  saved_ = std::move(saved);
}

void State::abandon_epoch() {
  saved_ = nullptr;
  settled_epoch_ = 0;
}

bool State::settle_epoch() {
  if (settled_epoch_ == kNoSlot) return false;
  const Slot end = static_cast<Slot>(std::min<std::size_t>(slab_.size(), settled_epoch_ + 8 * piece_));
  for (; settled_epoch_ < end; ++settled_epoch_) slab_[settled_epoch_].epoch = epoch_;
  if (end == slab_.size()) settled_epoch_ = kNoSlot;
  return settled_epoch_ != kNoSlot;
}

Slot State::restore(const Entry& entry, std::string_view unique_key, std::string_view group) {
  const Slot slot = allocate();
  slab_[slot] = entry;
  slab_[slot].next = kNoSlot;
  slab_[slot].epoch = epoch_;
  index_in_background();
  if (!unique_key.empty()) keys_.hold(unique_key, slot);
  queues_.names().hold(static_cast<std::uint16_t>(entry.queue));
  kinds_.hold(static_cast<std::uint16_t>(entry.kind));
  hold_group(slot, group);
  if (!group.empty() && entry.entry_state() == EntryState::kRunning) ++groups_[groups_.of(slot)].running;
  if (entry.entry_state() == EntryState::kDone) {
    ++done_count_;
    names_of_done(entry, true);
  }
  count(entry, +1);
  return slot;
}

void State::restore_running(const JobId& id, const Running& running) {
  const Slot slot = ids_.find(id);
  platform::require(slot != kNoSlot, "a snapshot has a lease of a job that it does not have");
  Running restored = running;
  restored.slot = slot;
  slab_[slot].next = leases_.add(restored);
}

void State::restore_counters(const Counters& counters, std::uint64_t last_token, std::int64_t last_time_ms) {
  counters_ = counters;
  last_token_ = last_token;
  last_time_ms_ = last_time_ms;
}

}  // namespace bide::engine
