#include "brokers/rabbitmq/native_dialect.h"

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/pending_replies.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/request_rules.h"

namespace bide::brokers::rabbitmq {

namespace {

// A moment lies within the millisecond that was begun: counted from its end, a delay is not too short.
Time due_after(Time now, Milliseconds delay) { return now + Milliseconds(1) + delay; }

Publication to_ready(std::string queue, Milliseconds delay = Milliseconds(0)) {
  Publication publication;
  publication.to.name = std::move(queue);
  publication.to.delay = delay;
  return publication;
}

}  // namespace

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

Result<Publication> NativeDialect::enqueue(Job job, std::int64_t stamp, Time now) const {
  JobMessage message;
  message.generation = message.published = stamp;
  Milliseconds wait = job.delay;
  if (job.due) {
    wait = *job.due - now;
    message.due_by_wall_clock = true;
    message.due = job.due;
  } else if (wait > Milliseconds(0)) {
    message.due = due_after(now, wait);
  }
  Publication publication = to_ready(job.queue, wait);
  publication.bounded = true;
  if (const auto past = std::exchange(job.past, nullptr)) {
    message.counts = past->counts;
    message.history = past->history;
    message.dead = past->dead;
    if (past->dead) {
      message.dead_at = past->finished ? past->finished->time_since_epoch().count() * 1000 : stamp;
      publication.to.kind = Destination::Kind::kDead;
      publication.to.delay = Milliseconds(0);
    }
  }
  // With another expiry the server would pass it on to the lost ones: a worker drops it when its time is over.
  if (core::is_request(job)) message.reply_to = reply_queue_;
  message.job = std::move(job);
  const bool dead = message.dead.has_value();
  publication.message = encode(std::move(message));
  if (dead) expire_dead(publication);
  return publication;
}

void NativeDialect::expire_dead(Publication& publication) const {
  if (settings_.dead_retention <= Milliseconds(0)) return;
  publication.message.expiration = std::to_string(settings_.dead_retention.count());
}

Result<Publication> NativeDialect::replay(AmqpMessage message, const std::string&, const std::string& queue,
                                          const ReplayOptions& options) const {
  Publication publication = to_ready(queue, options.delay);
  publication.bounded = true;
  strip_travel_headers(message.headers);
  Result<JobMessage> decoded = is_unreadable(message) ? Result<JobMessage>(Error{}) : decode(message, queue);
  if (!decoded) {
    // As it came; perhaps somebody has taught the workers to read it.
    std::erase_if(message.headers, [](const auto& entry) { return entry.first.starts_with("bide-"); });
    message.expiration.clear();
    publication.message = std::move(message);
    return publication;
  }
  const Time now = wall_now();
  JobMessage job = std::move(*decoded);
  // A new life: what was cancelled before it is not cancelled now.
  job.generation = job.published = stamps_.next();
  job.dead.reset();
  job.dead_at = 0;
  job.note.clear();
  job.due_by_wall_clock = false;
  job.due.reset();
  if (options.delay > Milliseconds(0)) job.due = due_after(now, options.delay);
  if (job.job.expires && *job.job.expires <= now + options.delay) job.job.expires.reset();
  if (!options.keep_attempts) {
    job.counts = {};
    job.history.clear();
  }
  publication.message = encode(std::move(job));
  return publication;
}

Publication NativeDialect::bring_back(AmqpMessage message, const std::string& queue) const {
  Publication publication = to_ready(queue);
  Result<JobMessage> job = decode(message, queue);
  if (!job) {
    // The worker that takes it says what is wrong with it.
    strip_travel_headers(message.headers);
    message.expiration.clear();
    publication.message = std::move(message);
    return publication;
  }
  // Delays that were interrupted by the loss of a queue on their way go on.
  if (const Time now = wall_now(); job->due && *job->due > now) publication.to.delay = *job->due - now;
  publication.message = encode(std::move(*job));
  return publication;
}

std::optional<Publication> NativeDialect::reply_to(const JobMessage& message, const Outcome& outcome) const {
  if (!core::is_request(message.job) || !message.reply_to.starts_with(names_.reply(""))) return std::nullopt;
  Publication publication;
  publication.to.kind = Destination::Kind::kExchange;
  publication.to.key = message.reply_to;
  publication.message = encode_reply(message.job.id, outcome);
  publication.mandatory = false;  // Whoever asked may be gone.
  return publication;
}

std::optional<Publication> NativeDialect::reply(const ReceivedJob& job, const Done& done) const {
  return reply_to(job.message, done);
}

Result<Departure> NativeDialect::depart(const ReceivedJob& job, const Outcome& outcome, std::int64_t stamp, Time now) {
  // Whoever asked is told, and nobody else has to look at it.
  if (std::holds_alternative<Dead>(outcome) && core::is_request(job.message.job)) {
    return Departure{.replacement = reply_to(job.message, outcome)};
  }
  JobMessage copy = job.message;
  copy.published = stamp;
  copy.running = false;
  Publication publication = to_ready(copy.job.queue);
  if (const RetryAt* retry = std::get_if<RetryAt>(&outcome)) {
    if (retry->body) copy.job.body = *retry->body;
    record_fault(copy, retry->fault, retry->error, now);
    publication.to.delay = std::max(Milliseconds(0), retry->after);
    copy.due = publication.to.delay > Milliseconds(0) ? due_after(now, publication.to.delay) : now;
    copy.due_by_wall_clock = false;
    copy.note.clear();
  } else if (const Returned* returned = std::get_if<Returned>(&outcome)) {
    publication.to.delay = std::max(Milliseconds(0), returned->after);
    if (publication.to.delay > Milliseconds(0)) copy.due = due_after(now, publication.to.delay);
    copy.note = returned->note;
  } else if (const Dead* dead = std::get_if<Dead>(&outcome)) {
    // Expired: there was no attempt.
    if (dead->reason != DeadReason::kExpired) record_fault(copy, dead->fault, dead->error, now);
    copy.dead = dead->reason;
    copy.dead_at = stamp;
    publication.to.kind = Destination::Kind::kDead;
  }
  const std::optional<Time> due = copy.due;
  publication.message = encode(std::move(copy));
  if (std::holds_alternative<Dead>(outcome)) expire_dead(publication);
  return Departure{.replacement = std::move(publication), .due = due};
}

// Without notices nobody could be told that the copy is over.
std::optional<Publication> NativeDialect::hold(const ReceivedJob& job, Milliseconds wait, std::int64_t stamp) {
  if (!settings_.notices) return std::nullopt;
  JobMessage copy = job.message;
  copy.published = stamp;
  copy.running = true;
  Publication publication = to_ready(copy.job.queue, wait);
  publication.message = encode(std::move(copy));
  return publication;
}

}  // namespace bide::brokers::rabbitmq
