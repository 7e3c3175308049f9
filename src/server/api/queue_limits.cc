#include "server/api/queue_limits.h"

#include <mutex>
#include <string>
#include <utility>

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

// A job never changes its queue, so it is enough to look before each call.
class RestrictedInspector : public Inspector, public std::enable_shared_from_this<RestrictedInspector> {
 public:
  RestrictedInspector(State state, Identity caller)
      : state_(std::move(state)), inner_(*state_->inspector), caller_(std::move(caller)) {}

  void queues(Completion<std::vector<QueueInfo>> done) override {
    inner_.queues([self = shared_from_this(), done = std::move(done)](Result<std::vector<QueueInfo>> queues) {
      if (queues) std::erase_if(*queues, [&](const QueueInfo& each) { return !self->caller_.may_use(each.name); });
      done(std::move(queues));
    });
  }
  void find(JobId id, Completion<JobInfo> done) override {
    state_->reads->find(id, [self = shared_from_this(), id, done = std::move(done)](Result<JobInfo> info) {
      if (info && !self->caller_.may_use(info->job.queue)) return done(no_such_job(id));
      done(std::move(info));
    });
  }
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override {
    if (filter.queue.empty() && caller_.queues.size() > 1) {
      return done(Error{ErrorCode::kInvalidArgument, "say which queue: this token is restricted to " + names_of(caller_)});
    }
    if (filter.queue.empty()) filter.queue = caller_.queues.front();
    if (!caller_.may_use(filter.queue)) return done(JobPage{});
    state_->reads->list(std::move(filter), std::move(cursor), limit, std::move(done));
  }
  void explain(JobId id, Completion<Explanation> done) override {
    after_find<Explanation>(id, std::move(done), [this, id](Completion<Explanation> then) {
      inner_.explain(id, std::move(then));
    });
  }
  void audit(Completion<AuditReport> done) override {
    done(Error{ErrorCode::kPermissionDenied, "this token is restricted to queues, and this is about all"});
  }
  GiveUp watch(JobId, Completion<JobInfo> done) override {
    done(Error{ErrorCode::kUnsupported, "looked for before it is watched"});
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

 private:
  using Statuses = Completion<std::vector<Status>>;

  static Error no_such_queue(const std::string& queue) {
    return {ErrorCode::kNotFound, "there is no queue " + core::quoted(queue)};
  }

  template <class T, class Act>
  void after_find(JobId id, Completion<T> done, Act act) {
    find(id, [self = shared_from_this(), done = std::move(done), act](const Result<JobInfo>& info) {
      if (!info) return done(info.error());
      act(done);
    });
  }

  // Acts on those that the caller can see, and puts the answers together.
  template <class Act>
  void with_visible(std::vector<JobId> ids, Statuses done, Act act) {
    struct Looking {
      std::mutex mutex;
      std::vector<Status> statuses;
      std::size_t left = 0;
    };
    if (ids.empty()) return done(std::vector<Status>());
    const auto looking = std::make_shared<Looking>();
    looking->statuses.resize(ids.size());
    looking->left = ids.size();
    const auto finish = [self = shared_from_this(), looking, ids, done = std::move(done), act] {
      std::vector<JobId> visible;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (looking->statuses[i]) visible.push_back(ids[i]);
      }
      if (visible.empty()) return done(looking->statuses);
      act(std::move(visible), [self, looking, done](const Result<std::vector<Status>>& answers) {
        if (!answers) return done(answers.error());
        std::size_t next = 0;
        for (Status& status : looking->statuses) {
          if (status && next < answers->size()) status = (*answers)[next++];
        }
        done(looking->statuses);
      });
    };
    for (std::size_t i = 0; i < ids.size(); ++i) {
      find(ids[i], [looking, i, finish](const Result<JobInfo>& info) {
        bool last = false;
        {
          std::lock_guard lock(looking->mutex);
          if (!info) looking->statuses[i] = info.error();
          last = --looking->left == 0;
        }
        if (last) finish();
      });
    }
  }

  const State state_;
  Inspector& inner_;
  const Identity caller_;
};

}  // namespace

std::shared_ptr<Inspector> inspector_for(const State& state, const Identity& caller) {
  if (!caller.is_restricted()) return {std::shared_ptr<void>(), state->inspector};
  return std::make_shared<RestrictedInspector>(state, caller);
}

std::optional<wire::Problem> find_queue_problem(const Identity& caller, std::string_view queue) {
  if (caller.may_use(queue)) return std::nullopt;
  return wire::make_problem("forbidden", "this token is restricted to the queues " + names_of(caller), "queue");
}

std::optional<wire::Problem> find_queue_problem(const Identity& caller, const Job& job) {
  if (!caller.is_restricted()) return std::nullopt;
  if (auto problem = find_queue_problem(caller, job.queue)) return problem;
  const std::string_view reply = wire::header_of(job, wire::kReplyQueueHeader);
  return reply.empty() ? std::nullopt : find_queue_problem(caller, reply);
}

void find_visible(const State& state, const Identity& caller, const std::vector<LeaseRef>& leases,
                  std::function<void(std::vector<bool>)> then) {
  struct Looking {
    std::mutex mutex;
    std::vector<bool> visible;
    std::size_t left = 1;
  };
  const auto looking = std::make_shared<Looking>();
  looking->visible.resize(leases.size());
  const auto seen = [looking, then = std::move(then)](std::size_t index, bool visible, std::size_t done) {
    {
      std::lock_guard lock(looking->mutex);
      if (index < looking->visible.size()) looking->visible[index] = visible;
      looking->left -= done;
      if (looking->left != 0) return;
    }
    then(looking->visible);
  };
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (const auto facts = state->leases->out().facts(leases[i])) {
      seen(i, caller.may_use(facts->queue), 0);
    } else if (state->inspector != nullptr) {
      // Given out by an earlier process.
      {
        std::lock_guard lock(looking->mutex);
        ++looking->left;
      }
      inspector_for(state, caller)->find(leases[i].id, [seen, i](const Result<JobInfo>& info) {
        seen(i, info.has_value(), 1);
      });
    }
  }
  seen(leases.size(), false, 1);
}

}  // namespace bide::server
