// The retry policy of a job as JSON: its text, or an object.

#include <array>
#include <utility>

#include "core/retry_decision.h"
#include "wire/job_json.h"

namespace bide::wire {

namespace {

using Shape = RetryPolicy::Shape;

Problem invalid_retry(const std::string& why) { return make_problem("invalid_retry", "retry: " + why, "retry"); }

struct RetryParts {
  Shape shape = Shape::kNone;
  Milliseconds base{0}, cap{0}, wait{0};
  double factor = 0, jitter = 0;
  std::uint32_t max_attempts = 1;
  std::vector<Milliseconds> waits = {};
};

using RetryRow = Field<RetryParts>;

MaybeProblem take_wait(JsonReader& in, const RetryRow& row, Milliseconds& out) {
  MaybeProblem problem = take_duration(in, "retry." + std::string(row.name), out);
  if (problem) problem->code = "invalid_retry";
  return problem;
}

template <auto kMember>
MaybeProblem read_wait(JsonReader& in, const RetryRow& row, RetryParts& parts) {
  return take_wait(in, row, parts.*kMember);
}

template <auto kMember>
MaybeProblem read_number(JsonReader& in, const RetryRow& row, RetryParts& parts) {
  return take_number(in, "retry." + std::string(row.name), parts.*kMember);
}

MaybeProblem read_policy(JsonReader& in, const RetryRow&, RetryParts& parts) {
  std::size_t index = 0;
  MaybeProblem problem = take_one_of(in, "retry.policy", core::kRetryPolicyNames, index);
  if (problem && problem->code == "invalid_argument") problem->code = "invalid_retry";
  parts.shape = static_cast<Shape>(index);
  return problem;
}

MaybeProblem read_max_attempts(JsonReader& in, const RetryRow& row, RetryParts& parts) {
  MaybeProblem problem = take_integer(in, "retry.max_attempts", static_cast<std::uint32_t>(row.least),
                                      static_cast<std::uint32_t>(row.most), parts.max_attempts);
  if (problem && problem->code == "out_of_range") problem->code = "invalid_retry";
  return problem;
}

MaybeProblem read_waits(JsonReader& in, const RetryRow& row, RetryParts& parts) {
  in.array();
  while (in.element()) {
    if (parts.waits.size() == RetryPolicy::kMaxSteps) {
      const std::string most = std::to_string(RetryPolicy::kMaxSteps);
      return invalid_retry("there are more than " + most + " waits; allowed: 1 to " + most);
    }
    if (MaybeProblem problem = take_wait(in, row, parts.waits.emplace_back())) return problem;
  }
  return wrong_type(in, "retry.waits");
}

constexpr unsigned shapes(auto... each) { return ((1u << static_cast<unsigned>(each)) | ...); }
constexpr unsigned kRetrying = shapes(Shape::kFixed, Shape::kSteps, Shape::kExponential);

// Marked with the policies that have it.
constexpr auto kRetryRows = std::to_array<RetryRow>({
    row("policy", {.names = [] { return Names(core::kRetryPolicyNames.rbegin(), core::kRetryPolicyNames.rend()); }},
        read_policy)
        .marked(kRetrying | shapes(Shape::kNone))
        .always(),
    row("base", ref("Duration"), read_wait<&RetryParts::base>).marked(shapes(Shape::kExponential)),
    row("factor", {.type = "number"}, read_number<&RetryParts::factor>)
        .marked(shapes(Shape::kExponential))
        .within(1, 100),
    row("cap", ref("Duration"), read_wait<&RetryParts::cap>).marked(shapes(Shape::kExponential)),
    row("wait", ref("Duration"), read_wait<&RetryParts::wait>).marked(shapes(Shape::kFixed)),
    row("waits", list_of(ref("Duration")), read_waits).marked(shapes(Shape::kSteps)).within(1, RetryPolicy::kMaxSteps),
    row("max_attempts", kIntegerType, read_max_attempts).marked(kRetrying).within(1, RetryPolicy::kMaxAttemptsLimit),
    row("jitter", {.type = "number"}, read_number<&RetryParts::jitter>).marked(kRetrying).within(0, 1),
});

MaybeProblem read_policy_object(JsonReader& in, RetryPolicy& out) {
  RetryParts parts;
  FieldReader<RetryParts> fields(kRetryRows);
  if (MaybeProblem problem = read_fields(in, fields, parts)) return problem;
  if (!in.ok()) return std::nullopt;
  if (!fields.has("policy")) return invalid_retry("policy is missing; allowed: exponential, steps, fixed, none");
  const std::string policy(core::kRetryPolicyNames[static_cast<std::size_t>(parts.shape)]);
  for (const RetryRow& each : kRetryRows) {
    // One attempt is what `none` means; saying so is harmless.
    const bool harmless = each.name == "max_attempts" && parts.max_attempts == 1;
    if (fields.has(each) && (each.marks & shapes(parts.shape)) == 0 && !harmless) {
      return invalid_retry("the policy " + policy + " has no " + std::string(each.name) + "; leave it out");
    }
  }
  switch (parts.shape) {
    case Shape::kNone:
      out = RetryPolicy::none();
      break;
    case Shape::kFixed:
      if (!fields.has("wait")) {
        return invalid_retry("fixed needs a wait, such as {\"policy\":\"fixed\",\"wait\":\"30s\"}");
      }
      out = RetryPolicy::fixed(parts.wait);
      break;
    case Shape::kSteps:
      out = RetryPolicy::steps(std::move(parts.waits));
      break;
    case Shape::kExponential:
      out = RetryPolicy::exponential();
      break;
  }
  if (fields.has("base")) out.wait = parts.base;
  if (fields.has("factor")) out.factor = parts.factor;
  if (fields.has("cap")) out.cap = parts.cap;
  if (fields.has("jitter")) out.jitter = parts.jitter;
  if (fields.has("max_attempts")) out.max_attempts = parts.max_attempts;
  const std::string wrong = core::retry_policy_problem(out);
  if (!wrong.empty()) return invalid_retry(wrong);
  return std::nullopt;
}

}  // namespace

MaybeProblem take_retry(JsonReader& in, std::string_view field, RetryPolicy& out) {
  if (in.type() == JsonReader::Type::kObject) return read_policy_object(in, out);
  if (in.type() == JsonReader::Type::kString) {
    const std::string_view text = in.string();
    if (!in.ok()) return std::nullopt;
    // Whoever sends many jobs sends the same policy with all of them.
    thread_local std::string last_text;
    thread_local RetryPolicy last;
    if (text != last_text || text.empty()) {
      auto policy = RetryPolicy::parse(text);
      if (!policy) return invalid_retry(policy.error().message);
      last = std::move(*policy);
      last_text = text;
    }
    out = last;
    return std::nullopt;
  }
  in.raw();
  if (!in.ok()) return std::nullopt;
  return make_problem("invalid_retry",
                      std::string(field) + " must be the text of a policy" + std::string(core::kRetryPolicyForms) +
                          "; or an object, such as {\"policy\":\"fixed\",\"wait\":\"30s\",\"max_attempts\":5}",
                      std::string(field));
}

std::string retry_object_schema() { return object_schema({}, kRetryRows); }

}  // namespace bide::wire
