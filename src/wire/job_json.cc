#include "wire/job_json.h"

#include <algorithm>
#include <set>

#include "core/job_rules.h"
#include "wire/base64.h"
#include "wire/job_fields.h"
#include "wire/utf8.h"

namespace bide::wire {

namespace {

bool says_json(std::string_view content_type) {
  const std::string_view essence = content_type.substr(0, content_type.find(';'));
  return essence == kJsonContentType || essence.ends_with("+json");
}

void write_headers(JsonWriter& out, const Headers& headers) {
  const bool text = std::all_of(headers.begin(), headers.end(),
                                [](const auto& header) { return is_utf8(header.first) && is_utf8(header.second); });
  std::set<std::string_view> names;
  const bool unique = std::all_of(headers.begin(), headers.end(),
                                  [&](const auto& header) { return names.insert(header.first).second; });
  if (text && unique) {
    out.name("headers").begin_object();
    for (const auto& [name, value] : headers) out.any_name(name).string(value);
    out.end_object();
    return;
  }
  out.name(text ? "headers" : "headers_base64").begin_array();
  for (const auto& [name, value] : headers) {
    out.begin_array().string(text ? name : to_base64(name)).string(text ? value : to_base64(value)).end_array();
  }
  out.end_array();
}

}  // namespace

std::optional<Problem> read_job(JsonReader& in, Time now, Job& job, std::string_view callback_queue) {
  if (!in.object()) return std::nullopt;
  JobFields fields(job);
  while (const auto name = in.field()) {
    bool known = false;
    if (MaybeProblem problem = fields.take(in, *name, known)) return problem;
    if (!known) return unknown_field(*name, job_field_names());
  }
  if (!in.ok()) return std::nullopt;
  if (MaybeProblem problem = fields.finish()) return problem;
  if (!callback_queue.empty() && !fields.has("queue") && !header_of(job, kCallbackHeader).empty())
    job.queue = callback_queue;
  if (auto problem = core::find_problem(job, now)) {
    return make_problem(problem->code, std::move(problem->message), std::string(problem->field));
  }
  return std::nullopt;
}

std::vector<std::string> warnings_of(const Job& job, Time now) {
  std::vector<std::string> warnings;
  if (job.due && *job.due < now) warnings.emplace_back("due is in the past: the job runs now");
  const Time starts = job.due ? std::max(*job.due, now) : now + job.delay;
  if (job.expires && *job.expires <= starts) {
    warnings.emplace_back("expires is before the job may start: it will go to the dead set, not run");
  }
  return warnings;
}

std::string_view write_content(JsonWriter& out, std::string_view name, std::string_view content,
                               std::string_view content_type) {
  if (says_json(content_type) && is_json_value(content)) {
    out.name(name).raw(content);
    return content_type_of(ContentForm::kJson);
  }
  const bool text = is_utf8(content);
  const std::string key = std::string(name) + (text ? "_text" : "_base64");
  out.name(key).string(text ? content : to_base64(content));
  return content_type_of(text ? ContentForm::kText : ContentForm::kBase64);
}

void write_fields(JsonWriter& out, const Job& job, Detail detail) {
  static const Job usual;
  static const std::string usual_retry = usual.retry.to_string();
  const bool shown = detail == Detail::kShown;
  if (!job.id.is_nil()) out.field("id", job.id);
  out.field("kind", job.kind);
  // Who named no queue for a callback leaves it to the server.
  const bool is_chosen = job.queue != usual.queue || header_of(job, kCallbackHeader).empty();
  if (shown || is_chosen) out.field("queue", job.queue);
  std::string_view implied;
  if (!job.body.empty()) implied = write_content(out, "body", job.body, job.content_type);
  if (shown || job.content_type != implied) out.field("content_type", job.content_type);
  if (shown || !job.headers.empty()) write_headers(out, job.headers);
  if (!shown && job.delay != usual.delay) out.field("delay_ms", job.delay);
  if (!shown && job.due) out.field("due", *job.due);
  if (job.expires) out.field("expires", *job.expires);
  if (shown || job.time_limit != usual.time_limit) out.field("time_limit_ms", job.time_limit);
  if (shown || job.priority != usual.priority) out.field("priority", job.priority);
  if (job.retry != usual.retry) {
    out.field("retry", job.retry.to_string());
  } else if (shown) {
    out.field("retry", usual_retry);
  }
  if (!job.unique_key.empty()) out.bytes("unique_key", job.unique_key);
}

void write(JsonWriter& out, const Job& job) {
  out.begin_object();
  write_fields(out, job, Detail::kEnvelope);
  out.end_object();
}

}  // namespace bide::wire
