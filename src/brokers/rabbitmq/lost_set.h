// LostSet: the messages that had no way to go, in P.lost: their queue was not there when they became due, the server
// gave them up after too many deliveries, or nobody could write them anywhere else. Looked at by visits (visits.h).
//
// Used by one thread.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/lost_message.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/visits.h"

namespace bide::brokers::rabbitmq {

class LostSet {
 public:
  using Choice = std::function<bool(const LostMessage&)>;
  struct Moved {
    LostMessage message = {};
    Status status = {};
  };

  LostSet(const Settings& settings, Visits& visits, Publisher& publisher)
      : names_(settings.prefix), visits_(visits), publisher_(publisher) {}

  // Oldest first.
  Result<std::vector<LostMessage>> list();
  // Each goes to its queue, or to the one named by `to`, after what is left of its delay; when that is confirmed it is
  // taken out here. kInvalidArgument: nobody knows its queue, and none was named.
  Result<std::vector<Moved>> requeue(const Choice& chosen, const std::string& to = {});
  Result<std::vector<Moved>> remove(const Choice& chosen);

  // Jobs that became due while their queue did not exist are brought to that queue, which is there again. How many.
  Result<std::size_t> bring_back(const std::string& queue);

 private:
  Publication to_queue(AmqpMessage message, const std::string& queue) const;
  Status publish(Publication publication);

  const Names names_;
  Visits& visits_;
  Publisher& publisher_;
};

}  // namespace bide::brokers::rabbitmq
