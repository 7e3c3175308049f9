// ForeignSystem: what another job system means by its queues and messages. Pure: bytes in, decisions out. Who consumes,
// publishes, confirms and acknowledges is Consumer, by way of ForeignDialect.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/lease.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq::compat {

// A message to publish.
struct Send {
  std::string exchange = {};  // Empty: the default exchange.
  std::string key = {};
  AmqpMessage message = {};
  Topology needs = {};    // Must be there first.
  Milliseconds delay{0};  // Longer: by way of bide's own delay queues to the queue named by the key.
};

class ForeignSystem {
 public:
  virtual ~ForeignSystem() = default;

  // kInvalidArgument: it has no such queue.
  virtual Status check_queue(std::string_view queue) const = 0;
  // Names of AMQP queues for the queue of that name: where jobs are taken from, and where the dead are.
  virtual std::string source(const std::string& queue) const = 0;
  virtual std::string dead_queue(const std::string& queue) const = 0;
  // What the other system declares for a worker of that queue.
  virtual Topology topology(const std::string& queue) const = 0;

  // An error: it is no job of this system. Then it goes where send_unreadable() says.
  virtual Result<ReceivedJob> receive(AmqpMessage message, std::string key, const std::string& queue) const = 0;
  virtual Send send_unreadable(AmqpMessage message, const std::string& key, const std::string& queue,
                               std::string_view why) const = 0;

  // A new job, which is valid and has an id. kInvalidArgument, kUnsupported: the other system could not have it.
  virtual Result<Send> enqueue(const Job& job, Time now) const = 0;

  // After an attempt that failed. Nothing is sent: the original is rejected, and the server does what its queue says
  // about such messages. kUnsupported: not in this way.
  virtual Result<std::optional<Send>> retry(const ReceivedJob& job, const RetryAt& outcome, Time now) const = 0;
  virtual Send bury(const ReceivedJob& job, const Dead& outcome, Time now) const = 0;

  // A message of the dead queue: for people, and once more to be run.
  virtual JobInfo dead_info(const AmqpMessage& message, const std::string& key, const std::string& queue) const = 0;
  virtual Result<Send> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                              const ReplayOptions& options) const = 0;
};

// The texts among the headers, and numbers as text; what the server has added on the way is left out.
Headers job_headers(const FieldTable& fields);
// kInvalidArgument: a name that means something to the server.
Status check_header_names(const Headers& headers);
// The id that the message has, when it is one.
JobId id_of(const AmqpMessage& message);

}  // namespace bide::brokers::rabbitmq::compat
