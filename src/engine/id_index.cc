#include "engine/id_index.h"

#include <cstring>

namespace bide::engine {

std::uint64_t IdIndex::hash(const JobId& id) {
  // Ids of our own are random at the end, but a user may give any: mix all of it.
  std::uint64_t high;
  std::uint64_t low;
  std::memcpy(&high, id.bytes().data(), 8);
  std::memcpy(&low, id.bytes().data() + 8, 8);
  std::uint64_t x = (high ^ 0x9e37'79b9'7f4a'7c15ull) * 0xbf58'476d'1ce4'e5b9ull ^ low;
  x ^= x >> 32;
  x *= 0x94d0'49bb'1331'11ebull;
  x ^= x >> 29;
  x *= 0xff51'afd7'ed55'8ccdull;
  return x ^ (x >> 32);
}

Slot IdIndex::find(const JobId& id) const {
  const std::uint64_t h = hash(id);
  const Table& t = table(h);
  if (t.places.empty()) return kNoSlot;
  const std::uint32_t mask = static_cast<std::uint32_t>(t.places.size() - 1);
  const Place tag = place_of(h, 0);
  for (std::uint32_t i = home(t, h);; i = (i + 1) & mask) {
    const Place place = t.places[i];
    if (place == kEmpty) return kNoSlot;
    if ((place & ~((1u << kSlotBits) - 1)) == tag && slab_[slot_of(place)].id == id) return slot_of(place);
  }
}

void IdIndex::prefetch(const JobId& id) const {
  const std::uint64_t h = hash(id);
  const Table& t = table(h);
  if (!t.places.empty()) __builtin_prefetch(&t.places[home(t, h)]);
}

void IdIndex::insert(Slot slot) {
  const std::uint64_t h = hash(slab_[slot].id);
  Table& t = table(h);
  if ((t.used + 1) * 5 > t.places.size() * 4) grow(t);
  const std::uint32_t mask = static_cast<std::uint32_t>(t.places.size() - 1);
  std::uint32_t i = home(t, h);
  while (t.places[i] != kEmpty) i = (i + 1) & mask;
  t.places[i] = place_of(h, slot);
  ++t.used;
  ++size_;
}

void IdIndex::erase(const JobId& id) {
  const std::uint64_t h = hash(id);
  Table& t = table(h);
  if (t.places.empty()) return;
  const std::uint32_t mask = static_cast<std::uint32_t>(t.places.size() - 1);
  const Place tag = place_of(h, 0);
  std::uint32_t hole = home(t, h);
  for (;; hole = (hole + 1) & mask) {
    const Place place = t.places[hole];
    if (place == kEmpty) return;
    if ((place & ~((1u << kSlotBits) - 1)) == tag && slab_[slot_of(place)].id == id) break;
  }
  // Close the gap: whatever probed past the hole moves into it, so that no tombstones are needed.
  for (std::uint32_t i = (hole + 1) & mask; t.places[i] != kEmpty; i = (i + 1) & mask) {
    const std::uint32_t wanted = home(t, hash(slab_[slot_of(t.places[i])].id));
    if (((i - wanted) & mask) >= ((i - hole) & mask)) {
      t.places[hole] = t.places[i];
      hole = i;
    }
  }
  t.places[hole] = kEmpty;
  --t.used;
  --size_;
}

void IdIndex::grow(Table& t) {
  std::vector<Place> old = std::move(t.places);
  t.places.assign(old.empty() ? 16 : old.size() * 2, kEmpty);
  const std::uint32_t mask = static_cast<std::uint32_t>(t.places.size() - 1);
  for (std::size_t at = 0; at < old.size(); ++at) {
    // Every hash needs its entry, each in another cache line: have the next ones on their way.
    if (at + 16 < old.size() && old[at + 16] != kEmpty) __builtin_prefetch(&slab_[slot_of(old[at + 16])]);
    const Place place = old[at];
    if (place == kEmpty) continue;
    std::uint32_t i = home(t, hash(slab_[slot_of(place)].id));
    while (t.places[i] != kEmpty) i = (i + 1) & mask;
    t.places[i] = place;
  }
}

}  // namespace bide::engine
