// A job as JSON: the envelope that clients send, and the same fields in every answer that shows a job. The fields are
// the rows of job_rows().
//
//   {"kind":"resize","queue":"images","body":{"width":640},"delay":"10s","retry":"steps(10s,100s,1h)"}

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "core/completion.h"
#include "wire/fields.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"
#include "wire/problem.h"

namespace bide::wire {

using core::header_of;
using core::kCallbackHeader;
using core::kOnDoneHeader;
using core::kReplyQueueHeader;
inline constexpr std::string_view kRequestHeader = "bide-request";  // Digest of the request, with an Idempotency-Key.

inline constexpr std::string_view kJsonContentType = "application/json";
inline constexpr std::string_view kTextContentType = "text/plain; charset=utf-8";

// How the jobs of one request name each other before they have ids: "label":"fetch" in one of them, "after":["#fetch"] or
// "flow":"#fetch" in others.
struct JobLabels {
  std::string label = {};
  std::vector<std::string> after = {};  // Without the #.
  std::string flow = {};

  bool empty() const { return label.empty() && after.empty() && flow.empty(); }
};

// Reads one job and checks it by core's rules. Faults of the JSON itself stay in the reader; anything else is the
// problem, and then the reader stands in the middle of the object. Without `queue` in the JSON, a job with a callback
// goes to `callback_queue`, if there is one, and any other to the queue it came with. Without `labels`, one is a problem.
std::optional<Problem> read_job(JsonReader& in, Time now, Job& job, std::string_view callback_queue = {},
                                JobLabels* labels = nullptr);

// Nothing is wrong with these, but hardly anybody means them.
std::vector<std::string> warnings_of(const Job& job, Time now);

enum class Detail {
  kEnvelope,  // For a request: what is as it would be anyway is left out. Reading it gives the same job, byte for byte.
  kShown,     // For an answer: always the same fields. Not delay and due: when the job is due now is for the caller to
              // say.
};

// The fields of a job, within an object that is the caller's. A job without a body has no body field at all.
void write_fields(JsonWriter& out, const Job& job, Detail detail);
void write(JsonWriter& out, const Job& job);  // An envelope.

// ---- The table.

struct JobView {
  const Job& job;
  Detail detail;
  bool shown() const { return detail == Detail::kShown; }
};

struct JobDraft {
  Job& job;
  bool has_content_type = false;
  Headers reserved = {};  // From callback, on_done, reply_queue.
  JobLabels* labels = nullptr;
};

// Marks.
inline constexpr unsigned kRequestOnly = 1;  // Not in answers.
inline constexpr unsigned kEditable = 2;     // Can be changed while the job waits or is dead.

using JobRow = Field<JobView, JobDraft>;
std::span<const JobRow> job_rows();
std::vector<FieldInfo> shown_job_fields();  // Those that may be in an answer.

// An object of an answer that has rows of its own and the fields of a job.
template <class W, class R>
void read_answer_with_job(JsonReader& in, std::span<const Field<W, R>> rows, R& target) {
  FieldReader<W, R> own(rows);
  FieldReader<JobView, JobDraft> fields(job_rows());
  JobDraft draft{target.job};
  in.object();
  while (const auto name = in.field()) {
    if (own.find(*name) != nullptr) {
      read_answer_field(in, own, *name, target);
    } else {
      read_answer_field(in, fields, *name, draft);
    }
  }
}

// ---- Bytes with a content type, under `name`, name_text or name_base64.

enum class ContentForm : std::uint8_t { kJson, kText, kBase64 };
MaybeProblem take_content(JsonReader& in, std::string_view field, ContentForm form, std::string& out);
std::string_view content_type_of(ContentForm form);

// JSON as it is where the type says JSON and it is valid, otherwise text where it is UTF-8. Returns what the type is by
// this when nobody says.
std::string_view write_content(JsonWriter& out, std::string_view name, std::string_view content,
                               std::string_view content_type);

// ---- Headers: an object, or pairs where a name comes twice.

MaybeProblem take_headers(JsonReader& in, std::string_view field, Headers& out);

// ---- Retry policies: the text of one, or an object.

MaybeProblem take_retry(JsonReader& in, std::string_view field, RetryPolicy& out);
std::string retry_object_schema();

}  // namespace bide::wire
