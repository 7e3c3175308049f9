// Reads a snapshot by docs/formats/snapshot.md into a census.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/check/job_census.h"

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

std::optional<SnapshotProblem> read_snapshot(std::string_view content, JobCensus& census, SnapshotFacts& facts);

}  // namespace bide::engine::check
