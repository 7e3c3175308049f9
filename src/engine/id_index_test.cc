#include "engine/id_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace bide::engine {
namespace {

class IdIndexTest : public testing::Test {
 protected:
  Slot add(const JobId& id) {
    const Slot slot = slab_.allocate();
    slab_[slot] = Entry{};
    slab_[slot].id = id;
    index_.insert(slot);
    return slot;
  }
  static JobId id_of(std::uint64_t high, std::uint64_t low) {
    std::array<std::uint8_t, JobId::kSize> bytes{};
    for (unsigned i = 0; i < 8; ++i) {
      bytes[i] = static_cast<std::uint8_t>(high >> (8 * i));
      bytes[8 + i] = static_cast<std::uint8_t>(low >> (8 * i));
    }
    return JobId(bytes);
  }

  Slab slab_;
  IdIndex index_{slab_};
};

TEST_F(IdIndexTest, FindsWhatWasInsertedAndNothingElse) {
  const Slot slot = add(id_of(1, 2));
  EXPECT_EQ(index_.find(id_of(1, 2)), slot);
  EXPECT_EQ(index_.find(id_of(2, 1)), kNoSlot);
}

// With this first half a product with public keys is nought for every id.
TEST_F(IdIndexTest, IdsThatCollideUnderAPublicHashAreSpread) {
  for (std::uint64_t i = 0; i < 20'000; ++i) add(id_of(0x9e37'79b9'7f4a'7c15ull, i));
  for (std::uint64_t i = 0; i < 20'000; ++i) ASSERT_NE(index_.find(id_of(0x9e37'79b9'7f4a'7c15ull, i)), kNoSlot);
  EXPECT_LT(index_.longest_search(), 200u);
  EXPECT_LT(index_.fullest_table(), 200u);
}

TEST_F(IdIndexTest, IdsThatAllClaimTheSameMomentDoNotFillOneTable) {
  const std::uint64_t high = 0x007f'6655'4433'2211ull;  // Version 7.
  for (std::uint64_t i = 0; i < 300'000; ++i) add(id_of(high, i));
  EXPECT_LE(index_.fullest_table(), 66'000u);
  for (std::uint64_t i = 0; i < 300'000; ++i) ASSERT_NE(index_.find(id_of(high, i)), kNoSlot);
  EXPECT_EQ(index_.find(id_of(high, 300'000)), kNoSlot);
  for (std::uint64_t i = 0; i < 300'000; ++i) index_.erase(id_of(high, i));
  EXPECT_EQ(index_.size(), 0u);
  EXPECT_EQ(index_.fullest_table(), 0u);
}

// Over few ids the tables become empty again and again.
class IdIndexChurnTest : public IdIndexTest, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(IdIndexChurnTest, AgreesWithAMapOverManyInsertionsAndErasures) {
  std::mt19937_64 random(11);
  std::map<JobId, Slot> expected;
  for (int i = 0; i < 200'000; ++i) {
    // Counting up in one half: a user's ids need not be random.
    const JobId id = id_of(random() % 3, random() % GetParam());
    const auto found = expected.find(id);
    if (found == expected.end()) {
      ASSERT_EQ(index_.find(id), kNoSlot);
      expected[id] = add(id);
    } else {
      ASSERT_EQ(index_.find(id), found->second);
      index_.erase(id);
      slab_.release(found->second);
      expected.erase(found);
    }
  }
  EXPECT_EQ(index_.size(), expected.size());
  for (const auto& [id, slot] : expected) ASSERT_EQ(index_.find(id), slot);
}

INSTANTIATE_TEST_SUITE_P(Ids, IdIndexChurnTest, testing::Values(3, 300, 30'000));

}  // namespace
}  // namespace bide::engine
