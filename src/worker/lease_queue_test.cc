#include "worker/lease_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

std::shared_ptr<LeaseBatch> batch_of(int count, Moment given = Moment()) {
  return std::make_shared<LeaseBatch>(std::vector<Lease>(static_cast<std::size_t>(count)), given,
                                      std::make_shared<WorkerLink>());
}

TEST(LeaseQueue, AThreadThatWaitsGetsWhatArrives) {
  LeaseQueue queue;
  Gate claimed;
  std::thread thread([&] {
    std::shared_ptr<LeaseBatch> batch_of_thread;
    EXPECT_NE(queue.claim(batch_of_thread), nullptr);
    claimed.open();
    EXPECT_EQ(queue.claim(batch_of_thread), nullptr);
  });
  queue.add(batch_of(1));
  claimed.wait();
  queue.close();
  thread.join();
}

// The promise behind the standby: however short handlers were so far, one that turns out to be slow holds up nobody.
TEST(LeaseQueue, SlowHandlersAmongShortOnesDoNotHoldUpTheRest) {
  LeaseQueue queue;
  queue.note_duration(nanoseconds(100));
  constexpr int kThreads = 8;
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      std::shared_ptr<LeaseBatch> batch_of_thread;
      while (queue.claim(batch_of_thread) != nullptr) {
        // Ends only when all of them run at once.
        std::unique_lock lock(mutex);
        ++running;
        changed.notify_all();
        changed.wait(lock, [&] { return running == kThreads; });
      }
    });
  }
  queue.add(batch_of(kThreads));
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return running == kThreads; });
  }
  queue.close();
  for (std::thread& thread : threads) thread.join();
}

TEST(LeaseQueue, ClosingHandsOverWhatNobodyHasStarted) {
  LeaseQueue queue;
  queue.add(batch_of(3));
  std::shared_ptr<LeaseBatch> batch_of_thread;
  EXPECT_NE(queue.claim(batch_of_thread), nullptr);
  const auto rest = queue.close();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0]->unclaimed(), 2u);
}

TEST(LeaseQueue, OnlyWhatHasWaitedLongIsStale) {
  LeaseQueue queue;
  queue.add(batch_of(1, Moment(milliseconds(100))));
  queue.add(batch_of(1, Moment(milliseconds(200))));
  EXPECT_EQ(queue.take_stale(Moment(milliseconds(200))).size(), 1u);
  EXPECT_EQ(queue.waiting(), 1);
}

}  // namespace
}  // namespace bide::worker
