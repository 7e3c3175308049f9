// repair_store: makes a store that opens out of one that is damaged, keeping everything that can still be read. It
// changes the files in place: give it a copy.
//
// What cannot be read is replaced by records that nobody looks at, so every address stays right. Then everything is
// read from the snapshot on: records that speak of jobs which are lost are dropped, jobs whose bodies are lost are
// removed, and jobs whose last change is lost begin anew. A store is whole afterwards; what had been confirmed and is
// not there any more is in the report.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bide/job_id.h"
#include "bide/result.h"
#include "engine/check/segment_repair.h"
#include "platform/disk.h"

namespace bide::engine::check {

struct RepairReport {
  std::vector<Loss> losses = {};
  std::uint64_t records_kept = 0;
  std::uint64_t records_dropped = 0;        // Whole, but of jobs that are lost.
  std::vector<JobId> jobs_removed = {};     // Their bodies are lost.
  std::vector<JobId> jobs_finished = {};    // Done, by a record whose beginning is lost; they are not run again.
  std::vector<JobId> results_lost = {};     // Done, but what they came to cannot be read; they are forgotten.
  std::vector<JobId> jobs_begun_anew = {};  // Their bodies are there; how often they were tried is lost.

  bool changed() const {
    return !losses.empty() || records_dropped > 0 || !jobs_removed.empty() || !jobs_begun_anew.empty();
  }
};

// kNotFound: there is no store. kDamaged: beyond repair, and why. kNewerVersion, kIoError.
Result<RepairReport> repair_store(platform::Disk& disk, const std::string& directory, std::int64_t now_ms);

}  // namespace bide::engine::check
