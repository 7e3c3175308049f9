// Enqueuer: jobs on their way in. Calls that arrive while a step is under way are joined into the next one, so that all of
// them share its commit.

#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "brokers/database/endings.h"
#include "brokers/database/granter.h"
#include "brokers/database/job_store.h"
#include "brokers/database/lane.h"
#include "core/drain_rate.h"

namespace bide::brokers::database {

// Safe to share between threads.
class Enqueuer {
 public:
  // Jobs that are not answered yet hold at most so much memory; beyond it enqueue says kOverloaded.
  static constexpr std::size_t kWaitingBytes = 64 << 20;

  Enqueuer(JobStore& store, IdSource& ids, Granter& granter);

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done);
  Pressure pressure() const;
  void stop(Milliseconds at_most);

 private:
  struct Call {
    std::vector<Job> jobs = {};                  // Those that are sent.
    std::vector<Result<Enqueued>> results = {};  // One for each that came; those that are not sent are here already.
    std::vector<std::size_t> places = {};        // Of the results of those that are sent.
    std::size_t bytes = 0;
    Completion<std::vector<Result<Enqueued>>> done = {};
  };

  std::optional<Moment> step(Lane& lane);
  void send(Lane& lane, std::vector<Call> calls);
  void answer(std::vector<Call>& calls, const Result<std::vector<Result<Enqueued>>>& results);

  IdSource& ids_;
  Granter& granter_;
  core::DrainRate drain_rate_;  // In bytes.

  mutable std::mutex mutex_;  // Guards everything below.
  std::deque<Call> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool closed_ = false;

  Lane lane_;
};

}  // namespace bide::brokers::database
