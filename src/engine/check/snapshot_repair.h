// repair_snapshot: a snapshot of those rows that can still be read.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job_id.h"
#include "engine/check/segment_repair.h"

namespace bide::engine::check {

struct SnapshotRepair {
  std::string content = {};
  std::vector<Loss> losses = {};  // Without the name of the file.
};

// Without the rows of some done jobs, too. Nothing when the first block is lost: without it the rows mean nothing.
std::optional<SnapshotRepair> repair_snapshot(std::string_view content, const std::set<JobId>& without = {});

}  // namespace bide::engine::check
