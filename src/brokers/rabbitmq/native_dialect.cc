#include "brokers/rabbitmq/native_dialect.h"

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/publications.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::brokers::rabbitmq {

Status NativeDialect::check_queue(std::string_view queue) const {
  if (core::is_name(queue)) return {};
  return Error{ErrorCode::kInvalidArgument, "queue " + core::quoted(queue) + " is not a valid name"};
}

std::variant<ReceivedJob, Publication> NativeDialect::receive(Delivery delivery, const std::string& queue, Time) {
  ReceivedJob job;
  job.deliveries = delivery_count(delivery.message);
  // Classic queues do not count; that it was out before is all they know.
  if (settings_.queue_type == QueueType::kClassic && delivery.redelivered) job.deliveries = 1;
  Result<JobMessage> decoded = decode(delivery.message, queue);
  if (!decoded) {
    Publication publication;
    publication.to.kind = Destination::Kind::kDead;
    publication.to.name = queue;
    publication.message =
        bury_unreadable(std::move(delivery.message), queue, decoded.error().message, stamps_.next());
    return publication;
  }
  job.message = std::move(*decoded);
  // Whoever ran it has not renewed this copy.
  if (job.message.running) job.deliveries += 1;
  return job;
}

Result<Publication> NativeDialect::enqueue(Connection*, Job job, std::int64_t stamp, Time now) {
  return first_publication(std::move(job), stamp, now);
}

Result<Departure> NativeDialect::depart(Connection*, const ReceivedJob& job, const Outcome& outcome,
                                        std::int64_t stamp, Time now) {
  JobMessage copy = job.message;
  copy.published = stamp;
  copy.running = false;
  Publication publication;
  publication.to = {.kind = Destination::Kind::kReady, .name = copy.job.queue, .key = {}, .delay = Milliseconds(0)};
  if (const RetryAt* retry = std::get_if<RetryAt>(&outcome)) {
    if (retry->body) copy.job.body = *retry->body;
    record_fault(copy, retry->fault, retry->error, now);
    publication.to.delay = std::max(Milliseconds(0), retry->after);
    copy.due = now + publication.to.delay;
    copy.due_by_wall_clock = false;
    copy.note.clear();
  } else if (const Returned* returned = std::get_if<Returned>(&outcome)) {
    publication.to.delay = std::max(Milliseconds(0), returned->after);
    if (publication.to.delay > Milliseconds(0)) copy.due = now + publication.to.delay;
    copy.note = returned->note;
  } else if (const Dead* dead = std::get_if<Dead>(&outcome)) {
    // Expired: there was no attempt.
    if (dead->reason != DeadReason::kExpired) record_fault(copy, dead->fault, dead->error, now);
    copy.dead = dead->reason;
    copy.dead_at = stamp;
    publication.to.kind = Destination::Kind::kDead;
  }
  publication.message = encode(std::move(copy));
  if (std::holds_alternative<Dead>(outcome) && settings_.dead_retention > Milliseconds(0)) {
    publication.message.expiration = std::to_string(settings_.dead_retention.count());
  }
  return Departure{.replacement = std::move(publication)};
}

// Without notices nobody could be told that the copy is over.
std::optional<Publication> NativeDialect::hold(const ReceivedJob& job, Milliseconds wait, std::int64_t stamp) {
  if (!settings_.notices) return std::nullopt;
  JobMessage copy = job.message;
  copy.published = stamp;
  copy.running = true;
  Publication publication;
  publication.to = {.kind = Destination::Kind::kReady, .name = copy.job.queue, .key = {}, .delay = wait};
  publication.message = encode(std::move(copy));
  return publication;
}

}  // namespace bide::brokers::rabbitmq
