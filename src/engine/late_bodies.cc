#include "engine/late_bodies.h"

#include <utility>

#include "engine/journal/records.h"

namespace bide::engine {

namespace {

using journal::RecordView;

Status take(const RecordView& view, const LateBodies::Late& late, bool with_body, JobInfo& info) {
  journal::Accepted record;
  if (Status decoded = decode(view, record); !decoded) return decoded;
  if (!late.with_expiry) record.job.expires.reset();
  if (!with_body) record.job.body = {};
  info.job = std::move(record.job);
  if (!late.with_past) return {};
  info.counts = record.how.past.counts;
  info.history = std::move(record.how.past.history);
  info.note = std::move(record.how.past.note);
  return {};
}

}  // namespace

Status LateBodies::read_into(std::span<JobInfo> jobs) const {
  for (const Late& late : late_) {
    const Status read = late.read([&](const RecordView& view) -> Status {
      const bool is_moved = static_cast<journal::RecordType>(view.type) == journal::RecordType::kMoved;
      if (!is_moved) return take(view, late, with_bodies_, jobs[late.at]);
      journal::Moved moved;
      if (Status decoded = decode(view, moved); !decoded) return decoded;
      return take(moved.inner, late, with_bodies_, jobs[late.at]);
    });
    if (!read) return read;
  }
  return {};
}

}  // namespace bide::engine
