// RunningAttempts: the attempts that are under way, so that a settlement, which names a job by its id only, can be
// counted for its queue and timed. It remembers no more than allowed, and forgets what must be over by now: a worker
// that died settles nothing.
//
// Safe to use from any thread.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "bide/job_id.h"
#include "bide/lease.h"
#include "metrics/job_history.h"
#include "metrics/metrics.h"
#include "metrics/worker_table.h"
#include "platform/keyed_hash.h"

namespace bide::metrics {

class RunningAttempts {
 public:
  explicit RunningAttempts(std::size_t most = 1u << 18) : most_of_shard_(most / kParts + 1) {}

  struct Attempt {
    std::uint64_t token = 0;
    std::int64_t started_us = 0;  // Elapsed time.
    std::int64_t over_us = 0;     // It cannot be running any more then.
    Metrics::QueueCounters* queue = nullptr;
    Metrics::KindCounters* kind = nullptr;
    JobHistory::Series* queue_history = nullptr;
    JobHistory::Series* kind_history = nullptr;
    std::shared_ptr<WorkerTable::Worker> worker = nullptr;
  };

  // Takes the place of an earlier attempt of the job, whose worker has no more of it. When there are too many already, it is
  // not remembered: false.
  bool add(const JobId& id, const Attempt& attempt);
  // Nothing when it is not known, or is another attempt by now.
  std::optional<Attempt> take(const LeaseRef& lease);
  std::size_t size() const;

 private:
  static constexpr std::size_t kParts = 16;  // As many as four bits can say.
  struct Part {
    mutable std::mutex mutex;  // Guards everything below.
    platform::KeyedMap<JobId, Attempt> attempts;
    std::size_t sweep_at = 256;
  };

  Part& part_of(const JobId& id) { return parts_[platform::KeyedHash()(id) >> 60]; }

  const std::size_t most_of_shard_;
  std::array<Part, kParts> parts_;
};

}  // namespace bide::metrics
