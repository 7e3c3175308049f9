// JobCensus: in which state each job is, by what the snapshot and the journal say.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bide/job_id.h"
#include "engine/check/check_store.h"
#include "engine/check/record_check.h"
#include "platform/keyed_hash.h"

namespace bide::engine::check {

class JobCensus {
 public:
  enum class State : std::uint8_t { kWaiting, kRunning, kDone, kDead };

  struct Place {
    State state = State::kWaiting;
    std::uint64_t body = 0;     // Address of its accepted record.
    std::uint64_t details = 0;  // Address of its last changed or done record; 0: none.
  };
  struct Counters {
    std::uint64_t accepted = 0, done = 0, cancelled = 0, deleted = 0, purged = 0, forgotten = 0;
  };

  // From a snapshot. False: the job is there already.
  bool restore(const JobId& id, const Place& place) { return jobs_.emplace(id, place).second; }
  void restore(const Counters& counters) { counters_ = counters; }

  // Nothing when it fits; otherwise what is wrong.
  std::optional<std::string> apply(const RecordFacts& facts, std::uint64_t address);

  // What must be readable at some address: the body of each live job, and what was last said of it.
  struct Need {
    std::uint64_t address = 0;
    JobId id;
    bool body = false;
  };
  std::vector<Need> needs() const;  // By address.
  // What done jobs left for those who ask about them.
  std::vector<Need> results() const;  // By address.

  void fill(StoreReport& report) const;

  bool is_waiting(const JobId& id) const { return is(id, State::kWaiting); }
  bool is_dead(const JobId& id) const { return is(id, State::kDead); }

 private:
  bool is(const JobId& id, State state) const {
    const auto found = jobs_.find(id);
    return found != jobs_.end() && found->second.state == state;
  }
  std::optional<std::string> apply_one(const RecordFacts& facts, const JobId& id, std::uint64_t address);
  std::optional<std::string> apply_accepted(const RecordFacts& facts, const JobId& id, std::uint64_t address);

  platform::KeyedMap<JobId, Place> jobs_;
  Counters counters_;
};

}  // namespace bide::engine::check
