// Ledger, backups: which files are the store at this moment, and keeping them until they have been copied.

#include <utility>

#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

Result<BackupPlan> Ledger::begin_backup() {
  if (Status hardened = journal_->harden(); !hardened) {
    failed_ = !is_transient(hardened.error());
    return hardened.error();
  }
  BackupPlan plan{.files = {}, .end = journal_->written()};
  const auto add = [&](const std::string& path, std::uint64_t bytes) {
    plan.files.push_back({.name = path.substr(options_.directory.size() + 1), .bytes = bytes});
  };
  if (snapshot_at_ != 0) {
    const std::string path = snapshot_path(options_.directory, snapshot_at_);
    auto file = disk_.open(path, platform::OpenMode::kReadOnly);
    if (!file) return file.error();
    const auto bytes = (*file)->size();
    if (!bytes) return bytes.error();
    add(path, *bytes);
  }
  for (const journal::Segment& segment : journal_->segments()) add(segment.path, segment.end - segment.base);
  plan.files.back().is_final = false;
  // What a block behind the snapshot may lack, the journal has.
  const auto ids = finished_ids_.files();
  for (const auto& [name, bytes] : ids) add(options_.directory + "/ids/" + name, bytes);
  if (!ids.empty()) plan.files.back().is_final = false;
  ++backups_;
  return plan;
}

void Ledger::end_backup() {
  platform::require(backups_ > 0, "end_backup() without begin_backup()");
  --backups_;
}

}  // namespace bide::engine
