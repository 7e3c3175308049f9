// How attempts end: settlements, faults and expiry, as a store writes them, with the jobs that tell of them.

#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "brokers/database/job_store.h"
#include "core/job_ids.h"
#include "platform/random.h"

namespace bide::brokers::database {

// Ids and chance for all lanes of a broker. Safe to share between threads.
class IdSource {
 public:
  JobId next_id();
  std::uint64_t random();
  // Those without an id get one.
  void give_ids(std::vector<Job>& jobs);

 private:
  std::mutex mutex_;  // Guards everything below.
  core::JobIdSource ids_;
  platform::SystemRandom random_;
};

// What is told of a job's end: only the id, names and headers of `job` are looked at.
Ending settled(Settlement settlement, const Job* job, std::uint32_t attempts, IdSource& ids);
Ending expired(const LeaseRef& lease, const JobInfo& info, IdSource& ids);
// The decision is core's, except for leases of which nobody was heard.
Ending faulted(const OverdueLease& overdue, IdSource& ids);
// Given to nobody, or given back because the process ends.
Ending given_back(const LeaseRef& lease, std::string note);

}  // namespace bide::brokers::database
