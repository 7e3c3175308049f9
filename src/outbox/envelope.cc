#include "outbox/envelope.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/job_rules.h"
#include "wire/job_json.h"

namespace bide::outbox {

namespace {

// The longest that there is: whoever hands a job on is kept alive, and nothing else may end that.
constexpr Milliseconds kTimeLimit = std::chrono::hours(24 * 30);

}  // namespace

Result<Job> enclose(Job job, Time now) {
  if (Status valid = core::validate(job, now); !valid) return valid.error();
  if (Status kept = core::check_kept(job, {.past = true}); !kept) return kept.error();
  if (job.body.size() > Limits::kBodyBytes - kLineBytes) {
    return Error{ErrorCode::kInvalidArgument, "body has " + std::to_string(job.body.size()) + " bytes; an outbox takes " +
                                                  std::to_string(Limits::kBodyBytes - kLineBytes)};
  }
  Job enclosed;
  enclosed.id = job.id;
  enclosed.kind = job.kind;
  enclosed.queue = kOutboxQueue;
  enclosed.content_type = kOutboxContentType;
  enclosed.time_limit = kTimeLimit;
  enclosed.retry = RetryPolicy::fixed(Milliseconds(0), RetryPolicy::kMaxAttemptsLimit);
  const std::string body = std::move(job.body);
  job.body.clear();
  job.id = {};
  // Left out where nobody chose one.
  wire::JsonWriter out(enclosed.body);
  wire::write(out, job);
  enclosed.body += '\n';
  enclosed.body += body;
  return enclosed;
}

Result<Job> unclose(Job enclosed, Milliseconds age, Time now) {
  const auto damaged = [&](const std::string& why) {
    return Error{ErrorCode::kDamaged, "job " + enclosed.id.to_string() + " is none that an outbox has written: " + why};
  };
  const std::size_t end = enclosed.body.find('\n');
  if (enclosed.content_type != kOutboxContentType || end == std::string::npos) return damaged("it has no envelope");
  wire::JsonReader in(std::string_view(enclosed.body).substr(0, end));
  Job job;
  // Times are held against the moment of their acceptance.
  const auto problem = wire::read_job(in, now - age, job);
  if (problem) return damaged(problem->detail);
  if (!in.ok()) return damaged(in.fault().text);
  job.id = enclosed.id;
  job.body = enclosed.body.substr(end + 1);
  // The age may be a millisecond too much, and no job is early.
  if (job.delay > Milliseconds(0)) job.delay = std::max(job.delay - age + Milliseconds(1), Milliseconds(0));
  return job;
}

}  // namespace bide::outbox
