#include "simulation/model.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/retry_decision.h"
#include "platform/fatal.h"

namespace bide::simulation {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return "waiting";
    case Phase::kRunning:
      return "running";
    case Phase::kDone:
      return "done";
    case Phase::kDead:
      return "dead";
  }
  return "?";
}

namespace {

std::uint64_t next_word(std::uint64_t word) { return (word ^ (word >> 29)) * 0xbf58476d1ce4e5b9; }

}  // namespace

std::string make_body(const BodyPlan& plan) {
  std::string body(plan.bytes, '\0');
  std::uint64_t word = plan.seed * 2 + 1;
  for (std::size_t at = 0; at < body.size(); at += sizeof word) {
    word = next_word(word);
    std::memcpy(body.data() + at, &word, std::min(sizeof word, body.size() - at));
  }
  return body;
}

bool is_body(const BodyPlan& plan, std::string_view body) {
  if (body.size() != plan.bytes) return false;
  std::uint64_t word = plan.seed * 2 + 1;
  std::size_t at = 0;
  for (; at + sizeof word <= body.size(); at += sizeof word) {
    word = next_word(word);
    std::uint64_t found = 0;
    std::memcpy(&found, body.data() + at, sizeof found);
    if (found != word) return false;
  }
  word = next_word(word);
  return std::memcmp(&word, body.data() + at, body.size() - at) == 0;
}

namespace {

bool before(const World::Jobs::value_type& job, std::uint64_t tag) { return job.first < tag; }

}  // namespace

World::Jobs& World::own() {
  if (jobs_.use_count() > 1) jobs_ = std::make_shared<Jobs>(*jobs_);
  return *jobs_;
}

void World::remove(std::uint64_t tag) {
  std::erase_if(own(), [tag](const auto& job) { return job.first == tag; });
}

const ModelJob* World::find(std::uint64_t tag) const {
  const auto found = std::lower_bound(jobs_->begin(), jobs_->end(), tag, before);
  return found == jobs_->end() || found->first != tag ? nullptr : found->second.get();
}

const ModelJob* World::find(const JobId& id) const {
  for (const auto& [tag, job] : *jobs_) {
    if (job->id == id) return job.get();
  }
  return nullptr;
}

const ModelJob* World::holder(const std::string& unique_key) const {
  if (unique_key.empty()) return nullptr;
  for (const auto& [tag, job] : *jobs_) {
    if (job->is_live() && job->rules->unique_key == unique_key) return job.get();
  }
  return nullptr;
}

std::size_t World::count(Phase phase) const {
  return static_cast<std::size_t>(
      std::count_if(jobs_->begin(), jobs_->end(), [phase](const auto& job) { return job.second->phase == phase; }));
}

ModelJob& World::change(std::uint64_t tag) {
  Jobs& jobs = own();
  const auto found = std::lower_bound(jobs.begin(), jobs.end(), tag, before);
  platform::require(found != jobs.end() && found->first == tag, "the model has no such job");
  if (found->second.use_count() > 1) found->second = std::make_shared<ModelJob>(*found->second);
  return *found->second;
}

void World::pause(const std::string& queue, bool paused) {
  if (paused) {
    paused_.insert(queue);
  } else {
    paused_.erase(queue);
  }
}

bool World::follow(const platform::Instant& instant) {
  const std::int64_t step_us = instant.wall_us - instant.elapsed_us - offset_us_;
  if (step_us <= kClockStepUs && step_us >= -kClockStepUs) return false;
  const std::int64_t step_ms = step_us / 1000 + (step_us > 0 ? 1 : 0);
  offset_us_ += step_ms * 1000;
  last_time_ms_ += step_ms;
  shift_dues(step_ms);
  forget_was_due();
  return true;
}

void World::see_due(const Moment& moment, const std::function<bool(const ModelJob&, bool certain)>& is_ready) {
  std::vector<std::uint64_t> due;
  for (const auto& [tag, job] : *jobs_) {
    if (job->phase != Phase::kWaiting || !job->due_is_wall || job->was_due) continue;
    // One that was ready before a step waits for the ledger's time alone, also if the clock was stepped again since.
    const bool again = is_ready && job->was_due_before && job->due_ms <= moment.now_ms();
    if ((again || is_due(*job, moment)) && (!is_ready || is_ready(*job, again))) due.push_back(tag);
  }
  for (const std::uint64_t tag : due) change(tag).was_due = true;
}

void World::forget_was_due() {
  std::vector<std::uint64_t> due;
  for (const auto& [tag, job] : *jobs_) {
    if (job->was_due) due.push_back(tag);
  }
  for (const std::uint64_t tag : due) {
    ModelJob& job = change(tag);
    job.was_due = false;
    job.was_due_before = true;
  }
}

void World::shift_dues(std::int64_t by_ms) {
  if (by_ms == 0) return;
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, job] : *jobs_) {
    if (job->phase == Phase::kRunning || (job->is_live() && !job->due_is_wall)) tags.push_back(tag);
  }
  for (const std::uint64_t tag : tags) {
    ModelJob& job = change(tag);
    if (!job.due_is_wall) job.due_ms = std::max<std::int64_t>(0, job.due_ms + by_ms);
    if (job.phase == Phase::kRunning) job.started_ms += by_ms;
  }
}

std::int64_t World::due_after(Milliseconds after, const Moment& moment) {
  return after.count() > 0 ? moment.now_ms_rounded_up() + after.count() : moment.now_ms();
}

void World::wait_for(ModelJob& job, Milliseconds after, const Moment& moment) {
  job.due_is_wall = false;
  job.due_slack_ms = 0;
  job.was_due = job.was_due_before = false;
  job.due_ms = due_after(after, moment);
  job.not_before_elapsed_us = moment.elapsed_us + std::max<std::int64_t>(0, after.count()) * 1000;
  job.not_before_wall_us = ModelJob::kAlways;
}

void World::accept(const Job& job, std::uint64_t tag, const BodyPlan& body, const Moment& moment) {
  auto model = std::make_shared<ModelJob>();
  model->tag = tag;
  model->id = job.id;
  auto rules = std::make_shared<Job>(job);
  rules->body.clear();
  model->rules = std::move(rules);
  model->body = body;
  wait_for(*model, job.delay, moment);
  if (job.due && job.due->time_since_epoch().count() > moment.now_ms()) {
    model->due_ms = job.due->time_since_epoch().count();
    model->due_is_wall = true;
    model->not_before_elapsed_us = ModelJob::kAlways;
    model->not_before_wall_us = model->due_ms * 1000;
  }
  if (job.past && job.due && !model->due_is_wall) {
    model->due_ms = std::max<std::int64_t>(0, job.due->time_since_epoch().count());
  }
  if (job.past) {
    model->attempts = job.past->attempts;
    model->counts = job.past->counts;
    model->history = job.past->history.size();
    if (!job.past->history.empty()) model->last_error = job.past->history.back().text;
  }
  if (job.past && job.past->dead) {
    model->phase = Phase::kDead;
    model->dead_reason = *job.past->dead;
    model->finished_ms = moment.now_ms();
    if (job.past->finished) {
      model->finished_ms = std::min(model->finished_ms, job.past->finished->time_since_epoch().count());
    }
  }
  // A done job that was forgotten may come again.
  if (!job.id.is_nil()) {
    std::erase_if(own(), [&](const auto& other) { return other.second->id == job.id; });
  }
  // Tags increase, except that a settle may make its effects in another order.
  Jobs& jobs = own();
  jobs.insert(std::lower_bound(jobs.begin(), jobs.end(), tag, before), {tag, std::move(model)});
}

void World::start(std::uint64_t tag, std::uint64_t token, const Moment& moment) {
  ModelJob& job = change(tag);
  job.phase = Phase::kRunning;
  job.token = token;
  job.attempts += 1;
  job.cancel_requested = false;
  job.crashed = false;
  job.delivered = false;
  job.started_ms = moment.now_ms();
  job.limit_elapsed_ms = moment.elapsed_ms() + job.rules->time_limit.count();
}

ModelJob& World::end_attempt(std::uint64_t tag, Fault fault, const std::string& error, bool settled) {
  ModelJob& job = change(tag);
  switch (fault) {
    case Fault::kFailed:
      ++job.counts.failed;
      break;
    case Fault::kTimedOut:
      ++job.counts.timed_out;
      break;
    case Fault::kLost:
      ++job.counts.lost;
      break;
    case Fault::kCrashed:
      ++job.counts.crashed;
      break;
  }
  job.history = std::min(job.history + 1, Limits::kHistory);
  job.unheard = 0;
  job.last_error = settled ? error : "";
  job.ended_token = settled ? job.token : 0;
  job.ended_token_known = true;
  job.token = 0;
  return job;
}

void World::retry(std::uint64_t tag, const RetryAt& outcome, const std::optional<BodyPlan>& body, const Moment& moment,
                  bool settled) {
  ModelJob& job = end_attempt(tag, outcome.fault, outcome.error, settled);
  job.ended_as = Outcome(outcome).index();
  job.phase = Phase::kWaiting;
  if (body) job.body = *body;
  wait_for(job, outcome.after, moment);
}

void World::die(std::uint64_t tag, const Dead& outcome, const Moment& moment, bool settled) {
  ModelJob& job = end_attempt(tag, outcome.fault, outcome.error, settled);
  job.ended_as = Outcome(outcome).index();
  job.phase = Phase::kDead;
  job.dead_reason = outcome.reason;
  job.finished_ms = moment.now_ms();
}

void World::expire(std::uint64_t tag, const Moment& moment) {
  ModelJob& job = change(tag);
  job.phase = Phase::kDead;
  job.dead_reason = DeadReason::kExpired;
  job.unheard = 0;
  job.finished_ms = moment.now_ms();
  job.ended_token = 0;
  job.ended_token_known = true;
}

void World::give_back(std::uint64_t tag, const Returned& outcome, const Moment& moment, bool settled) {
  ModelJob& job = change(tag);
  job.phase = Phase::kWaiting;
  job.attempts -= 1;
  job.unheard = 0;
  job.ended_as = Outcome(outcome).index();
  job.ended_token = settled ? job.token : 0;
  job.ended_token_known = true;
  job.token = 0;
  if (outcome.after.count() > 0) wait_for(job, outcome.after, moment);
  job.was_due = is_due(job, moment);
}

void World::come_back_unheard(std::uint64_t tag, const Moment& moment) {
  ModelJob& job = change(tag);
  job.phase = Phase::kWaiting;
  job.unheard += 1;
  job.ended_token = 0;
  job.ended_token_known = true;
  job.token = 0;
  job.was_due = is_due(job, moment);
}

void World::finish(std::uint64_t tag, const BodyPlan& result, const Moment& moment) {
  ModelJob& job = change(tag);
  job.phase = Phase::kDone;
  job.ended_as = Outcome(Done{}).index();
  job.ended_token = job.token;
  job.ended_token_known = true;
  job.token = 0;
  job.result = result;
  job.finished_ms = moment.now_ms();
  job.finished_elapsed_us = moment.elapsed_us;
}

void World::reschedule(std::uint64_t tag, Time due, const Moment& moment) {
  ModelJob& job = change(tag);
  job.ended_token = 0;
  job.ended_token_known = true;
  wait_for(job, Milliseconds(0), moment);
  if (due.time_since_epoch().count() > moment.now_ms()) {
    job.due_ms = due.time_since_epoch().count();
    job.due_is_wall = true;
    job.not_before_elapsed_us = ModelJob::kAlways;
    job.not_before_wall_us = job.due_ms * 1000;
  }
}

void World::postpone(std::uint64_t tag, std::int64_t due_ms, Milliseconds at_least, const Moment& moment) {
  ModelJob& job = change(tag);
  job.ended_token = 0;
  job.ended_token_known = true;
  wait_for(job, at_least, moment);
  job.unheard = 0;
  job.due_ms = due_ms;
}

void World::replay(std::uint64_t tag, bool keep_attempts, Milliseconds delay, const Moment& moment) {
  ModelJob& job = change(tag);
  job.phase = Phase::kWaiting;
  job.ended_token = 0;
  job.ended_token_known = true;
  if (!keep_attempts) {
    job.attempts = 0;
    job.counts = {};
  }
  wait_for(job, delay, moment);
  auto rules = std::make_shared<Job>(*job.rules);
  rules->expires.reset();
  job.rules = std::move(rules);
}

void World::close(const JobId& id, const Moment& moment) {
  const ModelJob* job = find(id);
  if (job == nullptr || job->phase != Phase::kRunning || job->outlives_process || job->crashed) return;
  last_time_ms_ = std::max(last_time_ms_, moment.now_ms());
  if (job->cancel_requested) {
    remove(job->tag);
  } else {
    give_back(job->tag, {}, moment, false);
  }
}

void World::believe_wall(const platform::Instant& instant) {
  offset_us_ = instant.wall_us - instant.elapsed_us;
  const std::int64_t back_ms = std::min<std::int64_t>(0, at(instant).now_ms() - last_time_ms_);
  last_time_ms_ += back_ms;
  shift_dues(back_ms);
  restart_spans();
}

void World::stay(const platform::Instant& instant) {
  offset_us_ = last_time_ms_ * 1000 - instant.elapsed_us;
  restart_spans();
}

// Elapsed time of before means nothing any more: a span of time ends when the ledger's time says so.
void World::restart_spans() {
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, job] : *jobs_) {
    if (job->is_live() && job->not_before_elapsed_us != ModelJob::kAlways) tags.push_back(tag);
  }
  for (const std::uint64_t tag : tags) {
    ModelJob& job = change(tag);
    job.not_before_elapsed_us = job.due_ms * 1000 - offset_us_;
  }
}

void World::reopen(const platform::Instant& instant, std::uint32_t max_crashes, const std::set<JobId>& left) {
  const Moment moment = at(instant);
  const std::int64_t closed_ms = last_time_ms_;
  forget_was_due();
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, job] : *jobs_) {
    if (job->phase == Phase::kRunning) tags.push_back(tag);
  }
  for (const std::uint64_t tag : tags) {
    if (find(tag)->outlives_process) {
      ModelJob& job = change(tag);
      job.subscription = 0;
      job.deadline_elapsed_ms = moment.elapsed_ms() + job.lease_ms;
      const std::int64_t ran_ms = std::max<std::int64_t>(0, closed_ms - job.started_ms);
      job.limit_elapsed_ms =
          moment.elapsed_ms() + std::max<std::int64_t>(0, job.rules->time_limit.count() - ran_ms);
      continue;
    }
    if (left.contains(find(tag)->id)) {
      ModelJob& job = change(tag);
      job.crashed = true;
      job.subscription = 0;
      job.token = 0;
      job.lease_ms = 0;
      job.deadline_elapsed_ms = moment.elapsed_ms();
      job.limit_elapsed_ms = ModelJob::kNever;
      continue;
    }
    const ModelJob& job = *find(tag);
    last_time_ms_ = std::max(last_time_ms_, moment.now_ms());
    if (job.cancel_requested) {
      remove(tag);
      continue;
    }
    const Outcome outcome = core::decide_after_fault(job.rules->retry, job.counts, Fault::kCrashed, "", 0, max_crashes);
    if (const auto* again = std::get_if<RetryAt>(&outcome)) {
      const auto longest = core::longest_wait_after_crash(job.counts.crashed + 1);
      retry(tag, *again, {}, moment, false);
      change(tag).due_slack_ms = longest.count() + 1;
    } else {
      die(tag, std::get<Dead>(outcome), moment, false);
    }
  }
}

}  // namespace bide::simulation
