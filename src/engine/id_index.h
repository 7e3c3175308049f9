// IdIndex: from a job's id to its slot. Four bytes a place; split into many small tables, so that growing one never
// takes long.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bide/job_id.h"
#include "engine/slab.h"

namespace bide::engine {

class IdIndex {
 public:
  explicit IdIndex(const Slab& slab) : slab_(slab) {}

  // kNoSlot when it is not there.
  Slot find(const JobId& id) const;
  // The id is that of the slot's entry, and is not there yet.
  void insert(Slot slot);
  void erase(const JobId& id);
  // Starts loading the place where the id is or would be.
  void prefetch(const JobId& id) const;

  std::uint64_t size() const { return size_; }

 private:
  // A place holds the slot in its low 28 bits and four bits of the hash above, so that a probe rarely has to look at an
  // entry that is not the one.
  using Place = std::uint32_t;
  static constexpr Place kEmpty = 0xffff'ffff;
  static constexpr unsigned kTableBits = 10;
  static constexpr unsigned kSlotBits = 28;

  struct Table {
    std::vector<Place> places;
    std::uint32_t used = 0;
  };

  static std::uint64_t hash(const JobId& id);
  static Place place_of(std::uint64_t hash, Slot slot) {
    return static_cast<Place>((hash >> 32 & 0xf) << kSlotBits) | slot;
  }
  static Slot slot_of(Place place) { return place & ((1u << kSlotBits) - 1); }
  static std::uint32_t home(const Table& table, std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash) & static_cast<std::uint32_t>(table.places.size() - 1);
  }
  const Table& table(std::uint64_t hash) const { return tables_[hash >> (64 - kTableBits)]; }
  Table& table(std::uint64_t hash) { return tables_[hash >> (64 - kTableBits)]; }
  void grow(Table& table);

  const Slab& slab_;
  std::array<Table, 1u << kTableBits> tables_;
  std::uint64_t size_ = 0;
};

}  // namespace bide::engine
