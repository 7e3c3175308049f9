// RunList: an unrolled list of entries, in runs of bounded length. A place in the middle is found by bisection, and the list
// can be walked a run at a time while it changes: a pass visits every entry that stays in the list once.

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/slab.h"

namespace bide::engine {

class RunList {
 public:
  static constexpr std::uint32_t kMostInARun = 512;

  bool empty() const { return first_ == runs_.size(); }
  Slot head() const { return empty() ? kNoSlot : runs_[first_].list.head; }

  void push_back(Slab& slab, Slot slot) {
    if (empty() || runs_.back().count == kMostInARun) {
      if (empty()) clear();
      runs_.push_back({.pass = pass_});
    }
    runs_.back().list.push_back(slab, slot);
    ++runs_.back().count;
  }
  void push_front(Slab& slab, Slot slot);
  // The list is in the order of due_ms; behind those with the same.
  void insert_by_due(Slab& slab, Slot slot);

  Slot pop_front(Slab& slab) {
    Run& run = runs_[first_];
    const Slot slot = run.list.pop_front(slab);
    if (--run.count == 0) drop_first_run();
    return slot;
  }

  // How many entries are before this one; nothing: it is not there, or there are more than `most`.
  std::optional<std::uint64_t> place_of(const Slab& slab, Slot slot, std::uint64_t most) const;

  // All of it, leaving nothing.
  RunList take() { return std::exchange(*this, RunList()); }
  // All of another list, behind this one.
  void append(RunList&& other);

  // Walks one run that this pass has not visited: entries for which keep(slot) is false leave the list. Returns how many
  // entries it had; 0: the pass is over. Passes are numbered upwards from 1, and one ends before the next begins.
  template <class Keep>
  std::size_t walk(Slab& slab, std::uint32_t pass, Keep&& keep);

 private:
  struct Run {
    SlotList list = {};
    std::uint32_t count = 0;
    std::uint32_t pass = 0;  // The last one that visited it.
  };

  void clear() {
    runs_.clear();
    first_ = walked_ = 0;
  }
  void drop_first_run();
  void insert_run(std::size_t at, const Run& run);
  void merge_with_next(Slab& slab, std::size_t at);

  std::vector<Run> runs_;
  std::size_t first_ = 0;    // Runs before it are gone.
  std::size_t walked_ = 0;   // The pass has visited all runs before this one.
  std::uint32_t pass_ = 0;
};

template <class Keep>
std::size_t RunList::walk(Slab& slab, std::uint32_t pass, Keep&& keep) {
  if (pass_ != pass) {
    pass_ = pass;
    walked_ = first_;
  }
  if (walked_ < first_) walked_ = first_;
  while (walked_ < runs_.size() && runs_[walked_].pass == pass) ++walked_;
  if (walked_ == runs_.size()) return 0;
  Run& run = runs_[walked_];
  const std::size_t had = run.count;
  run.pass = pass;
  run.list.remove_if(slab, [&](Slot slot) {
    const bool drop = !keep(slot);
    if (drop) --run.count;
    return drop;
  });
  if (run.count == 0) {
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(walked_));
    if (empty()) clear();
  }
  return had;
}

}  // namespace bide::engine
