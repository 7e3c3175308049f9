#include "engine/committer.h"

#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace bide::engine {
namespace {

TEST(CommitterTest, IsIdleWhenWhatIsDoneAfterwardsIsOver) {
  Committer committer([] {});
  std::promise<void> go;
  std::atomic<bool> over = false;
  committer.start([] { return Status(); },
                  [&] {
                    go.get_future().wait();
                    over = true;
                  });
  EXPECT_TRUE(committer.wait());
  std::thread later([&] { go.set_value(); });
  committer.wait_until_idle();
  EXPECT_TRUE(over);
  later.join();
}

}  // namespace
}  // namespace bide::engine
