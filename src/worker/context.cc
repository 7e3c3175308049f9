#include "bide/context.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/job_ids.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/random.h"
#include "worker/attempt.h"
#include "worker/worker_state.h"

namespace bide {

using worker::wall_now;

namespace {

// A source for each thread, so that handlers beside one another share nothing.
JobId make_id() {
  thread_local platform::SystemRandom random;
  thread_local core::JobIdSource ids;
  return ids.next(wall_now().time_since_epoch().count(), random.next());
}

}  // namespace

RetryAt retry_after(Milliseconds wait, std::string why) {
  return {.after = std::max(wait, Milliseconds(0)), .fault = Fault::kFailed, .error = std::move(why)};
}

RetryAt retry_at(Time time, std::string why) {
  return retry_after(time - wall_now(), std::move(why));
}

Dead dead(std::string why) {
  return {.reason = DeadReason::kRejected, .fault = Fault::kFailed, .error = std::move(why)};
}

std::chrono::steady_clock::time_point Context::deadline() const { return attempt_.deadline(); }

std::stop_token Context::stop_token() const { return attempt_.stop_token(); }

bool Context::lease_lost() const { return attempt_.lost(); }

bool Context::cancel_requested() const { return attempt_.cancelled(); }

bool Context::stopping() const { return attempt_.stopping(); }

bool Context::keep_alive() {
  if (attempt_.batch().link().keep_alive) attempt_.batch().link().keep_alive();
  return attempt_.state() == worker::Attempt::State::kRunning && !attempt_.lost() && !attempt_.cancelled() &&
         !attempt_.excused();
}

Result<JobId> Context::enqueue(std::string_view kind, std::string_view body, const EnqueueOptions& options) {
  return enqueue(make_job(kind, std::string(body), options));
}

Result<JobId> Context::enqueue(Job job) {
  if (job.id.is_nil()) job.id = make_id();
  // Found out here, where the handler can do something about it, and not with the outcome.
  if (Status valid = core::validate(job, wall_now()); !valid) return valid.error();
  effects_.push_back(std::move(job));
  return effects_.back().id;
}

void Context::send_request(Job job, Milliseconds timeout, std::function<void(Result<Reply>)> done) {
  const auto& send = attempt_.batch().link().request;
  if (!send) return done(Error{ErrorCode::kUnsupported, "handlers cannot send requests here"});
  const auto left = std::chrono::floor<Milliseconds>(deadline() - std::chrono::steady_clock::now());
  if (left < Milliseconds(1)) return done(Error{ErrorCode::kTimedOut, "the deadline of this handler has passed"});
  send(std::move(job), std::min(timeout, left), std::move(done));
}

void Context::set_result(std::string_view result, std::string_view content_type) {
  result_ = result;
  result_content_type_ = content_type;
}

Settlement Context::settlement(Outcome outcome) const {
  if (Done* done = std::get_if<Done>(&outcome); done != nullptr && done->result.empty()) {
    done->result = result_;
    done->content_type = result_content_type_;
  }
  return {.lease = attempt_.ref(), .outcome = std::move(outcome), .effects = effects_};
}

Status Context::save_body(std::string_view body) {
  if (body.size() > Limits::kBodyBytes) {
    return Error{ErrorCode::kInvalidArgument, "the saved body has " + std::to_string(body.size()) +
                                                  " bytes; at most " + std::to_string(Limits::kBodyBytes) + " are allowed"};
  }
  Status saved = attempt_.batch().link().save_body(attempt_.ref(), std::string(body));
  saved_body_.reset();
  if (!saved) saved_body_ = std::string(body);
  return saved;
}

const std::string* Context::find_step(std::string_view name) const {
  for (const std::vector<Step>* steps : {&steps_, &lease_.steps}) {
    for (const Step& step : *steps) {
      if (step.name == name) return &step.result;
    }
  }
  return nullptr;
}

Status Context::can_keep_steps() const {
  if (attempt_.batch().link().save_step) return {};
  return Error{ErrorCode::kUnsupported, "this broker does not keep the results of steps"};
}

Status Context::keep_step(std::string_view name, std::string result) {
  Step step{.name = std::string(name), .result = std::move(result)};
  if (Status kept = attempt_.batch().link().save_step(attempt_.ref(), step); !kept) return kept;
  steps_.push_back(std::move(step));
  return {};
}

void Context::progress(double part, std::string_view note) {
  const auto& report = attempt_.batch().link().report_progress;
  if (report) report(attempt_.ref(), {.part = part, .note = std::string(note)});
}

Result<std::string> Context::result_of(JobId id) const {
  const auto& find = attempt_.batch().link().find;
  if (!find) return Error{ErrorCode::kUnsupported, "handlers cannot ask about other jobs here"};
  Result<JobInfo> info = find(id);
  if (!info) return info.error();
  if (info->state == JobState::kDone) return std::move(info->result);
  return Error{ErrorCode::kWrongState,
               "job " + id.to_string() + " is " + std::string(to_string(info->state)) + " and has no result"};
}

Result<std::string> Context::result_of(std::string_view kind) const {
  const auto& find = attempt_.batch().link().find;
  if (!find) return Error{ErrorCode::kUnsupported, "handlers cannot ask about other jobs here"};
  std::optional<JobId> found;
  for (const JobId& id : job().after) {
    const Result<JobInfo> info = find(id);
    if (!info || info->job.kind != kind) continue;
    if (found) {
      return Error{ErrorCode::kInvalidArgument, "this job waited for several of kind " + core::quoted(kind) + ": ask by id"};
    }
    found = id;
  }
  if (found) return result_of(*found);
  return Error{ErrorCode::kNotFound, "this job waited for none of kind " + core::quoted(kind) + ", or it is forgotten"};
}

}  // namespace bide
