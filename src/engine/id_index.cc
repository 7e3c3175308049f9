#include "engine/id_index.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bide::engine {

namespace {

constexpr std::size_t kMostSpare = 4;

}  // namespace

inline std::uint64_t IdIndex::hash(const JobId& id) {
  // Ids of our own are random at the end, but a user may give any: mix all of it.
  std::uint64_t high;
  std::uint64_t low;
  std::memcpy(&high, id.bytes().data(), 8);
  std::memcpy(&low, id.bytes().data() + 8, 8);
  __extension__ using Product = unsigned __int128;
  const Product product = Product{high ^ 0x9e37'79b9'7f4a'7c15ull} * (low ^ 0xbf58'476d'1ce4'e5b9ull);
  const std::uint64_t x = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  // Ids with a time in front (version 7): those of the same moment share a table. Jobs that came together are looked
  // for together and forgotten together, so the tables in use are few, and stay in the cache.
  const auto& bytes = id.bytes();
  if (bytes[6] >> 4 != 7) return x;
  const std::uint64_t slice = std::uint64_t{bytes[3]} << 16 | std::uint64_t{bytes[4]} << 8 | (bytes[5] & 0xf0u);
  return (x & ~0ull >> kTableBits) | (slice * 0x9e37'79b9'7f4a'7c15ull >> (64 - kTableBits) << (64 - kTableBits));
}

Slot IdIndex::find(const JobId& id) const {
  const std::uint64_t h = hash(id);
  const Table& t = table(h);
  if (t.places.empty()) return kNoSlot;
  const Place tag = place_of(h, 0);
  for (std::size_t i = home(t, h);; i = after(t, i)) {
    const Place place = t.places[i];
    if (place == kEmpty) return kNoSlot;
    if (is_tagged(place, tag) && slab_[slot_of(place)].id == id) return slot_of(place);
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
  if ((t.used + t.erased + 1) * 5 > t.places.size() * 4) rebuild(t);
  std::size_t i = home(t, h);
  while (holds_slot(t.places[i])) i = after(t, i);
  if (t.places[i] == kErased) --t.erased;
  t.places[i] = place_of(h, slot);
  ++t.used;
  ++size_;
}

void IdIndex::erase(const JobId& id) {
  const std::uint64_t h = hash(id);
  Table& t = table(h);
  if (t.places.empty()) return;
  const Place tag = place_of(h, 0);
  std::size_t i = home(t, h);
  for (;; i = after(t, i)) {
    const Place place = t.places[i];
    if (place == kEmpty) return;
    if (is_tagged(place, tag) && slab_[slot_of(place)].id == id) break;
  }
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
  t.places = std::vector<Place>(old.empty() ? 16 : full ? old.size() + old.size() / 2 : old.size(), kEmpty);
  t.erased = 0;
  for (std::size_t at = 0; at < old.size(); ++at) {
    // Every hash needs its entry, each in another cache line: have the next ones on their way.
    if (at + 16 < old.size() && holds_slot(old[at + 16])) __builtin_prefetch(&slab_[slot_of(old[at + 16])]);
    const Place place = old[at];
    if (!holds_slot(place)) continue;
    std::size_t i = home(t, hash(slab_[slot_of(place)].id));
    while (t.places[i] != kEmpty) i = after(t, i);
    t.places[i] = place;
  }
}

}  // namespace bide::engine
