#include "engine/unique_keys.h"

#include <gtest/gtest.h>

namespace bide::engine {
namespace {

TEST(UniqueKeys, AKeyIsHeldUntilItsSlotLetsGo) {
  UniqueKeys keys;
  keys.hold("a", 7);
  EXPECT_EQ(keys.holder("a"), 7u);
  EXPECT_EQ(keys.key_of(7), "a");
  keys.release(7);
  EXPECT_EQ(keys.holder("a"), kNoSlot);
  EXPECT_EQ(keys.key_of(7), "");
  EXPECT_EQ(keys.size(), 0u);
}

TEST(UniqueKeys, LettingGoOfNothingIsHarmless) {
  UniqueKeys keys;
  keys.release(3);
  EXPECT_EQ(keys.size(), 0u);
}

}  // namespace
}  // namespace bide::engine
