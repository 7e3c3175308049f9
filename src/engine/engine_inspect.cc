// Engine, the calls of Inspector.

#include <span>
#include <utility>

#include "engine/engine.h"

namespace bide::engine {

void Engine::queues(Completion<std::vector<QueueInfo>> done) {
  submit<std::vector<QueueInfo>>(std::move(done), [](Ledger& ledger) { return ledger.queues(); });
}

namespace {

std::span<JobInfo> jobs_of(JobInfo& info) { return {&info, 1}; }
std::span<JobInfo> jobs_of(JobPage& page) { return page.jobs; }

}  // namespace

template <class T>
Completion<T> Engine::filled_in(std::shared_ptr<DeferredBodies> deferred, Completion<T> done,
                                std::function<void(Completion<T>)> again) {
  return [this, deferred = std::move(deferred), done = std::move(done), again = std::move(again)](Result<T> result) {
    if (!result || deferred->size() == 0) return done(std::move(result));
    reads_.run([deferred, done, again, given = std::make_shared<Result<T>>(std::move(result))] {
      if (!deferred->read_into(jobs_of(**given))) return again(done);
      done(std::move(*given));
    });
  };
}

void Engine::find(JobId id, Completion<JobInfo> done) {
  const auto at_once = [this, id](Completion<JobInfo> tell) {
    submit<JobInfo>(std::move(tell), [id](Ledger& ledger) { return ledger.find(id); });
  };
  if (virtual_time_) return at_once(std::move(done));
  const auto deferred = std::make_shared<DeferredBodies>();
  submit<JobInfo>(filled_in<JobInfo>(deferred, std::move(done), at_once),
                  [id, deferred](Ledger& ledger) { return ledger.find(id, deferred.get()); });
}

namespace {

// For calls that the ledger completes itself, in a later step.
template <class T, class Run>
void submit_task(RequestQueue& requests, Completion<T> done, Run run) {
  auto started = std::make_shared<bool>(false);
  Request request{[done, started, run = std::move(run)](Ledger& ledger) {
                    *started = true;
                    run(ledger, done);
                  },
                  [done, started](const Status& committed) {
                    if (!committed && !*started) done(not_begun(committed.error()));
                  }};
  if (!requests.post(std::move(request))) done(Error{ErrorCode::kUnavailable, "the engine is closed"});
}

}  // namespace

void Engine::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  if (limit < 1 || limit > 1000) return done(Error{ErrorCode::kInvalidArgument, "limit " + std::to_string(limit) + ": 1 to 1000"});
  const auto list_with = [this, filter, cursor, limit](std::shared_ptr<DeferredBodies> deferred,
                                                       Completion<JobPage> tell) {
    submit_task<JobPage>(*requests_, std::move(tell),
                         [filter, cursor, limit, deferred](Ledger& ledger, const auto& told) {
                           ledger.list(filter, cursor, limit, told, deferred);
                         });
  };
  if (virtual_time_) return list_with(nullptr, std::move(done));
  const auto deferred = std::make_shared<DeferredBodies>(filter.bodies);
  list_with(deferred, filled_in<JobPage>(deferred, std::move(done), [list_with](Completion<JobPage> again) {
              list_with(nullptr, std::move(again));
            }));
}

void Engine::explain(JobId id, Completion<Explanation> done) {
  submit<Explanation>(std::move(done), [id](Ledger& ledger) { return ledger.explain(id); });
}

void Engine::audit(Completion<AuditReport> done) {
  submit_task<AuditReport>(*requests_, std::move(done), [](Ledger& ledger, const auto& tell) { ledger.audit(tell); });
}

GiveUp Engine::watch(JobId id, Completion<JobInfo> done) {
  const std::uint64_t number = ++last_watch_;
  submit_task<JobInfo>(*requests_, std::move(done),
                     [id, number](Ledger& ledger, const auto& tell) { ledger.watch(id, number, tell); });
  return [requests = std::weak_ptr<RequestQueue>(requests_), id, number] {
    const std::shared_ptr<RequestQueue> open = requests.lock();
    if (open) open->post({[id, number](Ledger& ledger) { ledger.give_up_watch(id, number); }, nullptr});
  };
}

void Engine::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  submit<std::vector<Status>>(std::move(done), [ids = std::move(ids), options](Ledger& ledger) {
    return ledger.cancel(ids, options);
  });
}

void Engine::reschedule(JobId id, Time due, Completion<void> done) {
  submit<void>(std::move(done), [id, due](Ledger& ledger) { return ledger.reschedule(id, due); });
}

void Engine::edit(JobId id, JobEdit edit, Completion<void> done) {
  const std::uint64_t bytes = edit.body ? edit.body->size() : 0;
  submit<void>(
      std::move(done), [id, edit = std::move(edit)](Ledger& ledger) mutable { return ledger.edit(id, std::move(edit)); },
      bytes);
}

void Engine::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  submit<std::vector<Status>>(std::move(done), [ids = std::move(ids), options](Ledger& ledger) {
    return ledger.replay(ids, options);
  });
}

void Engine::pause(std::string queue, bool paused, Completion<void> done) {
  submit<void>(std::move(done),
               [queue = std::move(queue), paused](Ledger& ledger) { return ledger.pause(queue, paused); });
}

void Engine::purge(std::string queue, Completion<std::uint64_t> done) {
  submit_task<std::uint64_t>(*requests_, std::move(done),
                           [queue = std::move(queue)](Ledger& ledger, const auto& tell) { ledger.purge(queue, tell); });
}

void Engine::bind(Binding binding, Completion<void> done) {
  submit<void>(std::move(done), [binding = std::move(binding)](Ledger& ledger) { return ledger.bind(binding); });
}

void Engine::bindings(Completion<std::vector<Binding>> done) {
  submit<std::vector<Binding>>(std::move(done), [](Ledger& ledger) { return ledger.bindings(); });
}

void Engine::put_rules(QueueRules rules, Completion<void> done) {
  submit<void>(std::move(done), [rules = std::move(rules)](Ledger& ledger) { return ledger.put_rules(rules); });
}

void Engine::rules(Completion<std::vector<QueueRules>> done) {
  submit<std::vector<QueueRules>>(std::move(done), [](Ledger& ledger) { return ledger.rules(); });
}

void Engine::put_schedule(Schedule schedule, Completion<PutSchedule> done) {
  const std::uint64_t bytes = schedule.job.body.size();
  submit<PutSchedule>(
      std::move(done),
      [schedule = std::move(schedule)](Ledger& ledger) mutable { return ledger.put_schedule(std::move(schedule)); }, bytes);
}

void Engine::schedules(Completion<std::vector<ScheduleInfo>> done) {
  submit<std::vector<ScheduleInfo>>(std::move(done), [](Ledger& ledger) { return ledger.schedules(); });
}

void Engine::remove_schedule(std::string name, Completion<void> done) {
  submit<void>(std::move(done), [name = std::move(name)](Ledger& ledger) { return ledger.remove_schedule(name); });
}

void Engine::pause_schedule(std::string name, bool paused, Completion<void> done) {
  submit<void>(std::move(done),
               [name = std::move(name), paused](Ledger& ledger) { return ledger.pause_schedule(name, paused); });
}

void Engine::run_schedule(std::string name, Completion<JobId> done) {
  submit<JobId>(std::move(done), [name = std::move(name)](Ledger& ledger) { return ledger.run_schedule(name); });
}

}  // namespace bide::engine
