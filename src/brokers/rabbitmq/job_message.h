// JobMessage: a job on its way through RabbitMQ. What a job is and what became of its attempts travels in the message:
//
//   message-id        the job's id             type            its kind
//   content-type, body                         delivery-mode   2
//   bide-generation   microseconds since 1970: when the job was accepted; what a cancel is compared with
//   bide-published    the same for this copy, when it is not the first
//   bide-queue        the bide queue (jobs that were delayed or are dead)
//   bide-due          milliseconds since 1970 (jobs that were delayed); bide-wall: true when the user gave a time
//   bide-expires, bide-limit (ms), bide-priority, bide-retry (a policy as text)
//   bide-headers      [name, value, name, value ...]
//   bide-counts       [failed, timed out, lost, crashed]
//   bide-history      [[attempt, at ms, fault, text] ...], newest last
//   bide-token        the greatest token that a lease of this job had
//   bide-note         why it was returned
//   bide-running      true: an attempt was running when this copy was published, and is over when it is due
//   reply-to, correlation-id   where the reply to a request goes, and the job's id once more
//   bide-dead         reason; bide-dead-at: microseconds since 1970 (dead jobs)
//
// What has its usual value is left out. Messages of others are understood as far as they go: a `type` that is a name is
// enough to be a job.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_message.h"

namespace bide::brokers::rabbitmq {

struct JobMessage {
  Job job = {};  // `delay` and `due` are not used here: see below.
  std::int64_t generation = 0;
  std::int64_t published = 0;      // Not less than the generation.
  std::optional<Time> due = {};    // Nothing: was due when published.
  bool due_by_wall_clock = false;  // The user gave a time, not a delay.
  AttemptCounts counts = {};
  std::vector<AttemptError> history = {};
  std::uint64_t token = 0;
  std::string note = {};
  bool running = false;
  std::string reply_to = {};  // Of a request.
  std::optional<DeadReason> dead = {};
  std::int64_t dead_at = 0;

  // When it was or will be due, for people and for lateness.
  Time due_time() const;
};

// The rules of every broker, and what this one cannot do: kUnsupported for unique keys.
Status check_job(const Job& job, Time now);

AmqpMessage encode(JobMessage message);

// kInvalidArgument: not a job; the text says why. `queue` is the bide queue it was found in. The id is nil when the
// message has none.
Result<JobMessage> decode(AmqpMessage message, std::string_view queue);

// The priority of the job as the property of that name, for servers that obey 32 levels (server_priority). A job without
// one gets none, and what a stranger has set stays.
void set_server_priority(AmqpMessage& message);

// How often the server has delivered it before without an acknowledgement (x-delivery-count).
std::uint32_t delivery_count(const AmqpMessage& message);

// Takes away what the server has added on the way. With these a copy would be dropped or parked as a cycle.
void strip_travel_headers(FieldTable& headers);

// A fault is added to counters and history, texts cut, old entries dropped.
void record_fault(JobMessage& message, Fault fault, std::string_view text, Time at);

// A message that is no job, wrapped for the dead set so that nothing of it is lost. Shown as a job of kind
// `unreadable`.
AmqpMessage bury_unreadable(AmqpMessage message, std::string_view queue, std::string_view why, std::int64_t now_us);

bool is_unreadable(const AmqpMessage& message);

// Of a message that has no id of its own: the same for the same content. Of version 8: made by a rule of one's own.
JobId id_by_content(std::string_view properties, std::string_view body);

// A message of a dead queue, for people. Never fails: what cannot be read is shown as far as it can.
JobInfo dead_info(const AmqpMessage& message, std::string_view queue);

}  // namespace bide::brokers::rabbitmq
