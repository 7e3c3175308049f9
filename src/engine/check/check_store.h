// check_store: reads a data directory that nobody has open, by the pages in docs/formats and with nothing of the
// engine's own code, and says what is in it and what is wrong. It writes nothing.

#pragma once

#include <string>

#include "bide/result.h"
#include "engine/check/store_report.h"
#include "platform/disk.h"

namespace bide::engine::check {

// Damage is in the report, not an error. kNotFound: there is no store. kBusy: somebody has it open. kNewerVersion,
// kPermissionDenied, kIoError.
Result<StoreReport> check_store(platform::Disk& disk, const std::string& directory);

}  // namespace bide::engine::check
