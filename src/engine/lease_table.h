// LeaseTable: the leases that are out. A running entry's `next` is its place here.

#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/slab.h"

namespace bide::engine {

struct Running {
  std::uint64_t token = 0;
  std::uint64_t lost_token = 0;      // Of an attempt that crashed and is not charged yet; `token` is 0 then.
  Slot slot = kNoSlot;               // kNoSlot: a free place.
  std::uint32_t subscription = 0;    // 0: none any more, the process was restarted.
  std::int64_t started_ms = 0;
  // Elapsed time, which no change of the wall clock touches.
  std::int64_t deadline_ms = 0;
  std::int64_t limit_ms = std::numeric_limits<std::int64_t>::max();
  std::uint32_t lease_ms = 0;
  std::uint16_t worker = 0;
  bool outlives_process = false;
  bool delivered = false;  // Outlives the process, and is known to have reached its worker.
  bool cancel_requested = false;
  bool crashed = false;  // Its process died. Charged as soon as there is room on the disk.
  bool body_saved = false;  // Its body may have been replaced during this lease, and then holds the past.
  bool last_chance = false;  // See core/retry_decision.h.
  bool wants_completion = false;  // See core/completion.h. Known when the lease was given, or found again at opening.
};

class LeaseTable {
 public:
  std::uint32_t add(const Running& running) {
    ++size_;
    std::uint32_t place = static_cast<std::uint32_t>(places_.size());
    if (free_.empty()) {
      places_.push_back(running);
    } else {
      place = free_.back();
      free_.pop_back();
      places_[place] = running;
    }
    recent_[running.token % kRecent] = place;
    return place;
  }
  // Whose lease has this token, if it was given lately; kNoSlot says nothing. Tokens are given one after another, so
  // this is quicker than looking for a job by its id.
  Slot find_recent(std::uint64_t token) const {
    const std::uint32_t place = recent_[token % kRecent];
    return place < places_.size() && places_[place].token == token ? places_[place].slot : kNoSlot;
  }
  void remove(std::uint32_t place) {
    places_[place] = Running{};
    free_.push_back(place);
    --size_;
  }
  Running& operator[](std::uint32_t place) { return places_[place]; }
  const Running& operator[](std::uint32_t place) const { return places_[place]; }

  std::vector<Running>& places() { return places_; }
  const std::vector<Running>& places() const { return places_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kRecent = 1 << 14;

  std::vector<Running> places_;
  std::vector<std::uint32_t> recent_ = std::vector<std::uint32_t>(kRecent);  // By token: places, perhaps of others.
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace bide::engine
