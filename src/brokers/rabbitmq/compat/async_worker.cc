#include "brokers/rabbitmq/compat/async_worker.h"

#include <algorithm>
#include <limits>

#include "brokers/rabbitmq/compat/edn.h"
#include "brokers/rabbitmq/compat/nippy.h"
#include "brokers/rabbitmq/compat/option_values.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr std::string_view kError = "bide-error";     // Why it is dead; async-worker itself keeps no reason.
constexpr std::string_view kDiedAt = "bide-died-at";  // Milliseconds since 1970.
constexpr std::int64_t kLongestTtl = std::numeric_limits<std::int32_t>::max();

Error invalid(std::string text) { return {ErrorCode::kInvalidArgument, std::move(text)}; }

std::string kind_of(std::string name) {
  std::replace(name.begin(), name.end(), '/', ':');
  return name;
}

// Only the first colon can be the end of a namespace.
std::string job_name_of(std::string kind) {
  if (const std::size_t colon = kind.find(':'); colon != std::string::npos) kind[colon] = '/';
  return kind;
}

void set_body(Job& job, const AsyncWorkerMessage& message) {
  job.kind = kind_of(message.job_name);
  job.body = message.args ? to_edn(*message.args) : message.args_nippy;
  job.content_type = message.args ? kEdnType : kNippyType;
}

// What async-worker does on its own, as a policy: only the number of attempts matters, the waits are those of its
// queues.
RetryPolicy policy_of(const AsyncWorkerMessage& message) {
  const std::int64_t attempts = std::clamp<std::int64_t>(message.retries(), 0, RetryPolicy::kMaxAttemptsLimit - 1) + 1;
  const std::int64_t wait = std::clamp<std::int64_t>(message.retry_timeout_ms.value_or(0), 1, kLongestTtl);
  RetryPolicy policy = RetryPolicy::exponential(Milliseconds(wait), 2.0, std::chrono::hours(24 * 365),
                                                static_cast<std::uint32_t>(attempts));
  return policy.validate() ? policy : RetryPolicy::fixed(Milliseconds(1), static_cast<std::uint32_t>(attempts));
}

AmqpMessage message_of(std::string body) {
  AmqpMessage message;
  message.content_type = kDefaultContentType;
  message.body = std::move(body);
  return message;
}

// Its own messages have no headers; what others have put there stays.
AmqpMessage copy_of(const AmqpMessage& original, std::string body) {
  AmqpMessage copy = original;
  strip_travel_headers(copy.headers);
  if (id_of(original).is_nil()) copy.message_id.clear();
  copy.expiration.clear();
  copy.persistent = true;
  copy.body = std::move(body);
  return copy;
}

void forget_death(FieldTable& headers) {
  std::erase_if(headers, [](const auto& entry) { return entry.first == kError || entry.first == kDiedAt; });
}

Result<std::string> args_of(const Job& job) {
  if (job.content_type.empty() || job.content_type == kEdnType) {
    // No body is no arguments.
    const Result<ClojureValue> args = parse_edn(job.body.empty() ? "nil" : job.body);
    if (!args) return invalid("body: " + args.error().message);
    return freeze(*args);
  }
  if (job.content_type == kNippyType) {
    // Whether it is one value only its owner can say when it holds types of his own.
    const Result<std::string> data = unwrap_nippy(job.body);
    if (!data || data->empty()) return invalid("body: not Nippy data");
    return std::string(kNippyHeader) + *data;
  }
  if (job.content_type == kDefaultContentType) return freeze({ClojureBytes{job.body}});
  if (job.content_type.starts_with("text/")) return freeze({job.body});
  return invalid("content_type " + core::quoted(job.content_type) +
                 ": allowed are application/edn (or none), application/x-nippy, text/plain for a string and "
                 "application/octet-stream for a byte array");
}

}  // namespace

Result<AsyncWorkerOptions> AsyncWorkerOptions::parse(const std::vector<std::pair<std::string, std::string>>& pairs) {
  AsyncWorkerOptions options;
  for (const auto& [name, value] : pairs) {
    Status set;
    if (name == "namespace") {
      options.name = value;
      std::replace(options.name.begin(), options.name.end(), '-', '_');
      const bool allowed = !value.empty() && value.size() <= 128 &&
                           options.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
      if (!allowed) set = wrong_value(value, "small letters, digits, - and _, as in the names of its queues");
    } else if (name == "retry_max") {
      set = set_count(options.retry_max, value, 0, RetryPolicy::kMaxAttemptsLimit - 1);
    } else if (name == "retry_timeout") {
      set = set_milliseconds(options.retry_timeout, value);
    } else {
      set = invalid("compat=async-worker has no such option; it knows namespace, retry_max and retry_timeout");
    }
    if (!set) return Error{set.error().code, name + ": " + set.error().message};
  }
  if (options.name.empty()) return invalid("compat=async-worker needs namespace=, the one that its workers have");
  return options;
}

AsyncWorker::AsyncWorker(AsyncWorkerOptions options) : options_(std::move(options)) {}

Status AsyncWorker::check_queue(std::string_view queue) const {
  if (queue == "default" || queue == options_.name) return {};
  return invalid("queue " + core::quoted(queue) + ": async-worker has one queue for a namespace, default or " +
                 options_.name);
}

std::string AsyncWorker::source(const std::string&) const { return instant_queue(); }
std::string AsyncWorker::dead_queue(const std::string&) const { return dead_letter_queue(); }

Topology AsyncWorker::one_queue(const std::string& name, FieldTable arguments) const {
  Topology topology;
  topology.exchanges.push_back({.name = exchange(), .foreign = true});
  topology.queues.push_back({.name = name, .arguments = std::move(arguments), .foreign = true});
  topology.bindings.push_back({exchange(), name, name, false});
  return topology;
}

Topology AsyncWorker::delay_queue(std::int64_t ttl) const {
  return one_queue(
      options_.name + "_delay_queue_" + std::to_string(ttl) + "_ms",
      {{"x-message-ttl", ttl}, {"x-dead-letter-exchange", exchange()}, {"x-dead-letter-routing-key", instant_queue()}});
}

Topology AsyncWorker::topology(const std::string&) const {
  Topology topology = one_queue(instant_queue(), {});
  topology.add(one_queue(dead_letter_queue(), {}));
  return topology;
}

Result<ReceivedJob> AsyncWorker::receive(AmqpMessage message, std::string key, const std::string& queue) const {
  const Result<AsyncWorkerMessage> parsed = parse_async_worker_message(message.body);
  if (!parsed) return parsed.error();
  ReceivedJob job;
  job.message.counts.failed =
      static_cast<std::uint32_t>(std::min<std::int64_t>(parsed->current_iteration, RetryPolicy::kMaxAttemptsLimit));
  job.message.job.id = id_of(message);
  job.message.job.queue = queue;
  set_body(job.message.job, *parsed);
  job.message.job.headers = job_headers(message.headers);
  job.message.job.retry = policy_of(*parsed);
  job.original = std::make_shared<OriginalMessage>(OriginalMessage{std::move(message), std::move(key)});
  return job;
}

Send AsyncWorker::send_unreadable(AmqpMessage message, const std::string&, const std::string&,
                                  std::string_view why) const {
  Send send{.exchange = exchange(), .key = dead_letter_queue()};
  const std::string body = message.body;
  send.message = copy_of(message, body);
  send.message.headers.emplace_back(kError, why);
  return send;
}

Result<Send> AsyncWorker::enqueue(const Job& job, Time now) const {
  if (Status known = check_queue(job.queue); !known) return known.error();
  if (Status named = check_header_names(job.headers); !named) return named.error();
  if (job.expires) return Error{ErrorCode::kUnsupported, "expires: async-worker does not know jobs that expire"};
  const Result<std::string> args = args_of(job);
  if (!args) return args.error();

  std::int64_t retry_max = options_.retry_max;
  std::int64_t retry_timeout = options_.retry_timeout.count();
  if (job.retry.shape == RetryPolicy::Shape::kNone) {
    retry_max = 0;
  } else if (job.retry != RetryPolicy()) {
    // The last wait must not be cut by the cap, because async-worker has none.
    const std::int64_t doublings = std::int64_t{job.retry.max_attempts} - 2;
    const bool same = job.retry.shape == RetryPolicy::Shape::kExponential && job.retry.factor == 2.0 &&
                      job.retry.jitter == 0.0 && doublings < 31 &&
                      (doublings < 0 || job.retry.cap >= job.retry.wait * (std::int64_t{1} << doublings));
    if (!same) {
      return Error{ErrorCode::kUnsupported,
                   "retry: async-worker doubles its waits and knows nothing else; allowed are "
                   "none and exponential with factor 2, no jitter and a cap beyond the last wait"};
    }
    retry_max = std::int64_t{job.retry.max_attempts} - 1;
    retry_timeout = job.retry.wait.count();
  }

  Send send{.exchange = exchange(), .key = instant_queue()};
  // The whole schedule: async-worker declares the queues of its own schedule only, and drops a job whose next one is
  // not there.
  std::int64_t ttl = retry_timeout;
  for (std::int64_t i = 0; i < retry_max && ttl > 0 && ttl <= kLongestTtl; ++i, ttl *= 2) send.needs.add(delay_queue(ttl));
  send.message = message_of(async_worker_body(job_name_of(job.kind), *args, retry_max, retry_timeout));
  send.message.message_id = job.id.to_string();
  for (const auto& [name, value] : job.headers) send.message.headers.emplace_back(name, value);
  send.delay = job.due ? std::max(Milliseconds(0), *job.due - now) : job.delay;
  return send;
}

// The queue of the old iteration, with the number raised, as async-worker has it.
Result<std::optional<Send>> AsyncWorker::retry(const ReceivedJob& job, const RetryAt& outcome, Time) const {
  if (outcome.body) return Error{ErrorCode::kUnsupported, "async-worker cannot replace the arguments of a job"};
  const Result<AsyncWorkerMessage> parsed = parse_async_worker_message(job.original->message.body);
  if (!parsed) return parsed.error();
  Send send;
  send.message = copy_of(job.original->message, with_iteration(*parsed, parsed->current_iteration + 1));
  send.exchange = exchange();
  const std::int64_t ttl = parsed->delay_ms();
  if (ttl <= 0) {
    send.key = instant_queue();
    return std::optional(std::move(send));
  }
  if (ttl > kLongestTtl) {
    // No queue can have such a TTL.
    send.key = instant_queue();
    send.delay = std::min(Milliseconds(ttl), std::chrono::duration_cast<Milliseconds>(Limits::kDelay));
    return std::optional(std::move(send));
  }
  send.needs = delay_queue(ttl);
  send.key = send.needs.queues.front().name;
  return std::optional(std::move(send));
}

Send AsyncWorker::bury(const ReceivedJob& job, const Dead& outcome, Time now) const {
  Send send{.exchange = exchange(), .key = dead_letter_queue()};
  const std::string body = job.original->message.body;
  send.message = copy_of(job.original->message, body);
  forget_death(send.message.headers);
  if (!outcome.error.empty()) send.message.headers.emplace_back(kError, outcome.error);
  send.message.headers.emplace_back(kDiedAt, std::int64_t{now.time_since_epoch().count()});
  return send;
}

JobInfo AsyncWorker::dead_info(const AmqpMessage& message, const std::string&, const std::string& queue) const {
  JobInfo info;
  info.state = JobState::kDead;
  info.dead_reason = DeadReason::kExhausted;
  info.job.id = id_of(message);
  info.job.queue = queue;
  info.job.headers = job_headers(message.headers);
  std::string error;
  if (const Field* field = find_field(message.headers, kError); field != nullptr && field->text() != nullptr) {
    error = *field->text();
  }
  if (const Result<AsyncWorkerMessage> parsed = parse_async_worker_message(message.body)) {
    set_body(info.job, *parsed);
    info.counts.failed =
        static_cast<std::uint32_t>(std::min<std::int64_t>(parsed->current_iteration, RetryPolicy::kMaxAttemptsLimit)) +
        1;
    info.attempts = info.counts.failed;
  } else {
    info.job.kind = "unreadable";
    info.job.body = message.body;
    info.job.content_type = message.content_type;
    if (error.empty()) error = parsed.error().message;
  }
  Time died = {};
  if (const Field* field = find_field(message.headers, kDiedAt); field != nullptr && field->number() != nullptr) {
    died = Time(Milliseconds(*field->number()));
    info.finished = died;
  }
  if (!error.empty()) info.history.push_back({info.attempts, died, Fault::kFailed, error});
  return info;
}

// async-worker publishes the message as it is: its iteration stays at the last one, so that a single failure sends it
// back. That is what keep_attempts means; otherwise it gets its retries anew.
Result<Send> AsyncWorker::replay(AmqpMessage message, const std::string&, const std::string&,
                                 const ReplayOptions& options) const {
  std::string body = message.body;
  if (!options.keep_attempts) {
    const Result<AsyncWorkerMessage> parsed = parse_async_worker_message(body);
    if (!parsed) return Error{ErrorCode::kWrongState, "it cannot be run: " + parsed.error().message};
    body = with_iteration(*parsed, 0);
  }
  Send send{.exchange = exchange(), .key = instant_queue()};
  send.message = copy_of(message, std::move(body));
  forget_death(send.message.headers);
  send.delay = options.delay;
  return send;
}

}  // namespace bide::brokers::rabbitmq::compat
