#include "server/callbacks/callback_options.h"

#include <algorithm>

#include "core/completion.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "server/callbacks/delivery_request.h"
#include "server/callbacks/webhook_signer.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

constexpr std::string_view kNameRule =
    "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start";

std::optional<wire::Problem> check_url(const CallbackOptions& options, std::string_view url, std::string field) {
  if (url.empty()) return std::nullopt;
  if (const Status allowed = options.policy.check(url); !allowed) {
    return wire::make_problem(kCallbackBlockedCode, allowed.error().message, std::move(field));
  }
  if (!options.own_listeners || !options.own_listeners->has(url)) return std::nullopt;
  return wire::make_problem(kCallbackBlockedCode,
                            "callback address blocked " + std::string(kOwnListenerRule) + ": it is this server itself",
                            std::move(field));
}

// Headers are sent as fields of the delivery: one that cannot be sent would be missing there.
std::optional<wire::Problem> check_header_names(const Job& job) {
  for (const auto& [name, value] : job.headers) {
    if (can_be_delivered(name, value)) continue;
    return wire::make_problem("invalid_header",
                              "header " + core::quoted(name) +
                                  " cannot be sent to a callback; allowed in its name: letters, digits and "
                                  "!#$%&'*+-.^_`|~, in its value: no control characters",
                              "headers");
  }
  return std::nullopt;
}

std::optional<wire::Problem> check_reply_queue(const CallbackOptions& options, const Job& job) {
  const std::string_view queue = wire::header_of(job, wire::kReplyQueueHeader);
  if (queue.empty()) return std::nullopt;
  if (!core::is_name(queue)) {
    return wire::make_problem("invalid_queue_name",
                              "invalid reply_queue " + core::quoted(queue) + std::string(kNameRule), "reply_queue");
  }
  if (is_pushed(options, queue)) {
    return wire::make_problem("invalid_callback",
                              "reply_queue " + core::quoted(queue) +
                                  " is a queue whose jobs are delivered to callbacks; name another one, or use on_done",
                              "reply_queue");
  }
  if (job.kind.size() + core::kReplyKindSuffix.size() > Limits::kNameBytes) {
    return wire::make_problem("invalid_kind_name",
                              "the kind has " + std::to_string(job.kind.size()) +
                                  " bytes; with a reply_queue at most " +
                                  std::to_string(Limits::kNameBytes - core::kReplyKindSuffix.size()) + " are allowed",
                              "kind");
  }
  return std::nullopt;
}

Error out_of_range(const std::string& setting, const std::string& range) {
  return Error{ErrorCode::kInvalidArgument, "callbacks." + setting + " is out of range; " + range};
}

}  // namespace

const std::string& callback_queue(const CallbackOptions& options) { return options.queues.front(); }

bool is_pushed(const CallbackOptions& options, std::string_view queue) {
  return std::find(options.queues.begin(), options.queues.end(), queue) != options.queues.end();
}

std::optional<wire::Problem> find_callback_problem(const CallbackOptions& options, const Job& job) {
  if (job.headers.empty()) return std::nullopt;
  const std::string_view callback = wire::header_of(job, wire::kCallbackHeader);
  if (auto problem = check_url(options, callback, "callback")) return problem;
  if (!callback.empty() && !is_pushed(options, job.queue)) {
    return wire::make_problem("invalid_callback",
                              "a job with a callback cannot go to queue " + core::quoted(job.queue) +
                                  ", whose jobs are leased by workers; leave the queue out, or name one that is "
                                  "delivered: " + core::quoted(callback_queue(options)),
                              "queue");
  }
  if (!callback.empty()) {
    if (auto problem = check_header_names(job)) return problem;
  }
  if (auto problem = check_url(options, wire::header_of(job, wire::kOnDoneHeader), "on_done")) return problem;
  return check_reply_queue(options, job);
}

Status validate(const CallbackOptions& options) {
  if (options.queues.empty())
    return Error{ErrorCode::kInvalidArgument, "callbacks.queues must name at least one queue"};
  for (const std::string& queue : options.queues) {
    if (core::is_name(queue)) continue;
    return Error{ErrorCode::kInvalidArgument, "callbacks.queues: invalid queue name " + core::quoted(queue) +
                                                  std::string(kNameRule)};
  }
  if (auto signer = WebhookSigner::make(options.secrets, options.secrets_by_host); !signer) return signer.error();
  if (options.concurrency < 1 || options.concurrency > 10'000)
    return out_of_range("concurrency", "1 to 10000 are allowed");
  if (options.per_host < 1 || options.per_host > options.concurrency) {
    return out_of_range("per_host",
                        "1 to " + std::to_string(options.concurrency) + ", which is concurrency, are allowed");
  }
  if (options.accepted < 1 || options.accepted > 1'000'000) return out_of_range("accepted", "1 to 1000000 are allowed");
  if (options.connect_within.count() < 1 || options.answer_within.count() < 1) {
    return out_of_range("connect_within and answer_within", "both must be longer than 0");
  }
  if (options.lease < Milliseconds(1'000)) return out_of_range("lease", "it must be 1s at least");
  if (options.failures_to_open < 1) return out_of_range("failures_to_open", "it must be 1 at least");
  if (options.shortest_pause.count() < 1 || options.longest_pause < options.shortest_pause) {
    return out_of_range("shortest_pause", "it must be longer than 0 and not more than longest_pause");
  }
  return {};
}

}  // namespace bide::server
