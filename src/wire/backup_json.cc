#include "wire/backup_json.h"

#include <array>
#include <span>

#include "wire/answer.h"
#include "wire/fields.h"

namespace bide::wire {

namespace {

struct BackupRequest {
  std::string target = {};
};

constexpr auto kBackupRows = std::to_array<Field<BackupInfo>>({
    always<&BackupInfo::state>("state"),
    maybe<&BackupInfo::target>("target"),
    always<&BackupInfo::files>("files").says("Of the store at that moment."),
    always<&BackupInfo::bytes>("bytes").says("In them."),
    always<&BackupInfo::copied_bytes>("copied_bytes").says("So far."),
    always<&BackupInfo::linked_bytes>("linked_bytes").says("Did not have to be copied."),
    always<&BackupInfo::checked_bytes>("checked_bytes").says("So far."),
    always<&BackupInfo::live_jobs>("live_jobs").says("In the copy, once it is checked."),
    maybe<&BackupInfo::started>("started"),
    maybe<&BackupInfo::finished>("finished"),
    maybe<&BackupInfo::error>("error").says("Why it failed."),
    field<&BackupInfo::error_code>("error_code").unless_empty(),
});

constexpr auto kBackupRequestRows = std::to_array<Field<BackupRequest>>({
    always<&BackupRequest::target>("target").says("A name in the server's directory for backups."),
});

}  // namespace

template <>
std::span<const Field<BackupInfo>> rows_of<BackupInfo>() {
  return kBackupRows;
}

std::string backup_json(const BackupInfo& info) { return to_json(info); }
Result<BackupInfo> read_backup(std::string_view body) { return read_document<BackupInfo>(body); }

std::string backup_request_json(std::string_view target) {
  return object_text([&](JsonWriter& out) { out.field("target", target); });
}

std::optional<Problem> read_backup_request(std::string_view body, std::string& target) {
  FieldReader<BackupRequest> fields(kBackupRequestRows);
  BackupRequest request;
  const auto problem = read_request(body, "the target of a backup", fields, request);
  target = std::move(request.target);
  return problem;
}

void add_backup_schemas(Schemas& schemas) {
  schemas.push_back({"Backup", object_schema({}, kBackupRows)});
  schemas.push_back({"BackupRequest", object_schema({}, kBackupRequestRows)});
}

}  // namespace bide::wire
