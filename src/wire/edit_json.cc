#include "wire/edit_json.h"

#include <utility>
#include <vector>

#include "core/job_rules.h"
#include "wire/fields.h"
#include "wire/job_json.h"

namespace bide::wire {

namespace {

std::span<const JobRow> edit_rows() {
  static const std::vector<JobRow> rows = [] {
    std::vector<JobRow> editable;
    for (const JobRow& row : job_rows()) {
      if ((row.marks & kEditable) == 0) continue;
      editable.push_back(row);
      editable.back().usual = {};  // What is not given stays.
    }
    return editable;
  }();
  return rows;
}

}  // namespace

std::optional<Problem> read_edit(std::string_view body, Time now, JobEdit& edit) {
  Job job{.kind = "any"};
  JobDraft draft{.job = job};
  FieldReader<JobView, JobDraft> fields(edit_rows());
  if (MaybeProblem problem = read_request(body, "what is to be different: {\"priority\":5} or {\"delay\":\"10m\"}", fields, draft)) {
    return problem;
  }
  if (MaybeProblem problem = problem_of(core::find_problem(job, now))) return problem;
  const auto take = [&](auto& to, auto& from, auto... names) {
    if ((fields.has(names) || ...)) to = std::move(from);
  };
  take(edit.body, job.body, "body", "body_text", "body_base64");
  take(edit.content_type, job.content_type, "content_type");
  take(edit.headers, job.headers, "headers", "headers_base64");
  take(edit.queue, job.queue, "queue");
  take(edit.priority, job.priority, "priority");
  take(edit.retry, job.retry, "retry");
  take(edit.time_limit, job.time_limit, "time_limit", "time_limit_ms");
  take(edit.due, job.due, "due");
  if (fields.has("delay") || fields.has("delay_ms")) edit.due = now + job.delay;
  if (!is_empty(edit)) return std::nullopt;
  return make_problem("missing_field", "nothing is to be different; give due, delay, body, headers, queue, priority, retry or time_limit", "due");
}

std::string edit_json(const JobEdit& edit) {
  const Job job = edited(edit);
  const auto write_edit = [&](JsonWriter& out) {
    const auto write_row = [&](std::string_view name) {
      for (const JobRow& row : edit_rows()) {
        if (row.name == name) row.write(out, row, JobView{job, Detail::kShown});
      }
    };
    if (edit.body) write_content(out, "body", *edit.body, "");
    if (edit.content_type) out.field("content_type", *edit.content_type);
    if (edit.headers) write_row("headers");
    if (edit.queue) write_row("queue");
    if (edit.priority) write_row("priority");
    if (edit.retry) write_row("retry");
    if (edit.time_limit) write_row("time_limit_ms");
    if (edit.due) out.field("due", *edit.due);
  };
  return object_text(write_edit, job.body.size() + 100);
}

bool is_empty(const JobEdit& edit) {
  return !edit.body && !edit.content_type && !edit.headers && !edit.queue && !edit.priority && !edit.retry &&
         !edit.time_limit && !edit.due;
}

bool is_reschedule(const JobEdit& edit) {
  JobEdit others = edit;
  others.due.reset();
  return edit.due && is_empty(others);
}

Job edited(const JobEdit& edit) {
  Job job{.kind = "any"};
  const auto put = [](auto& to, const auto& from) {
    if (from) to = *from;
  };
  put(job.body, edit.body);
  put(job.content_type, edit.content_type);
  put(job.headers, edit.headers);
  put(job.queue, edit.queue);
  put(job.priority, edit.priority);
  put(job.retry, edit.retry);
  put(job.time_limit, edit.time_limit);
  put(job.due, edit.due);
  return job;
}

void add_edit_schemas(Schemas& schemas) {
  schemas.push_back({"JobEdit", object_schema({.text = "What is to be different."}, edit_rows())});
}

}  // namespace bide::wire
