#include "engine/id_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>

namespace bide::engine {
namespace {

JobId make_id(std::uint64_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return JobId(bytes);
}

std::set<std::uint64_t> blocks_of(const IdTable& table, std::uint64_t number) {
  std::set<std::uint64_t> blocks;
  table.any_block(make_id(number), [&](std::uint64_t block) {
    blocks.insert(block);
    return false;
  });
  return blocks;
}

TEST(IdTable, EveryIdLeadsToItsBlock) {
  IdTable table;
  for (std::uint64_t i = 0; i < 200'000; ++i) table.insert(make_id(i), i / 1000);
  for (std::uint64_t i = 0; i < 200'000; ++i) ASSERT_TRUE(blocks_of(table, i).contains(i / 1000)) << i;
  // Of a million others a fingerprint or two may be the same.
  std::uint64_t mistaken = 0;
  for (std::uint64_t i = 200'000; i < 1'200'000; ++i) mistaken += blocks_of(table, i).size();
  EXPECT_LT(mistaken, 5u);
}

TEST(IdTable, BlocksThatAreGoneAreNotFoundAndTheirPlacesAreUsedAgain) {
  IdTable table;
  std::uint64_t most_bytes = 0;
  for (std::uint64_t block = 0; block < 400; ++block) {
    if (block >= 10) table.set_first(block - 10);
    for (std::uint64_t i = 0; i < 1000; ++i) table.insert(make_id(block * 1000 + i), block);
    if (block == 60) most_bytes = table.bytes();
  }
  EXPECT_TRUE(blocks_of(table, 1000).empty());
  EXPECT_TRUE(blocks_of(table, 388'999).empty());
  EXPECT_TRUE(blocks_of(table, 389'000).contains(389));
  EXPECT_TRUE(blocks_of(table, 399'999).contains(399));
  EXPECT_LT(table.bytes(), most_bytes * 3 / 2) << "it grows although as many go as come";
}

TEST(IdTable, ManyIdsTakeAboutNineBytesEach) {
  IdTable table;
  constexpr std::uint64_t kIds = 3'000'000;
  for (std::uint64_t i = 0; i < kIds; ++i) table.insert(make_id(i), i / 4096);
  EXPECT_LT(table.bytes(), kIds * 12);
}

TEST(IdTable, NumbersOfBlocksGoOnAfterSixtyFiveThousand) {
  IdTable table;
  for (std::uint64_t block = 0; block < 200'000; ++block) {
    if (block >= 100) table.set_first(block - 100);
    table.insert(make_id(block), block);
  }
  EXPECT_TRUE(blocks_of(table, 199'999).contains(199'999));
  EXPECT_TRUE(blocks_of(table, 199'950).contains(199'950));
}

}  // namespace
}  // namespace bide::engine
