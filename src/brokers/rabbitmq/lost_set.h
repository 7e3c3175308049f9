// LostSet: the messages that had no way to go, in P.lost: their queue was not there when they became due, the server
// gave them up after too many deliveries, or nobody could write them anywhere else. Browsed (queue_browser.h).
//
// Used by one thread.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/queue_browser.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

inline constexpr std::string_view kNoWayToGo = "no_way";

struct LostMessage {
  std::string id = {};     // As it is in the message; empty when it has none.
  std::string kind = {};   // Its type; empty when it has none.
  std::string queue = {};  // The bide queue that it belongs to; empty when that cannot be told.
  std::string destination = {};  // The AMQP queue at the end of its delay; empty when it was not delayed.
  std::string why = {};          // "no_way", or in the server's words: "delivery_limit", "rejected" ...
  std::uint64_t bytes = 0;
  bool is_due = true;
};

// What a message says about itself.
LostMessage lost_message_of(const AmqpMessage& message, const Names& names);
// For people: "job ID of kind mail, on its way to orders".
std::string describe_lost(const AmqpMessage& message, const Names& names);

// The oldest one, which is put back where it was. Empty: there is none. The channel is opened and closed.
Result<std::string> first_lost(Connection& connection, ChannelNumber channel, const Names& names);

class LostSet {
 public:
  using Choice = std::function<bool(const LostMessage&)>;
  struct Moved {
    LostMessage message = {};
    Status status = {};
  };

  LostSet(const Settings& settings, const Dialect& dialect, QueueBrowser& browser, Publisher& publisher)
      : names_(settings.prefix),
        declares_(settings.declare),
        of_others_(!settings.compat.empty()),
        dialect_(dialect),
        browser_(browser),
        publisher_(publisher) {}

  // Oldest first.
  Result<std::vector<LostMessage>> list();
  // Each goes to its queue, or to the one named by `to`, after what is left of its delay; when that is confirmed it is
  // taken out here. kInvalidArgument: nobody knows its queue, and none was named.
  Result<std::vector<Moved>> requeue(const Choice& chosen, const std::string& to = {});
  Result<std::vector<Moved>> remove(const Choice& chosen);

  // Jobs that became due while their queue did not exist are brought to that queue, which is there again. How many. With
  // declare=no those that are due only: the others would lose their way once more.
  Result<std::size_t> bring_back(const std::string& queue);

 private:
  using Session = QueueBrowser::Session;
  using Action = std::function<Status(Session& session, Delivery delivery, const LostMessage& message)>;
  // Those that are chosen, and what became of each.
  Result<std::vector<Moved>> act(const Choice& chosen, const Action& action);

  const Names names_;
  const bool declares_;
  const bool of_others_;  // The messages are those of another system.
  const Dialect& dialect_;
  QueueBrowser& browser_;
  Publisher& publisher_;
};

}  // namespace bide::brokers::rabbitmq
