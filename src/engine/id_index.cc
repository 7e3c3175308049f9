#include "engine/id_index.h"

#include <algorithm>
#include <utility>

namespace bide::engine {

namespace {

constexpr std::size_t kMostSpare = 4;

}  // namespace

inline IdIndex::Home IdIndex::home_of(const JobId& id) const {
  const std::uint64_t hash = key_(id);
  const auto other = static_cast<std::uint32_t>(hash >> (64 - kTableBits));
  // Ids with a time in front (version 7): those of the same moment share a table. Jobs that came together are looked
  // for together and forgotten together, so the tables in use are few, and stay in the cache.
  const auto& bytes = id.bytes();
  if (bytes[6] >> 4 != 7) return {hash, other, other};
  const std::uint64_t slice = std::uint64_t{bytes[3]} << 16 | std::uint64_t{bytes[4]} << 8 | (bytes[5] & 0xf0u);
  return {hash, static_cast<std::uint32_t>(slice * 0x9e37'79b9'7f4a'7c15ull >> (64 - kTableBits)), other};
}

inline std::optional<std::size_t> IdIndex::find_in(const Table& t, std::uint64_t hash, const JobId& id) const {
  if (t.places.empty()) return std::nullopt;
  const Place tag = place_of(hash, 0);
  for (std::size_t i = place(t, hash);; i = after(t, i)) {
    if (t.places[i] == kEmpty) return std::nullopt;
    if (is_tagged(t.places[i], tag) && slab_[slot_of(t.places[i])].id == id) return i;
  }
}

Slot IdIndex::find(const JobId& id) const { return find(home_of(id), id); }

inline Slot IdIndex::find(const Home& home, const JobId& id) const {
  const Table& t = tables_[home.table];
  if (const auto at = find_in(t, home.hash, id)) return slot_of(t.places[*at]);
  if (t.moved == 0) return kNoSlot;
  const Table& other = tables_[home.other];
  const auto at = find_in(other, home.hash, id);
  return at ? slot_of(other.places[*at]) : kNoSlot;
}

void IdIndex::prefetch(const JobId& id) const {
  const Home home = home_of(id);
  const Table& t = tables_[home.table];
  if (!t.places.empty()) __builtin_prefetch(&t.places[place(t, home.hash)]);
}

void IdIndex::insert(Slot slot) { insert(home_of(slab_[slot].id), slot); }

std::vector<Slot> IdIndex::insert_new(Slot begin, Slot end) {
  constexpr Slot kAhead = 8;
  std::array<Home, kAhead> homes;
  std::vector<Slot> left_out;
  const auto look_ahead = [&](Slot slot) {
    if (slot >= end) return;
    Home& home = homes[slot % kAhead];
    home = home_of(slab_[slot].id);
    const Table& t = tables_[home.table];
    if (!t.places.empty()) __builtin_prefetch(&t.places[place(t, home.hash)], 1);
  };
  for (Slot slot = begin; slot < end && slot < begin + kAhead; ++slot) look_ahead(slot);
  for (Slot slot = begin; slot < end; ++slot) {
    const Home home = homes[slot % kAhead];
    look_ahead(slot + kAhead);
    if (find(home, slab_[slot].id) == kNoSlot) {
      insert(home, slot);
    } else {
      left_out.push_back(slot);
    }
  }
  return left_out;
}

inline void IdIndex::insert(const Home& home, Slot slot) {
  Table* t = &tables_[home.table];
  // Whoever chooses ids can give them all the same time.
  if (t->used >= kManyInTable && t->used >= size_ / tables_.size() * 4 && home.other != home.table) {
    ++t->moved;
    t = &tables_[home.other];
  }
  if ((t->used + t->erased + 1) * 5ull > t->places.size() * 4ull) rebuild(*t);
  std::size_t i = place(*t, home.hash);
  while (holds_slot(t->places[i])) i = after(*t, i);
  if (t->places[i] == kErased) --t->erased;
  t->places[i] = place_of(home.hash, slot);
  ++t->used;
  ++size_;
}

void IdIndex::erase(const JobId& id) {
  const Home home = home_of(id);
  Table& t = tables_[home.table];
  if (const auto at = find_in(t, home.hash, id)) {
    erase_from(t, *at);
  } else if (t.moved != 0) {
    const auto there = find_in(tables_[home.other], home.hash, id);
    if (!there) return;
    --t.moved;
    erase_from(tables_[home.other], *there);
  }
}

void IdIndex::erase_from(Table& t, std::size_t i) {
  --t.used;
  --size_;
  if (t.used == 0) {
    put_away(t);
    return;
  }
  if (t.places[after(t, i)] != kEmpty) {
    t.places[i] = kErased;
    ++t.erased;
    return;
  }
  // Nothing lies behind it, nor behind what was erased just before it.
  t.places[i] = kEmpty;
  for (i = before(t, i); t.places[i] == kErased; i = before(t, i)) {
    t.places[i] = kEmpty;
    --t.erased;
  }
}

void IdIndex::put_away(Table& t) {
  t.erased = 0;
  std::vector<Place> places = std::move(t.places);
  t.places.clear();
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(places));
}

void IdIndex::rebuild(Table& t) {
  if (t.places.empty() && !spare_.empty()) {
    t.places = std::move(spare_.back());
    spare_.pop_back();
    std::fill(t.places.begin(), t.places.end(), kEmpty);
    return;
  }
  std::vector<Place> old = std::move(t.places);
  const bool full = t.used * 2 >= old.size();
  t.places = std::vector<Place>(old.empty() ? first_places_ : full ? old.size() + old.size() / 2 : old.size(), kEmpty);
  t.erased = 0;
  for (std::size_t at = 0; at < old.size(); ++at) {
    // Every hash needs its entry, each in another cache line: have the next ones on their way.
    if (at + 16 < old.size() && holds_slot(old[at + 16])) __builtin_prefetch(&slab_[slot_of(old[at + 16])]);
    if (!holds_slot(old[at])) continue;
    std::size_t i = place(t, key_(slab_[slot_of(old[at])].id));
    while (t.places[i] != kEmpty) i = after(t, i);
    t.places[i] = old[at];
  }
}

std::uint32_t IdIndex::fullest_table() const {
  std::uint32_t most = 0;
  for (const Table& t : tables_) most = std::max(most, t.used);
  return most;
}

std::size_t IdIndex::longest_search() const {
  std::size_t longest = 0;
  for (const Table& t : tables_) {
    for (std::size_t at = 0; at < t.places.size(); ++at) {
      if (!holds_slot(t.places[at])) continue;
      const std::size_t from = place(t, key_(slab_[slot_of(t.places[at])].id));
      longest = std::max(longest, (at + t.places.size() - from) % t.places.size() + 1);
    }
  }
  return longest;
}

}  // namespace bide::engine
