// IdIndex: a hash table from a job's id to its slot, four bytes a place. Split into many small tables, so that growing one
// never takes long. The hash is keyed: chosen ids can neither collide nor fill one table.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bide/job_id.h"
#include "engine/slab.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

class IdIndex {
 public:
  explicit IdIndex(const Slab& slab) : slab_(slab) {}

  // kNoSlot when it is not there.
  Slot find(const JobId& id) const;
  // The id is that of the slot's entry, and is not there yet.
  void insert(Slot slot);
  // Of these slots, those whose id is there already are left out, and given back.
  std::vector<Slot> insert_new(Slot begin, Slot end);
  void erase(const JobId& id);
  // So many are going to be inserted, more or less: tables that are made from now on need not grow bit by bit.
  void expect(std::uint64_t ids) { first_places_ = std::max<std::uint64_t>(16, ids * 5 / 4 / tables_.size()); }
  // Starts loading the place where the id is or would be.
  void prefetch(const JobId& id) const;

  std::uint64_t size() const { return size_; }

  // For tests: how many ids the fullest table has, and how many places the longest search looks at.
  std::uint32_t fullest_table() const;
  std::size_t longest_search() const;

 private:
  // A place holds the slot in its low 28 bits and four bits of the hash above, so that a probe rarely has to look at an
  // entry that is not the one.
  using Place = std::uint32_t;
  static constexpr Place kEmpty = 0xffff'ffff;
  static constexpr Place kErased = 0xffff'fffe;  // Something was here, and others may lie behind it.
  static constexpr unsigned kTableBits = 10;
  static constexpr unsigned kSlotBits = 28;

  struct Table {
    std::vector<Place> places;
    std::uint32_t used = 0;    // With a slot.
    std::uint32_t erased = 0;  // kErased.
    std::uint32_t moved = 0;   // Ids that belong here and are in the table of their hash.
  };
  // Where an id belongs, and where it is instead while that one has too many.
  struct Home {
    std::uint64_t hash = 0;
    std::uint32_t table = 0;
    std::uint32_t other = 0;
  };
  // A table of more than this many is left alone, if it also has several times its share.
  static constexpr std::uint32_t kManyInTable = 1u << 16;

  Home home_of(const JobId& id) const;
  Slot find(const Home& home, const JobId& id) const;
  std::optional<std::size_t> find_in(const Table& table, std::uint64_t hash, const JobId& id) const;
  static Place place_of(std::uint64_t hash, Slot slot) {
    return static_cast<Place>((hash >> 32 & 0xf) << kSlotBits) | slot;
  }
  static bool is_tagged(Place place, Place tag) {
    return holds_slot(place) && (place & ~((1u << kSlotBits) - 1)) == tag;
  }
  static Slot slot_of(Place place) { return place & ((1u << kSlotBits) - 1); }
  // Sizes are not powers of two, so that a table can grow by half: a multiplication spreads the hash over any size.
  static std::size_t place(const Table& table, std::uint64_t hash) {
    return static_cast<std::size_t>((hash & 0xffff'ffff) * table.places.size() >> 32);
  }
  static std::size_t after(const Table& table, std::size_t at) { return at + 1 == table.places.size() ? 0 : at + 1; }
  static std::size_t before(const Table& table, std::size_t at) { return (at == 0 ? table.places.size() : at) - 1; }
  static bool holds_slot(Place place) { return place < kErased; }
  void insert(const Home& home, Slot slot);
  // Lays the table out anew, with room for more if it is full and without what was erased.
  void rebuild(Table& table);
  void erase_from(Table& table, std::size_t at);
  void put_away(Table& table);

  const Slab& slab_;
  const platform::HashKey key_ = platform::HashKey::of_process();
  std::array<Table, 1u << kTableBits> tables_;
  std::uint64_t size_ = 0;
  // Of tables that have become empty, for the next ones to begin with: under a steady load they grow as large.
  std::vector<std::vector<Place>> spare_;
  std::uint64_t first_places_ = 16;  // Of a new table.
};

}  // namespace bide::engine
