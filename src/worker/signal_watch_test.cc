#include "worker/worker_state.h"

#include <signal.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace bide::worker {

namespace {

class Told {
 public:
  std::function<void(int)> note() {
    return [this](int count) {
      std::lock_guard lock(mutex_);
      EXPECT_EQ(count, ++count_);
      changed_.notify_all();
    };
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  int count() {
    std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  int count_ = 0;
};

TEST(SignalWatch, EveryWatchIsToldOfEverySignalOfItsLife) {
  Told first_told;
  Told second_told;
  const SignalWatch first(first_told.note());
  raise(SIGTERM);
  {
    const SignalWatch second(second_told.note());
    raise(SIGINT);
    raise(SIGTERM);
    second_told.wait_for(2);
  }
  raise(SIGTERM);
  first_told.wait_for(4);
  EXPECT_EQ(first_told.count(), 4);
  EXPECT_EQ(second_told.count(), 2);
}

TEST(SignalWatch, ASignalMayComeWhileAWatchBeginsOrEnds) {
  constexpr int kSignals = 5000;
  Told told;
  const SignalWatch lasting(told.note());  // The signals' own meaning would end the process.
  std::thread sender([] {
    for (int i = 0; i < kSignals; ++i) raise(SIGTERM);
  });
  for (int i = 0; i < 500; ++i) {
    Told shortly;
    // On the heap, where it is noticed when somebody uses it after its end.
    const auto watch = std::make_unique<SignalWatch>(shortly.note());
  }
  sender.join();
  told.wait_for(kSignals);
  EXPECT_EQ(told.count(), kSignals);
}

}  // namespace
}  // namespace bide::worker
