// State, the part that knows in which list an entry is: wheel, lanes, done and dead.

#include <algorithm>

#include "engine/state.h"
#include "platform/fatal.h"

namespace bide::engine {

using journal::RecordRef;

void State::count(const Entry& entry, int by) {
  std::uint64_t& counter = queues_[static_cast<std::uint16_t>(entry.queue)].counts[entry.state];
  counter = by > 0 ? counter + 1 : counter - 1;
}

void State::set_state(Slot slot, EntryState state) {
  Entry& entry = slab_[slot];
  count(entry, -1);
  entry.set_state(state);
  count(entry, +1);
}

void State::set_body(Entry& entry, RecordRef at) {
  live_.subtract(entry.body());
  entry.set_body(at);
  live_.add(at);
}

void State::set_details(Entry& entry, RecordRef at) {
  live_.subtract(entry.details());
  entry.set_details(at);
  live_.add(at);
}

void State::place(Slot slot) {
  if (!started_) return;
  const Entry& entry = slab_[slot];
  if (entry.due() > wheel_.now()) {
    wheel_.insert(slot);
  } else if (entry.due_is_wall && entry.due() > wall_ms_) {
    held_.push_back(slot);
  } else {
    set_state(slot, EntryState::kReady);
    queues_.insert(slot);
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
  if (!is_linked(slab_[slot])) {
    slab_.release(slot);
    return;
  }
  slab_[slot].set_state(EntryState::kZombie);
  ++zombies_;
  if (zombies_ > 4096 && zombies_ > ids_.size() / 2) sweep_zombies();
}

void State::drop_zombie(Slot slot) {
  slab_.release(slot);
  --zombies_;
}

void State::sweep_zombies() {
  const auto sweep = [this](SlotList& list) {
    list.remove_if(slab_, [this](Slot slot) {
      if (slab_[slot].entry_state() != EntryState::kZombie) return false;
      drop_zombie(slot);
      return true;
    });
  };
  wheel_.for_each_list(sweep);
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    for (Lane& lane : queues_[static_cast<std::uint16_t>(queue)].lanes) sweep(lane.list);
  }
  sweep(done_);
  sweep(dead_);
}

void State::end_lease(Slot slot) {
  Entry& entry = touch(slot);
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
  no_longer_taken(touch(slot));
  set_state(slot, EntryState::kQuarantined);
  quarantined_.emplace(slot, why);
}

void State::forget(Slot slot) {
  if (slab_[slot].entry_state() == EntryState::kRunning) end_lease(slot);
  quarantined_.erase(slot);
  Entry& entry = touch(slot);
  if (entry.entry_state() == EntryState::kDone) {
    --done_count_;
    names_of_done(entry, false);
  }
  count(entry, -1);
  release_names(entry);
  ids_.erase(entry.id);
  keys_.release(slot);
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
  const Slot fresh = slab_.allocate();
  slab_[fresh] = copy;
  slab_[fresh].next = kNoSlot;
  ids_.insert(fresh);
  if (!key.empty()) keys_.hold(key, fresh);
  return fresh;
}

void State::advance(std::int64_t now_ms, std::int64_t wall_ms) {
  wall_ms_ = wall_ms;
  if (!held_.empty()) {
    std::vector<Slot> held;
    held.swap(held_);
    for (const Slot slot : held) {
      if (slab_[slot].entry_state() == EntryState::kZombie) {
        drop_zombie(slot);
      } else {
        place(slot);
      }
    }
  }
  wheel_.advance(
      now_ms, [this](Slot slot) { place(slot); }, [this](Slot slot) { drop_zombie(slot); });
}

std::optional<std::int64_t> State::next_due() const {
  if (!held_.empty()) return wheel_.now() + 1;
  return wheel_.next();
}

Slot State::take_ready(std::uint16_t queue) {
  const Slot slot = queues_.pop(queue, [this](Slot zombie) { drop_zombie(zombie); });
  if (slot == kNoSlot) return kNoSlot;
  slab_[slot].next = kTaken;
  ++queues_[queue].taken;
  return slot;
}

void State::replace_body(Slot slot, RecordRef at) {
  Entry& entry = touch(slot);
  live_.subtract(entry.body());
  set_details(entry, {});
  entry.set_body(at);
  live_.add(at);
}

void State::put_back(Slot slot) {
  no_longer_taken(slab_[slot]);
  queues_.insert_first(slot);
}

void State::no_longer_taken(Entry& entry) {
  if (entry.entry_state() != EntryState::kReady || entry.next != kTaken) return;
  entry.next = kNoSlot;
  --queues_[static_cast<std::uint16_t>(entry.queue)].taken;
}

void State::forget_done(std::int64_t before_ms) {
  while (!done_.empty()) {
    const Slot slot = done_.head;
    if (slab_[slot].entry_state() == EntryState::kZombie) {
      done_.pop_front(slab_);
      drop_zombie(slot);
      continue;
    }
    if (slab_[slot].due() >= before_ms && done_count_ <= done_limit_) {
      // It has not been looked at for long, nor has the one behind it: have them at hand when their turn comes.
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
    live_.subtract(entry.details());
    slab_.release(slot);
  }
}

std::optional<std::int64_t> State::oldest_done() const {
  if (done_.empty()) return std::nullopt;
  return slab_[done_.head].due();
}

std::vector<JobId> State::dead_before(std::int64_t before_ms, std::size_t most) {
  std::vector<JobId> ids;
  for (Slot slot = dead_.head; slot != kNoSlot && ids.size() < most; slot = slab_[slot].next) {
    const Entry& entry = slab_[slot];
    if (entry.entry_state() == EntryState::kZombie) continue;
    if (entry.due() >= before_ms) break;
    ids.push_back(entry.id);
  }
  return ids;
}

std::optional<std::int64_t> State::oldest_dead() {
  while (!dead_.empty() && slab_[dead_.head].entry_state() == EntryState::kZombie) {
    drop_zombie(dead_.pop_front(slab_));
  }
  if (dead_.empty()) return std::nullopt;
  return slab_[dead_.head].due();
}

void State::place_all(std::int64_t now_ms) {
  // Zombies are not linked anywhere once all lists are begun anew.
  wheel_.reset(now_ms);
  queues_.clear_lanes();
  held_.clear();
  done_ = {};
  dead_ = {};
  std::vector<Slot> ready;
  std::vector<Slot> finished;
  for (Slot slot = 0; slot < slab_.size(); ++slot) {
    Entry& entry = slab_[slot];
    switch (entry.entry_state()) {
      case EntryState::kZombie: drop_zombie(slot); break;
      case EntryState::kReady: set_state(slot, EntryState::kScheduled); [[fallthrough]];
      case EntryState::kScheduled:
        if (entry.due() > now_ms) {
          wheel_.insert(slot);
        } else {
          ready.push_back(slot);
        }
        break;
      case EntryState::kDone:
      case EntryState::kDead: finished.push_back(slot); break;
      default: break;
    }
  }
  const auto by_time = [this](RecordRef (Entry::*record)() const) {
    return [this, record](Slot a, Slot b) {
      const Entry& x = slab_[a];
      const Entry& y = slab_[b];
      return x.due() != y.due() ? x.due() < y.due() : (x.*record)().address < (y.*record)().address;
    };
  };
  std::sort(ready.begin(), ready.end(), by_time(&Entry::body));
  for (const Slot slot : ready) place(slot);
  std::sort(finished.begin(), finished.end(), by_time(&Entry::details));
  for (const Slot slot : finished) {
    (slab_[slot].entry_state() == EntryState::kDone ? done_ : dead_).push_back(slab_, slot);
  }
}

namespace {

// Whether a segment holds the record.
bool is_held(const std::vector<journal::Segment>& segments, RecordRef ref) {
  if (ref.bytes == 0) return true;
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), ref.address,
                       [](journal::Address address, const journal::Segment& segment) { return address < segment.base; });
  return after != segments.begin() && ref.address < std::prev(after)->end;
}

}  // namespace

Slot State::start(std::int64_t now_ms, std::int64_t wall_ms, const journal::Journal& journal) {
  for (Slot slot = 0; slot < slab_.size(); ++slot) {
    const Entry& entry = slab_[slot];
    if (entry.entry_state() == EntryState::kFree) continue;
    if (is_held(journal.segments(), entry.body()) && is_held(journal.segments(), entry.details())) continue;
    if (entry.entry_state() != EntryState::kDone) return slot;
    // That a done job was forgotten is not written down, so a snapshot may show it still, and the segment with its result
    // may be gone since.
    forget(slot);
  }
  started_ = true;
  wall_ms_ = wall_ms;
  place_all(now_ms);
  live_.attach(journal);
  for (Slot slot = 0; slot < slab_.size(); ++slot) {
    const Entry& entry = slab_[slot];
    if (entry.entry_state() == EntryState::kFree) continue;
    live_.add(entry.body());
    live_.add(entry.details());
  }
  return kNoSlot;
}

void State::begin_epoch(std::function<void(Slot)> saved) {
  epoch_ ^= 1u;
  saved_ = std::move(saved);
}

void State::abandon_epoch() {
  saved_ = nullptr;
  for (Slot slot = 0; slot < slab_.size(); ++slot) slab_[slot].epoch = epoch_;
}

Slot State::restore(const Entry& entry, std::string_view unique_key) {
  const Slot slot = slab_.allocate();
  slab_[slot] = entry;
  slab_[slot].next = kNoSlot;
  slab_[slot].epoch = epoch_;
  ids_.insert(slot);
  if (!unique_key.empty()) keys_.hold(unique_key, slot);
  queues_.names().hold(static_cast<std::uint16_t>(entry.queue));
  kinds_.hold(static_cast<std::uint16_t>(entry.kind));
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
