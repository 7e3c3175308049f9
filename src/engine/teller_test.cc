#include "engine/teller.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace bide::engine {
namespace {

TEST(Teller, TellsEverythingInOrderBeforeItGoes) {
  std::vector<int> told;
  {
    Teller teller;
    for (int i = 0; i < 100; ++i) teller.add([&told, i] { told.push_back(i); });
  }
  ASSERT_EQ(told.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(told[static_cast<std::size_t>(i)], i);
}

TEST(Teller, IsNotIdleWhileItTells) {
  Teller teller;
  EXPECT_TRUE(teller.is_idle());
  std::promise<void> begun;
  std::promise<void> may_end;
  teller.add([&] {
    begun.set_value();
    may_end.get_future().wait();
  });
  begun.get_future().wait();
  EXPECT_FALSE(teller.is_idle());
  may_end.set_value();
  teller.wait_until_idle();
  EXPECT_TRUE(teller.is_idle());
}

}  // namespace
}  // namespace bide::engine
