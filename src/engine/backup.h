// Backups: the files of a store up to one point of its journal, linked or copied into a directory of their own, and checked
// there by the independent reader. Whoever makes one sees to it that nothing of the plan is deleted meanwhile.
//
// It is made as TARGET.unfinished, which says in itself that it is not whole, and takes the place of what was in TARGET when it
// is. See docs/decisions/0021.
//
// Files only, and always on the real disk.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bide/backup.h"
#include "bide/result.h"
#include "engine/journal/journal.h"

namespace bide::engine {

struct StoreFile {
  std::string name;  // Within the directory.
  std::uint64_t bytes = 0;  // The first so many belong to the backup.
  bool is_final = true;     // Never written to again: another name for it will do.
};

struct BackupPlan {
  std::vector<StoreFile> files;
  journal::Address end = 0;  // Where the copy of the journal ends.
};

// Of a store that nobody has open.
Result<BackupPlan> plan_backup(const std::string& directory);

// kInvalidArgument: not an absolute path, or within the store. kAlreadyExists: something is there that is no backup.
Status check_backup_target(const std::string& directory, const std::string& target);

struct BackupHooks {
  std::function<void(const BackupInfo&)> progress = {};
  // After a piece that took so long. False: stop.
  std::function<bool(std::chrono::microseconds)> pause = {};
};

// `info` has the target. kDamaged: the copy is damaged, which the store then is.
Result<BackupInfo> write_backup(const std::string& directory, const BackupPlan& plan, BackupInfo info,
                                const BackupHooks& hooks);

}  // namespace bide::engine
