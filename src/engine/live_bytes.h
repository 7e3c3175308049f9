// LiveBytes: how many bytes of each segment of the journal are still needed; for compaction.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/journal/journal.h"
#include "platform/fatal.h"

namespace bide::engine {

class LiveBytes {
 public:
  struct Share {
    journal::Address base = 0;
    std::uint64_t live = 0;
  };

  // Begins to count. Until then add and subtract do nothing: recovery counts once, at its end.
  void attach(const journal::Journal& journal) {
    journal_ = &journal;
    follow();
  }
  void add(journal::RecordRef ref) {
    if (journal_ == nullptr || ref.bytes == 0) return;
    share(ref.address).live += ref.bytes;
    total_ += ref.bytes;
  }
  void subtract(journal::RecordRef ref) {
    if (journal_ == nullptr || ref.bytes == 0) return;
    Share& from = share(ref.address);
    platform::require(from.live >= ref.bytes, "live bytes of a segment fell below zero");
    from.live -= ref.bytes;
    total_ -= ref.bytes;
  }
  std::uint64_t total() const { return total_; }
  std::uint64_t of(journal::Address base) const {
    const auto at = std::lower_bound(shares_.begin(), shares_.end(), base,
                                     [](const Share& share, journal::Address a) { return share.base < a; });
    return at != shares_.end() && at->base == base ? at->live : 0;
  }
  void forget(journal::Address base) {
    std::erase_if(shares_, [base](const Share& share) { return share.base == base; });
  }

 private:
  void follow() {
    for (const journal::Segment& segment : journal_->segments()) {
      if (shares_.empty() || segment.base > shares_.back().base) shares_.push_back({segment.base, 0});
    }
  }
  Share& share(journal::Address address) {
    if (shares_.empty() || journal_->segments().back().base != shares_.back().base) follow();
    if (address >= shares_.back().base) return shares_.back();
    if (recent_ + 1 < shares_.size() && address >= shares_[recent_].base && address < shares_[recent_ + 1].base) {
      return shares_[recent_];
    }
    auto after = std::upper_bound(shares_.begin(), shares_.end(), address,
                                  [](journal::Address a, const Share& share) { return a < share.base; });
    platform::require(after != shares_.begin(), "a record lies before the first segment");
    recent_ = static_cast<std::size_t>(after - shares_.begin()) - 1;
    return shares_[recent_];
  }

  const journal::Journal* journal_ = nullptr;
  std::vector<Share> shares_;  // Oldest first.
  std::size_t recent_ = 0;     // The last one that was looked for.
  std::uint64_t total_ = 0;
};

}  // namespace bide::engine
