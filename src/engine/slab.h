// Slab: entries by slot, in chunks that never move; SlotList: a first-in first-out list threaded through them.

#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/entry.h"
#include "platform/fatal.h"

namespace bide::engine {

class Slab {
 public:
  static constexpr unsigned kChunkBits = 16;
  static constexpr Slot kMaxSlots = (1u << 28) - 2;  // The id index keeps four bits and two values for itself.

  // So that entries can be read while another thread makes new ones.
  Slab() { chunks_.reserve((kMaxSlots >> kChunkBits) + 1); }

  Entry& operator[](Slot slot) { return chunks_[slot >> kChunkBits][slot & kChunkMask]; }
  const Entry& operator[](Slot slot) const { return chunks_[slot >> kChunkBits][slot & kChunkMask]; }

  Slot allocate() {
    if (free_ != kNoSlot) {
      const Slot slot = free_;
      free_ = (*this)[slot].next;
      return slot;
    }
    platform::require(size_ < kMaxSlots, "the slab is full");
    if ((size_ & kChunkMask) == 0) {
      // calloc of this size is zero pages from the kernel: untouched entries cost nothing.
      auto* chunk = static_cast<Entry*>(std::calloc(kChunkMask + 1, sizeof(Entry)));
      platform::require(chunk != nullptr, "out of memory for entries");
      chunks_.emplace_back(chunk);
    }
    return size_++;
  }

  void release(Slot slot) {
    (*this)[slot].set_state(EntryState::kFree);
    (*this)[slot].next = free_;
    free_ = slot;
  }

  bool has_free() const { return free_ != kNoSlot; }
  Slot size() const { return size_; }  // Slots ever used; some of them are free.

 private:
  static constexpr Slot kChunkMask = (1u << kChunkBits) - 1;
  struct Free {
    void operator()(Entry* chunk) const { std::free(chunk); }
  };

  std::vector<std::unique_ptr<Entry[], Free>> chunks_;
  Slot size_ = 0;
  Slot free_ = kNoSlot;
};

struct SlotList {
  Slot head = kNoSlot;
  Slot tail = kNoSlot;

  bool empty() const { return head == kNoSlot; }

  void push_back(Slab& slab, Slot slot) {
    slab[slot].next = kNoSlot;
    if (empty()) {
      head = slot;
    } else {
      slab[tail].next = slot;
    }
    tail = slot;
  }

  Slot pop_front(Slab& slab) {
    const Slot slot = head;
    head = slab[slot].next;
    if (head == kNoSlot) tail = kNoSlot;
    return slot;
  }

  void push_front(Slab& slab, Slot slot) {
    slab[slot].next = head;
    head = slot;
    if (tail == kNoSlot) tail = slot;
  }

  // Every entry for which drop(slot) is true leaves the list.
  template <class Drop>
  void remove_if(Slab& slab, Drop&& drop) {
    SlotList rest = take();
    while (!rest.empty()) {
      const Slot slot = rest.pop_front(slab);
      if (!drop(slot)) push_back(slab, slot);
    }
  }

  SlotList take() {
    const SlotList all = *this;
    *this = SlotList{};
    return all;
  }
};

}  // namespace bide::engine
