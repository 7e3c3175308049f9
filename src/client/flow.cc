#include "bide/flow.h"

#include <algorithm>

#include "core/job_ids.h"
#include "core/job_rules.h"
#include "platform/clock.h"
#include "platform/keyed_hash.h"
#include "platform/random.h"

namespace bide {

namespace {

constexpr std::size_t kJobsAtOnce = 10'000;

Time now() { return Time(Milliseconds(platform::real_clock().now().wall_us / 1000)); }

JobId new_id() {
  thread_local platform::SystemRandom random;
  thread_local core::JobIdSource ids;
  return ids.next(now().time_since_epoch().count(), random.next());
}

// None waits for one that was added behind it: then they can go in several calls.
bool is_ordered(const std::vector<Job>& jobs) {
  platform::KeyedMap<JobId, std::size_t> places;
  for (std::size_t i = 0; i < jobs.size(); ++i) places.emplace(jobs[i].id, i);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const JobId& id : jobs[i].after) {
      const auto found = places.find(id);
      if (found != places.end() && found->second > i) return false;
    }
  }
  return true;
}

}  // namespace

Flow::Flow() : id_(new_id()) {}

JobId Flow::add(std::string_view kind, std::string_view body, const EnqueueOptions& options) {
  return add(make_job(kind, std::string(body), options));
}

JobId Flow::add(Job job) {
  if (job.id.is_nil()) job.id = new_id();
  job.flow = id_;
  jobs_.push_back(std::move(job));
  return jobs_.back().id;
}

Status Flow::after(JobId job, const std::vector<JobId>& others) {
  const auto found = std::find_if(jobs_.rbegin(), jobs_.rend(), [&](const Job& each) { return each.id == job; });
  if (found == jobs_.rend()) {
    return Error{ErrorCode::kNotFound, "job " + job.to_string() + " was not added to this flow, or was started already"};
  }
  found->after.insert(found->after.end(), others.begin(), others.end());
  return {};
}

Result<JobId> Flow::start(Client& client) {
  const Time moment = now();
  for (const Job& job : jobs_) {
    if (Status valid = core::validate(job, moment); !valid) {
      return Error{valid.error().code, "job " + job.id.to_string() + " (" + job.kind + ") of the flow: " + valid.error().message};
    }
  }
  const std::size_t at_once = is_ordered(jobs_) ? kJobsAtOnce : jobs_.size();
  for (std::size_t from = 0; from < jobs_.size(); from += at_once) {
    const auto begin = jobs_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(std::min(jobs_.size(), from + at_once));
    for (const Result<JobId>& each : client.enqueue(std::vector<Job>(begin, end))) {
      if (!each) return each.error();
    }
  }
  jobs_.clear();
  return id_;
}

}  // namespace bide
