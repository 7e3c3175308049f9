// Dialect: what differs between the systems whose jobs Consumer takes from RabbitMQ: names, how a message is read, how
// attempts are counted, where the next attempt goes and what a dead job looks like. bide's own is NativeDialect; those of
// other systems are in compat/.

#pragma once

#include <cstdint>
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
#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/job_message.h"
#include "brokers/rabbitmq/publisher.h"

namespace bide::brokers::rabbitmq {

// A message of another system as it was delivered.
struct OriginalMessage {
  AmqpMessage message = {};
  std::string key = {};  // The routing key it came with.
};

// A delivered message and the job it stands for.
struct ReceivedJob {
  JobMessage message = {};        // The id is nil when it has none.
  std::uint32_t deliveries = 0;   // Earlier ones without an acknowledgement that may have been attempts.
  std::shared_ptr<const OriginalMessage> original = {};  // Null for messages of bide's own.
};

// How a message leaves its queue after an attempt.
struct Departure {
  enum class Way : std::uint8_t {
    kAcknowledge,
    kReject,   // Without requeue: the server does what the queue says about such messages.
    kRequeue,  // Delivered again.
  };
  Way way = Way::kAcknowledge;
  std::optional<Publication> replacement = {};  // Confirmed first.
  std::optional<Time> due = {};                 // Of the replacement, when that is another attempt.
  Milliseconds wait{0};                         // kRequeue only: not given back before that.
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  // ---- From any thread.

  // kInvalidArgument: there can be no such queue.
  virtual Status check_queue(std::string_view queue) const = 0;
  // The AMQP queues from which jobs of that queue are taken, and in which its dead jobs are.
  virtual std::string source(const std::string& queue) const = 0;
  virtual std::string dead_queue(const std::string& queue) const = 0;
  // Those that are known before anybody has used them.
  virtual std::set<std::string> known_queues() const { return {}; }
  // False: different messages may have the same id.
  virtual bool ids_are_unique() const = 0;
  // True: a message that cannot be published again may be rejected, and the server keeps it.
  virtual bool keeps_rejected() const = 0;

  // True: its messages can say where a reply goes.
  virtual bool carries_requests() const { return true; }
  // A new job, which is checked and has an id. kInvalidArgument, kUnsupported: the other system could not have it.
  virtual Result<Publication> enqueue(Job job, std::int64_t stamp, Time now) const = 0;

  // A message of the dead queue: for people, and once more to be run. The id is nil when the message has none. `key` is the
  // routing key it came with.
  virtual JobInfo dead_info(const AmqpMessage& message, const std::string& key, const std::string& queue) const = 0;
  virtual Result<Publication> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                                     const ReplayOptions& options) const = 0;
  // A message that became due while its queue was not there, to that queue.
  virtual Publication bring_back(AmqpMessage message, const std::string& queue) const = 0;

  // ---- From the consumer's thread.

  // What a consumer of that queue needs. Uses the channel kDeclaring.
  virtual Status declare(Connection& connection, const std::string& queue) = 0;
  // The connection is a new one.
  virtual void reconnected() = 0;
  // The server has closed a channel for declaring.
  virtual void channel_closed(ChannelNumber channel) = 0;
  // Somebody has removed things behind our back.
  virtual void forget() = 0;

  // A publication: nobody can run it, and this takes its place.
  virtual std::variant<ReceivedJob, Publication> receive(Delivery delivery, const std::string& queue, Time now) = 0;
  // After an outcome other than Done. `stamp` is that of the copy. kUnsupported: not in this way.
  virtual Result<Departure> depart(const ReceivedJob& job, const Outcome& outcome, std::int64_t stamp, Time now) = 0;

  // The reply to a job that is done, confirmed before the job is acknowledged. Nothing: nobody asked for one.
  virtual std::optional<Publication> reply(const ReceivedJob&, const Done&) const { return std::nullopt; }

  // A copy of a job that runs, due only after `wait`. Nothing: there can be no such copy.
  virtual std::optional<Publication> hold(const ReceivedJob& job, Milliseconds wait, std::int64_t stamp) = 0;

  static constexpr ChannelNumber kDeclaring = 3;
};

}  // namespace bide::brokers::rabbitmq
