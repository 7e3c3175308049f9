#include "brokers/database/database_broker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>

#include "brokers/database/explain.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::brokers::database {

namespace {

constexpr Milliseconds kLastCalls{5'000};  // What is under way when the broker is closed may take so long.
constexpr std::size_t kPurgedAStep = 2000;
constexpr Milliseconds kExamineAgain{1'000};

// The session that was opened to see whether it works is the first one that is used.
class FirstSession : public JobStore {
 public:
  FirstSession(std::unique_ptr<JobStore> store, std::unique_ptr<Session> first)
      : store_(std::move(store)), first_(std::move(first)) {}

  Result<std::unique_ptr<Session>> connect() override {
    {
      const std::lock_guard lock(mutex_);
      if (first_) return std::move(first_);
    }
    return store_->connect();
  }
  Capabilities capabilities() const override { return store_->capabilities(); }

 private:
  const std::unique_ptr<JobStore> store_;
  std::mutex mutex_;  // Guards everything below.
  std::unique_ptr<Session> first_;
};

ClientId make_client(IdSource& ids) { return (ids.random() >> 1) | 1; }

}  // namespace

struct DatabaseBroker::Parts {
  using Task = std::function<void(Lane&)>;

  Parts(std::unique_ptr<JobStore> given, std::unique_ptr<Session> first, const KeepingOptions& options)
      : store(std::move(given), std::move(first)),
        client(make_client(ids)),
        granter(store, client, ids),
        enqueuer(store, ids, granter),
        keeper(store, client, ids, granter, options),
        settler(store, ids, granter, keeper),
        watcher(store, granter, [this](JobId id) { examine(id); }),
        inspecting(store, [this](Lane& lane) { return run_tasks(lane); }) {}

  // `refuse` instead, when the broker is closed.
  void post(Task task, std::function<void(const Error&)> refuse = {}) {
    {
      std::unique_lock lock(mutex);
      if (closed) {
        lock.unlock();
        if (refuse) refuse(Error{ErrorCode::kUnavailable, "the broker is closed"});
        return;
      }
      tasks.push_back({std::move(task), std::move(refuse)});
    }
    inspecting.wake();
  }

  std::optional<Moment> run_tasks(Lane& lane) {
    if (!unexamined.empty() && examine_again <= std::chrono::steady_clock::now()) {
      for (const JobId& id : std::exchange(unexamined, {})) {
        if (watcher.is_watched(id)) examine(id);
      }
    }
    for (;;) {
      Posted next;
      {
        const std::lock_guard lock(mutex);
        if (tasks.empty()) break;
        next = std::move(tasks.front());
        tasks.pop_front();
      }
      next.task(lane);
    }
    return unexamined.empty() || lane.is_stopping() ? std::nullopt : std::optional(examine_again);
  }

  void examine(JobId id) {
    post([this, id](Lane& lane) {
      const auto info = lane.look([&](Session& on) { return on.watch(id); });
      if (!info && info.error().code != ErrorCode::kNotFound) {
        unexamined.insert(id);
        examine_again = std::chrono::steady_clock::now() + kExamineAgain;
      }
      watcher.examined(id, info);
    });
  }

  void close() {
    granter.stop(kLastCalls);
    enqueuer.stop(kLastCalls);
    settler.stop(kLastCalls);
    keeper.stop(kLastCalls);
    {
      const std::lock_guard lock(mutex);
      closed = true;
    }
    inspecting.stop(kLastCalls);
    for (const Posted& left : std::exchange(tasks, {})) {
      if (left.refuse) left.refuse(Error{ErrorCode::kUnavailable, "the broker is closed"});
    }
    watcher.stop();
  }

  FirstSession store;
  IdSource ids;
  const ClientId client;
  Granter granter;
  Enqueuer enqueuer;
  Keeper keeper;
  Settler settler;
  Watcher watcher;
  std::atomic<bool> closed = false;

  // Of the inspecting lane: watched jobs of which nobody knows whether they have ended.
  std::set<JobId> unexamined;
  Moment examine_again = {};

  struct Posted {
    Task task;
    std::function<void(const Error&)> refuse;
  };
  std::mutex mutex;  // Guards everything below.
  std::deque<Posted> tasks;

  Lane inspecting;
};

class DatabaseBroker::Handle : public Subscription {
 public:
  Handle(std::shared_ptr<Parts> parts, std::shared_ptr<Subscriber> subscriber)
      : parts_(std::move(parts)), subscriber_(std::move(subscriber)) {}
  ~Handle() override {
    parts_->granter.unsubscribe(subscriber_);
    if (!parts_->closed) parts_->keeper.subscriptions_changed();
  }
  void set_credit(int credit) override { parts_->granter.set_credit(*subscriber_, credit); }
  void set_delivery_limit(std::uint64_t deliveries) override {
    parts_->granter.set_delivery_limit(*subscriber_, deliveries);
  }

 private:
  const std::shared_ptr<Parts> parts_;
  const std::shared_ptr<Subscriber> subscriber_;
};

Result<std::shared_ptr<DatabaseBroker>> DatabaseBroker::open(std::unique_ptr<JobStore> store, KeepingOptions options) {
  auto first = store->connect();
  if (!first) return first.error();
  auto parts = std::make_shared<Parts>(std::move(store), std::move(*first), options);
  parts->keeper.start();
  return std::shared_ptr<DatabaseBroker>(new DatabaseBroker(std::move(parts)));
}

DatabaseBroker::~DatabaseBroker() { parts_->close(); }

void DatabaseBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  parts_->enqueuer.enqueue(std::move(jobs), std::move(done));
}

Result<std::unique_ptr<Subscription>> DatabaseBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  for (const QueueShare& share : options.queues) {
    if (!core::is_name(share.name)) {
      return Error{ErrorCode::kInvalidArgument, "invalid queue name " + core::quoted(share.name) + std::string(core::kNameRule)};
    }
  }
  auto subscriber = parts_->granter.subscribe(std::move(options), std::move(sink));
  parts_->keeper.subscriptions_changed();
  parts_->watcher.start();
  return std::unique_ptr<Subscription>(std::make_unique<Handle>(parts_, std::move(subscriber)));
}

void DatabaseBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  parts_->settler.extend(std::move(leases), std::move(done));
}

void DatabaseBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  parts_->settler.settle(std::move(settlements), std::move(done));
}

void DatabaseBroker::mark_delivered(std::vector<LeaseRef> leases) { parts_->settler.mark_delivered(std::move(leases)); }

void DatabaseBroker::save_body(LeaseRef lease, std::string body, Completion<void> done) {
  parts_->settler.save_body(lease, std::move(body), std::move(done));
}

Pressure DatabaseBroker::pressure() const { return parts_->enqueuer.pressure(); }
Capabilities DatabaseBroker::capabilities() const { return parts_->store.capabilities(); }

// ---- Inspector.

template <class T>
std::function<void(const Error&)> DatabaseBroker::refusal(const Completion<T>& done) {
  return [done](const Error& error) { done(error); };
}

template <class T, class Request>
void DatabaseBroker::inspect(Request request, Completion<T> done) {
  parts_->post([request = std::move(request), done](Lane& lane) mutable { done(lane.look(request)); }, refusal<T>(done));
}

void DatabaseBroker::queues(Completion<std::vector<QueueInfo>> done) {
  parts_->post(
      [parts = parts_.get(), done](Lane& lane) {
        parts->keeper.await_subscriptions_told();
        done(lane.look([](Session& on) { return on.queues(); }));
      },
      refusal(done));
}

void DatabaseBroker::find(JobId id, Completion<JobInfo> done) {
  inspect<JobInfo>([id](Session& on) { return on.find(id); }, std::move(done));
}

void DatabaseBroker::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  limit = std::clamp<std::size_t>(limit, 1, 1000);
  inspect<JobPage>([filter = std::move(filter), cursor = std::move(cursor), limit](Session& on) { return on.list(filter, cursor, limit); },
                   std::move(done));
}

void DatabaseBroker::explain(JobId id, Completion<Explanation> done) {
  const auto explain_it = [parts = parts_.get(), id, done](Lane& lane) {
    parts->keeper.await_subscriptions_told();
    const auto info = lane.look([&](Session& on) { return on.find(id); });
    if (!info) return done(info.error());
    QueueInfo queue;
    if (info->state == JobState::kReady) {
      const auto queues = lane.look([](Session& on) { return on.queues(); });
      if (!queues) return done(queues.error());
      for (const QueueInfo& each : *queues) {
        if (each.name == info->job.queue) queue = each;
      }
    }
    const Granter::Takers takers = parts->granter.takers_of(info->job.queue);
    done(explanation_of(*info, queue, queue.workers > takers.subscriptions || takers.room > 0));
  };
  parts_->post(explain_it, refusal(done));
}

void DatabaseBroker::audit(Completion<AuditReport> done) {
  inspect<AuditReport>([](Session& on) { return on.audit(); }, std::move(done));
}

GiveUp DatabaseBroker::watch(JobId id, Completion<JobInfo> done) {
  const std::uint64_t number = parts_->watcher.add(id, std::move(done));
  parts_->examine(id);
  return [weak = std::weak_ptr<Parts>(parts_), id, number] {
    if (const auto parts = weak.lock()) parts->watcher.give_up(id, number);
  };
}

void DatabaseBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  parts_->post([ids = std::move(ids), options, done](Lane& lane) {
    done(lane.call([&](Session& on) { return on.cancel(ids, options); }));
  }, refusal(done));
}

void DatabaseBroker::reschedule(JobId id, Time due, Completion<void> done) {
  parts_->post([parts = parts_.get(), id, due, done](Lane& lane) {
    const Status changed = lane.call([&](Session& on) { return on.reschedule(id, due); });
    if (changed) parts->granter.look_everywhere();
    done(changed);
  }, refusal(done));
}

void DatabaseBroker::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  parts_->post([parts = parts_.get(), ids = std::move(ids), options, done](Lane& lane) {
    auto statuses = lane.call([&](Session& on) { return on.replay(ids, options); });
    if (statuses) parts->granter.look_everywhere();
    done(std::move(statuses));
  }, refusal(done));
}

void DatabaseBroker::pause(std::string queue, bool paused, Completion<void> done) {
  if (!core::is_name(queue)) {
    return done(Error{ErrorCode::kInvalidArgument, "invalid queue name " + core::quoted(queue) + std::string(core::kNameRule)});
  }
  parts_->post([parts = parts_.get(), queue = std::move(queue), paused, done](Lane& lane) {
    const Status changed = lane.call_repeatable([&](Session& on) { return on.pause(queue, paused); });
    if (changed) parts->granter.look_at(queue, Moment{});
    done(changed);
  }, refusal(done));
}

void DatabaseBroker::purge(std::string queue, Completion<std::uint64_t> done) {
  parts_->post([queue = std::move(queue), done](Lane& lane) {
    std::uint64_t all = 0;
    for (;;) {
      const auto some = lane.call([&](Session& on) { return on.purge(queue, kPurgedAStep); });
      if (!some && all == 0) return done(some.error());
      if (!some) {
        return done(Error{ErrorCode::kUnconfirmed, std::to_string(all) + " jobs or more were removed, then: " + some.error().message});
      }
      all += *some;
      if (*some < kPurgedAStep) return done(all);
    }
  }, refusal(done));
}

}  // namespace bide::brokers::database
