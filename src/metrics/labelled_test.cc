#include "metrics/labelled.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "metrics/counter.h"

namespace bide::metrics {
namespace {

TEST(Labelled, HasOneForEachValueInTheirOrder) {
  Labelled<Counter> family(10);
  family.at("mail").add(2);
  family.at("images").add();
  family.at("mail").add();
  std::vector<std::pair<std::string, std::uint64_t>> seen;
  family.each([&](std::string_view value, const Counter& counter) { seen.emplace_back(value, counter.value()); });
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::uint64_t>>{{"images", 1}, {"mail", 3}}));
}

TEST(Labelled, CountsTheValuesBeyondItsLimitTogether) {
  Labelled<Counter> family(2);
  family.at("a").add();
  family.at("b").add();
  for (int i = 0; i < 1'000; ++i) family.at("queue-" + std::to_string(i)).add();
  family.at("a").add();
  std::vector<std::pair<std::string, std::uint64_t>> seen;
  family.each([&](std::string_view value, const Counter& counter) { seen.emplace_back(value, counter.value()); });
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::uint64_t>>{{"(other)", 1'000}, {"a", 2}, {"b", 1}}));
  EXPECT_EQ(family.label_of("b"), "b");
  EXPECT_EQ(family.label_of("c"), kOverflowLabel);
}

TEST(Labelled, KeepsToItsLimitWhenManyThreadsAskAtOnce) {
  Labelled<Counter> family(50);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) family.at(std::to_string(i * (t + 1))).add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t values = 0;
  std::uint64_t sum = 0;
  family.each([&](std::string_view, const Counter& counter) {
    ++values;
    sum += counter.value();
  });
  EXPECT_EQ(values, 51u);
  EXPECT_EQ(sum, 2'000u);
}

}  // namespace
}  // namespace bide::metrics
