// SettledJobs: how a second copy of a job is known. A message that is replaced (by its next attempt, or by a dead job)
// can come back when its acknowledgement is lost, and what was published in its place can be there twice. Each copy of a
// job is stamped later than the one it replaces, so a stamp says which of them are over.
//
// Remembers the newest 65 536 jobs. Not safe to share between threads.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "bide/lease.h"
#include "brokers/rabbitmq/job_message.h"
#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/stamps.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq {

class SettledJobs {
 public:
  explicit SettledJobs(Stamps& stamps, std::size_t most = 65'536) : stamps_(stamps), most_(most) {}

  // Copies up to this one are over.
  void add(const JobId& id, std::int64_t published) {
    Known& known = known_of(id);
    known.published = std::max(known.published, published);
  }
  // The same, and a lease of it has ended with an outcome of that kind.
  void add(const LeaseRef& lease, std::size_t outcome, std::int64_t published) {
    add(lease.id, published);
    Known& known = known_of(lease.id);
    known.token = lease.token;
    known.outcome = outcome;
  }
  // Another lease has been granted since.
  void leased_again(const JobId& id) {
    if (const auto known = all_.find(id); known != all_.end()) known->second.token = 0;
  }

  bool is_over(const JobId& id, std::int64_t published) const {
    const auto known = all_.find(id);
    return known != all_.end() && published > 0 && published <= known->second.published;
  }
  bool knows(const LeaseRef& lease) const {
    const auto known = all_.find(lease.id);
    return known != all_.end() && lease.token != 0 && known->second.token == lease.token;
  }
  bool ended_with(const LeaseRef& lease, std::size_t outcome) const {
    return knows(lease) && all_.find(lease.id)->second.outcome == outcome;
  }

  // Of what takes the place of this message, however often that is tried. A copy that was refused, or whose answer was
  // lost, may have been written all the same (a server between two leaders refuses what it has); when the next one has
  // the same stamp, whichever arrives later is recognised.
  std::int64_t stamp_of_copy(const JobMessage& message, const NoticeBoard& board) {
    if (message.published == 0) return stamps_.next();
    Known& known = known_of(message.job.id);
    if (known.original != message.published || board.is_purged(message.job.queue, known.copy)) {
      known.original = message.published;
      known.copy = stamps_.next();
    }
    return known.copy;
  }
  // The message itself when nothing was to take its place.
  std::int64_t last_copy_of(const JobMessage& message) const {
    const auto known = all_.find(message.job.id);
    const bool has_copy = known != all_.end() && message.published > 0 && known->second.original == message.published;
    return has_copy ? known->second.copy : message.published;
  }

 private:
  struct Known {
    std::uint64_t token = 0;     // 0: of no lease.
    std::size_t outcome = 0;     // Its kind.
    std::int64_t published = 0;  // Copies up to this one are over.
    std::int64_t original = 0;   // The place of this copy was to be taken ...
    std::int64_t copy = 0;       // ... by one with this stamp, which perhaps was written.
  };

  Known& known_of(const JobId& id) {
    const auto [known, is_new] = all_.try_emplace(id);
    if (is_new) order_.push_back(id);
    while (order_.size() > most_) {
      all_.erase(order_.front());
      order_.pop_front();
    }
    return known->second;
  }

  Stamps& stamps_;
  const std::size_t most_;
  platform::KeyedMap<JobId, Known> all_;
  std::deque<JobId> order_;
};

}  // namespace bide::brokers::rabbitmq
