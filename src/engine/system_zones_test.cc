// The time zones of this system, as bide and as the C library read them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "core/time_zone.h"
#include "platform/zone_files.h"
#include "support/seeded_random.h"

namespace bide::engine {
namespace {

TEST(SystemZones, EachZoneShowsWhatTheCLibrarySays) {
  const std::vector<std::string> names = platform::zone_file_names();
  ASSERT_GT(names.size(), 300u);
  support::SeededRandom random(1);
  const char* before = std::getenv("TZ");
  const std::string kept = before == nullptr ? "" : before;
  for (const std::string& name : names) {
    const auto zone = core::TimeZone::parse(platform::read_zone_file(name).value());
    ASSERT_TRUE(zone) << name << ": " << zone.error().message;
    ASSERT_EQ(::setenv("TZ", name.c_str(), 1), 0);
    ::tzset();
    for (int i = 0; i < 100; ++i) {
      // From 1970 to 2200.
      const auto at = static_cast<std::time_t>(random.next_below(7'258'118'400));
      std::tm shown{};
      ASSERT_NE(::localtime_r(&at, &shown), nullptr);
      const core::sys_seconds moment{std::chrono::seconds(at)};
      ASSERT_EQ((zone->local(moment).time_since_epoch() - moment.time_since_epoch()).count(), shown.tm_gmtoff)
          << name << " at " << at;
    }
  }
  if (before == nullptr) {
    ::unsetenv("TZ");
  } else {
    ::setenv("TZ", kept.c_str(), 1);
  }
  ::tzset();
}

}  // namespace
}  // namespace bide::engine
