// Data directories as files: backed up, checked, copied, repaired, with a progress bar on a terminal.

#pragma once

#include <cstdint>
#include <string>

#include "bide/backup.h"
#include "engine/check/check_store.h"
#include "engine/check/repair_store.h"

namespace bide::cli {

// Nothing is changed. Throws Failure: the store is open, or not there.
engine::check::StoreReport check_directory(const std::string& directory);

struct StoreCopy {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t live_jobs = 0;
};

// Of a store that may be open, or of a server's, by its URL; see bide/backup.h. Throws Failure.
BackupInfo back_up_store(const std::string& from, const std::string& to);

// Synced and checked. Throws Failure: the store is open or damaged, or `to` is there and not empty.
StoreCopy copy_store(const std::string& from, const std::string& to);

struct StoreRepair {
  bool needed = false;
  engine::check::RepairReport report = {};
  engine::check::StoreReport checked = {};  // Of the store as it is now, or would be.
  std::string kept_as = {};                 // Where the damaged one is.
};

struct RepairOptions {
  bool dry_run = false;
  std::string keep_as = {};  // Empty: DIR.damaged-TIME.
};

// Makes a store that opens of what can be read of a damaged one. The original is not touched: a copy is repaired, checked
// and opened, and only then do the two change places.
//
// Throws Failure: the store is open, not there, or beyond repair; then nothing has changed.
StoreRepair repair_directory(const std::string& directory, const RepairOptions& options);

}  // namespace bide::cli
