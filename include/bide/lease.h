// Lease: the exclusive right to run one attempt of a job. Outcome: what the attempt came to.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bide/job.h"

namespace bide {

// What a step of a handler came to (Context::step): it is not done again by a later attempt.
struct Step {
  std::string name = {};
  std::string result = {};

  friend bool operator==(const Step&, const Step&) = default;
};

// How far an attempt is.
struct Progress {
  double part = 0;        // 0 to 1.
  std::string note = {};  // At most Limits::kErrorBytes.

  friend bool operator==(const Progress&, const Progress&) = default;
};

struct Lease {
  Job job = {};               // With its id.
  std::uint64_t token = 0;    // Fencing: a later lease of the same job has a greater one.
  std::uint32_t attempt = 1;  // Already written down.
  Time due = {};              // When the job was due: lateness is counted from here.
  Milliseconds age{0};        // How long ago it was given when it arrived here: its time runs from then.
  AttemptCounts counts = {};  // How earlier attempts ended.
  std::vector<AttemptError> history = {};
  std::vector<Step> steps = {};  // Done by earlier attempts.
};

struct LeaseRef {
  JobId id = {};
  std::uint64_t token = 0;
};

struct Done {
  std::string result = {};  // Kept for a while when not empty.
  std::string content_type = {};  // Empty: kDefaultContentType.
};

// Again, after a fault. The wait was decided by the job's retry policy (core) or by the handler.
struct RetryAt {
  Milliseconds after{0};
  Fault fault = Fault::kFailed;
  std::string error = {};
  std::optional<std::string> body = {};  // Replaces the body for the next attempt.
};

struct Dead {
  DeadReason reason = DeadReason::kRejected;
  Fault fault = Fault::kFailed;  // Of the last attempt.
  std::string error = {};
};

// Given back unrun or unfinished, not charged: the worker stops, or has no handler for the kind.
struct Returned {
  Milliseconds after{0};
  std::string note = {};  // Shown by explain.
};

using Outcome = std::variant<Done, RetryAt, Dead, Returned>;

// An outcome and the jobs that become real together with it.
struct Settlement {
  LeaseRef lease = {};
  Outcome outcome = Done{};
  std::vector<Job> effects = {};
};

}  // namespace bide
