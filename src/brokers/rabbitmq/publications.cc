#include "brokers/rabbitmq/publications.h"

#include <utility>

#include "brokers/rabbitmq/job_message.h"
#include "core/job_rules.h"

namespace bide::brokers::rabbitmq {

Status check_job(const Job& job, Time now) {
  if (Status valid = core::validate(job, now); !valid) return valid;
  if (!job.unique_key.empty()) {
    return Error{
        ErrorCode::kUnsupported,
        "unique_key: RabbitMQ keeps no index of the jobs that wait, so it cannot tell whether the key is taken"};
  }
  return {};
}

bool is_same_publication(const AmqpMessage& sent, const AmqpMessage& returned) {
  if (sent.message_id != returned.message_id) return false;
  for (const char* stamp : {"bide-generation", "bide-published"}) {
    const Field* const ours = find_field(sent.headers, stamp);
    const Field* const theirs = find_field(returned.headers, stamp);
    if ((ours == nullptr) != (theirs == nullptr) || (ours != nullptr && !(*ours == *theirs))) return false;
  }
  return sent.body == returned.body;
}

Publication first_publication(Job job, std::int64_t stamp, Time now) {
  JobMessage message;
  message.generation = message.published = stamp;
  Milliseconds wait = job.delay;
  if (job.due) {
    wait = *job.due - now;
    message.due_by_wall_clock = true;
    message.due = job.due;
  } else if (wait > Milliseconds(0)) {
    // The moment lies within the millisecond that was begun: counted from its end, it is not early.
    message.due = now + Milliseconds(1) + wait;
  }
  Publication publication;
  publication.to.kind = Destination::Kind::kReady;
  publication.to.name = job.queue;
  publication.to.delay = wait;
  publication.bounded = true;
  message.job = std::move(job);
  publication.message = encode(std::move(message));
  return publication;
}

}  // namespace bide::brokers::rabbitmq
