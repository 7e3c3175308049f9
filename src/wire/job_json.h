// A job as JSON: the envelope that clients send, and the same fields in every answer that shows a job.
//
//   {"kind":"resize","queue":"images","body":{"width":640},"delay":"10s","retry":"steps(10s,100s,1h)"}
//
//   id               a UUID; enqueuing it again is harmless
//   kind, queue      names
//   body             any JSON, kept byte for byte; content type application/json
//   body_text        a string; text/plain; charset=utf-8
//   body_base64      bytes; application/octet-stream
//   content_type     of the body, when it is another
//   headers          {"name":"value"}, or [["name","value"]] where a name comes twice; headers_base64: pairs of bytes
//   delay, delay_ms  text with a unit, or a whole number of milliseconds
//   due, expires     RFC 3339, with a zone
//   time_limit, time_limit_ms, priority, unique_key
//   retry            the text of a policy, or {"policy":"steps","waits":["10s","1m"],"max_attempts":5,"jitter":0.2},
//                    {"policy":"exponential","base":"1s","factor":2,"cap":"1h"}, {"policy":"fixed","wait":"30s"}
//   callback, on_done, reply_queue   headers bide-callback, bide-on-done, bide-reply-queue

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "core/completion.h"
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

// Reads one job and checks it by core's rules. Faults of the JSON itself stay in the reader; anything else is the
// problem, and then the reader stands in the middle of the object. Without `queue` in the JSON, a job with a callback
// goes to `callback_queue`, if there is one, and any other to the queue it came with.
std::optional<Problem> read_job(JsonReader& in, Time now, Job& job, std::string_view callback_queue = {});

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

// Bytes with a content type, under `name`, name_text or name_base64: JSON as it is where the type says JSON and it is
// valid, otherwise text where it is UTF-8. What the type is by this when nobody says.
std::string_view write_content(JsonWriter& out, std::string_view name, std::string_view content,
                               std::string_view content_type);

}  // namespace bide::wire
