#include "engine/compactor.h"

#include <vector>

#include "engine/journal/records.h"

namespace bide::engine {

using journal::RecordView;
using journal::Segment;

namespace {

std::uint64_t bytes_of(const Segment& segment) { return segment.end - segment.base; }

}  // namespace

bool Compactor::over_budget() const {
  return journal_.disk_bytes() + beside_ > (busy_ ? 4 : 2) * state_.live_bytes().total() + segment_bytes_;
}

bool Compactor::seal_if_mostly_garbage() {
  const Segment& active = journal_.segments().back();
  // A small one is left alone: what is beside the journal may be larger than a segment.
  if (!over_budget() || bytes_of(active) < segment_bytes_ / 4 ||
      state_.live_bytes().of(active.base) * 2 > bytes_of(active)) {
    return false;
  }
  journal_.seal();
  return true;
}

Status Compactor::forget_dead_segments(journal::Address snapshot_at) {
  std::vector<journal::Address> dead;
  const std::vector<Segment>& segments = journal_.segments();
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    if (segments[i].end > snapshot_at || state_.live_bytes().of(segments[i].base) != 0) continue;
    dead.push_back(segments[i].base);
  }
  for (const journal::Address base : dead) {
    if (victim_ && victim_->base == base) victim_.reset();
    auto path = journal_.forget(base);
    if (!path) return path.error().code == ErrorCode::kOverloaded ? Status() : path.error();
    unreadable_.erase(base);
    obsolete_files_.push_back(std::move(*path));
    state_.live_bytes().forget(base);
  }
  return {};
}

bool Compactor::wants_snapshot(journal::Address snapshot_at) const {
  if (!over_budget()) return false;
  const std::vector<Segment>& segments = journal_.segments();
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    if (segments[i].end > snapshot_at && state_.live_bytes().of(segments[i].base) == 0) return true;
  }
  return false;
}

bool Compactor::choose_victim() {
  const std::vector<Segment>& segments = journal_.segments();
  double least = 0.5;  // Moving more than is freed would never end.
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    const std::uint64_t live = state_.live_bytes().of(segments[i].base);
    if (live == 0 || unreadable_.contains(segments[i].base)) continue;
    const double share = static_cast<double>(live) / static_cast<double>(bytes_of(segments[i]));
    if (share >= least) continue;
    least = share;
    victim_ = segments[i];
    cursor_ = segments[i].base;
    failed_at_.reset();
  }
  return victim_.has_value();
}

Result<bool> Compactor::move(std::size_t bytes) {
  if (!victim_ && !choose_victim()) return false;
  // The copies go into the journal's batch, which the scan does not touch.
  std::optional<Error> not_copied;
  journal::Address stopped_at = 0;
  const auto copy = [&](const RecordView& view) -> Status {
    const auto id = job_of(view);
    if (!id) return id.error();
    const Slot slot = id->is_nil() ? kNoSlot : state_.find(*id);
    if (slot == kNoSlot) return {};
    const Entry& entry = state_[slot];
    const bool needed = (entry.body_bytes != 0 && entry.body_address == view.at.address) ||
                        (entry.has_details() && entry.details_address == view.at.address);
    if (!needed) return {};
    Status copied = journal_.reserve(view.at.bytes + 64);
    if (copied) {
      const journal::Moved moved{view.at, *unwrap(view)};
      copied = state_.apply(moved, append(journal_, moved));
    }
    if (!copied) not_copied = copied.error();
    return copied;
  };
  const auto next = journal_.scan(victim_->base, cursor_, bytes, copy, stopped_at);
  if (not_copied) {
    // What was copied is in its new place; the rest waits for room.
    if (not_copied->code == ErrorCode::kDiskFull) return !journal_.batch_empty();
    return *not_copied;
  }
  if (!next) return give_up(next.error(), stopped_at);
  cursor_ = *next;
  if (cursor_ >= victim_->end) victim_.reset();
  return true;
}

// The victim cannot be read. Once may be chance. What was copied is in its new place, and what was not stays in this one,
// where it can be read one by one as far as it is whole.
Result<bool> Compactor::give_up(const Error& error, journal::Address at) {
  if (error.code == ErrorCode::kOverloaded) return !journal_.batch_empty();
  if (failed_at_ == at) {
    unreadable_.emplace(victim_->base, at);
    victim_.reset();
  }
  failed_at_ = at;
  return true;
}

}  // namespace bide::engine
