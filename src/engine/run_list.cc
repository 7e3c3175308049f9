#include "engine/run_list.h"

#include <algorithm>

namespace bide::engine {

void RunList::drop_first_run() {
  ++first_;
  if (empty()) {
    clear();
  } else if (first_ >= 1024 && first_ * 2 >= runs_.size()) {
    runs_.erase(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(first_));
    walked_ -= std::min(walked_, first_);
    first_ = 0;
  }
}

void RunList::insert_run(std::size_t at, const Run& run) {
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(at), run);
  walked_ = std::min(walked_, at);
}

void RunList::push_front(Slab& slab, Slot slot) {
  if (empty()) return push_back(slab, slot);
  if (runs_[first_].count == kMostInARun) {
    if (first_ == 0) {
      insert_run(0, {.pass = pass_});
    } else {
      runs_[--first_] = {.pass = pass_};
      walked_ = std::min(walked_, first_);
    }
  }
  runs_[first_].list.push_front(slab, slot);
  ++runs_[first_].count;
}

// Runs that a pass has come across are not mixed with others.
void RunList::merge_with_next(Slab& slab, std::size_t at) {
  if (at < first_ || at + 1 >= runs_.size()) return;
  Run& run = runs_[at];
  const Run& next = runs_[at + 1];
  if (run.pass != next.pass || run.count + next.count > kMostInARun) return;
  slab[run.list.tail].next = next.list.head;
  run.list.tail = next.list.tail;
  run.count += next.count;
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  walked_ = std::min(walked_, at);
}

void RunList::insert_by_due(Slab& slab, Slot slot) {
  const std::uint64_t due = slab[slot].due_ms;
  if (empty() || slab[runs_.back().list.tail].due_ms <= due) return push_back(slab, slot);
  if (slab[runs_[first_].list.head].due_ms > due) return push_front(slab, slot);
  const auto after = std::upper_bound(runs_.begin() + static_cast<std::ptrdiff_t>(first_), runs_.end(), due,
                                      [&](std::uint64_t d, const Run& run) { return d < slab[run.list.head].due_ms; });
  std::size_t at = static_cast<std::size_t>(after - runs_.begin()) - 1;
  if (slab[runs_[at].list.tail].due_ms > due) {
    // Its place is within the run, which is cut there: those that follow, often with the same time, need not look for it.
    Run& run = runs_[at];
    Run rest{.list = {}, .count = run.count - 1, .pass = run.pass};
    Slot before = run.list.head;
    while (slab[slab[before].next].due_ms <= due) {
      before = slab[before].next;
      --rest.count;
    }
    rest.list = {slab[before].next, run.list.tail};
    slab[before].next = kNoSlot;
    run.list.tail = before;
    run.count -= rest.count;
    insert_run(at + 1, rest);
    merge_with_next(slab, at + 1);
    if (at > first_ && runs_[at - 1].count + runs_[at].count < kMostInARun) {
      const std::size_t runs = runs_.size();
      merge_with_next(slab, at - 1);
      at -= runs - runs_.size();
    }
  }
  if (runs_[at].count == kMostInARun) insert_run(++at, {.pass = pass_});
  runs_[at].list.push_back(slab, slot);
  ++runs_[at].count;
}

std::optional<std::uint64_t> RunList::place_of(const Slab& slab, Slot slot, std::uint64_t most) const {
  std::uint64_t before = 0;
  for (std::size_t i = first_; i < runs_.size(); ++i) {
    for (Slot at = runs_[i].list.head; at != kNoSlot; at = slab[at].next) {
      if (at == slot) return before;
      if (slab[at].entry_state() != EntryState::kTombstone && ++before > most) return std::nullopt;
    }
  }
  return std::nullopt;
}

void RunList::append(RunList&& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other.take();
    return;
  }
  runs_.insert(runs_.end(), other.runs_.begin() + static_cast<std::ptrdiff_t>(other.first_), other.runs_.end());
  other.clear();
}

}  // namespace bide::engine
