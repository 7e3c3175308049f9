// DeliveryLog: the last deliveries, for listing and replay. In memory, lost by a restart. Bounded in entries, and in
// bytes of the jobs kept for replay.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bide/job.h"
#include "core/job_ids.h"
#include "platform/random.h"
#include "server/callbacks/delivery_result.h"

namespace bide::server {

struct DeliveryRecord {
  JobId id = {};  // Of the delivery; greater than that of every earlier one.
  JobId job = {};
  std::string kind = {};
  std::string queue = {};
  std::uint32_t attempt = 0;
  std::string url = {};  // Without its query.
  Time at = {};          // When it was sent.
  Milliseconds took{0};
  int status = 0;        // 0: there was no answer.
  DeliveryResult::Kind outcome = DeliveryResult::Kind::kFailed;
  std::string error = {};

  std::shared_ptr<const Job> whole = nullptr;  // Null: dropped, too many bytes.
};

// Safe to share between threads.
class DeliveryLog {
 public:
  DeliveryLog(std::size_t entries, std::size_t bytes) : most_entries_(entries), most_bytes_(bytes) {}

  // Gives the record its id.
  JobId add(DeliveryRecord record);

  // Newest first. A nil `job` matches all; with `before`, only earlier ones.
  std::vector<DeliveryRecord> list(std::size_t limit, const JobId& job = {}, const JobId& before = {}) const;
  std::optional<DeliveryRecord> find(const JobId& id) const;

 private:
  const std::size_t most_entries_;
  const std::size_t most_bytes_;

  mutable std::mutex mutex_;  // Guards everything below.
  core::JobIdSource ids_;
  platform::SystemRandom random_;
  std::deque<DeliveryRecord> records_;  // Oldest first.
  std::size_t bytes_ = 0;               // Of the whole jobs.
  std::size_t kept_from_ = 0;           // Records before this one have no job.
};

}  // namespace bide::server
