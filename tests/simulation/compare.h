// Comparing a ledger with the World that it should hold.

#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "engine/ledger.h"
#include "simulation/model.h"

namespace bide::simulation {

struct CompareOptions {
  std::uint64_t done_limit = 0;
  Milliseconds result_retention{0};
  Milliseconds dead_retention{0};       // 0: for ever.
  std::int64_t latest_now_ms = 0;       // The latest that the engine's time has ever been.
  bool damage_may_be_reported = false;  // A job that cannot be read is no difference, if the error says which file.
};

// A ledger that stays as it is while Worlds are compared with it: each job is read once.
class Reading {
 public:
  explicit Reading(engine::Ledger& ledger) : ledger_(ledger) {}

  engine::Ledger& ledger() const { return ledger_; }
  const Result<JobInfo>& find(const JobId& id);

 private:
  engine::Ledger& ledger_;
  std::unordered_map<JobId, Result<JobInfo>> read_;
};

// Effects that were given no id get one from the ledger, which the World finds out by their tags.
void learn_ids(engine::Ledger& ledger, World& world);

// How long a job waits after a crash is drawn by the ledger; the World finds it out, if it is a wait that may be.
void learn_waits(engine::Ledger& ledger, World& world);

// How a job differs from what the ledger says of it.
std::optional<std::string> difference(const JobInfo& info, const ModelJob& job, const Moment& moment);

// The first thing that is not as it should be; nothing when every job, queue and unique key is. Marks done jobs that
// the ledger has forgotten, which it may.
std::optional<std::string> difference(Reading& reading, World& world, const Moment& moment,
                                      const CompareOptions& options);

}  // namespace bide::simulation
