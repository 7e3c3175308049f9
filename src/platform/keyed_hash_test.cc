#include "platform/keyed_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace bide::platform {
namespace {

JobId id_of(std::uint64_t high, std::uint64_t low) {
  std::array<std::uint8_t, JobId::kSize> bytes;
  std::memcpy(bytes.data(), &high, 8);
  std::memcpy(bytes.data() + 8, &low, 8);
  return JobId(bytes);
}

// The most values that share one of 1024 places. Of 8192 values spread at random about 8 do, and never 60.
template <class Values>
std::size_t fullest(const Values& values, unsigned shift) {
  std::map<std::uint64_t, std::size_t> places;
  for (const std::uint64_t value : values) ++places[value >> shift & 1023];
  return std::max_element(places.begin(), places.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
}

TEST(KeyedHash, IdsThatDifferInOneHalfOnlyAreSpreadOverEveryPartOfTheResult) {
  std::vector<std::uint64_t> by_low;
  std::vector<std::uint64_t> by_high;
  for (std::uint64_t i = 0; i < 8192; ++i) {
    by_low.push_back(KeyedHash()(id_of(7, i << 40)));
    by_high.push_back(KeyedHash()(id_of(i << 40, 7)));
  }
  for (const unsigned shift : {0u, 22u, 54u}) {
    EXPECT_LT(fullest(by_low, shift), 60u);
    EXPECT_LT(fullest(by_high, shift), 60u);
  }
}

TEST(KeyedHash, TextsAreSpreadWhereverTheyDiffer) {
  for (const std::size_t before : {0u, 5u, 12u, 30u, 200u}) {
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 8192; ++i) values.push_back(KeyedHash()(std::string(before, 'x') + std::to_string(i) + "tail"));
    for (const unsigned shift : {0u, 22u, 54u}) EXPECT_LT(fullest(values, shift), 60u);
  }
}

TEST(KeyedHash, ATextAndTheSameWithZerosBehindDiffer) {
  EXPECT_NE(KeyedHash()(std::string_view("a")), KeyedHash()(std::string_view("a\0", 2)));
  EXPECT_NE(KeyedHash()(std::string_view("")), KeyedHash()(std::string_view("\0", 1)));
}

TEST(KeyedHash, AnotherKeyPutsThemElsewhere) {
  const HashKey one{{1, 2, 3, 4}};
  const HashKey other{{1, 9, 3, 4}};
  EXPECT_NE(one(id_of(1, 2)), other(id_of(1, 2)));
  EXPECT_NE(one("emails"), other("emails"));
  EXPECT_EQ(one("emails"), HashKey(one)("emails"));
}

TEST(KeyedHash, AMapIsSearchedWithoutMakingAKey) {
  KeyedMap<std::string, int> map;
  map["emails"] = 3;
  EXPECT_EQ(map.find(std::string_view("emails"))->second, 3);
}

}  // namespace
}  // namespace bide::platform
