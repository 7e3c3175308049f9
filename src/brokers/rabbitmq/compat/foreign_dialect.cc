#include "brokers/rabbitmq/compat/foreign_dialect.h"

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/job_message.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

// What RabbitMQ 4 allows unless told otherwise. Only quorum queues count, and they count what was given back, too.
constexpr std::uint32_t kMostDeliveries = 20;

}  // namespace

std::variant<ReceivedJob, Publication> ForeignDialect::receive(Delivery delivery, const std::string& queue, Time now) {
  const std::uint32_t deliveries = delivery_count(delivery.message);
  Result<ReceivedJob> job = system_.receive(delivery.message, delivery.key, queue);
  if (job && deliveries < kMostDeliveries) {
    job->message.due = now;
    return std::move(*job);
  }
  const Dead poison{DeadReason::kPoison, Fault::kCrashed,
                    "delivered " + std::to_string(deliveries) + " times without an outcome"};
  // Dead jobs need nothing but the queues that were declared before the first delivery.
  return prepare(nullptr, job ? system_.bury(*job, poison, now)
                              : system_.send_unreadable(std::move(delivery.message), delivery.key, queue,
                                                        job.error().message))
      .value();
}

Result<Publication> ForeignDialect::enqueue(Connection* connection, Job job, std::int64_t, Time now) {
  Result<Send> send = system_.enqueue(job, now);
  if (!send) return send.error();
  return prepare(connection, std::move(*send));
}

Result<Departure> ForeignDialect::depart(Connection* connection, const ReceivedJob& job, const Outcome& outcome,
                                         std::int64_t, Time now) {
  if (const Returned* returned = std::get_if<Returned>(&outcome)) {
    return Departure{.way = Departure::Way::kRequeue, .wait = std::max(Milliseconds(0), returned->after)};
  }
  std::optional<Send> send;
  if (const RetryAt* retry = std::get_if<RetryAt>(&outcome)) {
    Result<std::optional<Send>> next = system_.retry(job, *retry, now);
    if (!next) return next.error();
    if (!next->has_value()) return Departure{.way = Departure::Way::kReject};
    send = std::move(*next);
  } else {
    send = system_.bury(job, std::get<Dead>(outcome), now);
  }
  Result<Publication> publication = prepare(connection, std::move(*send));
  if (!publication) return publication.error();
  return Departure{.replacement = std::move(*publication)};
}

Result<Publication> ForeignDialect::prepare(Connection* connection, Send send) {
  // By its id a message that no queue took is recognised.
  if (send.message.message_id.empty()) {
    send.message.message_id = ids_.next(platform::real_clock().now().wall_us / 1000, random_.next()).to_string();
  }
  if (std::optional<Publication> ready = without_preparation(send)) return std::move(*ready);
  if (connection == nullptr) return Error{ErrorCode::kUnavailable, "there is no connection to the server now"};
  return topology_.prepare(*connection, std::move(send));
}

}  // namespace bide::brokers::rabbitmq::compat
