#include "core/rate_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace bide::core {
namespace {

using namespace std::chrono_literals;

RateLimit parsed(std::string_view text) {
  const Result<RateLimit> rate = parse_rate(text);
  EXPECT_TRUE(rate) << rate.error().message;
  return rate ? *rate : RateLimit();
}

TEST(RateText, ParsesACountForAPeriodOrForAUnit) {
  EXPECT_EQ(parsed("10/s"), (RateLimit{.count = 10, .period = 1s, .burst = 1}));
  EXPECT_EQ(parsed("100/1m"), (RateLimit{.count = 100, .period = 1min, .burst = 1}));
  EXPECT_EQ(parsed(" 3 / 1h30m "), (RateLimit{.count = 3, .period = 90min, .burst = 1}));
  EXPECT_EQ(parsed("10/s,burst=20"), (RateLimit{.count = 10, .period = 1s, .burst = 20}));
  EXPECT_EQ(parsed("10/s, burst=20"), (RateLimit{.count = 10, .period = 1s, .burst = 20}));
  EXPECT_EQ(parsed("4294967295/ms").count, 4294967295u);
}

TEST(RateText, RefusesWhatIsNoRateAndSaysWhatIs) {
  for (const char* text : {"", "10", "10/", "/s", "0/s", "-1/s", "1.5/s", "10/0s", "10/parsec", "10/5", "10/s,", "10/s,20",
                           "10/s,burst=0", "10/s,burst=x", "10/s,burst=1,burst=2", "4294967296/s", "10/s/s"}) {
    const Result<RateLimit> rate = parse_rate(text);
    ASSERT_FALSE(rate) << text;
    EXPECT_EQ(rate.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(rate.error().message.find("invalid rate '" + std::string(text) + "'"), std::string::npos) << text;
    EXPECT_NE(rate.error().message.find("10/s,burst=20"), std::string::npos) << text;
  }
}

TEST(RateText, IsWrittenShort) {
  EXPECT_EQ(format_rate({.count = 10, .period = 1s}), "10/s");
  EXPECT_EQ(format_rate({.count = 10, .period = 10s}), "10/10s");
  EXPECT_EQ(format_rate({.count = 10, .period = 24h, .burst = 5}), "10/d,burst=5");
  EXPECT_EQ(format_rate({.count = 10, .period = 1500ms}), "10/1500ms");
  EXPECT_EQ(format_rate({}), "none");
}

RC_GTEST_PROP(RateText, ParsesBackToTheSame, ()) {
  const RateLimit rate{.count = *rc::gen::inRange<std::uint32_t>(1, UINT32_MAX),
                       .period = Milliseconds(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000)),
                       .burst = *rc::gen::inRange<std::uint32_t>(1, UINT32_MAX)};
  RC_ASSERT(parse_rate(format_rate(rate)).value() == rate);
}

}  // namespace
}  // namespace bide::core
