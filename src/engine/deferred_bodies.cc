#include "engine/deferred_bodies.h"

#include <utility>

#include "engine/journal/records.h"

namespace bide::engine {

namespace {

using journal::RecordView;

Status take(const RecordView& view, const DeferredBodies::Body& from, bool with_body, JobInfo& info) {
  journal::Accepted record;
  if (Status decoded = decode(view, record); !decoded) return decoded;
  if (!from.with_expiry) record.job.expires.reset();
  if (!with_body) record.job.body = {};
  info.job = std::move(record.job);
  if (!from.with_past) return {};
  info.counts = record.how.past.counts;
  info.history = std::move(record.how.past.history);
  info.note = std::move(record.how.past.note);
  return {};
}

}  // namespace

Status DeferredBodies::read_into(std::span<JobInfo> jobs) const {
  for (const Body& body : bodies_) {
    const Status read = body.read([&](const RecordView& view) -> Status {
      const auto inner = unwrap(view);
      return inner ? take(*inner, body, with_bodies_, jobs[body.at]) : inner.error();
    });
    if (!read) return read;
  }
  return {};
}

}  // namespace bide::engine
