#include "server/callbacks/delivery_request.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/completion.h"
#include "core/text.h"
#include "wire/job_json.h"
#include "wire/json_writer.h"
#include "wire/take_values.h"

namespace bide::server {

namespace {

constexpr std::string_view kOwnHeaders[] = {wire::kCallbackHeader, wire::kOnDoneHeader, wire::kReplyQueueHeader,
                                            wire::kRequestHeader,  core::kOnDoneQueueHeader};

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

// 0 when it is not one: any client can set these headers.
std::int64_t number(std::string_view text) { return wire::parse_whole(text).value_or(0); }

// Nothing: not a bide.on_done job.
std::optional<std::string> on_done_body(const Job& job) {
  using core::header_of;
  const std::string_view state = header_of(job, core::kOriginStateHeader);
  if (job.kind != core::kOnDoneKind || state.empty()) return std::nullopt;
  std::string body;
  wire::JsonWriter out(body);
  out.begin_object().field("id", header_of(job, core::kOriginIdHeader));
  out.field("kind", header_of(job, core::kOriginKindHeader)).field("queue", header_of(job, core::kOriginQueueHeader));
  out.field("state", state).field("attempts", number(header_of(job, core::kOriginAttemptsHeader)));
  if (state == "dead") {
    out.field("reason", header_of(job, core::kOriginReasonHeader)).field("error", job.body);
  } else if (const auto bytes = header_of(job, core::kOriginResultBytesHeader); !bytes.empty()) {
    out.field("result_bytes", number(bytes));
  } else if (!job.body.empty()) {
    const std::string_view type = content_type_or_default(job.content_type);
    wire::write_content(out, "result", job.body, type);
    out.field("result_content_type", type);
  }
  out.end_object();
  return body;
}

void add_job_headers(const Job& job, http_client::HttpFields& fields) {
  for (const auto& [given, value] : job.headers) {
    const std::string name = core::lower_case(given);
    if (std::find(std::begin(kOwnHeaders), std::end(kOwnHeaders), name) != std::end(kOwnHeaders)) continue;
    if (!can_be_delivered(given, value)) continue;
    const bool keeps_name = name == "traceparent" || name == "tracestate";
    fields.emplace_back(keeps_name ? name : "bide-header-" + name, value);
  }
}

}  // namespace

bool can_be_delivered(std::string_view header, std::string_view value) {
  return core::is_token(header) && is_field_value(value);
}

http_client::HttpRequest delivery_request(const Lease& lease, const CallbackUrl& url, const WebhookSigner& signer,
                                          const CallbackOptions& options, Time now) {
  const std::string id = lease.job.id.to_string();
  const std::int64_t timestamp_s = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::optional<std::string> json = on_done_body(lease.job);
  const std::string_view type = json ? wire::kJsonContentType : content_type_or_default(lease.job.content_type);
  http_client::HttpRequest request;
  request.method = "POST";
  request.url = url.whole();
  request.fields = {
      {"content-type", std::string(is_field_value(type) ? type : kDefaultContentType)},
      {"bide-job-id", id},
      {"bide-kind", lease.job.kind},
      {"bide-queue", lease.job.queue},
      {"bide-attempt", std::to_string(lease.attempt)},
      {"bide-lease-token", std::to_string(lease.token)},
      {"via", "1.1 bide"},
      {"webhook-id", id},
      {"webhook-timestamp", std::to_string(timestamp_s)},
  };
  if (options.lease_credentials) {
    request.fields.emplace_back("bide-settle-token", options.lease_credentials->make({lease.job.id, lease.token}));
  }
  add_job_headers(lease.job, request.fields);
  request.body = json ? std::move(*json) : lease.job.body;
  std::string signature = signer.sign(url.host, id, timestamp_s, request.body);
  if (!signature.empty()) request.fields.emplace_back("webhook-signature", std::move(signature));
  request.connect_within = options.connect_within;
  request.answer_within = options.answer_within;
  request.answer_limit = options.answer_limit;
  return request;
}

}  // namespace bide::server
