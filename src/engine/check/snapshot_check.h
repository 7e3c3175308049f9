// Snapshots by docs/formats/snapshot.md: reading one into a census, and repairing one.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job_id.h"
#include "engine/check/job_census.h"
#include "engine/check/segment_repair.h"

namespace bide::engine::check {

struct SnapshotFacts {
  std::uint64_t address = 0;  // Of the journal: what came before is in here.
  std::uint64_t rows = 0;
};

struct SnapshotProblem {
  std::uint64_t offset = 0;
  std::string text;
  bool newer = false;  // Written by a newer bide.
};

// Reads it into the census.
std::optional<SnapshotProblem> read_snapshot(std::string_view content, JobCensus& census, SnapshotFacts& facts);

struct SnapshotRepair {
  std::string content = {};
  std::vector<Loss> losses = {};  // Without the name of the file.
};

// A snapshot of those rows that can still be read, without the rows of some done jobs, too. Nothing when the first block is lost: without it the rows mean nothing.
std::optional<SnapshotRepair> repair_snapshot(std::string_view content, const std::set<JobId>& without = {});

}  // namespace bide::engine::check
