// Consumer: the one thread that consumes, for every dialect. It holds the leases of this process, keeps their time, and
// acknowledges.
//
// A message becomes a lease in four steps: delivered by the server (at most the prefetch of its source), chosen by
// weight when the subscription has credit, checked against every notice confirmed until then, handed to the sink.
// A message leaves only after what takes its place (effects, the copy for the next attempt, the dead job) is confirmed.
// Nothing here waits for a confirm: completions come back as tasks. What publishes nothing never waits for what does.
//
// When the connection is lost, so are the leases; the server delivers their jobs again, to whoever is there.
//
// Safe to call from any thread. Sinks and completions run on the consumer's or on the publisher's thread.

#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/stamps.h"

namespace bide::brokers::rabbitmq {

class Consumer {
 public:
  struct Stats {
    std::uint64_t delivered = 0;
    std::uint64_t leased = 0;
    std::uint64_t dropped = 0;        // Cancelled or purged.
    std::uint64_t redelivered = 0;    // After a lost connection, here or elsewhere.
    std::uint64_t repeated_acks = 0;  // Delivered again though settled here: the acknowledgement had been lost.
    std::uint64_t lost_leases = 0;    // Not extended in time.
    std::uint64_t connections = 0;
  };

  // `find_lost` is told, on the consumer's thread, when jobs of that queue may be among the lost ones.
  Consumer(const Settings& settings, Dialect& dialect, Publisher& publisher, Stamps& stamps,
           std::function<void(const std::string& queue)> find_lost = {});
  ~Consumer();  // Must be closed.
  // Gives back what is out, uncharged, when the server can be reached within `patience`. Whatever is asked for
  // afterwards is answered with kUnavailable.
  void close();

  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink);
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done);
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done);

  // This process has had this notice confirmed: it counts here from now on.
  void tell(std::vector<Notice> notices, std::function<void()> done);
  // Runs on the consumer's thread when the board is up to date; an error when the server cannot be reached.
  void ask_board(std::function<void(Result<const NoticeBoard*>)> question);
  // True when a lease of that job is out in this process.
  void is_running(JobId id, std::function<void(bool)> answer);

  Stats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace bide::brokers::rabbitmq
