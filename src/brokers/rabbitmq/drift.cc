#include "brokers/rabbitmq/drift.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace bide::brokers::rabbitmq {

namespace {

struct Meaning {
  std::string_view argument;
  std::string_view consequence;
  std::string_view option;                 // Of the URL, by which the value on the server can be wanted; or empty.
  std::string_view only_when_wanted = {};  // Empty: whatever was wanted.
};

constexpr std::array kMeanings = {
    Meaning{"x-queue-type", "only a quorum queue keeps every confirmed job when a node dies", "queue_type", "quorum"},
    Meaning{"x-dead-letter-strategy", "without at-least-once, jobs that are passed on while a node dies are lost", "",
            "at-least-once"},
    Meaning{"x-overflow",
            "without reject-publish a full queue drops its oldest jobs, and the server silently falls back from "
            "at-least-once to at-most-once",
            "", "reject-publish"},
    Meaning{"x-message-ttl", "messages stay there for another time than they should", ""},
    Meaning{"x-dead-letter-exchange", "what leaves the queue goes elsewhere", ""},
    Meaning{"x-dead-letter-routing-key", "what leaves the queue loses its way", ""},
    Meaning{"x-delivery-limit", "the server takes a job away after another number of deliveries than bide counts with",
            "delivery_limit"},
    Meaning{"x-max-length",
            "the queue is full at another length; a queue of ready jobs that has a limit on the server holds up delayed "
            "jobs of others when it is full",
            ""},
    Meaning{"x-max-length-bytes", "the queue is full at a size that bide does not know", ""},
    Meaning{"x-expires", "the server deletes the queue with all jobs in it when it was not used for so long", ""},
    Meaning{"x-single-active-consumer", "two who look at dead jobs at the same time see parts of them", ""},
    Meaning{"x-max-priority", "the order of the jobs is another", ""},
    Meaning{"x-queue-mode", "RabbitMQ 4 does not know it any more", ""},
    Meaning{"x-max-age", "cancels and pauses are remembered for another time", "cancel_memory"},
    Meaning{"alternate-exchange",
            "32 messages without a way out freeze everything that waits in front of this exchange", ""},
    Meaning{"durable", "a restart of the server removes it; RabbitMQ 4 refuses such queues", ""},
    Meaning{"auto_delete", "the server removes it with its last user, and the jobs in it", ""},
    Meaning{"type", "messages go other ways through it", ""},
    Meaning{"internal", "nobody can publish to it", ""},
};

const Meaning* meaning_of(std::string_view argument) {
  const auto found = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [&](const Meaning& meaning) { return meaning.argument == argument; });
  return found == kMeanings.end() ? nullptr : &*found;
}

std::string shown(const std::string& value) { return value == "none" ? "not set" : "'" + value + "'"; }

}  // namespace

std::string describe(const Difference& difference) {
  std::string text = difference.argument + " is " + shown(difference.current) + ", wanted is " +
                     (difference.wanted == "none" ? "none" : shown(difference.wanted));
  const Meaning* const meaning = meaning_of(difference.argument);
  if (meaning != nullptr && (meaning->only_when_wanted.empty() || meaning->only_when_wanted == difference.wanted)) {
    text += ": " + std::string(meaning->consequence);
  }
  return text;
}

std::string remedy_for(const Difference& difference) {
  std::string text =
      "the server refuses to change it: let the queue run empty, delete it and run `bide rabbitmq apply`";
  const Meaning* const meaning = meaning_of(difference.argument);
  if (meaning != nullptr && !meaning->option.empty() && difference.current != "none") {
    text += "; or accept it by " + std::string(meaning->option) + "=" + difference.current + " in the URL";
  }
  return text;
}

}  // namespace bide::brokers::rabbitmq
