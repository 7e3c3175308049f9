// lock_directory: one owner for a data directory, by a file `lock` in it that is locked and holds the owner's pid.
//
// The kernel lets go when the owner ends, however it ends; the file stays, since removing it would let two owners lock
// two different files of the same name.

#pragma once

#include <memory>
#include <string>

#include "bide/result.h"
#include "platform/disk.h"

namespace bide::platform {

inline constexpr char kLockFileName[] = "lock";

// "data directory /x is in use by process 1234: stop it first". An empty pid is one not yet written.
Error directory_busy(const std::string& directory, const std::string& pid);

// kBusy; kNotFound when there is no such directory; kPermissionDenied when it cannot be written to.
Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory);

// For readers of a store that nobody has open: keeps owners out while it is held, and writes nothing. Readers do not mind
// one another. Null when there is no lock file, so nobody ever had it open. kBusy.
Result<std::unique_ptr<DirectoryLock>> share_directory(const std::string& directory);

}  // namespace bide::platform
