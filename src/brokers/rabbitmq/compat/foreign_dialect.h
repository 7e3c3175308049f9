// ForeignSystem: what another job system means by its queues and messages. Pure: bytes in, decisions out. ForeignDialect
// lets Consumer take its jobs, and everybody else look at them: amqp://…?compat=sneakers, async-worker or comq.

#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/lease.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/dialect.h"
#include "core/job_ids.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq::compat {

// A message to publish.
struct Send {
  std::string exchange = {};  // Empty: the default exchange.
  std::string key = {};
  AmqpMessage message = {};
  Topology needs = {};    // Must be there first.
  Milliseconds delay{0};  // Longer: by way of bide's own delay queues to the queue named by the key.
  bool mandatory = true;  // False: it may be for nobody.
};

class ForeignSystem {
 public:
  virtual ~ForeignSystem() = default;

  // kInvalidArgument: it has no such queue.
  virtual Status check_queue(std::string_view queue) const = 0;
  // Names of AMQP queues for the queue of that name: where jobs are taken from, and where the dead are.
  virtual std::string source(const std::string& queue) const = 0;
  virtual std::string dead_queue(const std::string& queue) const = 0;
  // What the other system declares for a worker of that queue; its clients, too?
  virtual Topology topology(const std::string& queue) const = 0;
  virtual bool clients_declare() const = 0;
  virtual std::set<std::string> known_queues() const = 0;

  // An error: it is no job of this system. Then it goes where send_unreadable() says.
  virtual Result<ReceivedJob> receive(AmqpMessage message, std::string key, const std::string& queue) const = 0;
  virtual Send send_unreadable(AmqpMessage message, const std::string& key, const std::string& queue,
                               std::string_view why) const = 0;

  // True: jobs can be requests (core/request_rules.h). Where the reply goes is added to what enqueue() says.
  virtual bool carries_requests() const { return false; }
  // A new job, which is valid and has an id. kInvalidArgument, kUnsupported: the other system could not have it.
  virtual Result<Send> enqueue(const Job& job, Time now) const = 0;

  // The answer to whoever has asked for one, after an attempt that was done.
  virtual std::optional<Send> reply(const ReceivedJob&, const Done&) const { return std::nullopt; }
  // After an attempt that failed. Nothing is sent: the original is rejected, and the server does what its queue says
  // about such messages. kUnsupported: not in this way.
  virtual Result<std::optional<Send>> retry(const ReceivedJob& job, const RetryAt& outcome, Time now) const = 0;
  // True: dead jobs are rejected, and the server does what their queue says. False: bury() says where they go.
  virtual bool rejects_dead() const { return false; }
  virtual Send bury(const ReceivedJob& job, const Dead& outcome, Time now) const = 0;

  // A message of the dead queue: for people, and once more to be run.
  virtual JobInfo dead_info(const AmqpMessage& message, const std::string& key, const std::string& queue) const = 0;
  virtual Result<Send> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                              const ReplayOptions& options) const = 0;
};

class ForeignDialect : public Dialect {
 public:
  ForeignDialect(const Settings& settings, std::unique_ptr<ForeignSystem> system)
      : settings_(settings), system_(std::move(system)), declared_(settings_, kDeclaring) {}
  // Of the system that `settings.compat` names. kInvalidArgument: one of its options is wrong.
  static Result<std::unique_ptr<Dialect>> open(const Settings& settings);

  Status check_queue(std::string_view queue) const override { return system_->check_queue(queue); }
  std::string source(const std::string& queue) const override { return system_->source(queue); }
  std::string dead_queue(const std::string& queue) const override { return system_->dead_queue(queue); }
  std::set<std::string> known_queues() const override { return system_->known_queues(); }
  bool ids_are_unique() const override { return false; }
  bool keeps_rejected() const override { return false; }
  bool carries_requests() const override { return system_->carries_requests(); }

  Result<Publication> enqueue(Job job, std::int64_t stamp, Time now) const override;
  JobInfo dead_info(const AmqpMessage& message, const std::string& key, const std::string& queue) const override {
    return system_->dead_info(message, key, queue);
  }
  Result<Publication> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                             const ReplayOptions& options) const override;
  Publication bring_back(AmqpMessage message, const std::string& queue) const override;

  Status declare(Connection& connection, const std::string& queue) override {
    return declared_.others(connection, system_->topology(queue));
  }
  void reconnected() override { declared_.reconnected(); }
  void channel_closed(ChannelNumber channel) override { declared_.channel_closed(channel); }
  void forget() override { declared_.forget(); }

  std::variant<ReceivedJob, Publication> receive(Delivery delivery, const std::string& queue, Time now) override;
  Result<Departure> depart(const ReceivedJob& job, const Outcome& outcome, std::int64_t stamp, Time now) override;
  std::optional<Publication> reply(const ReceivedJob& job, const Done& done) const override;
  std::optional<Publication> hold(const ReceivedJob&, Milliseconds, std::int64_t) override { return std::nullopt; }

 private:
  // With an id, by which it is named among the dead.
  Publication named(Send send);

  const Settings settings_;
  const std::unique_ptr<ForeignSystem> system_;
  Declared declared_;
  core::JobIdSource ids_;  // Of the consumer's thread.
  platform::SystemRandom random_;
};

// Headers are never split into frames, and those of a message that was delivered may be longer than what can be
// published. The longest are left out then, and named in bide-dropped-headers: a copy without them is better than a
// message that blocks its queue.
void fit_headers(AmqpMessage& message);

// The texts among the headers, and numbers as text; what the server has added on the way is left out.
Headers job_headers(const FieldTable& fields);
// kInvalidArgument: a name that means something to the server.
Status check_header_names(const Headers& headers);
// The id that the message has, when it is one.
JobId id_of(const AmqpMessage& message);

}  // namespace bide::brokers::rabbitmq::compat
