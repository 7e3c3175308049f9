// JobFields: reads the fields of a job one by one, wherever they stand: in an envelope, in a lease, in an answer about
// a job.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "wire/json_reader.h"
#include "wire/take_values.h"

namespace bide::wire {

// The names of all fields.
std::span<const std::string_view> job_field_names();

class JobFields {
 public:
  explicit JobFields(Job& job) : job_(job) {}

  // Takes the value of the field, if it is one of a job's; `known` says whether it was.
  MaybeProblem take(JsonReader& in, std::string_view name, bool& known);
  bool has(std::string_view name) const;  // Whether it was given, so far.
  // When all have been taken: what they come to together.
  MaybeProblem finish();

 private:
  friend struct JobFieldTable;

  Job& job_;
  std::uint32_t seen_ = 0;           // Bits by place in the table.
  std::string_view body_form_ = {};  // Which of the fields gave the body.
  bool content_type_given_ = false;
  Headers reserved_ = {};  // From callback, on_done, reply_queue.
};

// Bytes as one of name, name_text, name_base64.
enum class ContentForm : std::uint8_t { kJson, kText, kBase64 };
MaybeProblem take_content(JsonReader& in, std::string_view field, ContentForm form, std::string& out);
std::string_view content_type_of(ContentForm form);

// The text of a policy, or an object.
MaybeProblem take_retry(JsonReader& in, std::string_view field, RetryPolicy& out);

}  // namespace bide::wire
