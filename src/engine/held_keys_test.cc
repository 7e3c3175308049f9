#include "engine/held_keys.h"

#include <gtest/gtest.h>

#include <array>

namespace bide::engine {
namespace {

JobId id_of(std::uint8_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  bytes.back() = number;
  return JobId(bytes);
}

TEST(HeldKeys, AnOlderJobThatIsEditedDoesNotTakeAKeyFromWhoeverHoldsItNow) {
  HeldKeys keys;
  keys.hold("report", id_of(1), 100);
  keys.hold("report", id_of(2), 200);  // The first one's time is over.
  keys.hold("report", id_of(1), 100);
  EXPECT_EQ(keys.holder("report", 150), id_of(2));
  keys.hold("report", id_of(2), 150);  // Its own time can become shorter.
  EXPECT_EQ(keys.holder("report", 160), JobId());
  keys.forget(1000, 10);
  EXPECT_TRUE(keys.empty());
}

}  // namespace
}  // namespace bide::engine
