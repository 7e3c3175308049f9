// WarmJobs: ready jobs kept whole in memory, so that a job that runs at once is never read back. When there is no room
// the oldest stay: they run first. The others are read from the journal.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bide/job.h"
#include "engine/entry.h"

namespace bide::engine {

class WarmJobs {
 public:
  explicit WarmJobs(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  void keep(Slot slot, Job&& job);
  // The job of this slot will not be taken.
  void drop(Slot slot);
  // Null when the slot's job is not there. The caller may move from it, and drops it then.
  Job* find(Slot slot, const JobId& id);

 private:
  // From slot to place, by linear probing. An empty place has kNoSlot.
  struct Place {
    Slot slot = kNoSlot;
    std::uint32_t job = 0;
    std::uint64_t bytes = 0;
  };

  static std::uint64_t cost(const Job& job);
  std::size_t home(Slot slot) const { return (slot * 0x9e37'79b9u) & (places_.size() - 1); }
  Place* place_of(Slot slot);
  void erase(Place* place);
  void grow();

  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::vector<Place> places_ = std::vector<Place>(64);
  std::size_t used_ = 0;
  std::vector<Job> jobs_;            // Those that are free have been moved from.
  std::vector<std::uint32_t> free_;  // Places in jobs_.
};

}  // namespace bide::engine
