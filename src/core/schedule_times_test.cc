#include "core/schedule_times.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/time_text.h"
#include "support/zone_table.h"

namespace bide::core {
namespace {

using namespace std::chrono_literals;

Time at(std::string_view text) { return parse_time(text).value(); }

std::vector<std::string> texts(const Result<std::vector<Time>>& times) {
  std::vector<std::string> found;
  EXPECT_TRUE(times);
  if (times) {
    for (const Time time : *times) found.push_back(format_time(time));
  }
  return found;
}

TEST(ScheduleTimes, AreToldInWords) {
  EXPECT_EQ(describe({.cron = "30 7 * * mon-fri", .zone = "Europe/Berlin"}),
            "at 07:30, on Monday to Friday (Europe/Berlin)");
  EXPECT_EQ(describe({.every = 15min}), "every 15m");
  EXPECT_EQ(describe({.cron = "what is this"}), "what is this (UTC)");
}

TEST(ScheduleTimes, OfACronExpressionFollowTheClockOfItsZone) {
  TimeZones zones(support::zone_table());
  const Schedule schedule{.cron = "30 7 * * *", .zone = "Europe/Berlin"};
  EXPECT_EQ(texts(next_times(schedule, {}, at("2026-03-28T00:00:00Z"), 3, zones)),
            (std::vector<std::string>{"2026-03-28T06:30:00.000Z", "2026-03-29T05:30:00.000Z", "2026-03-30T05:30:00.000Z"}));
  EXPECT_EQ(local_text(at("2026-03-28T06:30:00Z"), "Europe/Berlin", zones).value(), "Sat 2026-03-28 07:30:00");
  EXPECT_EQ(local_text(at("2026-03-29T05:30:00Z"), "Europe/Berlin", zones).value(), "Sun 2026-03-29 07:30:00");
  EXPECT_FALSE(local_text(at("2026-03-29T05:30:00Z"), "Europe/Berlim", zones));
  EXPECT_FALSE(next_times({.cron = "30 7 * *"}, {}, at("2026-03-28T00:00:00Z"), 1, zones));
}

TEST(ScheduleTimes, BeginWithTheOneThatTheBrokerHasNamed) {
  TimeZones zones(support::zone_table());
  const Time next = at("2026-01-01T00:07:00Z");
  EXPECT_EQ(texts(next_times({.every = 15min}, next, next - 1min, 2, zones)),
            (std::vector<std::string>{"2026-01-01T00:07:00.000Z", "2026-01-01T00:22:00.000Z"}));
  EXPECT_EQ(texts(next_times({.cron = "@hourly"}, at("2026-01-01T01:00:00Z"), at("2025-01-01T00:00:00Z"), 2, zones)),
            (std::vector<std::string>{"2026-01-01T01:00:00.000Z", "2026-01-01T02:00:00.000Z"}));
  // Nobody has: from now on.
  EXPECT_EQ(texts(next_times({.every = 15min}, {}, next, 1, zones)), (std::vector<std::string>{"2026-01-01T00:22:00.000Z"}));
}

}  // namespace
}  // namespace bide::core
