// What a job must be to be accepted. Checked once, by whoever takes it from a user; the same text reaches C++, HTTP and
// the command line.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/broker.h"
#include "bide/job.h"
#include "bide/result.h"

namespace bide::core {

inline constexpr Milliseconds kLongestTimeLimit = std::chrono::hours(24 * 30);
inline constexpr int kLowestPriority = -100;
inline constexpr int kHighestPriority = 100;
inline constexpr std::size_t kContentTypeBytes = 255;

struct JobProblem {
  std::string_view code;   // Stable, for programs: missing_field, invalid_queue_name, too_far ...
  std::string_view field;  // As in Job.
  std::string message;     // One line for people: the field, what was given, what is allowed.
};

// The first thing wrong with the job. A due time or an expiry in the past is not wrong.
std::optional<JobProblem> find_problem(const Job& job, Time now);

// kInvalidArgument with the message of find_problem().
Status validate(const Job& job, Time now);

// What a job may ask for that not every broker keeps; as in Capabilities.
struct Kept {
  bool past = false;
  bool groups = false;
  bool dependencies = false;
  bool unique_windows = false;
};
Kept kept_by(const Capabilities& can);
// kUnsupported: the job asks for something that the broker does not keep.
Status check_kept(const Job& job, const Kept& kept);

// A name for a queue or a kind: [A-Za-z0-9_-][A-Za-z0-9_.:-]*, at most Limits::kNameBytes.
bool is_name(std::string_view text);
// The end of a message about one that is not.
inline constexpr std::string_view kNameRule =
    "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start";

}  // namespace bide::core
