// UniqueKeys: which live job holds which unique key. An index over live jobs, so no key can outlive its job.

#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/entry.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

class UniqueKeys {
 public:
  // kNoSlot when nobody holds it.
  Slot holder(std::string_view key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? kNoSlot : found->second;
  }
  void hold(std::string_view key, Slot slot) {
    const auto [at, inserted] = by_key_.insert_or_assign(std::string(key), slot);
    by_slot_[slot] = &at->first;
  }
  // Of a slot that may hold one.
  void release(Slot slot) {
    const auto found = by_slot_.find(slot);
    if (found == by_slot_.end()) return;
    by_key_.erase(by_key_.find(*found->second));
    by_slot_.erase(found);
  }
  // Empty when the slot holds none.
  std::string_view key_of(Slot slot) const {
    const auto found = by_slot_.find(slot);
    return found == by_slot_.end() ? std::string_view() : std::string_view(*found->second);
  }
  std::size_t size() const { return by_key_.size(); }

 private:
  platform::KeyedMap<std::string, Slot> by_key_;
  std::unordered_map<Slot, const std::string*> by_slot_;  // Nodes of a map stay where they are.
};

}  // namespace bide::engine
