// SettledJobs: how a second copy of a job is known. A message that is replaced (by its next attempt, or by a dead job)
// can come back when its acknowledgement is lost, and what was published in its place can be there twice. Each copy of a
// job is stamped later than the one it replaces, so a stamp says which of them are over.
//
// Remembers the newest 65 536 jobs. Not safe to share between threads.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "bide/lease.h"
#include "brokers/rabbitmq/job_message.h"
#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/stamps.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq {

class SettledJobs {
 public:
  explicit SettledJobs(Stamps& stamps, std::size_t most = 65'536) : stamps_(stamps), most_(most) {}

  // Copies of that message up to this one are over.
  void add(const JobMessage& message, std::int64_t published) {
    Life& life = life_of(known_of(message.job.id), message.generation);
    life.published = std::max(life.published, published);
  }
  // The same, and a lease of it has ended with an outcome of that kind.
  void add(const JobMessage& message, std::uint64_t token, std::size_t outcome, std::int64_t published) {
    add(message, published);
    Known& known = known_of(message.job.id);
    known.token = token;
    known.outcome = outcome;
  }
  // Another lease has been granted since.
  void leased_again(const JobId& id) {
    if (const auto known = all_.find(id); known != all_.end()) known->second.token = 0;
  }

  bool is_over(const JobMessage& message) const {
    const Life* const life = find_life(message);
    return life != nullptr && message.published > 0 && message.published <= life->published;
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
    Life& life = life_of(known_of(message.job.id), message.generation);
    if (life.original != message.published || board.is_purged(message.job.queue, life.copy)) {
      life.original = message.published;
      life.copy = stamps_.next();
      life.due.reset();
    }
    return life.copy;
  }
  // The message itself when nothing was to take its place.
  std::int64_t last_copy_of(const JobMessage& message) const {
    const Life* const life = find_life(message);
    const bool has_copy = life != nullptr && message.published > 0 && life->original == message.published;
    return has_copy ? life->copy : message.published;
  }
  // The copy with that stamp was accepted, and is not to start before this. An earlier try to write it may be there as
  // well, with an earlier time.
  void copy_is_due(const JobMessage& message, Time due) {
    if (message.published > 0) life_of(known_of(message.job.id), message.generation).due = due;
  }
  std::optional<Time> due_of_copy(const JobMessage& copy) const {
    const Life* const life = find_life(copy);
    return life != nullptr && copy.published > 0 && copy.published == life->copy ? life->due : std::nullopt;
  }

 private:
  static constexpr std::size_t kMostLives = 16;
  // The same id enqueued twice is two jobs, of two generations. The newest are remembered.
  struct Life {
    std::int64_t generation = 0;
    std::int64_t published = 0;  // Copies up to this one are over.
    std::int64_t original = 0;   // The place of this copy was to be taken ...
    std::int64_t copy = 0;       // ... by one with this stamp, which perhaps was written ...
    std::optional<Time> due = {};  // ... and is due then, if it was accepted.
  };
  struct Known {
    std::uint64_t token = 0;  // 0: of no lease.
    std::size_t outcome = 0;  // Its kind.
    std::vector<Life> lives = {};
  };

  static Life& life_of(Known& known, std::int64_t generation) {
    for (Life& life : known.lives) {
      if (life.generation == generation) return life;
    }
    if (known.lives.size() == kMostLives) {
      known.lives.erase(std::min_element(known.lives.begin(), known.lives.end(),
                                         [](const Life& a, const Life& b) { return a.generation < b.generation; }));
    }
    return known.lives.emplace_back(Life{.generation = generation});
  }
  const Life* find_life(const JobMessage& message) const {
    const auto known = all_.find(message.job.id);
    if (known == all_.end()) return nullptr;
    for (const Life& life : known->second.lives) {
      if (life.generation == message.generation) return &life;
    }
    return nullptr;
  }
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
