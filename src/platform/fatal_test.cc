#include "platform/fatal.h"

#include <gtest/gtest.h>

namespace bide::platform {
namespace {

TEST(Require, LetsATrueConditionPass) { require(true, "nothing is wrong"); }

TEST(RequireDeathTest, SaysWhatIsBrokenAndWhereAndAborts) {
  EXPECT_EXIT(require(1 > 2, "one is more than two"), ::testing::KilledBySignal(SIGABRT),
              "bide: internal error: one is more than two \\(fatal_test\\.cc:[0-9]+\\)");
}

}  // namespace
}  // namespace bide::platform
