// World: what a store holds, as simply as it can be said. The simulation keeps one beside the real ledger, makes the
// same changes to both and compares. A World is cheap to copy: the list of jobs, and
// the jobs, are shared until they change.
//
// What the engine decides by itself (a lease runs out, a job expires, a result is forgotten) is looked at in the
// ledger, judged, and then done here too; everything else is foretold.

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/job.h"
#include "bide/lease.h"
#include "platform/clock.h"

namespace bide::simulation {

enum class Phase : std::uint8_t { kWaiting, kRunning, kDone, kDead };

const char* to_string(Phase phase);

// Bodies are made from a seed, so that the model need not keep them.
struct BodyPlan {
  std::uint64_t seed = 0;
  std::size_t bytes = 0;
};
std::string make_body(const BodyPlan& plan);
bool is_body(const BodyPlan& plan, std::string_view body);

// One reading of the clock, with the engine's own time, which follows elapsed time between steps of the wall clock.
struct Moment {
  std::int64_t elapsed_us = 0;
  std::int64_t wall_us = 0;
  std::int64_t now_us = 0;

  std::int64_t now_ms() const { return now_us / 1000; }
  std::int64_t now_ms_rounded_up() const { return (now_us + 999) / 1000; }
  std::int64_t elapsed_ms() const { return elapsed_us / 1000; }
  std::int64_t wall_ms() const { return wall_us / 1000; }
};

struct ModelJob {
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::uint64_t tag = 0;             // Ours: it is a header of the job.
  JobId id = {};                     // Nil: an effect whose id we have not seen yet.
  std::shared_ptr<const Job> rules;  // Without the body.
  BodyPlan body = {};

  Phase phase = Phase::kWaiting;
  std::int64_t due_ms = 0;
  bool due_is_wall = false;
  std::int64_t due_slack_ms = 0;  // The engine has drawn a wait up to so much longer: see learn_waits().
  // Kept apart from due_ms, in the clocks as they are: the proof that nothing is early.
  std::int64_t not_before_elapsed_us = kAlways;
  std::int64_t not_before_wall_us = kAlways;

  std::uint32_t attempts = 0;
  AttemptCounts counts = {};
  std::size_t history = 0;
  std::uint32_t unheard = 0;      // Leases in a row that came to nothing with their process.
  std::string last_error = {};    // Empty: whatever the engine wrote.
  std::int64_t started_ms = 0;    // Of the attempt that runs.
  std::uint64_t ended_token = 0;  // Of the settlement that is the last thing that happened to it.
  std::size_t ended_as = 0;       // ... its outcome.
  bool ended_token_known = true;  // Two states that a crash may have left look the same from outside.
  bool was_due = false;           // The wall clock has reached due_ms; it may have been steered back a little since.
  bool was_due_before = false;    // The same, and then a step of the clock was followed.

  // Running.
  std::uint64_t token = 0;
  std::uint32_t subscription = 0;
  bool outlives_process = false;
  bool crashed = false;    // Its process died, and there has been no room yet to charge it.
  bool delivered = false;  // And known to have reached its worker.
  bool cancel_requested = false;
  std::uint32_t lease_ms = 0;
  std::int64_t deadline_elapsed_ms = 0;
  std::int64_t limit_elapsed_ms = kNever;

  // Done or dead.
  std::int64_t finished_ms = 0;
  std::int64_t finished_elapsed_us = 0;
  std::int64_t clock_forward_us = 0;  // By how much the wall clock had been set forward until then, in all.
  DeadReason dead_reason = DeadReason::kExhausted;
  BodyPlan result = {};
  bool seen_forgotten = false;

  bool is_live() const { return phase == Phase::kWaiting || phase == Phase::kRunning; }
};

class World {
 public:
  using Jobs = std::vector<std::pair<std::uint64_t, std::shared_ptr<ModelJob>>>;  // By tag, which increases.

  const Jobs& jobs() const { return *jobs_; }
  const ModelJob* find(std::uint64_t tag) const;
  const ModelJob* find(const JobId& id) const;
  const ModelJob* holder(const std::string& unique_key) const;
  std::size_t count(Phase phase) const;
  ModelJob& change(std::uint64_t tag);
  void remove(std::uint64_t tag);

  bool is_paused(const std::string& queue) const { return paused_.contains(queue); }
  const std::set<std::string>& paused() const { return paused_; }
  void pause(const std::string& queue, bool paused);

  // The wall clock further from our time than this has been stepped.
  static constexpr std::int64_t kClockStepUs = 100'000;
  // True: it was a step, and what waits for a span of time moved along.
  bool follow(const platform::Instant& instant);
  // Jobs due by the wall clock become so at this moment, and stay so until it is stepped.
  // `is_ready` says whether the engine has made it ready: it may be behind. `certain`: by looking, not by concluding.
  void see_due(const Moment& moment, const std::function<bool(const ModelJob&, bool certain)>& is_ready = nullptr);
  static bool is_due(const ModelJob& job, const Moment& moment) {
    return job.due_ms <= moment.now_ms() && (!job.due_is_wall || job.was_due || job.due_ms <= moment.wall_ms());
  }
  Moment at(const platform::Instant& instant) const {
    return {instant.elapsed_us, instant.wall_us, instant.elapsed_us + offset_us_};
  }
  std::int64_t offset_us() const { return offset_us_; }
  // When a span of time that begins now has passed for certain.
  static std::int64_t due_after(Milliseconds after, const Moment& moment);
  void shift_dues(std::int64_t by_ms);

  void accept(const Job& job, std::uint64_t tag, const BodyPlan& body, const Moment& moment);
  void start(std::uint64_t tag, std::uint64_t token, const Moment& moment);
  // `settled`: by a worker; otherwise the engine did it, and the worker's own settle is refused.
  void retry(std::uint64_t tag, const RetryAt& outcome, const std::optional<BodyPlan>& body, const Moment& moment,
             bool settled);
  void die(std::uint64_t tag, const Dead& outcome, const Moment& moment, bool settled);
  void expire(std::uint64_t tag, const Moment& moment);
  void give_back(std::uint64_t tag, const Returned& outcome, const Moment& moment, bool settled);
  void come_back_unheard(std::uint64_t tag, const Moment& moment);
  void finish(std::uint64_t tag, const BodyPlan& result, const Moment& moment);
  void reschedule(std::uint64_t tag, Time due, const Moment& moment);
  void postpone(std::uint64_t tag, std::int64_t due_ms, Milliseconds at_least, const Moment& moment);
  void replay(std::uint64_t tag, bool keep_attempts, Milliseconds delay, const Moment& moment);

  // An orderly end: the lease of this job is returned, if it is of the process.
  void close(const JobId& id, const Moment& moment);
  // In another boot of the machine, or where nobody has written down how time passed: the wall clock is believed, but time
  // does not go back. In the same boot it is follow().
  void believe_wall(const platform::Instant& instant);
  // The same where a full disk has no room to write down that time was set back: it goes on from where it was.
  void stay(const platform::Instant& instant);
  // Leases of the process that died are charged; others get time to be heard of again. The clocks have been followed, or
  // believed. `left` are jobs that were not charged yet, because a full disk had no room for it.
  void reopen(const platform::Instant& instant, std::uint32_t max_crashes, const std::set<JobId>& left = {});

  // The latest time that is written in a record.
  std::int64_t last_time_ms() const { return last_time_ms_; }
  void see_last_time(std::int64_t ms) { last_time_ms_ = ms; }

 private:
  Jobs& own();
  ModelJob& end_attempt(std::uint64_t tag, Fault fault, const std::string& error, bool settled);
  void forget_was_due();
  void restart_spans();
  static void wait_for(ModelJob& job, Milliseconds after, const Moment& moment);

  std::shared_ptr<Jobs> jobs_ = std::make_shared<Jobs>();
  std::set<std::string> paused_;
  std::int64_t offset_us_ = 0;
  std::int64_t last_time_ms_ = 0;
};

}  // namespace bide::simulation
