#include "brokers/rabbitmq/compat/comq.h"

#include <algorithm>

#include "brokers/rabbitmq/compat/option_values.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/request_rules.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr std::string_view kAttempt = "x-attempt";
constexpr std::uint32_t kMostAttempts = 6;  // The first, and as many as ComQ's MAX_REDELIVERIES.
constexpr std::string_view kDots = "..";
constexpr std::string_view kBytes = "application/octet-stream";
constexpr std::string_view kComqError = "bide-error";
constexpr std::string_view kComqDiedAt = "bide-died-at";

// Of a group's queue, or of an event; empty: neither.
std::string exchange_of(const std::string& queue) {
  const std::size_t dots = queue.find(kDots);
  return dots == std::string::npos ? std::string() : queue.substr(0, dots);
}

bool is_event(const std::string& queue) { return queue.ends_with(kDots); }

std::uint32_t failures_of(const FieldTable& headers) {
  const Field* const attempt = find_field(headers, kAttempt);
  if (attempt == nullptr || attempt->number() == nullptr) return 0;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(*attempt->number(), 0, RetryPolicy::kMaxAttemptsLimit));
}

// Without what was added on the way.
FieldTable own_headers_of(const AmqpMessage& message) {
  FieldTable headers = message.headers;
  strip_travel_headers(headers);
  std::erase_if(headers, [](const auto& entry) {
    return entry.first == kAttempt || entry.first == kComqError || entry.first == kComqDiedAt;
  });
  return headers;
}

// A handler without a result answers "nothing" in words that the requester can read.
std::string nothing_as(std::string_view content_type) {
  if (content_type == "application/json") return "null";
  if (content_type == "application/msgpack") return "\xc0";
  return {};
}

}  // namespace

Result<ComqOptions> ComqOptions::parse(const std::vector<std::pair<std::string, std::string>>& pairs) {
  ComqOptions options;
  for (const auto& [name, value] : pairs) {
    Status set;
    if (name == "steps") {
      set = set_policy(options.steps, value);
    } else if (name == "kind") {
      if (!core::is_name(value)) set = wrong_value(value, "the name of a kind");
      options.kind = value;
    } else if (name == "queues") {
      set = set_queues(options.queues, value);
    } else if (name == "dead") {
      if (value != "reject" && value != "keep") set = wrong_value(value, "reject or keep");
      options.keep_dead = value == "keep";
    } else {
      set = Error{ErrorCode::kInvalidArgument, "compat=comq has no such option; it knows steps, dead, kind and queues"};
    }
    if (!set) return Error{set.error().code, name + ": " + set.error().message};
  }
  return options;
}

Status Comq::check_queue(std::string_view queue) const {
  if (!core::is_name(queue)) {
    return Error{ErrorCode::kInvalidArgument, "queue " + core::quoted(queue) + " is not a valid name"};
  }
  if (!queue.ends_with(kDots)) return {};
  return Error{ErrorCode::kInvalidArgument, "queue " + core::quoted(queue) +
                                                " stands for all groups of an exchange, to which events can be sent; "
                                                "take them from the queue of one group, EXCHANGE..GROUP"};
}

RetryPolicy Comq::policy() const {
  return options_.steps ? *options_.steps : RetryPolicy::fixed(Milliseconds(0), kMostAttempts);
}

Topology Comq::topology(const std::string& queue) const {
  Topology topology;
  const std::string exchange = exchange_of(queue);
  if (!exchange.empty()) topology.exchanges.push_back({exchange, "fanout", {}, true});
  if (is_event(queue)) return topology;
  topology.queues.push_back({.name = queue, .foreign = true});
  if (!exchange.empty()) topology.bindings.push_back({exchange, queue, "", false});
  return topology;
}

Job Comq::job_of(const AmqpMessage& message, const std::string& queue) const {
  Job job;
  const std::string exchange = exchange_of(queue);
  const bool is_ours = message.app_id == "bide" && core::is_name(message.type);
  job.id = id_of(message);
  job.kind = !options_.kind.empty() ? options_.kind : is_ours ? message.type : !exchange.empty() ? exchange : queue;
  job.queue = queue;
  job.body = message.body;
  job.content_type = message.content_type;
  job.headers = job_headers(own_headers_of(message));
  job.retry = policy();
  return job;
}

Result<ReceivedJob> Comq::receive(AmqpMessage message, std::string key, const std::string& queue) const {
  ReceivedJob job;
  job.message.job = job_of(message, queue);
  job.message.counts.failed = failures_of(message.headers);
  job.original = std::make_shared<OriginalMessage>(OriginalMessage{std::move(message), std::move(key)});
  return job;
}

Send Comq::send_unreadable(AmqpMessage message, const std::string&, const std::string& queue, std::string_view) const {
  return to_dead(std::move(message), queue);
}

Result<Send> Comq::enqueue(const Job& job, Time now) const {
  if (Status named = check_header_names(job.headers); !named) return named.error();
  const bool is_request = core::is_request(job);
  if (job.expires && !is_request) return Error{ErrorCode::kUnsupported, "expires: ComQ does not know jobs that expire"};
  // Requests come without one, and are tried as often as those who answer them like.
  if (!is_request && job.retry != RetryPolicy() && job.retry != policy()) {
    return Error{ErrorCode::kUnsupported,
                 "retry: the policy belongs to those who take the job; give steps= in the URL of its workers"};
  }
  if (job.priority != 0) return Error{ErrorCode::kUnsupported, "priority: ComQ's queues have none"};
  Send send;
  send.key = job.queue;
  send.delay = job.due ? std::max(Milliseconds(0), *job.due - now) : job.delay;
  if (is_event(job.queue)) {
    if (send.delay > Milliseconds(0)) {
      return Error{ErrorCode::kUnsupported, "delay: an event cannot wait; delay a task, or a job for one group"};
    }
    if (is_request) return Error{ErrorCode::kUnsupported, "an event is for many, and none of them answers it"};
    send.exchange = exchange_of(job.queue);
    send.key.clear();
    send.mandatory = false;  // An event that no group has asked for is nobody's.
  }
  send.message.message_id = job.id.to_string();
  send.message.type = job.kind;
  send.message.app_id = "bide";
  send.message.content_type = content_type_or_default(job.content_type);
  for (const auto& [name, value] : job.headers) {
    if (name != core::kRequestHeader) send.message.headers.emplace_back(name, value);
  }
  if (is_request) {
    // When nobody waits for the answer any more, the server drops it.
    send.message.expiration = std::to_string(std::max<std::int64_t>(1, (*job.expires - now).count()));
    send.message.persistent = core::header_of(job, core::kRequestHeader) == core::kDurableRequest;
  }
  send.message.body = job.body;
  return send;
}

// As ComQ does: in the encoding of the request, unless the handler has said another one, and not durable.
std::optional<Send> Comq::reply(const ReceivedJob& job, const Done& outcome) const {
  const AmqpMessage& request = job.original->message;
  if (request.reply_to.empty()) return std::nullopt;
  Send send;
  send.key = request.reply_to;
  send.mandatory = false;  // Whoever has asked may be gone.
  send.message.correlation_id = request.correlation_id;
  send.message.persistent = false;
  send.message.content_type = !outcome.content_type.empty()   ? outcome.content_type
                              : !request.content_type.empty() ? request.content_type
                                                              : kBytes;
  send.message.body = outcome.result.empty() ? nothing_as(send.message.content_type) : outcome.result;
  return send;
}

Result<std::optional<Send>> Comq::retry(const ReceivedJob& job, const RetryAt& outcome, Time) const {
  Send send;
  send.key = job.message.job.queue;
  send.delay = std::max(Milliseconds(0), outcome.after);
  send.message = job.original->message;
  if (outcome.body) send.message.body = *outcome.body;
  // In a delay queue it would be over before the delay is.
  if (send.delay > Milliseconds(0)) send.message.expiration.clear();
  send.message.headers = own_headers_of(job.original->message);
  send.message.headers.emplace_back(kAttempt, std::int64_t{job.message.counts.total()} + 1);
  return std::optional(std::move(send));
}

Send Comq::to_dead(AmqpMessage message, const std::string& queue) const {
  Send send;
  send.key = dead_queue(queue);
  send.needs.queues.push_back({.name = send.key, .foreign = true});
  message.persistent = true;
  message.expiration.clear();
  send.message = std::move(message);
  return send;
}

Send Comq::bury(const ReceivedJob& job, const Dead& outcome, Time now) const {
  Send send = to_dead(job.original->message, job.message.job.queue);
  FieldTable& headers = send.message.headers;
  headers = own_headers_of(job.original->message);
  headers.emplace_back(kAttempt, std::int64_t{job.message.counts.total()} + 1);
  if (!outcome.error.empty()) headers.emplace_back(kComqError, outcome.error);
  headers.emplace_back(kComqDiedAt, std::int64_t{now.time_since_epoch().count()});
  return send;
}

JobInfo Comq::dead_info(const AmqpMessage& message, const std::string&, const std::string& queue) const {
  JobInfo info;
  info.state = JobState::kDead;
  info.dead_reason = DeadReason::kExhausted;
  info.job = job_of(message, queue);
  info.attempts = info.counts.failed = failures_of(message.headers);
  Time died = {};
  if (const Field* at = find_field(message.headers, kComqDiedAt); at != nullptr && at->number() != nullptr) {
    died = Time(Milliseconds(*at->number()));
    info.finished = died;
  }
  if (const Field* error = find_field(message.headers, kComqError); error != nullptr && error->text() != nullptr) {
    info.history.push_back({info.attempts, died, Fault::kFailed, *error->text()});
  }
  return info;
}

Result<Send> Comq::replay(AmqpMessage message, const std::string&, const std::string& queue,
                          const ReplayOptions& options) const {
  const std::uint32_t failures = failures_of(message.headers);
  message.headers = own_headers_of(message);
  // One more failure is then the last one.
  if (options.keep_attempts) {
    message.headers.emplace_back(kAttempt, std::int64_t{std::min(failures, kMostAttempts - 1)});
  }
  message.persistent = true;
  return Send{.key = queue, .message = std::move(message), .delay = options.delay};
}

}  // namespace bide::brokers::rabbitmq::compat
