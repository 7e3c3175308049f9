// Backups, as JSON.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/backup.h"
#include "bide/result.h"
#include "wire/problem.h"

namespace bide::wire {

std::string backup_json(const BackupInfo& info);
Result<BackupInfo> read_backup(std::string_view body);

// {"target": "nightly"}
std::string backup_request_json(std::string_view target);
std::optional<Problem> read_backup_request(std::string_view body, std::string& target);

}  // namespace bide::wire
