#include "engine/unique_keys.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(UniqueKeys, ManyKeysAreHeldSideBySide) {
  UniqueKeys keys;
  for (Slot slot = 0; slot < 5000; ++slot) keys.hold("key " + std::to_string(slot), slot);
  for (Slot slot = 0; slot < 5000; slot += 2) keys.release(slot);
  EXPECT_EQ(keys.size(), 2500u);
  for (Slot slot = 0; slot < 5000; ++slot) {
    const std::string key = "key " + std::to_string(slot);
    EXPECT_EQ(keys.holder(key), slot % 2 == 0 ? kNoSlot : slot);
    EXPECT_EQ(keys.key_of(slot), slot % 2 == 0 ? "" : key);
  }
}

TEST(UniqueKeys, LettingGoOfNothingIsHarmless) {
  UniqueKeys keys;
  keys.release(3);
  EXPECT_EQ(keys.size(), 0u);
}

}  // namespace
}  // namespace bide::engine
