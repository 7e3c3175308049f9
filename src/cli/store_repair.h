// repair: a store that opens, made of what can be read of one that is damaged. The original is not touched: a copy is
// repaired, checked and opened, and only then do the two change places.

#pragma once

#include <string>

#include "cli/json.h"
#include "engine/check/repair_store.h"
#include "engine/check/store_report.h"

namespace bide::cli {

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

// Throws Failure: the store is open, not there, or beyond repair; then nothing has changed.
StoreRepair repair(const std::string& directory, const RepairOptions& options);

JsonObject to_json(const StoreRepair& repair);
std::string repair_text(const StoreRepair& repair, bool dry_run);

}  // namespace bide::cli
