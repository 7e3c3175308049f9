// Job: what is to be run, and under which rules. Everything a user says about a job is here; what becomes of it is in
// JobInfo (bide/inspector.h) and, while it runs, in Lease (bide/lease.h).

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/job_id.h"
#include "bide/retry_policy.h"

namespace bide {

using Milliseconds = std::chrono::milliseconds;
using Time = std::chrono::sys_time<Milliseconds>;  // Wall clock.

using Headers = std::vector<std::pair<std::string, std::string>>;

// What a body or a result is when nobody said.
inline constexpr std::string_view kDefaultContentType = "application/octet-stream";
inline std::string_view content_type_or_default(std::string_view type) { return type.empty() ? kDefaultContentType : type; }

struct JobPast;

// What becomes of a job that waits for others (Job::after) when one of them dies.
enum class AfterDeath : std::uint8_t {
  kHold,    // It waits on: replaying the dead one lets it go on.
  kCancel,  // It is cancelled, and so are those that wait for it.
  kRun,     // Dead counts as finished: it runs.
};

// What a second job with a live unique key gets.
enum class OnConflict : std::uint8_t {
  kRefuse,    // kAlreadyExists.
  kExisting,  // The id of the first; nothing is written.
  kReplace,   // Takes the place of the first, with its own body and due time (debounce). One that runs already: kAlreadyExists.
};

struct Job {
  JobId id = {};                  // Nil: the broker gives one. Given: enqueuing it again is harmless.
  std::string kind = {};          // Chooses the handler. Required.
  std::string queue = "default";  // [A-Za-z0-9_-][A-Za-z0-9_.:-]*, at most 128 bytes; kinds likewise.
  std::string body = {};
  std::string content_type = {};  // Of the body. Empty: kDefaultContentType.
  Headers headers = {};

  Milliseconds delay{0};            // Counted from acceptance, by elapsed time: a stepped clock does not change it.
  std::optional<Time> due = {};     // Or a time of the wall clock. Giving both is an error.
  std::optional<Time> expires = {};  // Not started by then: dead, as expired.
  Milliseconds time_limit{30 * 60 * 1000};  // For one attempt, however alive its worker is.

  int priority = 0;  // -100 to 100; higher runs first.
  RetryPolicy retry = {};
  std::string unique_key = {};  // Not empty: at most one live job with this key.
  Milliseconds unique_for{0};   // Held at least so long after acceptance, whatever becomes of the job.
  OnConflict on_conflict = OnConflict::kRefuse;

  std::string group = {};          // Shares the limits that its queue has for each group (QueueRules). A tenant, a host.
  std::vector<JobId> after = {};   // Waits until all of these are done. At most Limits::kAfter; unknown ones are refused.
  AfterDeath after_death = AfterDeath::kHold;
  JobId flow = {};                 // Not nil: shown, cancelled and replayed together with the others of this flow.

  // A job that comes from another broker. Given to enqueue(), where capabilities() has carries_past; never handed out.
  std::shared_ptr<const JobPast> past = {};
};

struct Limits {
  static constexpr std::size_t kNameBytes = 128;
  static constexpr std::size_t kUniqueKeyBytes = 512;
  static constexpr std::size_t kHeaderBytes = 16 * 1024;  // All names and values together.
  static constexpr std::size_t kBodyBytes = 16 * 1024 * 1024;
  static constexpr std::size_t kErrorBytes = 1024;  // Longer error texts are cut.
  static constexpr std::size_t kGroupBytes = 128;
  static constexpr std::size_t kAfter = 1000;             // Ids in Job::after.
  static constexpr std::size_t kSteps = 100;              // Results of steps kept for a job,
  static constexpr std::size_t kStepBytes = 1024 * 1024;  // and their bytes together.
  static constexpr std::size_t kHistory = 10;       // Errors kept for a job, newest last.
  static constexpr std::uint32_t kAttempts = 32'767;  // That a job may have begun before it came.
  static constexpr std::chrono::hours kDelay{24 * 365 * 100};
};

// kWaiting: for the jobs in Job::after.
enum class JobState : std::uint8_t { kScheduled, kReady, kRunning, kDone, kDead, kWaiting };

// Attempts by how they ended, other than well. Attempts that were returned are not counted anywhere.
struct AttemptCounts {
  std::uint32_t failed = 0;
  std::uint32_t timed_out = 0;
  std::uint32_t lost = 0;     // The lease ran out: the worker fell silent.
  std::uint32_t crashed = 0;  // The process died during the attempt.

  std::uint32_t total() const { return failed + timed_out + lost + crashed; }
  friend bool operator==(const AttemptCounts&, const AttemptCounts&) = default;
};

enum class Fault : std::uint8_t { kFailed, kTimedOut, kLost, kCrashed };

struct AttemptError {
  std::uint32_t attempt = 0;
  Time at = {};
  Fault fault = Fault::kFailed;
  std::string text = {};

  friend bool operator==(const AttemptError&, const AttemptError&) = default;
};

enum class DeadReason : std::uint8_t {
  kExhausted,  // No attempts left.
  kRejected,   // The handler said so.
  kExpired,    // Not started in time.
  kPoison,     // Killed its worker too often.
  kDamaged,    // Quarantined: what is stored of it cannot be read. Nobody settles a job as this.
};

// What became of a job before it was enqueued here. It goes on from there: a due time that has passed stays as it is, and a
// dead job is dead at once, whoever holds its unique key.
struct JobPast {
  std::uint32_t attempts = 0;  // Started so far.
  AttemptCounts counts = {};
  std::vector<AttemptError> history = {};  // Newest last.
  std::optional<DeadReason> dead = {};
  std::optional<Time> finished = {};  // Dead: since when. Nothing: now.

  friend bool operator==(const JobPast&, const JobPast&) = default;
};

std::string_view to_string(AfterDeath what);
std::string_view to_string(OnConflict what);
std::string_view to_string(JobState state);
std::string_view to_string(Fault fault);
std::string_view to_string(DeadReason reason);

}  // namespace bide
