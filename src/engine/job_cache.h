// JobCache: ready jobs, whole, so that a job that runs soon after it was enqueued is not read back from the journal. When it
// is full new jobs are not cached: the oldest run first.
//
// Jobs are kept in the batches in which they came; a batch is freed with the last of its jobs.

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

class JobCache {
 public:
  explicit JobCache(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // While a batch is open, each of its jobs is kept or skipped.
  using BatchNumber = std::uint32_t;
  BatchNumber open(std::vector<Job> jobs);
  std::vector<Job>& jobs(BatchNumber batch) { return batches_[batch].jobs; }
  // False: there is no room for it.
  bool keep(Slot slot, BatchNumber batch, std::size_t index);
  void skip(BatchNumber batch, std::size_t index);
  void close(BatchNumber batch);

  // Batches without jobs, to be freed by another thread.
  std::vector<std::vector<Job>> take_garbage() { return std::exchange(garbage_, {}); }

  // The job of this slot will not be taken.
  void drop(Slot slot);
  // False when the slot's job is not there.
  bool take(Slot slot, const JobId& id, Job& into);

 private:
  static constexpr unsigned kPageBits = 10;
  static constexpr BatchNumber kNone = 0xffff'ffff;

  struct Batch {
    std::vector<Job> jobs;
    std::vector<std::uint32_t> skipped;
    std::size_t kept = 0;
    std::uint64_t bytes = 0;  // Of the jobs as such, without what they hold; counted from the first that is kept.
    bool is_open = false;
  };
  struct Place {
    BatchNumber batch = kNone;
    std::uint32_t index = 0;
  };
  // The jobs of neighbouring slots. Slots are allocated in order and reused soon, so few pages are in use.
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
  std::vector<std::vector<Job>> garbage_;
};

}  // namespace bide::engine
