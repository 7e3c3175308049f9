// ForeignConsumer: the one thread that takes jobs from the queues of another system, with a connection of its own. It
// holds the leases of this process, keeps their time, and acknowledges.
//
// A message leaves its queue in one of three ways: acknowledged, after what takes its place (the copy for the next
// attempt, the dead one, effects) is confirmed; rejected, when the queue itself says what becomes of it then; or given
// back. When the connection is lost, so are the leases; the server delivers their jobs again.
//
// Safe to call from any thread. Sinks and completions run on this thread or on the publisher's.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bide/broker.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/compat/dialect.h"
#include "brokers/rabbitmq/publisher.h"

namespace bide::brokers::rabbitmq::compat {

class ForeignConsumer {
 public:
  ForeignConsumer(const Settings& settings, const Dialect& dialect, Publisher& publisher);
  ~ForeignConsumer();  // Must be closed.
  // Waits for what is being settled, at most `patience`. What is out goes back to its queue, uncharged.
  void close();

  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink);
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done);
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done);

  // Declares what the message needs and publishes it. For those that need nothing the publisher is enough.
  void send(Send send, std::function<void(Status)> done);
  // Declares what a worker of that queue needs.
  void ensure(std::string queue, std::function<void(Status)> done);
  // Runs on this thread.
  void run(std::function<void()> task);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace bide::brokers::rabbitmq::compat
