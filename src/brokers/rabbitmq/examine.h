// Examiner: what is on the server, compared with what is wanted, as far as AMQP lets us see. Nothing is changed.
//
// AMQP cannot read the arguments of an exchange or a queue. But declaring again something that is there with other
// arguments is refused (406), in words that name one argument and its value there. So what is there is declared as it
// is wanted, on a channel to throw away; when that is refused, the argument is taken over from the server's words and
// the next one asked for, until the server agrees: then every difference is known. What is not there is never declared;
// it is looked for again before each question.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

// "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received '2' but current is '1'", taken apart.
struct Difference {
  std::string argument = {};  // Also `durable`, `type` and the like, which are no arguments.
  std::string wanted = {};    // "none": not set.
  std::string current = {};
  std::string current_type = {};  // In the server's words (longstr, long, bool ...); empty: that of the wanted value.

  // Nothing when the words are about something else.
  static std::optional<Difference> parse(std::string_view words);
};

enum class Presence : std::uint8_t {
  kMissing,
  kSame,
  kDiffers,
  kUnknown,  // It is there, but may not be compared: no permission to configure it.
};

// Puts what the server has in the place of what was wanted. False: that is not possible, because it is no argument or
// cannot be understood.
bool take_over(FieldTable& arguments, const Difference& difference);

struct Examined {
  Presence presence = Presence::kMissing;
  QueueCounts counts = {};  // Of a queue that is there.
  // May be incomplete: not every one lets us ask for the next. With kSame: those that the queue may have.
  std::vector<Difference> differences = {};
  bool all_known = false;
  std::string words = {};                    // Of the server, the first refusal.
};

class Examiner {
 public:
  // `channel` is opened and opened again as needed.
  Examiner(Connection& connection, ChannelNumber channel) : connection_(connection), channel_(channel) {}

  // An error: the connection is gone.
  Result<Examined> queue(const QueueSpec& wanted);
  Result<Examined> exchange(const ExchangeSpec& wanted);
  // Nothing: it is not there.
  Result<std::optional<QueueCounts>> look_at(const std::string& queue);
  Result<bool> has_exchange(const std::string& name);

 private:
  Status open();
  template <class Spec, class Look, class Declare>
  Result<Examined> examine(Spec wanted, Look look, Declare declare);

  Connection& connection_;
  const ChannelNumber channel_;
  bool open_ = false;
};

}  // namespace bide::brokers::rabbitmq
