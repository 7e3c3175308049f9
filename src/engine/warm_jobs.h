// WarmJobs: ready jobs kept whole in memory, so that a job that runs at once is never read back. Only jobs that somebody
// takes are offered to it. When there is no room the oldest stay: they run first. The others are read from the journal.
//
// Jobs come in batches and stay where they lie; a batch goes when the last of its jobs has gone.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "bide/job.h"
#include "engine/entry.h"

namespace bide::engine {

class WarmJobs {
 public:
  explicit WarmJobs(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // A batch is open while it is gone through: each of its jobs is kept or passed over. Then it is closed.
  using BatchNumber = std::uint32_t;
  BatchNumber open(std::vector<Job> jobs);
  std::vector<Job>& jobs(BatchNumber batch) { return batches_[batch].jobs; }
  // False: there is no room for it.
  bool keep(Slot slot, BatchNumber batch, std::size_t index);
  void pass_over(BatchNumber batch, std::size_t index);
  void close(BatchNumber batch);

  // Batches of which nothing is left, for whoever has the time to free them.
  std::vector<std::vector<Job>> take_spent() { return std::exchange(spent_, {}); }

  // The job of this slot will not be taken.
  void drop(Slot slot);
  // False when the slot's job is not there.
  bool take(Slot slot, const JobId& id, Job& into);

 private:
  static constexpr unsigned kPageBits = 10;
  static constexpr BatchNumber kNone = 0xffff'ffff;

  struct Batch {
    std::vector<Job> jobs;
    std::vector<std::uint32_t> passed_over;
    std::size_t kept = 0;
    std::uint64_t bytes = 0;  // Of the jobs as such, without what they hold; counted from the first that is kept.
    bool is_open = false;
  };
  struct Place {
    BatchNumber batch = kNone;
    std::uint32_t index = 0;
  };
  // Where the jobs of neighbouring slots are. Slots are given out one after another and used again soon, so few pages
  // hold all that is warm.
  struct Page {
    std::array<Place, 1u << kPageBits> places;
    std::uint32_t used = 0;
  };

  static std::uint64_t content_bytes(const Job& job);
  Place* place_of(Slot slot);  // Null when there is no job.
  void release(Slot slot, Place* place, std::uint64_t bytes);
  void free(BatchNumber number);

  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
  std::unique_ptr<Page> spare_;  // An empty one, so that a page is not made and dropped over and over.
  std::deque<Batch> batches_;
  std::vector<BatchNumber> free_;
  std::vector<std::vector<Job>> spent_;
};

}  // namespace bide::engine
