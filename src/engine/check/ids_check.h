// The ids of done jobs in the folder `ids`, read after docs/formats/ids.md.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bide/result.h"
#include "platform/disk.h"

namespace bide::engine::check {

struct IdsGap {
  std::string file;  // In the store.
  std::uint64_t offset = 0;
  std::uint64_t begin = 0;      // The address of the journal from which on ids are missing.
  bool is_unreadable = false;  // Something is there. Otherwise a file is missing.
};

struct IdsFacts {
  std::vector<std::string> files;
  std::uint64_t last_file = 0;
  std::vector<IdsGap> gaps;
  // Of the last whole block up to the snapshot.
  bool any = false;
  std::uint64_t covered = 0;
  std::uint64_t newest_ms = 0;
  std::uint64_t stepped_ms = 0;
};

// `from` is the address of the snapshot: what is behind it is in the journal. kNewerVersion.
Result<IdsFacts> read_ids(platform::Disk& disk, const std::string& directory, std::uint64_t from);

// Leaves a store whose ids are whole: those in the gaps are given up. In a file of its own.
Status close_gaps(platform::Disk& disk, const std::string& directory, const IdsFacts& facts, std::uint64_t from);

}  // namespace bide::engine::check
