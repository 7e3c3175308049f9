#include "core/job_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/duration.h"
#include "core/quote.h"
#include "core/time_text.h"

namespace bide::core {
namespace {

using Problem = std::optional<JobProblem>;

// By byte: 1 within a name, 2 at its start too. A table, because every job that comes is looked at here.
constexpr std::array<std::uint8_t, 256> kNameBytes = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")) {
    table[static_cast<unsigned char>(c)] = 2;
  }
  table['.'] = table[':'] = 1;
  return table;
}();

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool has_control(std::string_view text) { return std::any_of(text.begin(), text.end(), is_control); }

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

Problem check_names(const Job& job) {
  if (job.kind.empty()) {
    return JobProblem{"missing_field", "kind", "kind is missing; give the name of the handler, such as send_email"};
  }
  if (!is_name(job.kind)) {
    return JobProblem{"invalid_kind_name", "kind", "invalid kind " + quoted(job.kind) + std::string(kNameRule)};
  }
  if (!is_name(job.queue)) {
    return JobProblem{"invalid_queue_name", "queue",
                      "invalid queue name " + quoted(job.queue) + std::string(kNameRule)};
  }
  return {};
}

Problem check_moment(std::string_view field, const std::optional<Time>& time, Time now) {
  // Far in the past is refused as well: it is no date anybody meant, and differences to it would not fit.
  if (!time || (*time <= now + Limits::kDelay && *time >= now - Limits::kDelay)) return {};
  return JobProblem{"too_far", field,
                    std::string(field) + " " + format_time(*time) +
                        " is too far away; allowed: within 100 years of now (" + format_time(now) + ")"};
}

Problem check_times(const Job& job, Time now) {
  if (job.delay < Milliseconds(0)) {
    return JobProblem{
        "invalid_duration", "delay",
        "delay " + format_duration(job.delay) + " is negative; allowed: 0 to 36500d; to run at once leave it out"};
  }
  if (job.delay > Limits::kDelay) {
    return JobProblem{"too_far", "delay",
                      "delay " + format_duration(job.delay) + " is too far away; allowed: 0 to 36500d (100 years)"};
  }
  if (job.due && job.delay != Milliseconds(0)) {
    return JobProblem{"conflicting_fields", "due",
                      "both due " + format_time(*job.due) + " and delay " + format_duration(job.delay) +
                          " are given; give one of them"};
  }
  if (Problem problem = check_moment("due", job.due, now)) return problem;
  if (Problem problem = check_moment("expires", job.expires, now)) return problem;
  if (job.time_limit <= Milliseconds(0) || job.time_limit > kLongestTimeLimit) {
    return JobProblem{"invalid_duration", "time_limit",
                      "time_limit " + format_duration(job.time_limit) + " is out of range; allowed: 1ms to 30d"};
  }
  return {};
}

Problem check_headers(const Job& job) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : job.headers) {
    if (name.empty()) {
      return JobProblem{"invalid_header", "headers",
                        "a header with the value " + quoted(value) + " has no name; give it one or leave it out"};
    }
    if (has_control(name)) {
      return JobProblem{"invalid_header", "headers",
                        "invalid header name " + quoted(name) + "; control characters are not allowed"};
    }
    // A tab is harmless; anything else would let a value pass for another header where jobs travel as text.
    if (std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) && c != '\t'; })) {
      return JobProblem{"invalid_header", "headers",
                        "invalid value " + quoted(value) + " of header " + quoted(name) +
                            "; control characters are not allowed, such content belongs in the body"};
    }
    bytes += name.size() + value.size();
  }
  if (bytes > Limits::kHeaderBytes) {
    return JobProblem{"headers_too_large", "headers",
                      "headers have " + bytes_text(bytes) + "; allowed: " + std::to_string(Limits::kHeaderBytes) +
                          " for all names and values together; put the rest in the body"};
  }
  return {};
}

Problem check_sizes(const Job& job) {
  if (job.body.size() > Limits::kBodyBytes) {
    return JobProblem{"body_too_large", "body",
                      "body has " + bytes_text(job.body.size()) + "; allowed: " + std::to_string(Limits::kBodyBytes) +
                          "; store it elsewhere and send its address"};
  }
  if (job.unique_key.size() > Limits::kUniqueKeyBytes) {
    return JobProblem{"invalid_unique_key", "unique_key",
                      "unique_key " + quoted(job.unique_key) + " is too long; allowed: " +
                          std::to_string(Limits::kUniqueKeyBytes) + " bytes; use a hash of it"};
  }
  if (job.content_type.size() > kContentTypeBytes || has_control(job.content_type)) {
    return JobProblem{"invalid_content_type", "content_type",
                      "invalid content_type " + quoted(job.content_type) + "; allowed: at most " +
                          bytes_text(kContentTypeBytes) + " without control characters, such as application/json"};
  }
  return {};
}

Problem check_rules(const Job& job) {
  if (job.priority < kLowestPriority || job.priority > kHighestPriority) {
    return JobProblem{
        "invalid_priority", "priority",
        "priority " + std::to_string(job.priority) + " is out of range; allowed: -100 to 100, higher runs first"};
  }
  const Status retry = job.retry.validate();
  if (!retry) return JobProblem{"invalid_retry", "retry", retry.error().message};
  return {};
}

Problem check_relations(const Job& job) {
  if (job.group.size() > Limits::kGroupBytes || has_control(job.group)) {
    return JobProblem{"invalid_group", "group",
                      "invalid group " + quoted(job.group) + "; allowed: at most " + bytes_text(Limits::kGroupBytes) +
                          " without control characters, such as tenant:42"};
  }
  if (job.after.size() > Limits::kAfter) {
    return JobProblem{"too_many_predecessors", "after",
                      "after has " + std::to_string(job.after.size()) + " ids; allowed: " +
                          std::to_string(Limits::kAfter) + "; let jobs between them wait for a part each"};
  }
  for (const JobId& other : job.after) {
    if (other.is_nil() || other == job.id) {
      return JobProblem{"invalid_predecessor", "after",
                        other.is_nil() ? "after has an id that is all zeros; give the ids of jobs"
                                       : "after has the job's own id; a job cannot wait for itself"};
    }
  }
  if (job.unique_for.count() < 0 || job.unique_for > Limits::kDelay) {
    return JobProblem{"invalid_duration", "unique_for",
                      "unique_for " + format_duration(job.unique_for) + " is out of range; allowed: 0 to 36500d"};
  }
  if (job.unique_key.empty() && (job.unique_for.count() != 0 || job.on_conflict != OnConflict::kRefuse)) {
    const std::string_view field = job.unique_for.count() != 0 ? "unique_for" : "on_conflict";
    return JobProblem{"missing_field", field, std::string(field) + " is given without unique_key; give both"};
  }
  return {};
}

Problem check_past(const Job& job, Time now) {
  const auto wrong = [](std::string why) { return JobProblem{"invalid_past", "past", "past: " + std::move(why)}; };
  const JobPast& past = *job.past;
  if (past.attempts > Limits::kAttempts) {
    return wrong(std::to_string(past.attempts) + " attempts are too many; allowed: " + std::to_string(Limits::kAttempts));
  }
  if (past.history.size() > Limits::kHistory) {
    return wrong(std::to_string(past.history.size()) + " errors are too many; allowed: " +
                 std::to_string(Limits::kHistory) + ", the newest");
  }
  for (const AttemptError& error : past.history) {
    if (error.text.size() > Limits::kErrorBytes) {
      return wrong("an error text has " + bytes_text(error.text.size()) + "; allowed: " +
                   std::to_string(Limits::kErrorBytes));
    }
    if (check_moment("past", error.at, now)) return wrong("the time of an error is too far away");
  }
  if (past.finished && !past.dead) return wrong("finished is given for a job that is not dead");
  if (past.dead == DeadReason::kDamaged) return wrong("a job that was damaged cannot be carried");
  if (check_moment("past", past.finished, now)) return wrong("finished is too far away");
  return {};
}

}  // namespace

bool is_name(std::string_view text) {
  const auto at = [&](std::size_t i) { return kNameBytes[static_cast<unsigned char>(text[i])]; };
  if (text.empty() || text.size() > Limits::kNameBytes || at(0) != 2) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (at(i) == 0) return false;
  }
  return true;
}

std::optional<JobProblem> find_problem(const Job& job, Time now) {
  Problem problem = check_names(job);
  if (!problem) problem = check_times(job, now);
  if (!problem) problem = check_headers(job);
  if (!problem) problem = check_sizes(job);
  if (!problem) problem = check_rules(job);
  if (!problem) problem = check_relations(job);
  if (!problem && job.past) problem = check_past(job, now);
  return problem;
}

Kept kept_by(const Capabilities& can) {
  return {.past = can.carries_past,
          .groups = can.queue_rules,
          .dependencies = can.dependencies,
          .unique_windows = can.unique_windows};
}

Status check_kept(const Job& job, const Kept& kept) {
  const auto unsupported = [](const char* why) { return Error{ErrorCode::kUnsupported, why}; };
  if (job.past && !kept.past) {
    return unsupported("past: this broker cannot take over the attempts and errors of a job from another");
  }
  if (!job.group.empty() && !kept.groups) return unsupported("group: this broker has no limits for groups");
  if (!job.after.empty() && !kept.dependencies) {
    return unsupported("after: on this broker a job cannot wait for others; enqueue it from the handler of the other");
  }
  if (!job.flow.is_nil() && !kept.dependencies) return unsupported("flow: this broker has no flows");
  if (kept.unique_windows) return {};
  if (job.unique_for.count() != 0) {
    return unsupported("unique_for: this broker holds a unique key only while the job lives");
  }
  if (job.on_conflict != OnConflict::kRefuse) {
    return unsupported("on_conflict: this broker can only refuse a second job with the same unique key");
  }
  return {};
}

Status validate(const Job& job, Time now) {
  Problem problem = find_problem(job, now);
  if (!problem) return {};
  return Error{ErrorCode::kInvalidArgument, std::move(problem->message)};
}

}  // namespace bide::core
