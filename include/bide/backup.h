// Backup: a copy of a whole data directory, made and checked while work goes on.
//
//   auto made = bide::back_up(client, "/backups/bide");   // Again to the same place: only what is new is copied.
//   if (!made) return fail(made.error());

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"

namespace bide {

class Client;

enum class BackupState : std::uint8_t {
  kNone,      // None was made since the store was opened.
  kCopying,
  kChecking,
  kDone,
  kFailed,
};

std::string_view to_string(BackupState state);

// The one that is being made, or the last one.
struct BackupInfo {
  BackupState state = BackupState::kNone;
  std::string target = {};
  std::uint64_t files = 0;          // Of the store at that moment.
  std::uint64_t bytes = 0;          // In them.
  std::uint64_t copied_bytes = 0;   // So far.
  std::uint64_t linked_bytes = 0;   // What did not have to be copied: it is there already, or has a second name now.
  std::uint64_t checked_bytes = 0;  // So far.
  std::uint64_t live_jobs = 0;      // In the copy, once it is checked.
  std::optional<Time> started = {};
  std::optional<Time> finished = {};
  std::string error = {};           // Why it failed, and of which kind that is.
  ErrorCode error_code = ErrorCode::kInvalidArgument;
};

// Blocks until the copy is made and checked. `target` is a directory of this machine: empty, not there, or holding an older
// backup, which is replaced when the new one is whole. Of a server (http://...) it is a name in its directory for backups.
//
// kUnsupported: not a data directory. kBusy: another backup is being made. kAlreadyExists: something else is there.
// kDamaged: the copy, and so the store, is. kCannotCreate, kDiskFull, kIoError, kUnavailable.
Result<BackupInfo> back_up(const Client& client, std::string_view target);

}  // namespace bide
