// SavedSteps: what the steps of handlers came to, of jobs that are not done yet. In memory, because few jobs have any and
// every attempt is handed all of them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bide/lease.h"
#include "engine/entry.h"

namespace bide::engine {

class SavedSteps {
 public:
  using Steps = std::vector<Step>;

  bool empty() const { return by_slot_.empty(); }
  // Null: the job has none.
  const Steps* find(Slot slot) const {
    if (by_slot_.empty()) return nullptr;
    const auto found = by_slot_.find(slot);
    return found == by_slot_.end() ? nullptr : &found->second;
  }
  // Takes the place of one with its name.
  void save(Slot slot, Step step) {
    Steps& steps = by_slot_[slot];
    const auto known = std::find_if(steps.begin(), steps.end(), [&](const Step& each) { return each.name == step.name; });
    if (known != steps.end()) {
      *known = std::move(step);
    } else {
      steps.push_back(std::move(step));
    }
  }
  void move(Slot from, Slot to) {
    if (by_slot_.empty()) return;
    auto node = by_slot_.extract(from);
    if (node.empty()) return;
    node.key() = to;
    by_slot_.insert(std::move(node));
  }
  void remove(Slot slot) {
    if (!by_slot_.empty()) by_slot_.erase(slot);
  }

 private:
  std::unordered_map<Slot, Steps> by_slot_;
};

}  // namespace bide::engine
