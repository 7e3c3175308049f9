// Publisher: the one thread that publishes. Everything is confirmed, and mandatory unless it says otherwise; publishes are
// pipelined up to a window, and one confirm frame completes many callers.
//
// What a message needs (queues, hops) is declared when it is first needed. When the connection is lost, it is made
// again with growing, jittered pauses; what was not confirmed is sent again under the same id. While the server is known
// to take nothing (connection.blocked), what arrives is refused at once with kOverloaded. Nothing waits for ever: after
// `patience` a message that cannot be sent or is not confirmed completes with kOverloaded (the server is blocked
// or the queue is full: nothing was written), kUnavailable (it was never sent) or kUnconfirmed (it may have been
// written).
//
// Safe to call from any thread. Completions run on the publisher's thread.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/delay_path.h"
#include "brokers/rabbitmq/reply_queue.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

// Where a message goes.
struct Destination {
  enum class Kind : std::uint8_t {
    kReady,     // A bide queue, at once or after a delay.
    kDead,      // The dead set of a bide queue.
    kNotices,   // The fanout exchange of notices.
    kExchange,  // An exchange and a key; after a delay the AMQP queue that the key names.
  };
  Kind kind = Kind::kReady;
  std::string name = {};  // The bide queue or the exchange.
  std::string key = {};   // kExchange only.
  Milliseconds delay{0};  // Counted from the moment of the call.
  std::shared_ptr<const Topology> needs = {};  // kExchange only: declared first, as another system would. Null: nothing.
};

struct Publication {
  Destination to = {};
  AmqpMessage message = {};
  std::function<void(Status)> done = {};
  bool bounded = false;  // Refused while its queue has max_length jobs: a new job, not one that takes another's place.
  bool mandatory = true;  // False: when no queue takes it, it is dropped without a word.
  bool patient = false;  // Waits for the server as long as it takes, and is taken however much waits already.
};

class Publisher {
 public:
  struct Stats {
    std::uint64_t confirmed = 0;
    std::uint64_t resent = 0;  // After a lost connection: possible duplicates.
    std::uint64_t connections = 0;
    bool obeys_priorities = false;  // The server of the newest connection.
  };

  // Connects and declares the foundation before it returns. `replies` is declared, and consumed from, when the first
  // message is published that has it as its reply_to; it lives longer.
  static Result<std::unique_ptr<Publisher>> open(const Settings& settings, ReplyQueue* replies = nullptr);
  ~Publisher();
  // Waits for what is under way, at most `patience`; the rest completes with kUnavailable or kUnconfirmed.
  void close();

  void publish(std::vector<Publication> publications);
  // The same with one completion for all, instead of those in the publications: one status for each, in order.
  void publish(std::vector<Publication> publications, std::function<void(std::vector<Status>)> done);
  Status publish_and_wait(Publication publication);

  Pressure pressure() const;
  Stats stats() const;

 private:
  struct State;
  explicit Publisher(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace bide::brokers::rabbitmq
