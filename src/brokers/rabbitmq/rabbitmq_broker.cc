#include "brokers/rabbitmq/rabbitmq_broker.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "brokers/rabbitmq/consumer.h"
#include "brokers/rabbitmq/dead_set.h"
#include "brokers/rabbitmq/lost_set.h"
#include "brokers/rabbitmq/native_dialect.h"
#include "brokers/rabbitmq/pending_replies.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/queue_browser.h"
#include "brokers/rabbitmq/reply_queue.h"
#include "brokers/rabbitmq/stamps.h"
#include "core/job_ids.h"
#include "core/job_rules.h"
#include "core/request_rules.h"
#include "platform/random.h"
#include "platform/task_thread.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr std::string_view kNoIndex =
    "RabbitMQ keeps no index of the jobs that wait in its queues: they can be counted, but not found or listed";
constexpr std::string_view kNoNotices =
    "switched off by cancel=no in the URL, or not possible because another system would not know of it (compat)";

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

// The replies to the requests of this process.
struct Replies {
  explicit Replies(std::string name) : queue(std::move(name), [this](AmqpMessage reply) { pending.take(std::move(reply)); }) {}

  PendingReplies pending;
  ReplyQueue queue;
};

namespace {

std::string new_reply_queue(const Settings& settings) {
  platform::SystemRandom random;
  std::array<char, 33> name{};
  std::snprintf(name.data(), name.size(), "%016llx%016llx", static_cast<unsigned long long>(random.next()),
                static_cast<unsigned long long>(random.next()));
  return Names(settings.prefix).reply(name.data());
}

}  // namespace

// Closed one by one before anything is destroyed: what is under way may use all of it.
struct RabbitmqBroker::Parts {
  Parts(const Settings& given, std::unique_ptr<Dialect> other_system, std::shared_ptr<Replies> replies_in,
        std::unique_ptr<Publisher> publishes)
      : settings(given),
        replies(std::move(replies_in)),
        publisher(std::move(publishes)),
        dialect(other_system != nullptr
                    ? std::move(other_system)
                    : std::make_unique<NativeDialect>(settings, stamps, replies->queue.name())),
        consumer(settings, *dialect, *publisher, stamps,
                 [this](const std::string& queue) { bring_back_lost(queue); }),
        browser(settings, stamps),
        dead(settings, *dialect, browser, *publisher),
        lost(settings, *dialect, browser, *publisher),
        known_queues(dialect->known_queues()) {}

  const Settings settings;
  Stamps stamps;
  const std::shared_ptr<Replies> replies;
  std::unique_ptr<Publisher> publisher;
  const std::unique_ptr<Dialect> dialect;
  Consumer consumer;
  // Of the thread that inspects.
  QueueBrowser browser;
  DeadSet dead;
  LostSet lost;

  std::mutex mutex;  // Guards everything below.
  core::JobIdSource ids;
  platform::SystemRandom random;
  std::set<std::string> known_queues;  // Used by this process.
  std::set<std::string> told_queues;   // Of these, those that others were told of because a dead job came to them.

  std::set<std::string> lost_looks;    // Queues whose lost jobs are going to be looked for.
  bool closing = false;

  platform::TaskThread inspecting;

  bool carries_requests() const { return dialect->carries_requests(); }

  // Runs it on the thread that inspects. False: the broker is about to end.
  bool inspect(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      if (closing) return false;
    }
    inspecting.run(std::move(task));
    return true;
  }

  // One look at a time for each queue: it may take long, and is asked for again and again.
  void bring_back_lost(const std::string& queue) {
    {
      std::lock_guard lock(mutex);
      if (closing || !lost_looks.insert(queue).second) return;
    }
    inspect([this, queue] {
      {
        std::lock_guard lock(mutex);
        lost_looks.erase(queue);
        if (closing) return;
      }
      (void)lost.bring_back(queue);
    });
  }

  using Names = std::vector<std::string>;
  // Names all queues that are known to anybody, on the thread that inspects. Errors go to `done`.
  template <class T>
  void with_queues(const Completion<T>& done, std::function<void(const Names&, const std::set<std::string>& paused)> run) {
    std::set<std::string> own;
    {
      std::lock_guard lock(mutex);
      own = known_queues;
    }
    const auto with_all = [this, run, done](const std::set<std::string>& all, const std::set<std::string>& paused,
                                           std::shared_ptr<const NoticeBoard> board) {
      const bool posted = inspect([this, run, all, paused, board = std::move(board)] {
        dead.set_notices(board);
        // Two names of one AMQP queue count once.
        std::set<std::string> sources;
        Names names;
        for (const std::string& name : all) {
          if (sources.insert(dialect->source(name)).second) names.push_back(name);
        }
        run(names, paused);
      });
      if (!posted) done(closed());
    };
    if (!settings.notices) return with_all(own, {}, nullptr);
    consumer.ask_board([own, with_all, done](const Result<const NoticeBoard*>& board) {
      if (!board) return done(board.error());
      std::set<std::string> all = (*board)->queues();
      all.insert(own.begin(), own.end());
      std::set<std::string> paused;
      for (const std::string& name : all) {
        if ((*board)->is_paused(name)) paused.insert(name);
      }
      with_all(all, paused, std::make_shared<NoticeBoard>(**board));
    });
  }

  // One status for each, in order; those that are confirmed are known here before `done` runs.
  void announce_all(std::vector<Notice> notices, std::function<void(std::vector<Status>)> done) {
    std::vector<Publication> publications;
    for (const Notice& notice : notices) publications.push_back(to_publication(notice));
    publisher->publish(std::move(publications), [this, notices, done](std::vector<Status> statuses) {
      std::vector<Notice> confirmed;
      for (std::size_t i = 0; i < notices.size(); ++i) {
        if (statuses[i]) confirmed.push_back(notices[i]);
      }
      consumer.tell(std::move(confirmed), [done, statuses = std::move(statuses)] { done(statuses); });
    });
  }
  void announce(Notice notice, std::function<void(Status)> done) {
    announce_all({std::move(notice)},
                 [done = std::move(done)](const std::vector<Status>& statuses) { done(statuses.front()); });
  }
};

Result<std::unique_ptr<RabbitmqBroker>> RabbitmqBroker::open(Settings settings, std::unique_ptr<Dialect> dialect) {
  // A job of another system cannot be cancelled.
  if (dialect != nullptr) settings.notices = false;
  auto replies = std::make_shared<Replies>(new_reply_queue(settings));
  Result<std::unique_ptr<Publisher>> publisher = Publisher::open(settings, &replies->queue);
  if (!publisher) return publisher.error();
  return std::unique_ptr<RabbitmqBroker>(new RabbitmqBroker(
      std::make_unique<Parts>(settings, std::move(dialect), std::move(replies), std::move(*publisher))));
}

RabbitmqBroker::RabbitmqBroker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RabbitmqBroker::~RabbitmqBroker() {
  {
    std::lock_guard lock(parts_->mutex);
    parts_->closing = true;
  }
  parts_->inspecting.stop();
  parts_->consumer.close();
  parts_->publisher->close();
  parts_->replies->pending.close(closed());
}

void RabbitmqBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  std::vector<Result<Enqueued>> results;
  results.reserve(jobs.size());
  std::vector<std::size_t> published;  // Which of the jobs.
  std::vector<Publication> publications;
  publications.reserve(jobs.size());
  // Nobody may ever consume from the queue of a job that comes as a dead one: whoever looks at dead sets is told its name.
  std::vector<Notice> notices;
  const Time now = wall_now();
  {
    std::lock_guard lock(parts_->mutex);
    for (Job& job : jobs) {
      if (Status valid = check_job(job, now); !valid) {
        results.push_back(valid.error());
        continue;
      }
      if (Status kept = core::check_kept(job, {.past = parts_->settings.compat.empty()}); !kept) {
        results.push_back(kept.error());
        continue;
      }
      if (job.id.is_nil()) job.id = parts_->ids.next(now.time_since_epoch().count(), parts_->random.next());
      const JobId id = job.id;
      std::string queue = job.queue;
      const std::optional<Time> deadline = core::is_request(job) ? job.expires : std::nullopt;
      const bool is_dead = job.past && job.past->dead;
      Result<Publication> publication = parts_->dialect->enqueue(std::move(job), parts_->stamps.next(), now);
      if (!publication) {
        results.push_back(publication.error());
        continue;
      }
      if (is_dead && parts_->settings.notices && !parts_->told_queues.contains(queue)) {
        notices.push_back({.kind = Notice::Kind::kQueue, .id = {}, .name = queue, .stamp = parts_->stamps.next()});
      }
      if (!parts_->known_queues.contains(queue)) parts_->known_queues.insert(std::move(queue));
      if (deadline && parts_->carries_requests()) {
        parts_->replies->pending.expect(id, *deadline, now);
        publication->message.correlation_id = id.to_string();
        publication->message.reply_to = parts_->replies->queue.name();
      }
      published.push_back(results.size());
      results.push_back(Enqueued{id, false});
      publications.push_back(std::move(*publication));
    }
  }
  if (publications.empty()) {
    // Even when nothing is published the completion runs on a thread of the broker.
    return parts_->consumer.tell({}, [results = std::move(results), done = std::move(done)] { done(results); });
  }
  auto answer = [parts = parts_.get(), published = std::move(published), results = std::move(results),
                 done = std::move(done)](const std::vector<Status>& statuses) mutable {
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i]) continue;
      Result<Enqueued>& result = results[published[i]];
      parts->replies->pending.forget(result->id);
      result = statuses[i].error();
    }
    done(std::move(results));
  };
  if (notices.empty()) return parts_->publisher->publish(std::move(publications), std::move(answer));
  const auto waiting = std::make_shared<std::vector<Publication>>(std::move(publications));
  parts_->announce_all(notices, [parts = parts_.get(), notices, waiting, answer = std::move(answer)](
                                    const std::vector<Status>& told) mutable {
    const auto untold = std::find_if(told.begin(), told.end(), [](const Status& status) { return !status; });
    if (untold != told.end()) return answer(std::vector<Status>(waiting->size(), *untold));
    {
      const std::lock_guard lock(parts->mutex);
      for (const Notice& notice : notices) parts->told_queues.insert(notice.name);
    }
    parts->publisher->publish(std::move(*waiting), std::move(answer));
  });
}

Result<std::unique_ptr<Subscription>> RabbitmqBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  for (const QueueShare& share : options.queues) {
    if (!parts_->dialect->check_queue(share.name)) continue;
    std::lock_guard lock(parts_->mutex);
    parts_->known_queues.insert(share.name);
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

RabbitmqBroker::Stats RabbitmqBroker::stats() const {
  return {parts_->publisher->stats(), parts_->consumer.stats(), parts_->replies->pending.dropped()};
}

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
  can.expiry = parts_->settings.compat.empty();
  can.dead_set = true;
  can.carries_past = parts_->settings.compat.empty();
  can.atomic_effects = false;
  can.completions = false;
  can.final_settle = false;
  can.due_order = false;
  can.lasting_leases = false;
  can.audit = false;
  can.requests = parts_->carries_requests();
  can.why_not =
      "RabbitMQ keeps no index of the jobs that wait, does not confirm acknowledgements, and passes messages on "
      "without asking; see docs/rabbitmq.md";
  if (!can.priorities) can.why_not += "; quorum queues obey priorities from RabbitMQ 4.3 on";
  if (!parts_->settings.compat.empty()) {
    can.priorities = false;
    can.why_not =
        "compat=" + parts_->settings.compat + ": jobs live in the layout of another system; see docs/interop.md";
  }
  return can;
}

void RabbitmqBroker::queues(Completion<std::vector<QueueInfo>> done) {
  Parts* const parts = parts_.get();
  parts->with_queues(done, [parts, done](const Parts::Names& names, const std::set<std::string>& paused) {
    std::vector<QueueInfo> infos;
    for (const std::string& name : names) {
      const Result<QueueCounts> ready = parts->browser.look_at(parts->dialect->source(name));
      if (!ready) return done(ready.error());
      const Result<QueueCounts> buried = parts->browser.look_at(parts->dialect->dead_queue(name));
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
  parts->with_queues(done, [parts, id, done](const Parts::Names& names, const auto&) {
    Result<JobInfo> found = parts->dead.find(names, id);
    if (!found && found.error().code == ErrorCode::kNotFound) {
      return refuse(done, found.error().message + ", and " + std::string(kNoIndex));
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
  if (!filter.queue.empty()) {
    if (Status known = parts->dialect->check_queue(filter.queue); !known) return done(known.error());
  }
  parts->with_queues(done, [parts, filter, cursor, limit, done](const Parts::Names& names, const auto&) {
    done(parts->dead.list(filter.queue.empty() ? names : std::vector{filter.queue}, filter, cursor, limit));
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

GiveUp RabbitmqBroker::watch(JobId id, Completion<JobInfo> done) {
  // Of a request that this process has sent: its reply.
  if (parts_->replies->pending.watch(id, done)) {
    return [replies = parts_->replies, id] { replies->pending.give_up(id); };
  }
  refuse(done, "RabbitMQ does not tell when a message was acknowledged, so nobody knows when a job is done");
  return [] {};
}

void RabbitmqBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  Parts* const parts = parts_.get();
  const bool dead_only = options.state == JobState::kDead;
  if (options.state && !dead_only) {
    return refuse(done, std::string(kNoIndex) + "; only whether a job is dead can be told (state dead)");
  }
  const bool compat = !parts->settings.compat.empty();
  if (dead_only || compat) {
    return parts->with_queues(done, [parts, ids, dead_only, done](const Parts::Names& names, const auto&) {
      Result<std::vector<Status>> removed = parts->dead.remove(names, ids);
      for (std::size_t i = 0; removed && !dead_only && i < removed->size(); ++i) {
        Status& one = (*removed)[i];
        if (one || one.error().code != ErrorCode::kNotFound) continue;
        one = Error{ErrorCode::kUnsupported, one.error().message + ", and " + std::string(kNoIndex)};
      }
      done(std::move(removed));
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
  if (due <= wall_now()) {
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
  parts->with_queues(done, [parts, ids, options, done](const Parts::Names& names, const auto&) {
    done(parts->dead.replay(names, ids, options));
  });
}

void RabbitmqBroker::pause(std::string queue, bool paused, Completion<void> done) {
  if (!parts_->settings.notices) return refuse(done, kNoNotices);
  if (Status known = parts_->dialect->check_queue(queue); !known) return done(known.error());
  Notice notice;
  notice.kind = paused ? Notice::Kind::kPause : Notice::Kind::kResume;
  notice.name = std::move(queue);
  notice.stamp = parts_->stamps.next();
  parts_->announce(std::move(notice), std::move(done));
}

void RabbitmqBroker::purge(std::string queue, Completion<std::uint64_t> done) {
  Parts* const parts = parts_.get();
  if (Status known = parts_->dialect->check_queue(queue); !known) return done(known.error());
  const auto purge_ready = [parts, queue, done](const Status& announced) {
    if (!announced) return done(announced.error());
    const bool posted = parts->inspect([parts, queue, done] {
      const Result<std::uint32_t> purged = parts->browser.purge(parts->dialect->source(queue));
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
