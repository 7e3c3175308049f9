#include "brokers/rabbitmq/compat/foreign_broker.h"

#include <future>
#include <mutex>
#include <set>
#include <utility>

#include "brokers/rabbitmq/compat/async_worker.h"
#include "brokers/rabbitmq/compat/foreign_dead.h"
#include "brokers/rabbitmq/compat/foreign_dialect.h"
#include "brokers/rabbitmq/compat/foreign_topology.h"
#include "brokers/rabbitmq/compat/sneakers.h"
#include "brokers/rabbitmq/consumer.h"
#include "brokers/rabbitmq/desk.h"
#include "brokers/rabbitmq/job_message.h"
#include "brokers/rabbitmq/publications.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/stamps.h"
#include "brokers/rabbitmq/topology.h"
#include "brokers/rabbitmq/visits.h"
#include "core/job_ids.h"
#include "core/quote.h"
#include "platform/clock.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr std::string_view kNoIndex =
    "RabbitMQ keeps no index of the jobs that wait in its queues: only the dead can be found, listed and removed";

constexpr std::string_view kLostLock = ".lost";  // The same for everybody who looks at the lost ones.

Error closed() { return {ErrorCode::kUnavailable, "the broker is closed"}; }

template <class T>
void refuse(const Completion<T>& done, std::string_view why) {
  done(Error{ErrorCode::kUnsupported, std::string(why)});
}

// A foreign job cannot be cancelled.
Settings without_notices(Settings settings) {
  settings.notices = false;
  return settings;
}

// Nothing of bide's own layout is declared for messages that never see it.
Settings without_own_layout(Settings settings) {
  settings.declare = false;
  return without_notices(std::move(settings));
}

// By way of delay queues the last entry of CC is the queue.
bool lost_on_the_way_to(const std::string& queue, const AmqpMessage& message) {
  const Field* cc = find_field(message.headers, "CC");
  if (cc == nullptr || cc->list() == nullptr || cc->list()->empty()) return false;
  const std::string* last = cc->list()->back().text();
  return last != nullptr && *last == queue;
}

// Deaths in that queue are counted by the other system; those in delay queues would look like a message that goes round
// in a circle.
void remove_travel(FieldTable& headers, const std::string& queue) {
  FieldList deaths;
  if (const Field* all = find_field(headers, "x-death"); all != nullptr && all->list() != nullptr) {
    for (const Field& death : *all->list()) {
      const Field* name = death.table() != nullptr ? find_field(*death.table(), "queue") : nullptr;
      if (name != nullptr && name->text() != nullptr && *name->text() == queue) deaths.push_back(death);
    }
  }
  strip_travel_headers(headers);
  std::erase_if(headers, [](const auto& header) { return header.first == "CC" || header.first == "x-death"; });
  if (!deaths.empty()) headers.emplace_back("x-death", std::move(deaths));
}

// Names separated by commas.
Result<std::set<std::string>> queues_of(const Settings& settings, const ForeignSystem& system) {
  std::set<std::string> queues;
  for (const auto& [name, value] : settings.compat_options) {
    if (name != "queues") continue;
    for (std::size_t start = 0; start <= value.size();) {
      const std::size_t end = std::min(value.find(',', start), value.size());
      const std::string queue = value.substr(start, end - start);
      if (Status known = system.check_queue(queue); !known)
        return Error{known.error().code, "queues: " + known.error().message};
      queues.insert(queue);
      start = end + 1;
    }
  }
  return queues;
}

}  // namespace

// Closed one by one before anything is destroyed: what is under way may use all of it.
struct ForeignBroker::Parts {
  Parts(const Settings& given, std::unique_ptr<ForeignSystem> meaning, std::unique_ptr<Publisher> publishes)
      : settings(without_notices(given)),
        system(std::move(meaning)),
        publisher(std::move(publishes)),
        dialect(settings, *system),
        consumer(settings, dialect, *publisher, stamps,
                 [this](const std::string& queue) { desk.post([this, queue] { bring_back(queue); }); }),
        visits(settings, stamps),
        dead(settings, *system, [this](Send message) { return send_and_wait(std::move(message)); }) {}

  const Settings settings;
  const std::unique_ptr<ForeignSystem> system;
  Stamps stamps;
  const std::unique_ptr<Publisher> publisher;
  ForeignDialect dialect;  // Of the consumer's thread.
  Consumer consumer;
  // Of the desk's thread.
  Visits visits;
  ForeignDead dead;

  std::mutex mutex;  // Guards everything below.
  core::JobIdSource ids;
  platform::SystemRandom random;
  std::set<std::string> known_queues;

  Desk desk;

  Time now() const {
    return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(platform::real_clock().now().wall_us)));
  }
  // Two names of the same queue count once.
  std::vector<std::string> queues() {
    const std::lock_guard lock(mutex);
    std::set<std::string> sources;
    std::vector<std::string> names;
    for (const std::string& name : known_queues) {
      if (sources.insert(system->source(name)).second) names.push_back(name);
    }
    return names;
  }
  // Declares what the message needs and publishes it. For those that need nothing the publisher is enough.
  void send(Send message, std::function<void(Status)> done) {
    consumer.with_connection([this, message = std::move(message), done](const Result<Connection*>& connection) {
      if (!connection) return done(connection.error());
      Result<Publication> publication = dialect.prepare(*connection, message);
      if (!publication) return done(publication.error());
      publication->done = done;
      std::vector<Publication> one;
      one.push_back(std::move(*publication));
      publisher->publish(std::move(one));
    });
  }
  Status send_and_wait(Send message) {
    auto sent = std::make_shared<std::promise<Status>>();
    std::future<Status> answer = sent->get_future();
    send(std::move(message), [sent](Status status) { sent->set_value(std::move(status)); });
    return answer.get();
  }
  // Jobs that became due while their queue was not there are brought to it, now that it is there again.
  void bring_back(const std::string& queue) {
    const Names names(settings.prefix);
    const std::string source = system->source(queue);
    const Result<QueueCounts> lost = visits.look_at(names.lost());
    if (!lost || lost->messages == 0) return;
    const auto bring = [&](Visits::Visit& visit, std::uint64_t tag, AmqpMessage message) {
      if (lost_on_the_way_to(source, message)) {
        message.expiration.clear();
        remove_travel(message.headers, source);
        // Otherwise it stays where it is, and is found the next time.
        if (send_and_wait({.key = source, .message = std::move(message)})) (void)visit.remove(tag);
      }
      return true;
    };
    (void)visits.visit(names.lost(), names.visit(kLostLock), bring);
  }
  Status declare_and_wait(const std::string& queue) {
    auto declared = std::make_shared<std::promise<Status>>();
    std::future<Status> answer = declared->get_future();
    consumer.with_connection([this, queue, declared](const Result<Connection*>& connection) {
      declared->set_value(connection ? dialect.declare(**connection, queue) : Status(connection.error()));
    });
    return answer.get();
  }
  template <class T>
  void on_desk(std::function<void()> task, const Completion<T>& done) {
    if (!desk.post(std::move(task))) done(closed());
  }
};

Result<std::unique_ptr<ForeignBroker>> ForeignBroker::open(const Settings& settings) {
  std::unique_ptr<ForeignSystem> system;
  std::string only_queue;
  if (settings.compat == "sneakers") {
    Result<SneakersOptions> options = SneakersOptions::parse(settings.compat_options);
    if (!options) return options.error();
    system = std::make_unique<Sneakers>(std::move(*options));
  } else if (settings.compat == "async-worker") {
    Result<AsyncWorkerOptions> options = AsyncWorkerOptions::parse(settings.compat_options);
    if (!options) return options.error();
    only_queue = options->name;
    system = std::make_unique<AsyncWorker>(std::move(*options));
  } else {
    return Error{ErrorCode::kInvalidArgument, "compat: unknown mode " + core::quoted(settings.compat)};
  }
  Result<std::set<std::string>> queues = queues_of(settings, *system);
  if (!queues) return queues.error();
  if (!only_queue.empty()) queues->insert(only_queue);

  Result<std::unique_ptr<Publisher>> publisher = Publisher::open(without_own_layout(settings));
  if (!publisher) return publisher.error();
  auto parts = std::make_unique<Parts>(settings, std::move(system), std::move(*publisher));
  parts->known_queues = std::move(*queues);
  auto broker = std::unique_ptr<ForeignBroker>(new ForeignBroker(std::move(parts)));
  if (!only_queue.empty()) {
    // Its producers declare as well, so that nothing is lost when no worker has ever run.
    if (Status status = broker->parts_->declare_and_wait(only_queue); !status) return status.error();
  }
  return broker;
}

ForeignBroker::ForeignBroker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ForeignBroker::~ForeignBroker() {
  parts_->desk.close();
  parts_->consumer.close();
  parts_->publisher->close();
}

void ForeignBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  struct Batch {
    std::mutex mutex;  // Completed by two threads.
    std::vector<Result<Enqueued>> results;
    std::size_t missing = 1;  // This call itself.
    Completion<std::vector<Result<Enqueued>>> done;

    void complete(std::size_t index, Status status) {
      {
        const std::lock_guard lock(mutex);
        if (!status) results[index] = status.error();
      }
      one_less();
    }
    void one_less() {
      {
        const std::lock_guard lock(mutex);
        if (--missing > 0) return;
      }
      done(std::move(results));
    }
  };
  auto batch = std::make_shared<Batch>();
  batch->done = std::move(done);
  const Time now = parts_->now();
  std::vector<Publication> publications;
  std::vector<std::pair<std::size_t, Send>> with_needs;
  {
    const std::lock_guard lock(parts_->mutex);
    for (Job& job : jobs) {
      const std::size_t index = batch->results.size();
      if (Status valid = check_job(job, now); !valid) {
        batch->results.push_back(valid.error());
        continue;
      }
      if (job.id.is_nil()) job.id = parts_->ids.next(now.time_since_epoch().count(), parts_->random.next());
      Result<Send> send = parts_->system->enqueue(job, now);
      if (!send) {
        batch->results.push_back(send.error());
        continue;
      }
      parts_->known_queues.insert(job.queue);
      batch->results.push_back(Enqueued{job.id, false});
      batch->missing += 1;
      if (std::optional<Publication> publication = without_preparation(*send)) {
        publication->done = [batch, index](Status status) { batch->complete(index, std::move(status)); };
        publications.push_back(std::move(*publication));
      } else {
        with_needs.emplace_back(index, std::move(*send));
      }
    }
  }
  parts_->publisher->publish(std::move(publications));
  for (auto& [index, send] : with_needs) {
    parts_->send(std::move(send),
                          [batch, index = index](Status status) { batch->complete(index, std::move(status)); });
  }
  // The completion runs on a thread of the broker, also when nothing was published.
  parts_->consumer.tell({}, [batch] { batch->one_less(); });
}

Result<std::unique_ptr<Subscription>> ForeignBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  for (const QueueShare& share : options.queues) {
    if (!parts_->system->check_queue(share.name)) continue;
    const std::lock_guard lock(parts_->mutex);
    parts_->known_queues.insert(share.name);
  }
  return parts_->consumer.subscribe(std::move(options), std::move(sink));
}

void ForeignBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  parts_->consumer.extend(std::move(leases), std::move(done));
}

void ForeignBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  parts_->consumer.settle(std::move(settlements), std::move(done));
}

Pressure ForeignBroker::pressure() const { return parts_->publisher->pressure(); }

Capabilities ForeignBroker::capabilities() const {
  Capabilities can;
  can.inspect = can.cancel = can.reschedule = can.hasten = can.unique_keys = can.idempotent_ids = false;
  can.priorities = can.pause = can.results = can.expiry = can.atomic_effects = can.final_settle = false;
  can.completions = can.due_order = can.lasting_leases = can.audit = false;
  can.dead_set = true;
  can.why_not =
      "compat=" + parts_->settings.compat + ": jobs live in the layout of another system; see docs/interop.md";
  return can;
}

void ForeignBroker::queues(Completion<std::vector<QueueInfo>> done) {
  Parts* const parts = parts_.get();
  parts->on_desk(
      [parts, done] {
        std::vector<QueueInfo> infos;
        for (const std::string& name : parts->queues()) {
          const Result<QueueCounts> ready = parts->dead.count(parts->system->source(name));
          if (!ready) return done(ready.error());
          const Result<QueueCounts> buried = parts->dead.count(parts->system->dead_queue(name));
          if (!buried) return done(buried.error());
          QueueInfo info;
          info.name = name;
          info.ready = ready->messages;
          info.workers = static_cast<int>(ready->consumers);
          info.dead = buried->messages;
          infos.push_back(std::move(info));
        }
        done(std::move(infos));
      },
      done);
}

void ForeignBroker::find(JobId id, Completion<JobInfo> done) {
  Parts* const parts = parts_.get();
  parts->on_desk(
      [parts, id, done] {
        Result<JobInfo> found = parts->dead.find(parts->queues(), id);
        if (!found && found.error().code == ErrorCode::kNotFound) {
          return refuse(done, found.error().message + ", and " + std::string(kNoIndex));
        }
        done(std::move(found));
      },
      done);
}

void ForeignBroker::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  if (filter.states != std::vector<JobState>{JobState::kDead}) return refuse(done, kNoIndex);
  if (limit == 0) return done(Error{ErrorCode::kInvalidArgument, "limit: at least 1"});
  if (!filter.queue.empty()) {
    if (Status known = parts_->system->check_queue(filter.queue); !known) return done(known.error());
  }
  Parts* const parts = parts_.get();
  parts->on_desk(
      [parts, filter, cursor, limit, done] {
        done(parts->dead.list(filter.queue.empty() ? parts->queues() : std::vector{filter.queue}, filter, cursor,
                              limit));
      },
      done);
}

void ForeignBroker::explain(JobId id, Completion<Explanation> done) {
  find(id, [done](const Result<JobInfo>& info) {
    if (!info) return done(info.error());
    done(Explanation{"dead", "It is in the queue of the dead."});
  });
}

void ForeignBroker::audit(Completion<AuditReport> done) {
  refuse(done, "RabbitMQ does not count what it has ever accepted, so there is nothing to compare with");
}

GiveUp ForeignBroker::watch(JobId, Completion<JobInfo> done) {
  refuse(done, "RabbitMQ does not tell when a message was acknowledged, so nobody knows when a job is done");
  return [] {};
}

void ForeignBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  if (options.state && *options.state != JobState::kDead) return refuse(done, kNoIndex);
  Parts* const parts = parts_.get();
  parts->on_desk(
      [parts, ids, done] {
        Result<std::vector<Status>> removed = parts->dead.remove(parts->queues(), ids);
        if (!removed) return done(removed.error());
        for (Status& one : *removed) {
          if (one || one.error().code != ErrorCode::kNotFound) continue;
          one = Error{ErrorCode::kUnsupported, one.error().message + ", and " + std::string(kNoIndex)};
        }
        done(std::move(removed));
      },
      done);
}

void ForeignBroker::reschedule(JobId, Time, Completion<void> done) { refuse(done, kNoIndex); }

void ForeignBroker::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  Parts* const parts = parts_.get();
  parts->on_desk([parts, ids, options, done] { done(parts->dead.replay(parts->queues(), ids, options)); }, done);
}

void ForeignBroker::pause(std::string, bool, Completion<void> done) {
  refuse(done, "workers of the other system would not know that a queue is paused");
}

void ForeignBroker::purge(std::string queue, Completion<std::uint64_t> done) {
  if (Status known = parts_->system->check_queue(queue); !known) return done(known.error());
  Parts* const parts = parts_.get();
  parts->on_desk(
      [parts, queue, done] {
        const Result<std::uint32_t> purged = parts->dead.purge(parts->system->source(queue));
        if (!purged) return done(purged.error());
        done(std::uint64_t{*purged});
      },
      done);
}

}  // namespace bide::brokers::rabbitmq::compat
