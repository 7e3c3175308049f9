// Compactor: copies live records out of segments that are mostly garbage, in bounded pieces, and drops segments without live
// records. It keeps the journal within twice its live bytes and one segment; while the store is busy, within four times.
//
// A segment that cannot be read is left as it is.
//
// A segment may be deleted when nothing in it is needed and a snapshot lies behind it: recovery begins there.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/result.h"
#include "engine/journal/journal.h"
#include "engine/state.h"

namespace bide::engine {

class Compactor {
 public:
  // `beside`: the size of the reserve.
  Compactor(journal::Journal& journal, State& state, std::uint64_t segment_bytes, std::uint64_t beside)
      : journal_(journal), state_(state), segment_bytes_(segment_bytes), beside_(beside) {}

  // Drops segments that a snapshot at this address has made obsolete. The caller deletes the files.
  Status forget_dead_segments(journal::Address snapshot_at);
  std::vector<std::string> take_obsolete_files() { return std::exchange(obsolete_files_, {}); }

  // Too much garbage: there is work to do.
  bool over_budget() const;
  void set_busy(bool busy) { busy_ = busy; }
  // The garbage is in segments of which nothing is needed, and only a newer snapshot can free them.
  bool wants_snapshot(journal::Address snapshot_at) const;
  // Everything is in the segment being written to, and most of that is garbage: it is sealed by the next sync.
  bool seal_if_mostly_garbage();
  // Copies live records of the worst segment, at least half of which is garbage, to the end of the journal's batch,
  // reading about `bytes`. False: there is nothing to move, or no room for it. The caller commits.
  Result<bool> move(std::size_t bytes);
  // Segments that could not be read: their bases, and where.
  const std::map<journal::Address, journal::Address>& unreadable() const { return unreadable_; }
  // They may be readable again: something in one of them was.
  void look_again() { unreadable_.clear(); }

 private:
  bool choose_victim();
  Result<bool> give_up(const Error& error, journal::Address at);

  journal::Journal& journal_;
  State& state_;
  const std::uint64_t segment_bytes_;
  const std::uint64_t beside_;
  bool busy_ = false;
  std::vector<std::string> obsolete_files_;
  std::optional<journal::Segment> victim_;
  journal::Address cursor_ = 0;
  std::optional<journal::Address> failed_at_;  // Where reading the victim failed once.
  std::map<journal::Address, journal::Address> unreadable_;  // By the base of the segment: where.
};

}  // namespace bide::engine
