#include "wire/job_json.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/job_rules.h"
#include "core/quote.h"
#include "core/text.h"
#include "core/utf8.h"
#include "wire/fields.h"

namespace bide::wire {

namespace {

const Job& usual_job() {
  static const Job job;
  return job;
}

// ---- Reading.

template <auto kMember>
MaybeProblem read_job_value(JsonReader& in, const JobRow& row, JobDraft& draft) {
  return read_value(in, row, draft.job.*kMember);
}

template <auto kMember, auto kTake>
MaybeProblem read_job_value_by(JsonReader& in, const JobRow& row, JobDraft& draft) {
  return kTake(in, row.name, draft.job.*kMember);
}

template <ContentForm kForm>
MaybeProblem read_body(JsonReader& in, const JobRow& row, JobDraft& draft) {
  if (!draft.has_content_type) draft.job.content_type = content_type_of(kForm);
  return take_content(in, row.name, kForm, draft.job.body);
}

MaybeProblem read_content_type(JsonReader& in, const JobRow& row, JobDraft& draft) {
  draft.has_content_type = true;
  return take_text(in, row.name, draft.job.content_type);
}

template <MaybeProblem (*kTake)(JsonReader&, std::string_view, std::string&)>
MaybeProblem take_header_pairs(JsonReader& in, std::string_view field, Headers& out) {
  const auto not_a_pair = [&] {
    return make_problem("wrong_type", std::string(field) + ": each must be a pair, [\"name\",\"value\"]", std::string(field));
  };
  in.array();
  while (in.element()) {
    auto& [name, value] = out.emplace_back();
    in.array();
    for (std::string* part : {&name, &value}) {
      if (!in.element()) return in.ok() ? not_a_pair() : wrong_type(in, field);
      if (MaybeProblem problem = kTake(in, field, *part)) return problem;
    }
    if (in.element()) return not_a_pair();
  }
  return wrong_type(in, field);
}

MaybeProblem read_headers(JsonReader& in, const JobRow& row, JobDraft& draft) {
  return take_headers(in, row.name, draft.job.headers);
}

MaybeProblem read_headers_base64(JsonReader& in, const JobRow& row, JobDraft& draft) {
  return take_header_pairs<take_base64>(in, row.name, draft.job.headers);
}

MaybeProblem read_priority(JsonReader& in, const JobRow& row, JobDraft& draft) {
  MaybeProblem problem = read_value(in, row, draft.job.priority);
  if (problem && problem->code == "out_of_range") {
    problem = make_problem("invalid_priority", problem->detail + ", higher runs first", "priority");
  }
  return problem;
}

template <const std::string_view& kHeader>
MaybeProblem read_reserved(JsonReader& in, const JobRow& row, JobDraft& draft) {
  return take_text(in, row.name, draft.reserved.emplace_back(kHeader, std::string()).second);
}

MaybeProblem check_label(const std::string& label, std::string_view field) {
  if (core::is_name(label)) return std::nullopt;
  return make_problem("invalid_label", "invalid label " + core::quoted(label) + std::string(core::kNameRule),
                      std::string(field));
}

MaybeProblem no_labels(std::string_view field) {
  return make_problem("invalid_label",
                      std::string(field) + ": only the jobs of one POST /v1/jobs can name each other by label; give ids",
                      std::string(field));
}

MaybeProblem read_label(JsonReader& in, const JobRow& row, JobDraft& draft) {
  if (draft.labels == nullptr) return no_labels(row.name);
  if (MaybeProblem problem = take_text(in, row.name, draft.labels->label)) return problem;
  return in.ok() ? check_label(draft.labels->label, row.name) : std::nullopt;
}

// An id; or #fetch, the job with this label in the request.
MaybeProblem read_id_or_label(JsonReader& in, std::string_view field, const JobDraft& draft, JobId& id, std::string& label) {
  const JsonReader::Place place = in.place();
  const std::string_view text = in.type() == JsonReader::Type::kString ? in.string() : std::string_view();
  if (text.starts_with('#')) {
    label = text.substr(1);
    return draft.labels == nullptr ? no_labels(field) : check_label(label, field);
  }
  if (in.ok()) in.go_back(place);
  return take_id(in, field, id);
}

MaybeProblem read_after(JsonReader& in, const JobRow& row, JobDraft& draft) {
  in.array();
  while (in.element()) {
    JobId id;
    std::string label;
    if (MaybeProblem problem = read_id_or_label(in, row.name, draft, id, label)) return problem;
    if (!label.empty()) {
      draft.labels->after.push_back(std::move(label));
    } else {
      draft.job.after.push_back(id);
    }
  }
  return wrong_type(in, row.name);
}

MaybeProblem read_flow(JsonReader& in, const JobRow& row, JobDraft& draft) {
  std::string label;
  MaybeProblem problem = read_id_or_label(in, row.name, draft, draft.job.flow, label);
  if (!problem && !label.empty()) draft.labels->flow = std::move(label);
  return problem;
}

MaybeProblem read_past(JsonReader& in, const JobRow& row, JobDraft& draft) {
  JobPast past;
  FieldReader<JobPast> fields(rows_of<JobPast>());
  if (MaybeProblem problem = read_fields(in, fields, past)) return problem;
  draft.job.past = std::make_shared<const JobPast>(std::move(past));
  return wrong_type(in, row.name);
}

// ---- Writing.

template <auto kMember>
void write_always(JsonWriter& out, const JobRow& row, const JobView& view) {
  out.field(row.name, view.job.*kMember);
}
template <auto kMember>
void write_if_set(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (view.job.*kMember != usual_job().*kMember) out.field(row.name, view.job.*kMember);
}
template <auto kMember>
void write_shown_or_set(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (view.shown() || view.job.*kMember != usual_job().*kMember) out.field(row.name, view.job.*kMember);
}
template <auto kMember>
void write_in_envelope(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (!view.shown()) write_if_set<kMember>(out, row, view);
}

void write_queue(JsonWriter& out, const JobRow& row, const JobView& view) {
  // Whoever named no queue for a callback leaves it to the server.
  const bool is_chosen = view.job.queue != usual_job().queue || header_of(view.job, kCallbackHeader).empty();
  if (view.shown() || is_chosen) out.field(row.name, view.job.queue);
}

void write_body(JsonWriter& out, const JobRow& row, const JobView& view) {
  const Job& job = view.job;
  std::string_view implied;
  if (!job.body.empty()) implied = write_content(out, row.name, job.body, job.content_type);
  if (view.shown() || job.content_type != implied) out.field("content_type", job.content_type);
}

void write_headers(JsonWriter& out, const JobRow& row, const JobView& view) {
  const Headers& headers = view.job.headers;
  if (headers.empty() && !view.shown()) return;
  const bool text = std::all_of(headers.begin(), headers.end(), [](const auto& header) {
    return core::is_utf8(header.first) && core::is_utf8(header.second);
  });
  std::set<std::string_view> names;
  const bool unique = std::all_of(headers.begin(), headers.end(),
                                  [&](const auto& header) { return names.insert(header.first).second; });
  if (text && unique) {
    out.name(row.name).begin_object();
    for (const auto& [name, value] : headers) out.any_name(name).string(value);
    out.end_object();
    return;
  }
  const auto part = [text](const std::string& bytes) { return text ? bytes : core::to_base64(bytes); };
  out.name(text ? row.name : "headers_base64").begin_array();
  for (const auto& [name, value] : headers) out.begin_array().string(part(name)).string(part(value)).end_array();
  out.end_array();
}

void write_retry(JsonWriter& out, const JobRow& row, const JobView& view) {
  static const std::string usual_text = usual_job().retry.to_string();
  if (view.job.retry != usual_job().retry) {
    out.field(row.name, view.job.retry.to_string());
  } else if (view.shown()) {
    out.field(row.name, usual_text);
  }
}

void write_unique_key(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (!view.job.unique_key.empty()) out.bytes(row.name, view.job.unique_key);
}

template <auto kMember>
void write_value_if_set(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (view.job.*kMember != usual_job().*kMember) write_value(out.name(row.name), view.job.*kMember);
}

void write_group(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (!view.job.group.empty()) out.bytes(row.name, view.job.group);
}

void write_past(JsonWriter& out, const JobRow& row, const JobView& view) {
  if (!view.shown() && view.job.past) write_value(out.name(row.name), *view.job.past);
}

// ---- The table.

constexpr std::string_view kName = "^[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,127}$";
constexpr std::int64_t kKeyBytes = Limits::kUniqueKeyBytes;
enum JobGroup : int { kBody = 1, kWhen, kTimeLimit, kUniqueKey, kUniqueFor, kGroup };

// In the order in which they are written.
constexpr auto kJobRows = std::to_array<JobRow>({
    row("id", kUuidType, read_job_value<&Job::id>, write_if_set<&Job::id>).says("Enqueuing it again is harmless."),
    row("kind", kStringType, read_job_value<&Job::kind>, write_always<&Job::kind>).always().like(kName),
    row("queue", kStringType, read_job_value<&Job::queue>, write_queue)
        .like(kName)
        .otherwise("\"default\"")
        .marked(kEditable),
    row("body", kAnyType, read_body<ContentForm::kJson>, write_body)
        .one_of(kBody)
        .marked(kEditable)
        .says("Any JSON, kept byte for byte; content type application/json."),
    row("body_text", kStringType, read_body<ContentForm::kText>).one_of(kBody).marked(kEditable).says("Text; text/plain; charset=utf-8."),
    row("body_base64", kStringType, read_body<ContentForm::kBase64>)
        .one_of(kBody)
        .marked(kEditable)
        .says("Bytes; application/octet-stream."),
    row("content_type", kStringType, read_content_type).marked(kEditable).says("Of the body, when it is another."),
    row("headers", ref("Headers"), read_headers, write_headers).marked(kEditable),
    row("headers_base64", ref("HeaderPairs"), read_headers_base64).marked(kEditable).says("Headers that are not text."),
    row("delay", ref("Duration"), read_job_value_by<&Job::delay, take_duration>).one_of(kWhen).marked(kRequestOnly | kEditable),
    row("delay_ms", kIntegerType, read_job_value_by<&Job::delay, take_milliseconds>, write_in_envelope<&Job::delay>)
        .one_of(kWhen)
        .at_least(0)
        .marked(kRequestOnly | kEditable),
    row("due", kTimeType, read_job_value<&Job::due>, write_in_envelope<&Job::due>)
        .one_of(kWhen)
        .marked(kRequestOnly | kEditable),
    row("expires", kTimeType, read_job_value<&Job::expires>, write_if_set<&Job::expires>)
        .says("Not started by then: dead."),
    row("time_limit", ref("Duration"), read_job_value_by<&Job::time_limit, take_duration>)
        .one_of(kTimeLimit)
        .marked(kRequestOnly | kEditable),
    row("time_limit_ms", kIntegerType, read_job_value_by<&Job::time_limit, take_milliseconds>,
        write_shown_or_set<&Job::time_limit>)
        .one_of(kTimeLimit)
        .at_least(1)
        .marked(kEditable)
        .says("For one attempt."),
    row("priority", kIntegerType, read_priority, write_shown_or_set<&Job::priority>)
        .within(core::kLowestPriority, core::kHighestPriority)
        .marked(kEditable)
        .says("Higher runs first."),
    row("retry", ref("RetryPolicy"), read_job_value_by<&Job::retry, take_retry>, write_retry).marked(kEditable),
    row("unique_key", kStringType, read_job_value<&Job::unique_key>, write_unique_key)
        .one_of(kUniqueKey)
        .at_most(kKeyBytes),
    row("unique_key_base64", kStringType, read_job_value_by<&Job::unique_key, take_base64>).one_of(kUniqueKey),
    row("unique_for", ref("Duration"), read_job_value_by<&Job::unique_for, take_duration>)
        .one_of(kUniqueFor)
        .marked(kRequestOnly)
        .says("The key is held at least so long after acceptance, whatever becomes of the job."),
    row("unique_for_ms", kIntegerType, read_job_value_by<&Job::unique_for, take_milliseconds>,
        write_if_set<&Job::unique_for>)
        .one_of(kUniqueFor)
        .at_least(0),
    row("on_conflict", type_of<OnConflict>(), read_job_value<&Job::on_conflict>, write_value_if_set<&Job::on_conflict>)
        .says("When another job holds the unique key: refuse this one, give the existing one's id, or replace it while "
              "it waits. Otherwise refuse."),
    row("after", list_of(kStringType), read_after, write_value_if_set<&Job::after>)
        .at_most(Limits::kAfter)
        .says("Waits until these jobs are done: ids, or #label of jobs of the same request."),
    row("after_death", type_of<AfterDeath>(), read_job_value<&Job::after_death>, write_value_if_set<&Job::after_death>)
        .says("When one of them dies: hold this job until that one is replayed, cancel it, or run it. Otherwise hold."),
    row("flow", kStringType, read_flow, write_if_set<&Job::flow>)
        .says("Jobs of one flow are shown, cancelled and replayed together: any UUID, or #label of a job of the same "
              "request, whose id it is then."),
    row("label", kStringType, read_label).like(kName).marked(kRequestOnly).says("How others of the same request name this one: #label."),
    row("group", kStringType, read_job_value<&Job::group>, write_group)
        .one_of(kGroup)
        .at_most(Limits::kGroupBytes)
        .says("Shares the limits that its queue has for each group, such as tenant:42."),
    row("group_base64", kStringType, read_job_value_by<&Job::group, take_base64>).one_of(kGroup),
    row("callback", kUrlType, read_reserved<kCallbackHeader>)
        .marked(kRequestOnly)
        .says("The server delivers the body there by POST. Sets the header bide-callback."),
    row("on_done", kUrlType, read_reserved<kOnDoneHeader>)
        .marked(kRequestOnly)
        .says("Told when the job is done or dead. Sets the header bide-on-done."),
    row("reply_queue", kStringType, read_reserved<kReplyQueueHeader>)
        .marked(kRequestOnly)
        .says("Gets a job with the result. Sets the header bide-reply-queue."),
    row("past", ref("JobPast"), read_past, write_past)
        .marked(kRequestOnly)
        .says("Of a job from another broker: it goes on from there. Needs the scope admin."),
});

bool says_json(std::string_view content_type) {
  const std::string_view essence = content_type.substr(0, content_type.find(';'));
  return essence == kJsonContentType || essence.ends_with("+json");
}

MaybeProblem add_reserved_headers(JobDraft& draft) {
  for (auto& [header, value] : draft.reserved) {
    if (!header_of(draft.job, header).empty()) {
      return make_problem("conflicting_fields",
                          "the header " + header + " is given, and the field that sets it; give one of them",
                          "headers");
    }
    if (!value.empty()) draft.job.headers.emplace_back(std::move(header), std::move(value));
  }
  return std::nullopt;
}

}  // namespace

std::span<const JobRow> job_rows() { return kJobRows; }

std::optional<Problem> read_job(JsonReader& in, Time now, Job& job, std::string_view callback_queue, JobLabels* labels) {
  JobDraft draft{.job = job, .labels = labels};
  FieldReader<JobView, JobDraft> fields(kJobRows);
  if (MaybeProblem problem = read_fields(in, fields, draft)) return problem;
  if (!in.ok()) return std::nullopt;
  if (MaybeProblem problem = add_reserved_headers(draft)) return problem;
  if (!callback_queue.empty() && !fields.has("queue") && !header_of(job, kCallbackHeader).empty())
    job.queue = callback_queue;
  return problem_of(core::find_problem(job, now));
}

std::vector<std::string> warnings_of(const Job& job, Time now) {
  std::vector<std::string> warnings;
  if (job.due && *job.due < now && !job.past) warnings.emplace_back("due is in the past: the job runs now");
  const Time starts = job.due ? std::max(*job.due, now) : now + job.delay;
  if (job.expires && *job.expires <= starts) {
    warnings.emplace_back("expires is before the job may start: it will go to the dead set, not run");
  }
  return warnings;
}

void write_fields(JsonWriter& out, const Job& job, Detail detail) {
  write_rows(out, std::span<const JobRow>(kJobRows), JobView{job, detail});
}

void write(JsonWriter& out, const Job& job) {
  out.begin_object();
  write_fields(out, job, Detail::kEnvelope);
  out.end_object();
}

MaybeProblem take_headers(JsonReader& in, std::string_view field, Headers& out) {
  if (in.type() == JsonReader::Type::kArray) return take_header_pairs<take_text>(in, field, out);
  in.object();
  while (const auto key = in.field()) {
    auto& [header, value] = out.emplace_back(*key, std::string());
    if (in.type() != JsonReader::Type::kString) {
      in.raw();
      if (!in.ok()) return std::nullopt;
      return make_problem("wrong_type",
                          std::string(field) + ": the value of " + core::quoted(header) + " must be a string",
                          std::string(field));
    }
    value = in.string();
  }
  return wrong_type(in, field);
}

MaybeProblem take_content(JsonReader& in, std::string_view field, ContentForm form, std::string& out) {
  if (form == ContentForm::kText) return take_text(in, field, out);
  if (form == ContentForm::kBase64) return take_base64(in, field, out);
  out = in.raw();
  return std::nullopt;
}

std::string_view content_type_of(ContentForm form) {
  if (form == ContentForm::kJson) return kJsonContentType;
  return form == ContentForm::kText ? kTextContentType : std::string_view();
}

std::string_view write_content(JsonWriter& out, std::string_view name, std::string_view content,
                               std::string_view content_type) {
  if (says_json(content_type) && is_json_value(content)) {
    out.name(name).raw(content);
    return content_type_of(ContentForm::kJson);
  }
  const bool text = core::is_utf8(content);
  const std::string key = std::string(name) + (text ? "_text" : "_base64");
  out.name(key).string(text ? content : core::to_base64(content));
  return content_type_of(text ? ContentForm::kText : ContentForm::kBase64);
}

std::vector<FieldInfo> shown_job_fields() {
  std::vector<FieldInfo> fields;
  for (const JobRow& row : kJobRows) {
    if ((row.marks & kRequestOnly) == 0) fields.push_back(row);
  }
  return fields;
}

void add_job_schemas(Schemas& schemas) {
  schemas.push_back({"Job", object_schema({}, kJobRows)});
  schemas.push_back({"RetryObject", retry_object_schema()});
}

}  // namespace bide::wire
