#include <algorithm>
#include <utility>

#include "brokers/remote/remote_broker.h"
#include "core/job_rules.h"
#include "core/queue_rules.h"
#include "core/quote.h"
#include "core/topics.h"
#include "core/url_escape.h"
#include "wire/backup_json.h"
#include "wire/change_json.h"
#include "wire/edit_json.h"
#include "wire/event_json.h"
#include "wire/filter_query.h"
#include "wire/info_json.h"
#include "wire/rules_json.h"
#include "wire/schedule_json.h"

namespace bide::brokers::remote {

namespace {

constexpr Milliseconds kWatch{30'000};

// From the completion of the seam to that of a call.
template <class T, class Read>
Answered reading(Completion<T> done, Read read) {
  return [done = std::move(done), read = std::move(read)](Result<std::string> answer) {
    if (!answer) return done(answer.error());
    done(read(*answer));
  };
}

// The same for what changes something: an answer that cannot be read leaves open what was done.
template <class T, class Read>
Answered reading_change(Completion<T> done, Read read) {
  return reading(std::move(done), [read = std::move(read)](std::string_view body) {
    Result<T> result = read(body);
    if (!result) result = Error{ErrorCode::kUnconfirmed, result.error().message};
    return result;
  });
}

Answered confirming(Completion<void> done) {
  return [done = std::move(done)](Result<std::string> answer) { done(answer ? Status() : Status(answer.error())); };
}

std::string job_path(const JobId& id) { return "/v1/jobs/" + id.to_string(); }
std::string schedule_path(const std::string& name) { return "/v1/schedules/" + core::escape_url(name); }
std::string queue_path(const std::string& queue) { return "/v1/queues/" + core::escape_url(queue); }

}  // namespace

// What a watch completes with, until that has happened or it is given up.
struct RemoteBroker::Watching {
  bool is_wanted() {
    const std::lock_guard lock(mutex);
    return done != nullptr;
  }
  Completion<JobInfo> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(done, nullptr);
  }

  std::mutex mutex;  // Guards everything below.
  Completion<JobInfo> done;
};

void RemoteBroker::queues(Completion<std::vector<QueueInfo>> done) {
  caller_->call({.path = "/v1/queues"}, reading(std::move(done), wire::read_queues));
}

void RemoteBroker::find(JobId id, Completion<JobInfo> done) {
  caller_->call({.path = job_path(id)}, reading(std::move(done), wire::read_job_info));
}

void RemoteBroker::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  if (limit == 0) return done(Error{ErrorCode::kInvalidArgument, "limit is 0; at least 1 is allowed"});
  const wire::ListRequest request{std::move(filter), std::move(cursor), std::min(limit, wire::kLongestPage)};
  caller_->call({.path = "/v1/jobs?" + wire::list_query(request)}, reading(std::move(done), wire::read_job_page));
}

void RemoteBroker::explain(JobId id, Completion<Explanation> done) {
  caller_->call({.path = job_path(id) + "/explain"}, reading(std::move(done), wire::read_explanation));
}

void RemoteBroker::audit(Completion<AuditReport> done) {
  caller_->call({.path = "/v1/audit"}, reading(std::move(done), wire::read_audit));
}

GiveUp RemoteBroker::watch(JobId id, Completion<JobInfo> done) {
  const auto watching = std::make_shared<Watching>();
  watching->done = std::move(done);
  watch_on(id, watching);
  return [watching] { (void)watching->take(); };
}

void RemoteBroker::watch_on(JobId id, std::shared_ptr<Watching> watching) {
  caller_->call({.path = job_path(id) + "?wait=30s", .wait = kWatch},
                [this, id, watching = std::move(watching)](Result<std::string> answer) {
                  Result<JobInfo> info = answer ? wire::read_job_info(*answer) : Result<JobInfo>(answer.error());
                  const bool over = !info || info->state == JobState::kDone || info->state == JobState::kDead;
                  // Given up, it is not asked for again: the server forgets it with this answer.
                  if (!over) return watching->is_wanted() ? watch_on(id, watching) : void();
                  if (const Completion<JobInfo> done = watching->take()) done(std::move(info));
                });
}

void RemoteBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  if (ids.empty()) return done(std::vector<Status>());
  caller_->call({.method = "POST", .path = "/v1/jobs/cancel", .body = wire::cancel_json(ids, options), .repeatable = false},
                reading_change(std::move(done), wire::read_id_results));
}

void RemoteBroker::reschedule(JobId id, Time due, Completion<void> done) { edit(id, {.due = due}, std::move(done)); }

void RemoteBroker::edit(JobId id, JobEdit edit, Completion<void> done) {
  caller_->call({.method = "PATCH", .path = job_path(id), .body = wire::edit_json(edit), .repeatable = wire::is_reschedule(edit)},
                confirming(std::move(done)));
}

void RemoteBroker::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  if (ids.empty()) return done(std::vector<Status>());
  caller_->call(
      {.method = "POST", .path = "/v1/dead/replay", .body = wire::replay_json(ids, options), .repeatable = false},
      reading_change(std::move(done), wire::read_id_results));
}

void RemoteBroker::pause(std::string queue, bool paused, Completion<void> done) {
  caller_->call({.method = "POST", .path = queue_path(queue) + (paused ? "/pause" : "/resume")},
                confirming(std::move(done)));
}

void RemoteBroker::purge(std::string queue, Completion<std::uint64_t> done) {
  caller_->call(
      {.method = "POST", .path = queue_path(queue) + "/purge", .repeatable = false},
      reading_change(std::move(done), [](std::string_view body) { return wire::read_count(body, "removed"); }));
}

void RemoteBroker::bind(Binding binding, Completion<void> done) {
  if (Status valid = core::validate(binding); !valid) return done(valid.error());
  caller_->call({.method = "PUT", .path = queue_path(binding.queue) + "/binding", .body = wire::binding_request_json(binding)},
                confirming(std::move(done)));
}

void RemoteBroker::bindings(Completion<std::vector<Binding>> done) {
  caller_->call({.path = "/v1/bindings"}, reading(std::move(done), wire::read_bindings));
}

void RemoteBroker::put_rules(QueueRules rules, Completion<void> done) {
  if (Status valid = core::validate(rules); !valid) return done(valid.error());
  caller_->call({.method = "PUT", .path = queue_path(rules.queue) + "/rules", .body = wire::rules_request_json(rules)},
                confirming(std::move(done)));
}

void RemoteBroker::rules(Completion<std::vector<QueueRules>> done) {
  caller_->call({.path = "/v1/rules"}, reading(std::move(done), wire::read_rules_list));
}

void RemoteBroker::put_schedule(Schedule schedule, Completion<PutSchedule> done) {
  if (!core::is_name(schedule.name)) {
    return done(Error{ErrorCode::kInvalidArgument,
                      "invalid schedule name " + core::quoted(schedule.name) + std::string(core::kNameRule)});
  }
  // When the answer is lost and it is sent again, it is the same already: then nobody is told that it was made.
  caller_->call({.method = "PUT", .path = schedule_path(schedule.name), .body = wire::schedule_request_json(schedule)},
                reading_change(std::move(done), wire::read_put_schedule));
}

void RemoteBroker::schedules(Completion<std::vector<ScheduleInfo>> done) {
  caller_->call({.path = "/v1/schedules"}, reading(std::move(done), wire::read_schedules));
}

void RemoteBroker::remove_schedule(std::string name, Completion<void> done) {
  caller_->call({.method = "DELETE", .path = schedule_path(name), .repeatable = false}, confirming(std::move(done)));
}

void RemoteBroker::pause_schedule(std::string name, bool paused, Completion<void> done) {
  caller_->call({.method = "POST", .path = schedule_path(name) + (paused ? "/pause" : "/resume")},
                confirming(std::move(done)));
}

void RemoteBroker::run_schedule(std::string name, Completion<JobId> done) {
  caller_->call({.method = "POST", .path = schedule_path(name) + "/run", .repeatable = false},
                reading_change(std::move(done), wire::read_schedule_run));
}

void RemoteBroker::backup(std::string target, Completion<void> done) {
  caller_->call({.method = "POST", .path = "/v1/backup", .body = wire::backup_request_json(target), .repeatable = false},
                confirming(std::move(done)));
}

void RemoteBroker::backup_info(Completion<BackupInfo> done) {
  caller_->call({.path = "/v1/backup"}, reading(std::move(done), wire::read_backup));
}

}  // namespace bide::brokers::remote
