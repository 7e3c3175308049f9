#include "bide/backup.h"

#include <chrono>
#include <string>
#include <thread>

#include "bide/client.h"
#include "bide/wait.h"

namespace bide {

namespace {

constexpr std::chrono::milliseconds kLook{20};

}  // namespace

Result<BackupInfo> back_up(const Client& client, std::string_view target) {
  Inspector& inspector = client.inspector();
  const Status begun = wait<void>([&](auto done) { inspector.backup(std::string(target), std::move(done)); });
  if (!begun) return begun.error();
  for (;;) {
    auto info = wait<BackupInfo>([&](auto done) { inspector.backup_info(std::move(done)); });
    if (!info || info->state == BackupState::kDone) return info;
    if (info->state == BackupState::kFailed) return Error{info->error_code, "the backup was not made: " + info->error};
    if (info->state == BackupState::kNone) {
      return Error{ErrorCode::kUnavailable, "the process that made the backup has ended before it was whole"};
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace bide
