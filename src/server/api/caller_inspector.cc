#include "server/api/caller_inspector.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/broker_answers.h"
#include "core/quote.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

Error no_such_job(const JobId& id) {
  return {ErrorCode::kNotFound, "there is no job " + id.to_string() + "; it may be done and forgotten"};
}

std::string names_of(const Identity& caller) {
  std::string names;
  for (const std::string& queue : caller.queues) names += (names.empty() ? "" : ", ") + queue;
  return names;
}

// Checked before each call: a job that is moved to another queue between the two was the caller's when they asked. Not a
// ForwardingInspector: no call may be passed on unchecked.
class CallerInspector : public Inspector, public std::enable_shared_from_this<CallerInspector> {
 public:
  CallerInspector(State state, Identity caller)
      : state_(std::move(state)), inner_(*state_->inspector), caller_(std::move(caller)) {}

  void queues(Completion<std::vector<QueueInfo>> done) override {
    inner_.queues([self = shared_from_this(), done = std::move(done)](Result<std::vector<QueueInfo>> queues) {
      if (queues) std::erase_if(*queues, [&](const QueueInfo& each) { return !self->caller_.may_use(each.name); });
      done(std::move(queues));
    });
  }
  void find(JobId id, Completion<JobInfo> done) override {
    if (!caller_.is_restricted()) return state_->reads->find(caller_, id, std::move(done));
    state_->reads->find(caller_, id, [self = shared_from_this(), id, done = std::move(done)](Result<JobInfo> info) {
      if (info && !self->caller_.may_use(info->job.queue)) return done(no_such_job(id));
      done(std::move(info));
    });
  }
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override {
    if (filter.queue.empty() && caller_.queues.size() > 1) {
      return done(
          Error{ErrorCode::kInvalidArgument, "say which queue: this token is restricted to " + names_of(caller_)});
    }
    if (filter.queue.empty() && caller_.is_restricted()) filter.queue = caller_.queues.front();
    if (!caller_.may_use(filter.queue)) return done(JobPage{});
    // Not every broker knows of groups, flows and headers; what does not match must not be acted on.
    state_->reads->list(caller_, filter, std::move(cursor), limit, [filter, done = std::move(done)](Result<JobPage> page) {
      if (page) std::erase_if(page->jobs, [&](const JobInfo& info) { return !core::matches(filter, info.job); });
      done(std::move(page));
    });
  }
  void explain(JobId id, Completion<Explanation> done) override {
    after_find<Explanation>(id, std::move(done), [this, id](Completion<Explanation> then) {
      inner_.explain(id, std::move(then));
    });
  }
  void audit(Completion<AuditReport> done) override {
    if (!caller_.is_restricted()) return inner_.audit(std::move(done));
    done(Error{ErrorCode::kPermissionDenied, "this token is restricted to queues, and this is about all"});
  }
  GiveUp watch(JobId id, Completion<JobInfo> done) override {
    if (!caller_.is_restricted()) return inner_.watch(id, std::move(done));
    done(Error{ErrorCode::kUnsupported, "a restricted caller finds a job before it is watched"});
    return [] {};
  }
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override {
    with_visible(std::move(ids), std::move(done), [this, options](std::vector<JobId> visible, auto then) {
      inner_.cancel(std::move(visible), options, std::move(then));
    });
  }
  void reschedule(JobId id, Time due, Completion<void> done) override {
    after_find<void>(id, std::move(done),
                     [this, id, due](Completion<void> then) { inner_.reschedule(id, due, std::move(then)); });
  }
  void edit(JobId id, JobEdit edit, Completion<void> done) override {
    after_find<void>(id, std::move(done), [this, id, edit = std::move(edit)](Completion<void> then) {
      inner_.edit(id, edit, std::move(then));
    });
  }
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override {
    with_visible(std::move(ids), std::move(done), [this, options](std::vector<JobId> visible, auto then) {
      inner_.replay(std::move(visible), options, std::move(then));
    });
  }
  void pause(std::string queue, bool paused, Completion<void> done) override {
    if (!caller_.may_use(queue)) return done(no_such_queue(queue));
    inner_.pause(std::move(queue), paused, std::move(done));
  }
  void purge(std::string queue, Completion<std::uint64_t> done) override {
    if (!caller_.may_use(queue)) return done(no_such_queue(queue));
    inner_.purge(std::move(queue), std::move(done));
  }

  void bind(Binding binding, Completion<void> done) override {
    if (!caller_.may_use(binding.queue)) return done(no_such_queue(binding.queue));
    inner_.bind(std::move(binding), std::move(done));
  }
  void bindings(Completion<std::vector<Binding>> done) override {
    inner_.bindings([self = shared_from_this(), done = std::move(done)](Result<std::vector<Binding>> bindings) {
      if (bindings) std::erase_if(*bindings, [&](const Binding& each) { return !self->caller_.may_use(each.queue); });
      done(std::move(bindings));
    });
  }

  void put_rules(QueueRules rules, Completion<void> done) override {
    if (!caller_.may_use(rules.queue)) return done(no_such_queue(rules.queue));
    inner_.put_rules(std::move(rules), std::move(done));
  }
  void rules(Completion<std::vector<QueueRules>> done) override {
    inner_.rules([self = shared_from_this(), done = std::move(done)](Result<std::vector<QueueRules>> rules) {
      if (rules) std::erase_if(*rules, [&](const QueueRules& each) { return !self->caller_.may_use(each.queue); });
      done(std::move(rules));
    });
  }

  // Its job is the caller's to check.
  void put_schedule(Schedule schedule, Completion<PutSchedule> done) override {
    if (!caller_.is_restricted()) return inner_.put_schedule(std::move(schedule), std::move(done));
    inner_.schedules([self = shared_from_this(), schedule = std::move(schedule),
                      done = std::move(done)](const Result<std::vector<ScheduleInfo>>& infos) mutable {
      if (!infos) return done(infos.error());
      const ScheduleInfo* const found = find_schedule(*infos, schedule.name);
      if (found != nullptr && !self->may_see(*found)) {
        return done(Error{ErrorCode::kAlreadyExists,
                          "the name " + core::quoted(schedule.name) + " belongs to another schedule; choose another name"});
      }
      self->inner_.put_schedule(std::move(schedule), std::move(done));
    });
  }
  void schedules(Completion<std::vector<ScheduleInfo>> done) override {
    inner_.schedules([self = shared_from_this(), done = std::move(done)](Result<std::vector<ScheduleInfo>> infos) {
      if (infos) std::erase_if(*infos, [&](const ScheduleInfo& each) { return !self->may_see(each); });
      done(std::move(infos));
    });
  }
  void remove_schedule(std::string name, Completion<void> done) override {
    after_find_schedule<void>(name, std::move(done),
                              [this, name](Completion<void> then) { inner_.remove_schedule(name, std::move(then)); });
  }
  void pause_schedule(std::string name, bool paused, Completion<void> done) override {
    after_find_schedule<void>(name, std::move(done), [this, name, paused](Completion<void> then) {
      inner_.pause_schedule(name, paused, std::move(then));
    });
  }
  void run_schedule(std::string name, Completion<JobId> done) override {
    after_find_schedule<JobId>(name, std::move(done),
                               [this, name](Completion<JobId> then) { inner_.run_schedule(name, std::move(then)); });
  }

  // Whether each can be seen. One after the other: a request with thousands of ids takes one place in the read scheduler.
  using Seen = std::function<void(const std::shared_ptr<std::vector<Status>>&)>;
  void find_all(std::vector<JobId> ids, Seen then) {
    const auto statuses = std::make_shared<std::vector<Status>>(ids.size());
    find_next(std::make_shared<const std::vector<JobId>>(std::move(ids)), 0, statuses,
              std::make_shared<const Seen>(std::move(then)));
  }

 private:
  using Statuses = Completion<std::vector<Status>>;

  // `then` is shared: it may hold thousands of ids, and the completion of each find is copied.
  void find_next(std::shared_ptr<const std::vector<JobId>> ids, std::size_t next,
                 std::shared_ptr<std::vector<Status>> statuses, std::shared_ptr<const Seen> then) {
    if (next == ids->size()) return (*then)(statuses);
    find((*ids)[next], [=, self = shared_from_this()](const Result<JobInfo>& info) {
      if (!info) (*statuses)[next] = info.error();
      self->find_next(ids, next + 1, statuses, then);
    });
  }

  static Error no_such_queue(const std::string& queue) {
    return {ErrorCode::kNotFound, "there is no queue " + core::quoted(queue)};
  }

  template <class T, class Act>
  void after_find(JobId id, Completion<T> done, Act act) {
    if (!caller_.is_restricted()) return act(std::move(done));
    find(id, [self = shared_from_this(), done = std::move(done), act](const Result<JobInfo>& info) {
      if (!info) return done(info.error());
      act(done);
    });
  }

  bool may_see(const ScheduleInfo& info) const { return caller_.may_use(info.schedule.job.queue); }

  static const ScheduleInfo* find_schedule(const std::vector<ScheduleInfo>& infos, const std::string& name) {
    const auto found =
        std::find_if(infos.begin(), infos.end(), [&](const ScheduleInfo& each) { return each.schedule.name == name; });
    return found == infos.end() ? nullptr : &*found;
  }

  template <class T, class Act>
  void after_find_schedule(const std::string& name, Completion<T> done, Act act) {
    if (!caller_.is_restricted()) return act(std::move(done));
    schedules([self = shared_from_this(), name, done = std::move(done), act](const Result<std::vector<ScheduleInfo>>& infos) {
      if (!infos) return done(infos.error());
      if (find_schedule(*infos, name) == nullptr) {
        return done(Error{ErrorCode::kNotFound, "there is no schedule " + core::quoted(name)});
      }
      act(done);
    });
  }

  // Acts on the jobs that the caller can see, and merges the statuses.
  template <class Act>
  void with_visible(std::vector<JobId> ids, Statuses done, Act act) {
    if (!caller_.is_restricted()) return act(std::move(ids), std::move(done));
    find_all(ids, [self = shared_from_this(), ids, done = std::move(done), act](const std::shared_ptr<std::vector<Status>>& seen) {
      std::vector<JobId> visible;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if ((*seen)[i]) visible.push_back(ids[i]);
      }
      if (visible.empty()) return done(*seen);
      act(std::move(visible), [self, seen, done](const Result<std::vector<Status>>& answers) {
        if (!answers) return done(answers.error());
        std::size_t next = 0;
        for (Status& status : *seen) {
          if (status && next < answers->size()) status = (*answers)[next++];
        }
        done(*seen);
      });
    });
  }

  const State state_;
  Inspector& inner_;
  const Identity caller_;
};

}  // namespace

std::shared_ptr<Inspector> inspector_for(const State& state, const Identity& caller) {
  return std::make_shared<CallerInspector>(state, caller);
}

std::optional<wire::Problem> find_queue_problem(const Identity& caller, std::string_view queue) {
  if (caller.may_use(queue)) return std::nullopt;
  return wire::make_problem("forbidden", "this token is restricted to the queues " + names_of(caller), "queue");
}

std::optional<wire::Problem> find_queue_problem(const Identity& caller, const Job& job) {
  if (!caller.is_restricted()) return std::nullopt;
  if (auto problem = find_queue_problem(caller, job.queue)) return problem;
  if (job.on_conflict == OnConflict::kReplace) {
    return wire::make_problem("forbidden", "this token is restricted to the queues " + names_of(caller) +
                                               ", and on_conflict replace takes the place of a job in any queue", "on_conflict");
  }
  const std::string_view reply = wire::header_of(job, wire::kReplyQueueHeader);
  return reply.empty() ? std::nullopt : find_queue_problem(caller, reply);
}

void find_visible(const State& state, const Identity& caller, const std::vector<LeaseRef>& leases,
                  std::function<void(std::vector<bool>)> then) {
  std::vector<bool> visible(leases.size());
  std::vector<JobId> unknown;  // Leased by an earlier process.
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (const auto facts = state->leases->registry().facts(leases[i])) {
      visible[i] = caller.may_use(facts->queue);
    } else {
      unknown.push_back(leases[i].id);
      places.push_back(i);
    }
  }
  if (unknown.empty() || state->inspector == nullptr) return then(std::move(visible));
  std::make_shared<CallerInspector>(state, caller)
      ->find_all(std::move(unknown),
                 [visible, places, then = std::move(then)](const std::shared_ptr<std::vector<Status>>& seen) mutable {
                   for (std::size_t i = 0; i < places.size(); ++i) visible[places[i]] = (*seen)[i].has_value();
                   then(std::move(visible));
                 });
}

}  // namespace bide::server
