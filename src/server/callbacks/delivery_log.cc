#include "server/callbacks/delivery_log.h"

#include <algorithm>
#include <utility>

namespace bide::server {

namespace {

std::size_t bytes_of(const DeliveryRecord& record) {
  if (!record.whole) return 0;
  std::size_t bytes = sizeof(Job) + record.whole->body.size();
  for (const auto& [name, value] : record.whole->headers) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

JobId DeliveryLog::add(DeliveryRecord record) {
  std::lock_guard lock(mutex_);
  record.id = ids_.next(record.at.time_since_epoch().count(), random_.next());
  const JobId id = record.id;
  bytes_ += bytes_of(record);
  records_.push_back(std::move(record));
  while (bytes_ > most_bytes_ && kept_from_ < records_.size()) {
    bytes_ -= bytes_of(records_[kept_from_]);
    records_[kept_from_++].whole.reset();
  }
  while (records_.size() > most_entries_) {
    bytes_ -= bytes_of(records_.front());
    records_.pop_front();
    if (kept_from_ > 0) --kept_from_;
  }
  return id;
}

std::vector<DeliveryRecord> DeliveryLog::list(std::size_t limit, const JobId& job, const JobId& before) const {
  std::lock_guard lock(mutex_);
  std::vector<DeliveryRecord> found;
  for (auto record = records_.rbegin(); record != records_.rend() && found.size() < limit; ++record) {
    if (!before.is_nil() && record->id >= before) continue;
    if (job.is_nil() || record->job == job) found.push_back(*record);
  }
  return found;
}

std::optional<DeliveryRecord> DeliveryLog::find(const JobId& id) const {
  std::lock_guard lock(mutex_);
  const auto record =
      std::lower_bound(records_.begin(), records_.end(), id,
                       [](const DeliveryRecord& each, const JobId& wanted) { return each.id < wanted; });
  if (record == records_.end() || record->id != id) return std::nullopt;
  return *record;
}

}  // namespace bide::server
