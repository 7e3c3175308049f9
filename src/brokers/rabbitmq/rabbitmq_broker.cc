#include "brokers/rabbitmq/rabbitmq_broker.h"

#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "brokers/rabbitmq/consumer.h"
#include "brokers/rabbitmq/dead_set.h"
#include "brokers/rabbitmq/desk.h"
#include "brokers/rabbitmq/lost_set.h"
#include "brokers/rabbitmq/native_dialect.h"
#include "brokers/rabbitmq/publications.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/stamps.h"
#include "core/job_ids.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/clock.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr std::string_view kNoIndex =
    "RabbitMQ keeps no index of the jobs that wait in its queues: they can be counted, but not found or listed";
constexpr std::string_view kNoNotices = "switched off by cancel=no in the URL";

Error closed() { return {ErrorCode::kUnavailable, "the broker is closed"}; }

template <class T>
void refuse(const Completion<T>& done, std::string_view why) {
  done(Error{ErrorCode::kUnsupported, std::string(why)});
}

Publication to_publication(const Notice& notice) {
  Publication publication;
  publication.to.kind = Destination::Kind::kNotices;
  publication.message.message_id = "notice-" + std::to_string(notice.stamp);
  publication.message.body = notice.to_text();
  return publication;
}

}  // namespace

// Closed one by one before anything is destroyed: what is under way may use all of it.
struct RabbitmqBroker::Parts {
  Parts(const Settings& given, std::unique_ptr<Publisher> publishes)
      : settings(given),
        names(given.prefix),
        publisher(std::move(publishes)),
        dialect(settings, stamps),
        consumer(settings, dialect, *publisher, stamps,
                 [this](const std::string& queue) { desk.post([this, queue] { (void)lost.bring_back(queue); }); }),
        visits(settings, stamps),
        dead(settings, visits, *publisher, stamps),
        lost(settings, visits, *publisher) {}

  const Settings settings;
  const Names names;
  Stamps stamps;
  std::unique_ptr<Publisher> publisher;
  NativeDialect dialect;  // Of the consumer's thread.
  Consumer consumer;
  // Of the desk's thread.
  Visits visits;
  DeadSet dead;
  LostSet lost;

  std::mutex mutex;  // Guards everything below.
  core::JobIdSource ids;
  platform::SystemRandom random;
  std::set<std::string> known_queues;  // Used by this process.

  Desk desk;

  Time now() const {
    return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(platform::real_clock().now().wall_us)));
  }
  void note_queue(const std::string& queue) {
    std::lock_guard lock(mutex);
    known_queues.insert(queue);
  }

  // Names all queues that are known to anybody, on the desk's thread.
  void with_queues(std::function<void(Result<std::vector<std::string>>, const std::set<std::string>& paused)> run) {
    std::set<std::string> own;
    {
      std::lock_guard lock(mutex);
      own = known_queues;
    }
    const auto on_desk = [this, run](const std::set<std::string>& all, const std::set<std::string>& paused,
                                     std::shared_ptr<const NoticeBoard> board) {
      const bool posted = desk.post([this, run, all, paused, board = std::move(board)] {
        dead.set_notices(board);
        run(std::vector<std::string>(all.begin(), all.end()), paused);
      });
      if (!posted) run(closed(), {});
    };
    if (!settings.notices) return on_desk(own, {}, nullptr);
    consumer.ask_board([run, own, on_desk](const Result<const NoticeBoard*>& board) {
      if (!board) return run(board.error(), {});
      std::set<std::string> all = (*board)->queues();
      all.insert(own.begin(), own.end());
      std::set<std::string> paused;
      for (const std::string& name : all) {
        if ((*board)->is_paused(name)) paused.insert(name);
      }
      on_desk(all, paused, std::make_shared<NoticeBoard>(**board));
    });
  }

  // One status for each, in order; those that are confirmed are known here before `done` runs.
  void announce_all(std::vector<Notice> notices, std::function<void(std::vector<Status>)> done) {
    struct Batch {
      std::vector<Notice> notices;
      std::vector<Status> statuses;
      std::size_t missing;
      std::function<void(std::vector<Status>)> done;
    };
    if (notices.empty()) return done({});
    const std::size_t count = notices.size();
    const auto batch =
        std::make_shared<Batch>(Batch{std::move(notices), std::vector<Status>(count), count, std::move(done)});
    std::vector<Publication> publications;
    for (std::size_t i = 0; i < count; ++i) {
      Publication publication = to_publication(batch->notices[i]);
      publication.done = [this, batch, i](Status status) {
        batch->statuses[i] = std::move(status);
        if (--batch->missing > 0) return;
        std::vector<Notice> confirmed;
        for (std::size_t each = 0; each < batch->notices.size(); ++each) {
          if (batch->statuses[each]) confirmed.push_back(std::move(batch->notices[each]));
        }
        consumer.tell(std::move(confirmed), [batch] { batch->done(std::move(batch->statuses)); });
      };
      publications.push_back(std::move(publication));
    }
    publisher->publish(std::move(publications));
  }
  void announce(Notice notice, std::function<void(Status)> done) {
    announce_all({std::move(notice)},
                 [done = std::move(done)](const std::vector<Status>& statuses) { done(statuses.front()); });
  }
};

Result<std::unique_ptr<RabbitmqBroker>> RabbitmqBroker::open(const Settings& settings) {
  Result<std::unique_ptr<Publisher>> publisher = Publisher::open(settings);
  if (!publisher) return publisher.error();
  return std::unique_ptr<RabbitmqBroker>(new RabbitmqBroker(std::make_unique<Parts>(settings, std::move(*publisher))));
}

RabbitmqBroker::RabbitmqBroker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RabbitmqBroker::~RabbitmqBroker() {
  parts_->desk.close();
  parts_->consumer.close();
  parts_->publisher->close();
}

void RabbitmqBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  struct Batch {
    std::vector<Result<Enqueued>> results;
    std::size_t missing = 0;
    Completion<std::vector<Result<Enqueued>>> done;
  };
  auto batch = std::make_shared<Batch>();
  batch->done = std::move(done);
  batch->results.reserve(jobs.size());
  const Time now = parts_->now();
  std::vector<Publication> publications;
  publications.reserve(jobs.size());
  {
    std::lock_guard lock(parts_->mutex);
    for (Job& job : jobs) {
      if (Status valid = check_job(job, now); !valid) {
        batch->results.push_back(valid.error());
        continue;
      }
      if (job.id.is_nil()) job.id = parts_->ids.next(now.time_since_epoch().count(), parts_->random.next());
      if (!parts_->known_queues.contains(job.queue)) parts_->known_queues.insert(job.queue);
      const std::size_t index = batch->results.size();
      batch->results.push_back(Enqueued{job.id, false});
      batch->missing += 1;
      Publication publication = first_publication(std::move(job), parts_->stamps.next(), now);
      publication.done = [batch, index](Status status) {
        if (!status) batch->results[index] = status.error();
        if (--batch->missing == 0) batch->done(std::move(batch->results));
      };
      publications.push_back(std::move(publication));
    }
  }
  if (publications.empty()) {
    // Even when nothing is published the completion runs on a thread of the broker.
    parts_->consumer.tell({}, [batch] { batch->done(std::move(batch->results)); });
    return;
  }
  parts_->publisher->publish(std::move(publications));
}

Result<std::unique_ptr<Subscription>> RabbitmqBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  for (const QueueShare& share : options.queues) {
    if (core::is_name(share.name)) parts_->note_queue(share.name);
  }
  return parts_->consumer.subscribe(std::move(options), std::move(sink));
}

void RabbitmqBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  parts_->consumer.extend(std::move(leases), std::move(done));
}

void RabbitmqBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  parts_->consumer.settle(std::move(settlements), std::move(done));
}

Pressure RabbitmqBroker::pressure() const { return parts_->publisher->pressure(); }

RabbitmqBroker::Stats RabbitmqBroker::stats() const { return {parts_->publisher->stats(), parts_->consumer.stats()}; }

Capabilities RabbitmqBroker::capabilities() const {
  Capabilities can;
  can.inspect = false;
  can.cancel = parts_->settings.notices;
  can.reschedule = parts_->settings.notices;
  can.hasten = false;
  can.unique_keys = false;
  can.idempotent_ids = false;
  can.priorities = parts_->publisher->stats().obeys_priorities;
  can.pause = parts_->settings.notices;
  can.results = false;
  can.expiry = true;
  can.dead_set = true;
  can.atomic_effects = false;
  can.completions = false;
  can.final_settle = false;
  can.due_order = false;
  can.lasting_leases = false;
  can.audit = false;
  can.why_not =
      "RabbitMQ keeps no index of the jobs that wait, does not confirm acknowledgements, and passes messages on "
      "without asking; see docs/rabbitmq.md";
  if (!can.priorities) can.why_not += "; quorum queues obey priorities from RabbitMQ 4.3 on";
  return can;
}

void RabbitmqBroker::queues(Completion<std::vector<QueueInfo>> done) {
  Parts* const parts = parts_.get();
  parts->with_queues([parts, done](const Result<std::vector<std::string>>& names, const std::set<std::string>& paused) {
    if (!names) return done(names.error());
    std::vector<QueueInfo> infos;
    for (const std::string& name : *names) {
      const Result<QueueCounts> ready = parts->visits.look_at(parts->names.queue(name));
      if (!ready) return done(ready.error());
      const Result<QueueCounts> buried = parts->visits.look_at(parts->names.dead(name));
      if (!buried) return done(buried.error());
      QueueInfo info;
      info.name = name;
      info.paused = paused.contains(name);
      info.ready = ready->messages;
      info.workers = static_cast<int>(ready->consumers);
      info.dead = buried->messages;
      infos.push_back(std::move(info));
    }
    done(std::move(infos));
  });
}

void RabbitmqBroker::find(JobId id, Completion<JobInfo> done) {
  Parts* const parts = parts_.get();
  parts->with_queues([parts, id, done](const Result<std::vector<std::string>>& names, const std::set<std::string>&) {
    if (!names) return done(names.error());
    Result<JobInfo> found = parts->dead.find(*names, id);
    if (!found && found.error().code == ErrorCode::kNotFound) {
      return refuse(done, "job " + id.to_string() + " is not in the dead set, and " + std::string(kNoIndex));
    }
    done(std::move(found));
  });
}

void RabbitmqBroker::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  Parts* const parts = parts_.get();
  if (filter.states != std::vector<JobState>{JobState::kDead}) {
    return refuse(done, std::string(kNoIndex) + "; dead jobs can be listed (state dead)");
  }
  if (limit == 0) return done(Error{ErrorCode::kInvalidArgument, "limit: at least 1"});
  parts->with_queues([parts, filter, cursor, limit, done](const Result<std::vector<std::string>>& names,
                                                          const std::set<std::string>&) {
    if (!names) return done(names.error());
    done(parts->dead.list(filter.queue.empty() ? *names : std::vector{filter.queue}, filter, cursor, limit));
  });
}

void RabbitmqBroker::explain(JobId id, Completion<Explanation> done) {
  Parts* const parts = parts_.get();
  parts->consumer.is_running(id, [this, id, done](bool running) {
    if (running) return done(Explanation{"running", "A worker of this process has it."});
    find(id, [done](const Result<JobInfo>& info) {
      if (!info) return done(info.error());
      done(Explanation{"dead", "It is in the dead set: " + std::string(to_string(*info->dead_reason)) + "."});
    });
  });
}

void RabbitmqBroker::audit(Completion<AuditReport> done) {
  refuse(done, "RabbitMQ does not count what it has ever accepted, so there is nothing to compare with");
}

GiveUp RabbitmqBroker::watch(JobId, Completion<JobInfo> done) {
  refuse(done, "RabbitMQ does not tell when a message was acknowledged, so nobody knows when a job is done");
  return [] {};
}

void RabbitmqBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  Parts* const parts = parts_.get();
  const bool dead_only = options.state == JobState::kDead;
  if (options.state && !dead_only) {
    return refuse(done, std::string(kNoIndex) + "; only whether a job is dead can be told (state dead)");
  }
  if (dead_only) {
    return parts->with_queues([parts, ids, done](const Result<std::vector<std::string>>& names, const std::set<std::string>&) {
      if (!names) return done(names.error());
      done(parts->dead.remove(*names, ids));
    });
  }
  if (!parts->settings.notices) return refuse(done, kNoNotices);
  // Whoever gets it is told to drop it, among the dead as well: nobody looks for it there, they may be many.
  std::vector<Notice> notices;
  for (const JobId& id : ids) {
    Notice notice;
    notice.kind = Notice::Kind::kCancel;
    notice.id = id;
    notice.stamp = parts->stamps.next();
    notices.push_back(std::move(notice));
  }
  parts->announce_all(std::move(notices), done);
}

void RabbitmqBroker::reschedule(JobId id, Time due, Completion<void> done) {
  Parts* const parts = parts_.get();
  if (!parts->settings.notices) return refuse(done, kNoNotices);
  if (due <= parts->now()) {
    return refuse(done, "a job that waits in a queue of RabbitMQ can be put off, but not hastened");
  }
  parts->consumer.is_running(id, [parts, id, due, done](bool running) {
    if (running) return done(Error{ErrorCode::kWrongState, "job " + id.to_string() + " is running"});
    Notice notice;
    notice.kind = Notice::Kind::kPutOff;
    notice.id = id;
    notice.stamp = parts->stamps.next();
    notice.due = due;
    parts->announce(std::move(notice), done);
  });
}

void RabbitmqBroker::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  Parts* const parts = parts_.get();
  parts->with_queues(
      [parts, ids, options, done](const Result<std::vector<std::string>>& names, const std::set<std::string>&) {
        if (!names) return done(names.error());
        done(parts->dead.replay(*names, ids, options));
      });
}

void RabbitmqBroker::pause(std::string queue, bool paused, Completion<void> done) {
  if (!parts_->settings.notices) return refuse(done, kNoNotices);
  if (!core::is_name(queue)) {
    return done(Error{ErrorCode::kInvalidArgument, "invalid queue name " + core::quoted(queue)});
  }
  Notice notice;
  notice.kind = paused ? Notice::Kind::kPause : Notice::Kind::kResume;
  notice.name = std::move(queue);
  notice.stamp = parts_->stamps.next();
  parts_->announce(std::move(notice), std::move(done));
}

void RabbitmqBroker::purge(std::string queue, Completion<std::uint64_t> done) {
  Parts* const parts = parts_.get();
  if (!core::is_name(queue)) {
    return done(Error{ErrorCode::kInvalidArgument, "invalid queue name " + core::quoted(queue)});
  }
  const auto purge_ready = [parts, queue, done](const Status& announced) {
    if (!announced) return done(announced.error());
    const bool posted = parts->desk.post([parts, queue, done] {
      const Result<std::uint32_t> purged = parts->visits.purge(parts->names.queue(queue));
      // Those that are scheduled are gone already.
      if (!purged) return done(parts->settings.notices ? unconfirmed(purged.error()) : purged.error());
      done(std::uint64_t{*purged});
    });
    if (!posted) done(parts->settings.notices ? unconfirmed(closed()) : closed());
  };
  // Those that are scheduled are dropped when they arrive.
  if (!parts->settings.notices) return purge_ready(Status());
  Notice notice;
  notice.kind = Notice::Kind::kPurge;
  notice.name = queue;
  notice.stamp = parts->stamps.next();
  parts->announce(std::move(notice), purge_ready);
}

}  // namespace bide::brokers::rabbitmq
