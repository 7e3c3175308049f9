#include "core/time_zones.h"

#include <gtest/gtest.h>

#include <string>

#include "core/time_text.h"
#include "support/zone_table.h"

namespace bide::core {
namespace {

sys_seconds moment(std::string_view text) {
  return std::chrono::floor<std::chrono::seconds>(parse_time(text).value_or(Time()));
}

// What the clock of the zone shows, as if it were UTC.
std::string shown(std::string_view rule, std::string_view at) {
  const auto zone = TimeZone::parse(support::tzif_of(rule));
  if (!zone) return zone.error().message;
  return format_time(Time(zone->local(moment(at)).time_since_epoch())).substr(0, 16);
}

TEST(TimeZone, FollowsTheRuleInTheFooter) {
  EXPECT_EQ(shown(support::kBerlin, "2026-03-29T00:59:59Z"), "2026-03-29T01:59");
  EXPECT_EQ(shown(support::kBerlin, "2026-03-29T01:00:00Z"), "2026-03-29T03:00");
  EXPECT_EQ(shown(support::kBerlin, "2400-10-29T00:59:59Z"), "2400-10-29T02:59");
  EXPECT_EQ(shown(support::kBerlin, "2400-10-29T01:00:00Z"), "2400-10-29T02:00");
  EXPECT_EQ(shown(support::kNewYork, "2026-07-01T00:00:00Z"), "2026-06-30T20:00");
  EXPECT_EQ(shown(support::kLordHowe, "2026-07-01T00:00:00Z"), "2026-07-01T10:30");
  EXPECT_EQ(shown("<+0545>-5:45", "2026-07-01T00:00:00Z"), "2026-07-01T05:45");
  // Summer is the standard, and winter an hour less.
  EXPECT_EQ(shown("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01T00:00:00Z"), "2026-07-01T01:00");
  EXPECT_EQ(shown("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-12-01T00:00:00Z"), "2026-12-01T00:00");
  // By the number of the day, without the leap day and with it; the time may lie on another day.
  EXPECT_EQ(shown("AAA0BBB,J60,J300", "2028-02-29T23:00:00Z"), "2028-02-29T23:00");
  EXPECT_EQ(shown("AAA0BBB,J60,J300", "2028-03-01T02:00:00Z"), "2028-03-01T03:00");
  EXPECT_EQ(shown("AAA0BBB,59/-1,300", "2028-02-28T23:00:00Z"), "2028-02-29T00:00");
  // Summer all year.
  EXPECT_EQ(shown("EST5EDT,0/0,J365/25", "2026-12-31T23:59:59Z"), "2026-12-31T19:59");
  EXPECT_EQ(shown("EST5EDT,0/0,J365/25", "2027-01-01T05:00:00Z"), "2027-01-01T01:00");
}

TEST(TimeZone, KnownChangesComeBeforeTheRule) {
  // One change, to an hour ahead, at 2000-01-01; the rule says two hours.
  std::string bytes = support::tzif_of("AAA-2");
  const std::size_t second = bytes.find("TZif", 1);
  std::string block = bytes.substr(second, 44);
  block[35] = 1;  // Changes.
  block[39] = 2;  // Offsets.
  const std::int64_t at = moment("2000-01-01T00:00:00Z").time_since_epoch().count();
  for (int shift = 56; shift >= 0; shift -= 8) block += static_cast<char>(at >> shift);
  block += '\1';
  block += std::string(6, '\0') + std::string("\0\0\x0e\x10\0\0", 6) + '\0';
  const auto zone = TimeZone::parse(bytes.substr(0, second) + block + "\nAAA-1\n");
  ASSERT_TRUE(zone) << zone.error().message;
  EXPECT_EQ(zone->local(moment("1999-12-31T23:59:59Z")).time_since_epoch(),
            moment("1999-12-31T23:59:59Z").time_since_epoch());
  EXPECT_EQ(zone->local(moment("2000-01-01T00:00:00Z")).time_since_epoch(),
            moment("2000-01-01T01:00:00Z").time_since_epoch());
}

TEST(TimeZone, BytesThatAreNoZoneAreRefused) {
  const std::string good = support::tzif_of(support::kBerlin);
  ASSERT_TRUE(TimeZone::parse(good));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(TimeZone::parse(std::string_view(good).substr(0, size))) << size;
  std::string old = good;
  old[4] = '\0';
  EXPECT_FALSE(TimeZone::parse(old));
  // Any byte may be any other: it is refused or it is some zone, and both answer.
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', '\1', '\x7f', '\xff', ',', '9'}) {
      std::string changed = good;
      changed[at] = byte;
      const auto zone = TimeZone::parse(changed);
      if (!zone) continue;
      const sys_seconds now = moment("2026-07-01T00:00:00Z");
      EXPECT_LE(zone->first_at(zone->local(now)), now);
      EXPECT_GT(zone->first_at(zone->not_yet_shown(now)), now);
    }
  }
  for (const char* rule :
       {"CET", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J1", "CET-25", "<CET-1", "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1 "}) {
    EXPECT_FALSE(TimeZone::parse(support::tzif_of(rule))) << rule;
  }
}

TEST(TimeZones, AnUnknownZoneIsRefusedWithTheNearestName) {
  TimeZones zones(support::zone_table());
  EXPECT_TRUE(zones.find("Europe/Berlin"));
  EXPECT_TRUE(zones.find("UTC"));
  const auto refusal = [&](const char* name) { return zones.find(name).error().message; };
  EXPECT_EQ(refusal("Europe/Berln"), "unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?");
  EXPECT_EQ(refusal("Bielefeld"),
            "unknown time zone 'Bielefeld'; write a name of the tz database, such as Europe/Berlin, or UTC");
}

TEST(TimeZones, DataThatHaveChangedAreReadAgain) {
  std::string rule = "AAA-1", version = "1";
  int reads = 0;
  TimeZones zones({.read = [&](const std::string&) -> Result<std::string> { return ++reads, support::tzif_of(rule); },
                   .version = [&](const std::string&) { return version; },
                   .names = [] { return std::vector<std::string>(); }});
  const auto hours_ahead = [&] {
    const auto zone = zones.find("A/B");
    return zone ? (*zone)->local(sys_seconds()).time_since_epoch() / std::chrono::hours(1) : -1;
  };
  EXPECT_EQ(hours_ahead(), 1);
  EXPECT_EQ(hours_ahead(), 1);
  EXPECT_EQ(reads, 1);
  rule = "AAA-2", version = "2";
  EXPECT_EQ(hours_ahead(), 2);
  rule = "?", version = "3";  // What cannot be used leaves what was there.
  EXPECT_EQ(hours_ahead(), 2);
}

}  // namespace
}  // namespace bide::core
