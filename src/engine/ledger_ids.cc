// Ledger, the ids of done jobs: known for longer than the jobs are kept.

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ledger.h"

namespace bide::engine {

namespace {

// So much is synced apart from snapshots, so that none has to wait for more.
constexpr std::uint64_t kSyncBytes = 4 << 20;

}  // namespace

Status Ledger::apply_recovered(const journal::RecordView& view) {
  if (Status applied = state_.apply(view); !applied) return applied;
  if (view.at.address < finished_ids_.covered()) return {};
  const journal::Address end = view.at.address + view.at.bytes;
  switch (static_cast<journal::RecordType>(view.type)) {
    case journal::RecordType::kDone: {
      journal::DoneRecord record;
      if (Status decoded = decode(view, record); !decoded) return decoded;
      finished_ids_.add(record.id, record.token, record.at_ms, end);
      return {};
    }
    case journal::RecordType::kClock: {
      journal::ClockStep record;
      if (Status decoded = decode(view, record); !decoded) return decoded;
      finished_ids_.step_clock(record.by_ms);
      return {};
    }
    default: return {};
  }
}

void Ledger::collect_ids() {
  if (finished_ids_.is_anchored()) return;
  // A store of a bide that remembered no ids: as far as the snapshot knows its done jobs, they are remembered from now on.
  // Afterwards it may be too late: records of done jobs that were forgotten since are perhaps gone.
  std::vector<std::pair<std::int64_t, JobId>> done;
  for (Slot slot = 0; slot < state_.slots(); ++slot) {
    const Entry& entry = state_[slot];
    if (entry.entry_state() == EntryState::kDone) done.emplace_back(entry.due(), entry.id);
  }
  std::sort(done.begin(), done.end());
  for (const auto& [finished_ms, id] : done) finished_ids_.add(id, 0, finished_ms, snapshot_at_);
}

void Ledger::start_ids() {
  finished_ids_.start(now_ms());
  if (!options_.on_damage) return;
  for (const Damage& damage : finished_ids_.damage()) options_.on_damage(damage);
}

Status Ledger::write_ids() {
  if (!finished_ids_.has_unwritten() || elapsed_us_ / 1000 < ids_retry_ms_) return {};
  Status written = finished_ids_.write(journal_->synced());
  if (written) return {};
  // The journal has them until there is room.
  ids_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
  if (written.error().code == ErrorCode::kDiskFull || is_passing(written.error())) return {};
  failed_ = true;
  return written;
}

Status Ledger::sync_ids() {
  if (finished_ids_.unsynced_bytes() < kSyncBytes) return {};
  Status synced = finished_ids_.sync();
  if (!synced) failed_ = true;
  return synced;
}

Status Ledger::cover_ids() {
  finished_ids_.close_block(journal_->end());
  if (Status written = finished_ids_.write(journal_->end(), true); !written) {
    failed_ = written.error().code != ErrorCode::kDiskFull && !is_passing(written.error());
    return written;
  }
  Status synced = finished_ids_.sync();
  if (!synced) failed_ = true;
  return synced;
}

}  // namespace bide::engine
