// RetryPolicy::parse(). The grammar; spaces around parts are ignored:
//
//   policy      = "none" | name [ "(" [ part { "," part } ] ")" ]
//   exponential : [ base [ factor [ cap ] ] ] [ "x" attempts ] [ "jitter=" fraction ]
//   steps       : step { step }               [ "x" attempts ] [ "jitter=" fraction ]
//   fixed       : wait                        [ "x" attempts ] [ "jitter=" fraction ]

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "bide/job.h"
#include "bide/retry_policy.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/retry_decision.h"
#include "core/text.h"

namespace bide {
namespace {

using core::quoted;
using Shape = RetryPolicy::Shape;

constexpr std::string_view kJitter = "jitter=";

// The parts of a policy's text, and those not yet understood.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<RetryPolicy> parse();

 private:
  Error refusal(const std::string& why) const {
    return {ErrorCode::kInvalidArgument, "invalid retry policy " + quoted(text_) + ": " + why};
  }

  Status split(std::string_view inside);
  Status take_jitter(RetryPolicy& policy);
  Status take_attempts(RetryPolicy& policy);
  Status read_wait(std::string_view part, std::string_view what, std::chrono::milliseconds& out) const;
  Status read_number(std::string_view part, std::string_view what, double& out) const;
  Status read_waits(RetryPolicy& policy) const;

  std::string_view text_;
  std::vector<std::string_view> parts_;
  bool attempts_given_ = false;
};

Status Parser::split(std::string_view inside) {
  if (core::trimmed(inside, " ").empty()) return {};
  for (;;) {
    const std::size_t comma = inside.find(',');
    const std::string_view part = core::trimmed(inside.substr(0, comma), " ");
    if (part.empty()) return refusal("part " + std::to_string(parts_.size() + 1) + " in the brackets is empty");
    if (parts_.size() == RetryPolicy::kMaxSteps + 2) {
      return refusal("there are more than " + std::to_string(RetryPolicy::kMaxSteps) + " steps");
    }
    parts_.push_back(part);
    if (comma == std::string_view::npos) return {};
    inside.remove_prefix(comma + 1);
  }
}

Status Parser::read_wait(std::string_view part, std::string_view what, std::chrono::milliseconds& out) const {
  const Result<Milliseconds> wait = core::parse_duration(part);
  if (!wait) return refusal(std::string(what) + ": " + wait.error().message);
  out = *wait;
  return {};
}

Status Parser::read_number(std::string_view part, std::string_view what, double& out) const {
  const std::optional<double> number = core::parse_number(part);
  if (!number) return refusal(std::string(what) + " must be a number, given " + quoted(part));
  out = *number;
  return {};
}

Status Parser::take_jitter(RetryPolicy& policy) {
  if (parts_.empty() || !parts_.back().starts_with(kJitter)) return {};
  const std::string_view number = parts_.back().substr(kJitter.size());
  parts_.pop_back();
  return read_number(number, "jitter", policy.jitter);
}

Status Parser::take_attempts(RetryPolicy& policy) {
  if (parts_.empty() || !parts_.back().starts_with('x')) return {};
  const std::string_view part = parts_.back();
  parts_.pop_back();
  attempts_given_ = true;
  const char* const last = part.data() + part.size();
  const std::from_chars_result end = std::from_chars(part.data() + 1, last, policy.max_attempts);
  if (end.ec == std::errc() && end.ptr == last) return {};
  return refusal("the number of attempts must be x1 to x" + std::to_string(RetryPolicy::kMaxAttemptsLimit) +
                 ", given " + quoted(part));
}

Status Parser::read_waits(RetryPolicy& policy) const {
  const auto too_many = [&](std::string_view form) {
    return refusal("too many parts in the brackets; the form is " + std::string(form));
  };
  switch (policy.shape) {
    case Shape::kNone:
      return parts_.empty() ? Status() : too_many("none, without brackets");
    case Shape::kFixed:
      if (parts_.empty())
        return refusal("the wait is missing; write it in brackets, such as fixed(30s) or fixed(30s,x5)");
      if (parts_.size() > 1) return too_many("fixed(wait,xATTEMPTS), such as fixed(30s,x5)");
      return read_wait(parts_[0], "the wait", policy.wait);
    case Shape::kSteps:
      for (const std::string_view part : parts_) {
        std::chrono::milliseconds wait{};
        Status status = read_wait(part, "step " + std::to_string(policy.waits.size() + 1), wait);
        if (!status) return status;
        policy.waits.push_back(wait);
      }
      if (!attempts_given_) policy.max_attempts = static_cast<std::uint32_t>(policy.waits.size()) + 1;
      return {};
    case Shape::kExponential: {
      if (parts_.size() > 3)
        return too_many("exponential(base,factor,cap,xATTEMPTS), such as exponential(1s,2,1h,x25)");
      Status status;
      if (!parts_.empty()) status = read_wait(parts_[0], "the base", policy.wait);
      if (status && parts_.size() > 1) status = read_number(parts_[1], "the factor", policy.factor);
      if (status && parts_.size() > 2) status = read_wait(parts_[2], "the cap", policy.cap);
      return status;
    }
  }
  return {};
}

Result<RetryPolicy> Parser::parse() {
  const std::string_view text = core::trimmed(text_, " ");
  const std::size_t name_size = std::min(text.find_first_of("(), "), text.size());
  const std::string_view name = text.substr(0, name_size);
  const std::string_view rest = core::trimmed(text.substr(name_size), " ");

  RetryPolicy policy;
  if (name == "exponential") {
    policy = RetryPolicy::exponential();
  } else if (name == "fixed") {
    policy = RetryPolicy::fixed(Milliseconds(0));
  } else if (name == "steps") {
    policy = RetryPolicy::steps({});
  } else if (name == "none") {
    policy = RetryPolicy::none();
  } else if (name.empty()) {
    return refusal("the name is missing" + std::string(core::kRetryPolicyForms));
  } else {
    return refusal("there is no policy " + quoted(name) + std::string(core::kRetryPolicyForms) +
                   core::did_you_mean(name, core::kRetryPolicyNames));
  }

  if (!rest.empty()) {
    const std::size_t close = rest.find(')');
    if (!rest.starts_with('('))
      return refusal("what follows the name must be in brackets" + std::string(core::kRetryPolicyForms));
    if (close == std::string_view::npos) return refusal("the closing bracket is missing");
    if (close + 1 != rest.size()) {
      return refusal("nothing may follow the closing bracket, but there is " + quoted(rest.substr(close + 1)) +
                     std::string(core::kRetryPolicyForms));
    }
    if (policy.shape == Shape::kNone) return refusal("none takes no brackets; write none");
    Status status = split(rest.substr(1, close - 1));
    if (status) status = take_jitter(policy);
    if (status) status = take_attempts(policy);
    if (!status) return status.error();
  }
  const Status status = read_waits(policy);
  if (!status) return status.error();
  const std::string wrong = core::retry_policy_problem(policy);
  if (!wrong.empty()) return refusal(wrong);
  return policy;
}

}  // namespace

Result<RetryPolicy> RetryPolicy::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace bide
