// The retry policy of a job as JSON: its text, or an object.

#include <array>
#include <utility>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "core/retry_policy_rules.h"
#include "wire/job_fields.h"

namespace bide::wire {

namespace {

using Shape = RetryPolicy::Shape;

constexpr auto kNames =
    std::to_array<std::string_view>({"policy", "base", "factor", "cap", "wait", "waits", "max_attempts", "jitter"});

Problem invalid_retry(const std::string& why) { return make_problem("invalid_retry", "retry: " + why, "retry"); }

struct Parts {
  std::string policy;
  std::optional<Milliseconds> base, cap, wait;
  std::optional<double> factor, jitter;
  std::optional<std::int64_t> attempts;
  std::optional<std::vector<Milliseconds>> waits;
};

MaybeProblem take_wait(JsonReader& in, std::string_view name, Milliseconds& out) {
  MaybeProblem problem = take_duration(in, "retry." + std::string(name), out);
  if (problem) problem->code = "invalid_retry";
  return problem;
}

MaybeProblem take_part(JsonReader& in, std::string_view name, Parts& parts) {
  if (name == "policy") return take_text(in, "retry.policy", parts.policy);
  if (name == "base") return take_wait(in, name, parts.base.emplace());
  if (name == "cap") return take_wait(in, name, parts.cap.emplace());
  if (name == "wait") return take_wait(in, name, parts.wait.emplace());
  if (name == "factor") return take_number(in, "retry.factor", parts.factor.emplace());
  if (name == "jitter") return take_number(in, "retry.jitter", parts.jitter.emplace());
  if (name == "max_attempts") {
    MaybeProblem problem =
        take_whole(in, "retry.max_attempts", 1, RetryPolicy::kMaxAttemptsLimit, parts.attempts.emplace());
    if (problem && problem->code == "out_of_range") problem->code = "invalid_retry";
    return problem;
  }
  if (name == "waits") {
    auto& waits = parts.waits.emplace();
    in.array();
    while (in.element()) {
      if (waits.size() > RetryPolicy::kMaxSteps) break;
      if (MaybeProblem problem = take_wait(in, "waits", waits.emplace_back())) return problem;
    }
    if (waits.size() > RetryPolicy::kMaxSteps) {
      return invalid_retry("there are more than " + std::to_string(RetryPolicy::kMaxSteps) + " waits; allowed: 1 to " +
                           std::to_string(RetryPolicy::kMaxSteps));
    }
    return in.ok() ? std::nullopt : wrong_type(in, "retry.waits");
  }
  return unknown_field(name, kNames);
}

MaybeProblem assemble(Parts& parts, RetryPolicy& out) {
  if (parts.policy == "exponential") {
    out = RetryPolicy::exponential();
  } else if (parts.policy == "fixed") {
    out = RetryPolicy::fixed(Milliseconds(0));
    if (!parts.wait) return invalid_retry("fixed needs a wait, such as {\"policy\":\"fixed\",\"wait\":\"30s\"}");
  } else if (parts.policy == "steps") {
    out = RetryPolicy::steps(std::exchange(parts.waits, std::nullopt).value_or(std::vector<Milliseconds>()));
  } else if (parts.policy == "none") {
    out = RetryPolicy::none();
  } else {
    return invalid_retry("there is no policy " + core::quoted(parts.policy) +
                         "; allowed: exponential, steps, fixed, none" +
                         core::did_you_mean(parts.policy, core::kRetryPolicyNames));
  }
  const bool exponential = out.shape == Shape::kExponential;
  const auto useless = [&](std::string_view name) {
    return invalid_retry("the policy " + parts.policy + " has no " + std::string(name) + "; leave it out");
  };
  if (parts.waits) return useless("waits");
  if (parts.base && !exponential) return useless("base");
  if (parts.factor && !exponential) return useless("factor");
  if (parts.cap && !exponential) return useless("cap");
  if (parts.wait && out.shape != Shape::kFixed) return useless("wait");
  if (out.shape == Shape::kNone && parts.jitter) return useless("jitter");
  if (out.shape == Shape::kNone && parts.attempts.value_or(1) != 1) return useless("max_attempts");
  if (parts.base) out.wait = *parts.base;
  if (parts.wait) out.wait = *parts.wait;
  if (parts.factor) out.factor = *parts.factor;
  if (parts.cap) out.cap = *parts.cap;
  if (parts.jitter) out.jitter = *parts.jitter;
  if (parts.attempts) out.max_attempts = static_cast<std::uint32_t>(*parts.attempts);
  const std::string wrong = core::retry_policy_problem(out);
  if (!wrong.empty()) return invalid_retry(wrong);
  return std::nullopt;
}

}  // namespace

MaybeProblem take_retry(JsonReader& in, std::string_view field, RetryPolicy& out) {
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
  if (in.type() != JsonReader::Type::kObject) {
    in.raw();
    if (!in.ok()) return std::nullopt;
    return make_problem("invalid_retry",
                        std::string(field) + " must be the text of a policy" + std::string(core::kRetryPolicyForms) +
                            "; or an object, such as {\"policy\":\"fixed\",\"wait\":\"30s\",\"max_attempts\":5}",
                        std::string(field));
  }
  Parts parts;
  std::uint32_t seen = 0;
  in.object();
  while (const auto name = in.field()) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] != *name) continue;
      if ((seen >> i & 1) != 0) return duplicate_field(*name);
      seen |= 1u << i;
    }
    if (MaybeProblem problem = take_part(in, std::string(*name), parts)) return problem;
  }
  if (!in.ok()) return std::nullopt;
  if (parts.policy.empty()) return invalid_retry("policy is missing; allowed: exponential, steps, fixed, none");
  return assemble(parts, out);
}

}  // namespace bide::wire
