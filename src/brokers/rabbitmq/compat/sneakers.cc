#include "brokers/rabbitmq/compat/sneakers.h"

#include <algorithm>
#include <charconv>

#include "brokers/rabbitmq/compat/json_text.h"
#include "brokers/rabbitmq/compat/option_values.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/text.h"
#include "core/time_text.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr std::string_view kRetryInfo = "retry_info";
constexpr std::string_view kFailures = "bide-failures";       // What x-death says, for servers that write it anew.
constexpr std::string_view kRoutingKey = "bide-routing-key";  // Lost on the way through delay queues.

std::string named(const std::string& chosen, const std::string& usual) { return chosen.empty() ? usual : chosen; }

Status set_name(std::string& into, const std::string& value, const std::string& what) {
  if (value.empty() || value.size() > 255) return wrong_value(value, what);
  into = value;
  return {};
}

void remove_field(FieldTable& table, std::string_view name) {
  std::erase_if(table, [&](const auto& entry) { return entry.first == name; });
}

std::string original_key(const AmqpMessage& message, const std::string& key) {
  const Field* kept = find_field(message.headers, kRoutingKey);
  return kept != nullptr && kept->text() != nullptr ? *kept->text() : key;
}

// Without what the server and bide have added on the way.
FieldTable own_headers(const AmqpMessage& message) {
  FieldTable headers = message.headers;
  strip_travel_headers(headers);
  for (const std::string_view name :
       {std::string_view("CC"), std::string_view("BCC"), std::string_view("x-death"), kFailures, kRoutingKey}) {
    remove_field(headers, name);
  }
  return headers;
}

// What the message was before it failed, as the error record describes it. Ruby publishes the record with properties of
// its own.
void restore(AmqpMessage& message, const std::string& properties) {
  const FieldTable known = json_scalars(properties);
  const auto set = [&](std::string& property, std::string_view name) {
    const Field* field = find_field(known, name);
    if (field != nullptr && field->text() != nullptr && field->text()->size() < 256) property = *field->text();
  };
  set(message.content_type, "content_type");
  set(message.content_encoding, "content_encoding");
  set(message.message_id, "message_id");
  set(message.correlation_id, "correlation_id");
  set(message.reply_to, "reply_to");
  set(message.type, "type");
  set(message.app_id, "app_id");
  for (auto& [name, field] : json_scalars(json_member(properties, "headers").value_or(""))) {
    if (name.size() < 256 && find_field(message.headers, name) == nullptr) message.headers.emplace_back(name, field);
  }
}

std::string fault_name(const Dead& dead) {
  if (dead.reason == DeadReason::kRejected) return "Rejected";
  switch (dead.fault) {
    case Fault::kFailed:
      return "Failed";
    case Fault::kTimedOut:
      return "TimedOut";
    case Fault::kLost:
      return "Lost";
    case Fault::kCrashed:
      return "Crashed";
  }
  return "Failed";
}

std::string iso8601(Time time) {
  const std::string text = core::format_time(time);
  return text.substr(0, text.find('.')) + "Z";
}

}  // namespace

Result<SneakersOptions> SneakersOptions::parse(const std::vector<std::pair<std::string, std::string>>& pairs) {
  SneakersOptions options;
  for (const auto& [name, value] : pairs) {
    Status set;
    if (name == "exchange") {
      set = set_name(options.exchange, value, "the name of an exchange");
    } else if (name == "retry_exchange") {
      set = set_name(options.retry_exchange, value, "the name of an exchange");
    } else if (name == "retry_error_exchange") {
      set = set_name(options.retry_error_exchange, value, "the name of an exchange");
    } else if (name == "retry_requeue_exchange") {
      set = set_name(options.retry_requeue_exchange, value, "the name of an exchange");
    } else if (name == "retry_routing_key") {
      set = set_name(options.retry_routing_key, value, "a routing key");
    } else if (name == "durable") {
      if (value != "yes" && value != "no") set = wrong_value(value, "yes or no");
      options.durable = value == "yes";
    } else if (name == "queues") {
      set = set_queues(options.queues, value);
    } else if (name == "retry_max_times") {
      set = set_count(options.retry_max_times, value, 0, RetryPolicy::kMaxAttemptsLimit - 1);
    } else if (name == "retry_timeout") {
      set = set_milliseconds(options.retry_timeout, value);
    } else if (name == "steps") {
      set = set_policy(options.steps, value);
    } else if (name == "error_format") {
      if (value != "2.11" && value != "2.12") set = wrong_value(value, "2.11 or 2.12");
      options.error_in_body = value == "2.11";
    } else if (name == "kind") {
      if (!core::is_name(value)) set = wrong_value(value, "the name of a kind");
      options.kind = value;
    } else {
      set = Error{ErrorCode::kInvalidArgument,
                  "compat=sneakers has no such option; it knows exchange, retry_exchange, retry_error_exchange, "
                  "retry_requeue_exchange, retry_routing_key, retry_max_times, retry_timeout, durable, steps, "
                  "error_format, kind and queues"};
    }
    if (!set) return Error{set.error().code, name + ": " + set.error().message};
  }
  return options;
}

std::uint32_t failures_of(const FieldTable& headers, const std::string& queue) {
  std::int64_t sum = 0;
  if (const Field* deaths = find_field(headers, "x-death"); deaths != nullptr && deaths->list() != nullptr) {
    for (const Field& death : *deaths->list()) {
      if (death.table() == nullptr) continue;
      const Field* name = find_field(*death.table(), "queue");
      if (name == nullptr || name->text() == nullptr || *name->text() != queue) continue;
      const Field* count = find_field(*death.table(), "count");
      // Old servers write one entry for each time, without a count.
      const std::int64_t times = count != nullptr && count->number() != nullptr ? *count->number() : 1;
      sum += std::clamp<std::int64_t>(times, 0, RetryPolicy::kMaxAttemptsLimit);
    }
  }
  if (const Field* own = find_field(headers, kFailures); own != nullptr && own->number() != nullptr) {
    sum = std::max(sum, *own->number());
  }
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(sum, 0, RetryPolicy::kMaxAttemptsLimit));
}

Sneakers::Sneakers(SneakersOptions options) : options_(std::move(options)) {}

Status Sneakers::check_queue(std::string_view queue) const {
  if (core::is_name(queue)) return {};
  return Error{ErrorCode::kInvalidArgument, "queue " + core::quoted(queue) + " is not a valid name"};
}

std::string Sneakers::retry_name(const std::string& queue) const {
  return named(options_.retry_exchange, queue + "-retry");
}
std::string Sneakers::error_name(const std::string& queue) const {
  return named(options_.retry_error_exchange, queue + "-error");
}
std::string Sneakers::requeue_name(const std::string& queue) const {
  return named(options_.retry_requeue_exchange, queue + "-retry-requeue");
}

std::string Sneakers::owner_of(const std::string& key, const std::string& queue) const {
  return !options_.retry_error_exchange.empty() && core::is_name(key) ? key : queue;
}

RetryPolicy Sneakers::policy() const {
  return options_.steps ? *options_.steps : RetryPolicy::fixed(options_.retry_timeout, options_.retry_max_times + 1);
}

Topology Sneakers::topology(const std::string& queue) const {
  Topology topology;
  topology.exchanges = {{options_.exchange, "direct", {}},
                        {retry_name(queue), "topic", {}},
                        {error_name(queue), "topic", {}},
                        {requeue_name(queue), "topic", {}}};
  topology.queues = {{queue, {{"x-dead-letter-exchange", retry_name(queue)}}},
                     {retry_name(queue),
                      {{"x-dead-letter-exchange", requeue_name(queue)},
                       {"x-message-ttl", std::int64_t{options_.retry_timeout.count()}}}},
                     {error_name(queue), {}}};
  topology.bindings = {{options_.exchange, queue, queue, false},
                       {retry_name(queue), retry_name(queue), "#", false},
                       {error_name(queue), error_name(queue), "#", false},
                       {requeue_name(queue), queue, named(options_.retry_routing_key, "#"), false}};
  // Where the exchanges are shared, so that a message comes back to its own queue.
  if (!options_.retry_routing_key.empty()) {
    topology.queues[0].arguments.emplace_back("x-dead-letter-routing-key", options_.retry_routing_key);
  }
  for (ExchangeSpec& exchange : topology.exchanges) exchange.foreign = true, exchange.durable = options_.durable;
  for (QueueSpec& each : topology.queues) each.foreign = true, each.durable = options_.durable;
  return topology;
}

std::string Sneakers::kind_of(const AmqpMessage& message, const std::string& queue) const {
  if (!options_.kind.empty()) return options_.kind;
  return message.app_id == "bide" && core::is_name(message.type) ? message.type : queue;
}

Result<ReceivedJob> Sneakers::receive(AmqpMessage message, std::string key, const std::string& queue) const {
  ReceivedJob job;
  key = original_key(message, key);
  job.message.counts.failed = failures_of(message.headers, queue);
  job.message.job.id = id_of(message);
  job.message.job.kind = kind_of(message, queue);
  job.message.job.queue = queue;
  job.message.job.body = message.body;
  job.message.job.content_type = message.content_type;
  job.message.job.headers = job_headers(own_headers(message));
  job.message.job.retry = policy();
  job.original = std::make_shared<OriginalMessage>(OriginalMessage{std::move(message), std::move(key)});
  return job;
}

Send Sneakers::send_unreadable(AmqpMessage message, const std::string& key, const std::string& queue,
                               std::string_view) const {
  return {.exchange = error_name(queue), .key = key, .message = std::move(message)};
}

Result<Send> Sneakers::enqueue(const Job& job, Time now) const {
  if (Status named = check_header_names(job.headers); !named) return named.error();
  if (job.expires) return Error{ErrorCode::kUnsupported, "expires: Sneakers does not know jobs that expire"};
  if (job.retry != RetryPolicy() && job.retry != policy()) {
    return Error{ErrorCode::kUnsupported,
                 "retry: the policy belongs to the queue, not to the job; give retry_max_times=, retry_timeout= or "
                 "steps= in the URL of its workers"};
  }
  if (job.priority < 0) return Error{ErrorCode::kUnsupported, "priority: not below 0, the least that RabbitMQ has"};
  Send send;
  send.exchange = options_.exchange;
  send.key = job.queue;
  send.delay = job.due ? std::max(Milliseconds(0), *job.due - now) : job.delay;
  send.message.message_id = job.id.to_string();
  send.message.type = job.kind;
  send.message.app_id = "bide";
  send.message.content_type = content_type_or_default(job.content_type);
  for (const auto& [name, value] : job.headers) send.message.headers.emplace_back(name, value);
  send.message.body = job.body;
  // Obeyed by queues that were declared with x-max-priority.
  if (job.priority > 0) send.message.priority = static_cast<std::uint8_t>(job.priority);
  if (send.delay > Milliseconds(0)) send.message.headers.emplace_back(kRoutingKey, job.queue);
  return send;
}

Result<std::optional<Send>> Sneakers::retry(const ReceivedJob& job, const RetryAt& outcome, Time) const {
  if (!options_.steps) {
    if (outcome.body) {
      return Error{
          ErrorCode::kUnsupported,
          "a body cannot be replaced while the job waits in Sneakers' own retry queue; give steps= in the URL"};
    }
    return std::optional<Send>();
  }
  const std::int64_t failures = std::int64_t{job.message.counts.total()} + 1;
  Send send;
  send.key = job.message.job.queue;
  send.delay = std::max(Milliseconds(0), outcome.after);
  send.message = job.original->message;
  if (outcome.body) send.message.body = *outcome.body;
  send.message.persistent = true;
  send.message.expiration.clear();
  send.message.headers = own_headers(job.original->message);
  // Only this entry: those of the delay queues would look like a message that goes round in a circle.
  send.message.headers.emplace_back("x-death", FieldList{FieldTable{{"count", failures},
                                                                    {"reason", "rejected"},
                                                                    {"queue", job.message.job.queue},
                                                                    {"exchange", options_.exchange},
                                                                    {"routing-keys", FieldList{Field(job.original->key)}}}});
  send.message.headers.emplace_back(kFailures, failures);
  send.message.headers.emplace_back(kRoutingKey, job.original->key);
  return std::optional(std::move(send));
}

Send Sneakers::bury(const ReceivedJob& job, const Dead& outcome, Time now) const {
  const std::string text = !outcome.error.empty()                    ? outcome.error
                           : outcome.reason == DeadReason::kRejected ? "reject"
                           : outcome.fault == Fault::kTimedOut       ? "timeout"
                                                                     : "failed";
  const std::string* old = nullptr;
  if (const Field* found = find_field(job.original->message.headers, kRetryInfo)) old = found->text();

  AmqpMessage described = job.original->message;  // Old records are not nested into the new one.
  remove_field(described.headers, kRetryInfo);
  const std::string properties = properties_json(described);

  std::string record = "{\"error\":" + json_string(text) +
                       ",\"num_attempts\":" + std::to_string(job.message.counts.total() + 1) +
                       ",\"failed_at\":" + json_string(iso8601(now));
  if (options_.error_in_body) {
    record += ",\"payload\":\"" + core::to_base64(job.original->message.body) + "\",\"properties\":\"" + core::to_base64(properties) + "\"";
  } else {
    record += ",\"properties\":" + properties;
  }
  record += ",\"error_class\":\"Bide::" + fault_name(outcome) + "\",\"error_message\":" + json_string(text) +
            ",\"backtrace\":" + (options_.error_in_body ? "\"\"" : "[]") + "}";

  Send send;
  send.exchange = error_name(job.message.job.queue);
  send.key = job.original->key;
  if (options_.error_in_body) {
    send.message.body = std::move(record);
    return send;
  }
  if (old != nullptr) {
    if (!is_json(*old)) {
      record = "[" + record + ",{\"error\":\"Failed to parse retry info\"}]";
    } else if (const std::size_t first = old->find_first_not_of(" \t\r\n"); (*old)[first] == '[') {
      const std::string_view rest = std::string_view(*old).substr(first + 1);
      const bool empty = rest[rest.find_first_not_of(" \t\r\n")] == ']';
      record = "[" + record + (empty ? "" : ",") + std::string(rest);
    } else {
      record = "[" + record + "," + *old + "]";
    }
  }
  if (!id_of(job.original->message).is_nil()) send.message.message_id = job.original->message.message_id;
  send.message.content_type = job.original->message.content_type;
  send.message.content_encoding = job.original->message.content_encoding;
  send.message.type = job.original->message.type;
  send.message.app_id = job.original->message.app_id;
  send.message.headers = own_headers(described);
  send.message.headers.emplace_back(kRetryInfo, std::move(record));
  send.message.body = job.original->message.body;
  return send;
}

JobInfo Sneakers::dead_info(const AmqpMessage& message, const std::string& key, const std::string& visited) const {
  const std::string queue = owner_of(key, visited);
  JobInfo info;
  info.state = JobState::kDead;
  info.dead_reason = DeadReason::kExhausted;
  info.job.id = id_of(message);
  info.job.kind = kind_of(message, queue);
  info.job.queue = queue;
  info.job.body = message.body;
  info.job.content_type = message.content_type;
  info.job.headers = job_headers(own_headers(message));

  std::string_view record = message.body;
  if (const Field* field = find_field(message.headers, kRetryInfo); field != nullptr && field->text() != nullptr) {
    record = *field->text();
  }
  if (const std::optional<std::string> payload = json_member(message.body, "payload");
      payload && find_field(message.headers, kRetryInfo) == nullptr) {
    if (std::optional<std::string> body = from_base64(*payload)) info.job.body = std::move(*body);
  }
  AttemptError error;
  if (const std::optional<std::string> number = json_member(record, "num_attempts")) {
    std::from_chars(number->data(), number->data() + number->size(), error.attempt);
  }
  if (const std::optional<std::string> text = json_member(record, "error")) error.text = *text;
  if (const std::optional<std::string> text = json_member(record, "failed_at")) {
    if (const Result<Time> at = core::parse_time(*text)) error.at = *at;
  }
  if (error.at != Time()) info.finished = error.at;
  info.attempts = error.attempt;
  info.counts.failed = error.attempt;
  if (error.attempt > 0 || !error.text.empty()) info.history.push_back(std::move(error));
  return info;
}

Result<Send> Sneakers::replay(AmqpMessage message, const std::string& key, const std::string& queue,
                              const ReplayOptions& options) const {
  if (options.keep_attempts) {
    return Error{ErrorCode::kUnsupported, "keep_attempts: Sneakers counts by what the server has seen, which is gone"};
  }
  Send send;
  // To its queue and no other that may be bound to the same key.
  send.key = owner_of(key, queue);
  send.delay = options.delay;
  const Field* const info = find_field(message.headers, kRetryInfo);
  if (info != nullptr && info->text() != nullptr) {
    restore(message, json_member(std::string(*info->text()), "properties").value_or(""));
  } else if (const std::optional<std::string> payload = json_member(message.body, "payload"); payload && !info) {
    const std::optional<std::string> body = from_base64(*payload);
    if (!body) return Error{ErrorCode::kDamaged, "the payload of the error record is not base64"};
    restore(message, from_base64(json_member(message.body, "properties").value_or("")).value_or(""));
    message.body = *body;
  }
  message.headers = own_headers(message);
  message.headers.emplace_back(kRoutingKey, key);
  message.expiration.clear();
  message.persistent = true;
  send.message = std::move(message);
  return send;
}

}  // namespace bide::brokers::rabbitmq::compat
