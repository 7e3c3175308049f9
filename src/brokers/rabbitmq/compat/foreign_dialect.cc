#include "brokers/rabbitmq/compat/foreign_dialect.h"

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/amqp_fields.h"
#include "brokers/rabbitmq/compat/async_worker.h"
#include "brokers/rabbitmq/compat/comq.h"
#include "brokers/rabbitmq/compat/sneakers.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

// What RabbitMQ 4 allows unless told otherwise. Only quorum queues count, and they count what was given back, too.
constexpr std::uint32_t kMostDeliveries = 20;
// Of a frame of 128 KiB, which properties must fit into.
constexpr std::size_t kMostProperties = 120 * 1024;
constexpr std::size_t kMostNames = 1024;

bool is_the_servers(std::string_view name) {
  return name == "CC" || name == "BCC" || name.starts_with("x-death") || name.starts_with("x-first-death-") ||
         name.starts_with("x-last-death-") || name == "x-delivery-count";
}

Publication to_publication(Send send) {
  Publication publication;
  publication.to = {.kind = Destination::Kind::kExchange,
                    .name = std::move(send.exchange),
                    .key = std::move(send.key),
                    .delay = send.delay};
  const Topology& needs = send.needs;
  if (!needs.exchanges.empty() || !needs.queues.empty() || !needs.bindings.empty()) {
    publication.to.needs = std::make_shared<const Topology>(std::move(send.needs));
  }
  publication.mandatory = send.mandatory;
  publication.message = std::move(send.message);
  fit_headers(publication.message);
  return publication;
}

}  // namespace

Result<std::unique_ptr<Dialect>> ForeignDialect::open(const Settings& settings) {
  std::unique_ptr<ForeignSystem> system;
  if (settings.compat == "sneakers") {
    Result<SneakersOptions> options = SneakersOptions::parse(settings.compat_options);
    if (!options) return options.error();
    system = std::make_unique<Sneakers>(std::move(*options));
  } else if (settings.compat == "comq") {
    Result<ComqOptions> options = ComqOptions::parse(settings.compat_options);
    if (!options) return options.error();
    system = std::make_unique<Comq>(std::move(*options), Names(settings.prefix));
  } else {
    Result<AsyncWorkerOptions> options = AsyncWorkerOptions::parse(settings.compat_options);
    if (!options) return options.error();
    system = std::make_unique<AsyncWorker>(std::move(*options));
  }
  return std::unique_ptr<Dialect>(std::make_unique<ForeignDialect>(settings, std::move(system)));
}

std::variant<ReceivedJob, Publication> ForeignDialect::receive(Delivery delivery, const std::string& queue, Time now) {
  const std::uint32_t deliveries = delivery_count(delivery.message);
  Result<ReceivedJob> job = system_->receive(delivery.message, delivery.key, queue);
  if (job && (deliveries < kMostDeliveries || system_->rejects_dead())) {
    job->message.due = now;
    return std::move(*job);
  }
  const Dead poison{DeadReason::kPoison, Fault::kCrashed,
                    "delivered " + std::to_string(deliveries) + " times without an outcome"};
  return named(job ? system_->bury(*job, poison, now)
                   : system_->send_unreadable(std::move(delivery.message), delivery.key, queue, job.error().message));
}

Result<Publication> ForeignDialect::enqueue(Job job, std::int64_t, Time now) const {
  Result<Send> send = system_->enqueue(job, now);
  if (!send) return send.error();
  // So that nothing is lost when no worker has ever run.
  if (system_->clients_declare()) send->needs.add(system_->topology(job.queue));
  return to_publication(std::move(*send));
}

Result<Publication> ForeignDialect::replay(AmqpMessage message, const std::string& key, const std::string& queue,
                                           const ReplayOptions& options) const {
  Result<Send> send = system_->replay(std::move(message), key, queue, options);
  if (!send) return send.error();
  return to_publication(std::move(*send));
}

Publication ForeignDialect::bring_back(AmqpMessage message, const std::string& queue) const {
  const std::string source = system_->source(queue);
  // Deaths in that queue are counted by the other system; those in delay queues would look like a message that goes
  // round in a circle.
  FieldList deaths;
  if (const Field* all = find_field(message.headers, "x-death"); all != nullptr && all->list() != nullptr) {
    for (const Field& death : *all->list()) {
      const Field* name = death.table() != nullptr ? find_field(*death.table(), "queue") : nullptr;
      if (name != nullptr && name->text() != nullptr && *name->text() == source) deaths.push_back(death);
    }
  }
  strip_travel_headers(message.headers);
  if (!deaths.empty()) message.headers.emplace_back("x-death", std::move(deaths));
  message.expiration.clear();
  return to_publication({.key = source, .message = std::move(message)});
}

Result<Departure> ForeignDialect::depart(const ReceivedJob& job, const Outcome& outcome, std::int64_t, Time now) {
  if (const Returned* returned = std::get_if<Returned>(&outcome)) {
    return Departure{.way = Departure::Way::kRequeue, .wait = std::max(Milliseconds(0), returned->after)};
  }
  if (const Dead* dead = std::get_if<Dead>(&outcome)) {
    if (system_->rejects_dead()) return Departure{.way = Departure::Way::kReject};
    return Departure{.replacement = named(system_->bury(job, *dead, now))};
  }
  Result<std::optional<Send>> next = system_->retry(job, std::get<RetryAt>(outcome), now);
  if (!next) return next.error();
  if (!next->has_value()) return Departure{.way = Departure::Way::kReject};
  return Departure{.replacement = named(std::move(**next))};
}

std::optional<Publication> ForeignDialect::reply(const ReceivedJob& job, const Done& done) const {
  std::optional<Send> send = system_->reply(job, done);
  if (!send) return std::nullopt;
  return to_publication(std::move(*send));
}

Publication ForeignDialect::named(Send send) {
  if (send.message.message_id.empty()) {
    send.message.message_id = ids_.next(platform::real_clock().now().wall_us / 1000, random_.next()).to_string();
  }
  return to_publication(std::move(send));
}

void fit_headers(AmqpMessage& message) {
  std::string dropped;
  while (properties_size(message) > kMostProperties && !message.headers.empty()) {
    const auto size = [](const std::pair<std::string, Field>& header) {
      AmqpMessage alone;
      alone.headers = {header};
      return properties_size(alone);
    };
    const auto largest = std::max_element(message.headers.begin(), message.headers.end(),
                                          [&](const auto& a, const auto& b) { return size(a) < size(b); });
    dropped += (dropped.empty() ? "" : " ") + largest->first;
    message.headers.erase(largest);
  }
  if (!dropped.empty()) message.headers.emplace_back("bide-dropped-headers", dropped.substr(0, kMostNames));
}

Headers job_headers(const FieldTable& fields) {
  Headers headers;
  std::size_t bytes = 0;
  for (const auto& [name, field] : fields) {
    if (is_the_servers(name)) continue;
    std::string text;
    if (const std::string* own = field.text())
      text = *own;
    else if (const std::int64_t* number = field.number())
      text = std::to_string(*number);
    else if (const bool* flag = std::get_if<bool>(&field.value))
      text = *flag ? "true" : "false";
    else if (const double* real = std::get_if<double>(&field.value))
      text = core::format_number(*real);
    else
      continue;
    // What does not fit into a job's headers is still in the message.
    if (bytes + name.size() + text.size() > Limits::kHeaderBytes) continue;
    bytes += name.size() + text.size();
    headers.emplace_back(name, std::move(text));
  }
  return headers;
}

Status check_header_names(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (is_the_servers(name)) {
      return Error{ErrorCode::kInvalidArgument,
                   "header " + core::quoted(name) + " belongs to RabbitMQ; use another name"};
    }
    if (name.size() > 255) return Error{ErrorCode::kInvalidArgument, "a header's name has more than 255 bytes"};
  }
  return {};
}

JobId id_of(const AmqpMessage& message) {
  const Result<JobId> id = JobId::parse(message.message_id);
  return id ? *id : JobId();
}

}  // namespace bide::brokers::rabbitmq::compat
