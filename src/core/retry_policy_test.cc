#include "bide/retry_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace bide {
namespace {

using namespace std::chrono_literals;
using Shape = RetryPolicy::Shape;

RetryPolicy parsed(std::string_view text) {
  const Result<RetryPolicy> policy = RetryPolicy::parse(text);
  EXPECT_TRUE(policy) << policy.error().message;
  return policy ? *policy : RetryPolicy();
}

std::string refused(std::string_view text) {
  const Result<RetryPolicy> policy = RetryPolicy::parse(text);
  EXPECT_FALSE(policy) << text;
  if (policy) return {};
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(policy.error().message.starts_with("invalid retry policy '")) << policy.error().message;
  return policy.error().message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

RetryPolicy with_jitter(RetryPolicy policy, double jitter) {
  policy.jitter = jitter;
  return policy;
}

TEST(RetryPolicyText, EveryFormOfTheHeaderIsParsedAndPrintedTheSame) {
  EXPECT_EQ(parsed("exponential(1s,2,1h,x25)"), RetryPolicy::exponential(1s, 2, 1h, 25));
  EXPECT_EQ(parsed("steps(10s,100s,1h,2h,10h)"), RetryPolicy::steps({10s, 100s, 1h, 2h, 10h}));
  EXPECT_EQ(parsed("fixed(30s,x5)"), RetryPolicy::fixed(30s, 5));
  EXPECT_EQ(parsed("none"), RetryPolicy::none());
  EXPECT_EQ(parsed("exponential(1s,2,1h,x25,jitter=0.2)"), with_jitter(RetryPolicy::exponential(), 0.2));
  for (const char* text : {"exponential(1s,2,1h,x25)", "steps(10s,100s,1h,2h,10h)", "fixed(30s,x5)", "none",
                           "exponential(250ms,1.5,1d,x10000,jitter=0.25)", "steps(10s,x7,jitter=1)"}) {
    EXPECT_EQ(parsed(text).to_string(), text);
  }
}

TEST(RetryPolicyText, PartsAtTheEndMayBeLeftOut) {
  EXPECT_EQ(parsed("exponential"), RetryPolicy());
  EXPECT_EQ(parsed("exponential()"), RetryPolicy());
  EXPECT_EQ(parsed("exponential(5s)"), RetryPolicy::exponential(5s));
  EXPECT_EQ(parsed("exponential(5s,3)"), RetryPolicy::exponential(5s, 3));
  EXPECT_EQ(parsed("exponential(5s,3,2h)"), RetryPolicy::exponential(5s, 3, 2h));
  EXPECT_EQ(parsed("exponential(5s,x3)"), RetryPolicy::exponential(5s, 2, 1h, 3));
  EXPECT_EQ(parsed("exponential(x3)"), RetryPolicy::exponential(1s, 2, 1h, 3));
  EXPECT_EQ(parsed("exponential(jitter=0.5)"), with_jitter(RetryPolicy(), 0.5));
  EXPECT_EQ(parsed("fixed(30s)"), RetryPolicy::fixed(30s));
  EXPECT_EQ(parsed("fixed(30s,jitter=0.1)"), with_jitter(RetryPolicy::fixed(30s), 0.1));
}

TEST(RetryPolicyText, SpacesAroundPartsAreIgnored) {
  EXPECT_EQ(parsed(" exponential ( 5s , 3, x4 ) "), RetryPolicy::exponential(5s, 3, 1h, 4));
}

TEST(RetryPolicyText, StepsGiveOneAttemptMoreUnlessToldOtherwise) {
  EXPECT_EQ(parsed("steps(10s,1m)").max_attempts, 3u);
  EXPECT_EQ(parsed("steps(10s,1m,x9)").max_attempts, 9u);
  EXPECT_EQ(parsed("steps(10s,1m,x2)").max_attempts, 2u);
  EXPECT_EQ(parsed("steps(10s,1m,x3)").to_string(), "steps(10s,1m)");
}

TEST(RetryPolicyText, AnUnknownNameIsAnsweredWithThoseAllowed) {
  EXPECT_EQ(refused("exponental(1s)"),
            "invalid retry policy 'exponental(1s)': there is no policy 'exponental'; allowed: "
            "exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5) or none; all but none may end in jitter, such "
            "as fixed(30s,x5,jitter=0.2); did you mean 'exponential'?");
  EXPECT_TRUE(contains(refused("sometimes"), "there is no policy 'sometimes'; allowed: exponential("));
  EXPECT_TRUE(contains(refused(""), "the name is missing"));
  EXPECT_TRUE(contains(refused("(1s)"), "the name is missing"));
}

TEST(RetryPolicyText, BracketsMustMatch) {
  EXPECT_TRUE(contains(refused("fixed(30s"), "the closing bracket is missing"));
  EXPECT_TRUE(contains(refused("fixed 30s"), "must be in brackets"));
  EXPECT_TRUE(contains(refused("exponential,jitter=0.2"), "must be in brackets"));
  EXPECT_TRUE(contains(refused("fixed(30s),jitter=0.2"), "nothing may follow the closing bracket"));
  EXPECT_TRUE(contains(refused("fixed(30s))"), "nothing may follow the closing bracket, but there is ')'"));
  EXPECT_TRUE(contains(refused("none()"), "none takes no brackets"));
  EXPECT_TRUE(contains(refused("none(x3)"), "none takes no brackets"));
}

TEST(RetryPolicyText, TheErrorNamesThePartAndItsRange) {
  EXPECT_TRUE(contains(refused("fixed"), "the wait is missing; write it in brackets, such as fixed(30s)"));
  EXPECT_TRUE(contains(refused("fixed(x3)"), "the wait is missing"));
  EXPECT_TRUE(contains(refused("fixed(5 parsecs)"), "the wait: invalid duration '5 parsecs'"));
  EXPECT_TRUE(contains(refused("fixed(30s,40s)"), "too many parts"));
  EXPECT_TRUE(contains(refused("fixed(30s,,x4)"), "part 2 in the brackets is empty"));
  EXPECT_TRUE(contains(refused("fixed(30s,)"), "part 2 in the brackets is empty"));
  EXPECT_TRUE(contains(refused("steps"), "there are no steps; give 1 to 100"));
  EXPECT_TRUE(contains(refused("steps()"), "there are no steps"));
  EXPECT_TRUE(contains(refused("steps(10s,-5s)"), "step 2: invalid duration '-5s': it must not be negative"));
  EXPECT_TRUE(contains(refused("exponential(1s,-2)"), "the factor is -2; allowed: 1 to 100"));
  EXPECT_TRUE(contains(refused("exponential(1s,nan)"), "the factor is nan; allowed: 1 to 100"));
  EXPECT_TRUE(contains(refused("exponential(1s,inf)"), "the factor is inf; allowed: 1 to 100"));
  EXPECT_TRUE(contains(refused("exponential(1s,1e999)"), "the factor must be a number, given '1e999'"));
  EXPECT_TRUE(contains(refused("exponential(1s,two)"), "the factor must be a number, given 'two'"));
  EXPECT_TRUE(contains(refused("exponential(1s,2,200y)"), "the cap: invalid duration '200y'"));
  EXPECT_TRUE(contains(refused("exponential(1s,2,6000w)"), "the cap is 6000w; allowed: 0 to 36500d"));
  EXPECT_TRUE(contains(refused("exponential(2h)"), "the cap of 1h is shorter than the base of 2h; give a cap"));
  EXPECT_TRUE(contains(refused("exponential(1s,2,1h,4,x5)"), "too many parts"));
  EXPECT_TRUE(contains(refused("fixed(30s,x0)"), "max_attempts is 0; allowed: 1 to 10000"));
  EXPECT_TRUE(contains(refused("fixed(30s,x1000000000)"), "max_attempts is 1000000000; allowed: 1 to 10000"));
  EXPECT_TRUE(contains(refused("fixed(30s,x99999999999)"), "must be x1 to x10000, given 'x99999999999'"));
  EXPECT_TRUE(contains(refused("fixed(30s,x-1)"), "must be x1 to x10000, given 'x-1'"));
  EXPECT_TRUE(contains(refused("fixed(30s,x)"), "must be x1 to x10000, given 'x'"));
  EXPECT_TRUE(contains(refused("fixed(30s,jitter=1.5)"), "jitter is 1.5; allowed: 0 to 1"));
  EXPECT_TRUE(contains(refused("fixed(30s,jitter=)"), "jitter must be a number, given ''"));
}

TEST(RetryPolicyText, AHundredStepsAreAllowedAndNotOneMore) {
  std::string text = "steps(1s";
  for (int i = 1; i < 100; ++i) text += ",1s";
  EXPECT_EQ(parsed(text + ",x200,jitter=0.5)").waits.size(), 100u);
  EXPECT_TRUE(contains(refused(text + ",1s)"), "101 steps; allowed: 1 to 100"));
  for (int i = 0; i < 100'000; ++i) text += ",1s";
  EXPECT_TRUE(contains(refused(text + ")"), "more than 100 steps"));
}

TEST(RetryPolicyRules, ThePoliciesOfTheFactoriesAreValid) {
  for (const RetryPolicy& policy : {RetryPolicy(), RetryPolicy::exponential(), RetryPolicy::steps({10s, 1h}),
                                    RetryPolicy::fixed(0s, 1), RetryPolicy::none()}) {
    EXPECT_TRUE(policy.validate()) << policy.to_string();
  }
}

TEST(RetryPolicyRules, AFieldOutOfRangeIsNamedWithItsRange) {
  const auto message = [](const RetryPolicy& policy) {
    const Status status = policy.validate();
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message(RetryPolicy::fixed(1s, 0)), "invalid retry policy: max_attempts is 0; allowed: 1 to 10000");
  EXPECT_TRUE(contains(message(RetryPolicy::fixed(-1s)), "the wait is -1s; allowed: 0 to 36500d (100 years)"));
  EXPECT_TRUE(contains(message(RetryPolicy::steps({})), "there are no steps"));
  EXPECT_TRUE(contains(message(RetryPolicy::steps({1s, std::chrono::milliseconds::max()})), "step 2 is "));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(contains(message(RetryPolicy::exponential(1s, nan)), "the factor is nan"));
  EXPECT_TRUE(contains(message(with_jitter(RetryPolicy::fixed(1s), nan)), "jitter is nan"));

  RetryPolicy half_none;
  half_none.shape = Shape::kNone;
  EXPECT_TRUE(contains(message(half_none), "RetryPolicy::none()"));
  RetryPolicy fixed_with_factor = RetryPolicy::fixed(1s);
  fixed_with_factor.factor = 3;
  EXPECT_TRUE(contains(message(fixed_with_factor), "fixed has no factor; leave it at 2"));
  RetryPolicy with_steps;
  with_steps.waits = {1s};
  EXPECT_TRUE(contains(message(with_steps), "exponential has no steps; leave them empty"));
  RetryPolicy with_wait = RetryPolicy::steps({1s});
  with_wait.wait = 2s;
  EXPECT_TRUE(contains(message(with_wait), "steps has no single wait; leave it at 1s"));
  RetryPolicy from_elsewhere;
  from_elsewhere.shape = static_cast<Shape>(77);
  EXPECT_TRUE(contains(message(from_elsewhere), "the shape is unknown"));
}

TEST(RetryPolicyRules, PrintingAnInvalidPolicyIsHarmless) {
  EXPECT_EQ(RetryPolicy::steps({}).to_string(), "steps()");
}

std::chrono::milliseconds any_wait() {
  constexpr std::int64_t kHundredYears = 100ll * 365 * 24 * 60 * 60 * 1000;
  return std::chrono::milliseconds(*rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 100'000),
                                                   rc::gen::inRange<std::int64_t>(0, kHundredYears + 1)));
}

// In [0, 1], with all the digits a double can have.
double any_fraction() {
  return static_cast<double>(*rc::gen::inRange<std::uint64_t>(0, (1ull << 53) + 1)) / static_cast<double>(1ull << 53);
}

RC_GTEST_PROP(RetryPolicyProperty, EveryValidPolicyParsesBackExactly, ()) {
  RetryPolicy policy;
  const auto attempts = *rc::gen::inRange<std::uint32_t>(1, RetryPolicy::kMaxAttemptsLimit + 1);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      policy = RetryPolicy::none();
      break;
    case 1:
      policy = RetryPolicy::fixed(any_wait(), attempts);
      break;
    case 2: {
      std::vector<std::chrono::milliseconds> steps(*rc::gen::inRange<std::size_t>(1, RetryPolicy::kMaxSteps + 1));
      for (auto& step : steps) step = any_wait();
      policy = RetryPolicy::steps(steps);
      if (*rc::gen::arbitrary<bool>()) policy.max_attempts = attempts;
      break;
    }
    default: {
      const auto base = any_wait();
      policy = RetryPolicy::exponential(base, 1 + 99 * any_fraction(), std::max(base, any_wait()), attempts);
    }
  }
  if (policy.shape != Shape::kNone && *rc::gen::arbitrary<bool>()) policy.jitter = any_fraction();

  RC_ASSERT(policy.validate().has_value());
  const Result<RetryPolicy> again = RetryPolicy::parse(policy.to_string());
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == policy);
}

RC_GTEST_PROP(RetryPolicyProperty, AnyTextIsAValidPolicyOrAnErrorOfOneLine, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "exponential", "steps", "fixed", "none", "(", ")", ",", "x", "jitter=", "1s", "2", "0.5", "-", "1h", " ", "\n"));
  std::string text;
  for (const std::string& word : words) text += word;
  const Result<RetryPolicy> policy = RetryPolicy::parse(text);
  if (policy) {
    RC_ASSERT(policy->validate().has_value());
  } else {
    RC_ASSERT(policy.error().message.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace bide
