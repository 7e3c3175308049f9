// Connection: one AMQP connection, owned by one thread. The only place that knows the client library.
//
// Requests with an answer (declare, bind, consume ...) block until it comes, at most `patience`; what else arrives in
// the meantime is kept for next_event(). Those of threads that must not wait only write: publish, the acknowledgements,
// open_channel and confirm_select, and whatever says that its answer is an event. Nothing is ever waited for without a
// deadline, and heartbeats are kept inside every call: call something at least every half heartbeat.
//
// Errors are in the server's words. When a channel was closed by the server (an error of a request, or ChannelClosed),
// only that channel is gone: open it again. When the connection is gone, everything answers kUnavailable.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

using ChannelNumber = std::uint16_t;

struct Delivery {
  ChannelNumber channel = 0;
  std::string consumer = {};  // The consumer's tag; empty for an answer to get().
  std::uint64_t tag = 0;
  bool redelivered = false;
  std::string exchange = {};
  std::string key = {};
  AmqpMessage message = {};
};
struct GetEmpty {  // The answer to get() when there is nothing.
  ChannelNumber channel = 0;
};
struct Confirm {
  ChannelNumber channel = 0;
  std::uint64_t tag = 0;
  bool multiple = false;
  bool accepted = true;  // False: basic.nack, nothing was written.
};
struct ReturnedMessage {  // mandatory, and no queue was found. Its confirm follows.
  ChannelNumber channel = 0;
  int code = 0;
  std::string text = {};
  std::string exchange = {};
  std::string key = {};
  AmqpMessage message = {};
};
struct Blocked {
  std::string reason = {};
};
struct Unblocked {};
// By the server: the queue is gone, or moves, or the consumer has exceeded consumer_timeout (from 4.3 on); then its
// deliveries are not its own any more. It has been answered.
struct ConsumerCancelled {
  ChannelNumber channel = 0;
  std::string consumer = {};
};
struct ConsumerStarted {  // The answer to begin_consume().
  ChannelNumber channel = 0;
  std::string consumer = {};
};
struct ConsumerEnded {  // The answer to begin_cancel(): nothing more is delivered to it.
  ChannelNumber channel = 0;
  std::string consumer = {};
};
struct QueueCounted {  // The answer to ask_counts().
  ChannelNumber channel = 0;
  std::string queue = {};
  std::uint32_t messages = 0;
};
struct ChannelClosed {
  ChannelNumber channel = 0;
  Error error = {};
};

using Event =
    std::variant<Delivery, GetEmpty, Confirm, ReturnedMessage, Blocked, Unblocked, ConsumerCancelled, ConsumerStarted,
                 ConsumerEnded, QueueCounted, ChannelClosed>;

struct QueueCounts {
  std::uint32_t messages = 0;  // Ready; not those that are out with a consumer.
  std::uint32_t consumers = 0;
};

struct ConsumeOptions {
  std::string queue = {};
  std::string tag = {};
  std::uint16_t prefetch = 0;  // 0: no limit. Set for this consumer just before it starts.
  bool no_ack = false;
  bool exclusive = false;
  bool no_wait = false;  // Does not wait for an answer: a refusal closes the channel.
  FieldTable arguments = {};
};

// Headers are never split into frames, and they grow while a message travels: what was sent in a frame of the size
// agreed upon may come back in a larger one. Who reads takes those, too; in return it publishes small messages only.
enum class ConnectionUse : std::uint8_t { kPublishing, kReading };

// For what changes something: when the connection ends over it, or part of it was done, it is not true that nothing
// was. Connection itself says kUnavailable whenever the connection is gone.
inline Error unconfirmed(Error error) {
  if (error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kOverloaded)
    error.code = ErrorCode::kUnconfirmed;
  return error;
}

class Connection {
 public:
  // Tries the hosts one after another, beginning with the `first`-th. `purpose` is shown by the server's tools.
  //
  // kUnavailable: none answers. kPermissionDenied: user, password or virtual host are refused.
  static Result<std::unique_ptr<Connection>> open(const Settings& settings, std::string_view purpose,
                                                  std::size_t first = 0,
                                                  ConnectionUse use = ConnectionUse::kPublishing);
  ~Connection();  // Says goodbye when the connection is whole.
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int descriptor() const;
  bool alive() const;
  const FieldTable& server_properties() const;  // "version", "cluster_name", "capabilities" ...

  // A server that refuses a channel ends the connection.
  Status open_channel(ChannelNumber channel);
  Status confirm_select(ChannelNumber channel);
  Status close_channel(ChannelNumber channel);
  // The same without waiting: what the server has sent on it before it knew still comes.
  Status begin_close(ChannelNumber channel);

  Status declare_exchange(ChannelNumber channel, const ExchangeSpec& exchange);
  Result<QueueCounts> declare_queue(ChannelNumber channel, const QueueSpec& queue);
  // Exclusive, not durable, gone with the connection. Without a name the server chooses one; with a name it is a lock:
  // kBusy when another connection has it (which closes the channel).
  Result<std::string> declare_private_queue(ChannelNumber channel, const std::string& name = {});
  Status bind(ChannelNumber channel, const BindingSpec& binding);
  // Passive: kNotFound when it is not there (which closes the channel).
  Result<QueueCounts> look_at_queue(ChannelNumber channel, const std::string& name);
  // The same without waiting: the answer is an event, QueueCounted or ChannelClosed. One at a time for each channel.
  Status ask_counts(ChannelNumber channel, const std::string& name);
  Status look_at_exchange(ChannelNumber channel, const std::string& name);
  Result<std::uint32_t> purge_queue(ChannelNumber channel, const std::string& name);
  Status delete_queue(ChannelNumber channel, const std::string& name, bool if_empty, bool if_unused);
  Status delete_exchange(ChannelNumber channel, const std::string& name, bool if_unused);

  Status consume(ChannelNumber channel, const ConsumeOptions& options);
  // The answer is an event: ConsumerStarted or ChannelClosed.
  Status begin_consume(ChannelNumber channel, const ConsumeOptions& options);
  // The answer is an event: ConsumerEnded. What was on its way to the consumer comes before it.
  Status begin_cancel(ChannelNumber channel, const std::string& tag);

  // The answer is an event: a Delivery without consumer, or GetEmpty. One at a time for each channel.
  Status get(ChannelNumber channel, const std::string& queue, bool no_ack);
  // kInvalidArgument: it cannot be written, because its headers or properties are too long; nothing was sent.
  Status publish(ChannelNumber channel, const std::string& exchange, const std::string& key, const AmqpMessage& message,
                 bool mandatory);
  Status ack(ChannelNumber channel, std::uint64_t tag, bool multiple);
  Status nack(ChannelNumber channel, std::uint64_t tag, bool multiple, bool requeue);

  // What has arrived; nothing when there is nothing now. An error: the connection is gone.
  Result<std::optional<Event>> next_event();
  // True when next_event() may have something without waiting for the descriptor.
  bool has_buffered_input() const;

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace bide::brokers::rabbitmq
