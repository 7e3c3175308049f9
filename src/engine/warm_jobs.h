// WarmJobs: ready jobs kept whole in memory, so that a job that runs at once is never read back. When there is no room
// the oldest stay: they run first. The others are read from the journal.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "bide/job.h"
#include "engine/entry.h"

namespace bide::engine {

class WarmJobs {
 public:
  explicit WarmJobs(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  void keep(Slot slot, Job&& job) {
    const std::uint64_t bytes = cost(job);
    if (bytes_ + bytes > most_bytes_) return;
    drop(slot);
    jobs_.emplace(slot, std::move(job));
    bytes_ += bytes;
  }

  // The job of this slot will not be taken.
  void drop(Slot slot) {
    const auto found = jobs_.find(slot);
    if (found == jobs_.end()) return;
    bytes_ -= cost(found->second);
    jobs_.erase(found);
  }

  // Out of the cache, when the slot's job is there.
  bool take(Slot slot, const JobId& id, Job& into) {
    const auto found = jobs_.find(slot);
    if (found == jobs_.end()) return false;
    bytes_ -= cost(found->second);
    // The slot may have been given to another job since: then this is a leftover.
    const bool same = found->second.id == id;
    if (same) into = std::move(found->second);
    jobs_.erase(found);
    return same;
  }

 private:
  static std::uint64_t cost(const Job& job) {
    std::uint64_t bytes = sizeof(Job) + 64 + job.body.size() + job.unique_key.size();
    for (const auto& [name, value] : job.headers) bytes += sizeof name + name.size() + sizeof value + value.size();
    return bytes;
  }

  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::unordered_map<Slot, Job> jobs_;
};

}  // namespace bide::engine
