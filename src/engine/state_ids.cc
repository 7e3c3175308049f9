// State, the index of ids during recovery. Most records of a large store are jobs that nothing has happened to yet, so their
// ids are not looked up: they are indexed in large batches while the next records are read.

#include <chrono>

#include "engine/state.h"

namespace bide::engine {

namespace {

// Worth handing to another thread.
constexpr Slot kIndexedAtOnce = 65'536;

}  // namespace

void State::index_in_background() {
  if (!second_thread_ || slab_.size() - indexing_ < kIndexedAtOnce) return;
  if (indexer_.valid() && indexer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  finish_indexing();
  indexing_ = slab_.size();
  indexer_ = std::async(std::launch::async, [this, begin = indexed_, end = indexing_] { return ids_.insert_new(begin, end); });
}

void State::finish_indexing() {
  if (!indexer_.valid()) return;
  const std::vector<Slot> twice = indexer_.get();
  indexed_ = indexing_;
  resolve_duplicates(twice);
}

void State::resolve_duplicates(const std::vector<Slot>& slots) {
  for (const Slot slot : slots) {
    const Slot before = ids_.find(slab_[slot].id);
    if (slab_[before].entry_state() == EntryState::kDone) {
      forget(before);  // It was done and forgotten, which is not written down, and came again.
      ids_.insert(slot);
    } else if (twice_ == kNoSlot) {
      twice_ = slot;
    }
  }
}

Status State::index_ids() {
  finish_indexing();
  if (indexed_ != slab_.size()) {
    const Slot begin = indexed_;
    indexed_ = indexing_ = slab_.size();
    resolve_duplicates(ids_.insert_new(begin, indexed_));
  }
  ids_.expect(0);
  if (twice_ == kNoSlot) return {};
  return Error{ErrorCode::kDamaged, "the store says accepted of job " + slab_[twice_].id.to_string() +
                                        ", which is there already; `bide store check` says more, `bide store repair` "
                                        "keeps what can be read"};
}

}  // namespace bide::engine
