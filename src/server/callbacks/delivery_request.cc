#include "server/callbacks/delivery_request.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/completion.h"
#include "server/callbacks/completion.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

constexpr std::string_view kOwnHeaders[] = {wire::kCallbackHeader, wire::kOnDoneHeader, wire::kReplyQueueHeader,
                                            wire::kRequestHeader,  core::kOnDoneQueueHeader};

bool is_token(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return made;
}

// Nothing that could end the field and begin another.
bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

}  // namespace

bool can_be_delivered(std::string_view header, std::string_view value) {
  const std::string name = lower(header);
  return !name.empty() && std::all_of(name.begin(), name.end(), is_token) && is_field_value(value);
}

namespace {

void add_job_headers(const Job& job, http_client::HttpFields& fields) {
  for (const auto& [given, value] : job.headers) {
    const std::string name = lower(given);
    if (std::find(std::begin(kOwnHeaders), std::end(kOwnHeaders), name) != std::end(kOwnHeaders)) continue;
    if (!can_be_delivered(given, value)) continue;
    const bool as_it_is = name == "traceparent" || name == "tracestate";
    fields.emplace_back(as_it_is ? name : "bide-header-" + name, value);
  }
}

}  // namespace

http_client::HttpRequest delivery_request(const Lease& lease, const CallbackUrl& url, const WebhookSigner& signer,
                                          const CallbackOptions& options, Time now) {
  const std::string id = lease.job.id.to_string();
  const std::int64_t timestamp_s = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::optional<std::string> told = on_done_body(lease.job);
  const std::string_view type = told ? wire::kJsonContentType : content_type_or_default(lease.job.content_type);
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
  request.body = told ? std::move(*told) : lease.job.body;
  std::string signature = signer.sign(url.host, id, timestamp_s, request.body);
  if (!signature.empty()) request.fields.emplace_back("webhook-signature", std::move(signature));
  request.connect_within = options.connect_within;
  request.answer_within = options.answer_within;
  request.answer_limit = options.answer_limit;
  return request;
}

}  // namespace bide::server
