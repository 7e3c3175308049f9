// StoreFiles: the files of a data directory by what they are.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "platform/disk.h"

namespace bide::engine::check {

struct StoreFiles {
  struct Segment {
    std::string path;  // Within the directory.
    std::uint64_t base = 0;
  };
  std::vector<Segment> segments = {};       // By address.
  std::vector<std::string> snapshots = {};  // Oldest first.
  bool synced_mark = false;
  bool unfinished_snapshot = false;
  bool unfinished_backup = false;
  std::vector<std::string> others = {};  // Not of the store.
};

inline constexpr char kSyncedMarkPath[] = "journal/synced";
inline constexpr char kUnfinishedSnapshot[] = "snapshot.tmp";
inline constexpr char kUnfinishedBackup[] = "unfinished-backup";

Result<StoreFiles> list_store(platform::Disk& disk, const std::string& directory);
// The digits in the name of a segment or a snapshot.
std::optional<std::uint64_t> parse_address(std::string_view digits);
std::string segment_path(std::uint64_t base);

Result<std::string> read_whole_file(platform::Disk& disk, const std::string& path);
// Written, cut to its size and synced.
Status write_whole_file(platform::Disk& disk, const std::string& path, std::string_view content);

// The address in the mark; 0 when it is not whole.
std::uint64_t read_synced_mark(std::string_view content);

}  // namespace bide::engine::check
