// WarmJobs: ready jobs kept whole in memory, so that a job that runs at once is never read back. When there is no room
// the oldest stay: they run first. The others are read from the journal.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
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
  // False when the slot's job is not there.
  bool take(Slot slot, const JobId& id, Job& into);

 private:
  static constexpr unsigned kPageBits = 10;
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  // Where the jobs of neighbouring slots are, in jobs_. Slots are given out one after another and used again soon, so
  // few pages hold all that is warm.
  struct Page {
    Page() { places.fill(kNone); }
    std::array<std::uint32_t, 1u << kPageBits> places;
    std::uint32_t used = 0;
  };

  static std::uint64_t cost(const Job& job);
  std::uint32_t* place_of(Slot slot);  // Null when there is no job.
  void release(Slot slot, std::uint32_t* place, std::uint64_t bytes);

  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
  std::unique_ptr<Page> spare_;      // An empty one, so that a page is not made and dropped over and over.
  std::deque<Job> jobs_;             // Those that are free have been moved from.
  std::vector<std::uint32_t> free_;  // Places in jobs_.
};

}  // namespace bide::engine
