// UniqueKeys: which live job holds which unique key. An index over live jobs, so no key can outlive its job. Split into
// many small maps, so that growing one never takes long.

#pragma once

#include <array>
#include <cstddef>
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
    if (size_ == 0) return kNoSlot;
    const auto& keys = by_key_[part_of(key)];
    const auto found = keys.find(key);
    return found == keys.end() ? kNoSlot : found->second;
  }
  // Nothing happens when somebody holds it: a dead job that is carried here does not take it from a live one.
  void hold(std::string_view key, Slot slot) {
    const auto [at, inserted] = by_key_[part_of(key)].try_emplace(std::string(key), slot);
    if (!inserted) return;
    by_slot_[part_of(slot)][slot] = &at->first;
    ++size_;
  }
  // Of a slot that may hold one.
  void release(Slot slot) {
    if (size_ == 0) return;
    auto& slots = by_slot_[part_of(slot)];
    const auto found = slots.find(slot);
    if (found == slots.end()) return;
    auto& keys = by_key_[part_of(*found->second)];
    keys.erase(keys.find(*found->second));
    slots.erase(found);
    --size_;
  }
  // Empty when the slot holds none.
  std::string_view key_of(Slot slot) const {
    if (size_ == 0) return {};
    const auto& slots = by_slot_[part_of(slot)];
    const auto found = slots.find(slot);
    return found == slots.end() ? std::string_view() : std::string_view(*found->second);
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kParts = 1024;

  // By other bits of the hash than those by which a map chooses a bucket.
  static std::size_t part_of(std::string_view key) { return platform::KeyedHash()(key) >> 54; }
  static std::size_t part_of(Slot slot) { return slot % kParts; }

  std::array<platform::KeyedMap<std::string, Slot>, kParts> by_key_;
  std::array<std::unordered_map<Slot, const std::string*>, kParts> by_slot_;  // Nodes of a map stay where they are.
  std::size_t size_ = 0;
};

}  // namespace bide::engine
