#include "server/api/read_scheduler.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_inspector.h"

namespace bide::server {
namespace {

class SlowInspector : public support::FakeInspector {
 public:
  void find(JobId, Completion<JobInfo> done) override {
    if (answers_at_once) return done(JobInfo{});
    asked.push_back(std::move(done));
  }
  // Answers whoever has waited longest.
  void answer() {
    const Completion<JobInfo> first = std::move(asked.front());
    asked.erase(asked.begin());
    first(JobInfo{});
  }

  void list(JobFilter, std::string, std::size_t, Completion<JobPage> done) override { lists.push_back(std::move(done)); }
  void answer_list() {
    const Completion<JobPage> first = std::move(lists.front());
    lists.erase(lists.begin());
    first(JobPage{});
  }

  std::vector<Completion<JobInfo>> asked;
  std::vector<Completion<JobPage>> lists;
  bool answers_at_once = false;
};

TEST(ReadScheduler, NoMoreThanAFewAreUnderWayAtATime) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::size_t found = 0;
  for (int i = 0; i < 100; ++i) finds->find({.name = "one"}, {}, [&](const Result<JobInfo>& info) { found += info ? 1 : 0; });
  while (!inspector.asked.empty()) {
    EXPECT_LE(inspector.asked.size(), std::size_t{ReadScheduler::kAtOnceOfOne});
    inspector.answer();
  }
  EXPECT_EQ(found, 100u);
}

TEST(ReadScheduler, OneWhoAsksForMuchDoesNotKeepOthersWaiting) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::vector<std::string> found;
  const auto ask = [&](const std::string& caller) {
    finds->find({.name = caller}, {}, [&found, caller](const Result<JobInfo>&) { found.push_back(caller); });
  };
  for (int i = 0; i < 100; ++i) ask("greedy");
  ask("a");
  ask("z");
  ASSERT_EQ(inspector.asked.size(), 4u) << "there is a place beside those of one who waits with more";
  ask("a");
  for (int i = 0; i < 5; ++i) inspector.answer();
  EXPECT_EQ(found, (std::vector<std::string>{"greedy", "greedy", "a", "z", "a"}));
  while (!inspector.asked.empty()) inspector.answer();
  EXPECT_EQ(found.size(), 103u);
}

TEST(ReadScheduler, OfOneCallerThoseWhoseLastReadWasSmallComeFirst) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::vector<std::uint64_t> found;
  const auto ask = [&](std::uint64_t connection) {
    finds->find({.name = "one", .connection = connection}, {}, [&found, connection](const Result<JobInfo>&) { found.push_back(connection); });
  };
  ask(1);
  inspector.answer();
  for (std::uint64_t connection = 100; connection < 200; ++connection) ask(connection);
  ask(1);
  for (int i = 0; i < 3; ++i) inspector.answer();
  EXPECT_EQ(found, (std::vector<std::uint64_t>{1, 100, 101, 1})) << "beside those that were under way";
  while (!inspector.asked.empty()) inspector.answer();
  EXPECT_EQ(found.size(), 102u);
}

TEST(ReadScheduler, ThePlacesOfSmallReadsAreNotTakenByOthers) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  finds->find({.name = "one", .connection = 1}, {}, [](const Result<JobInfo>&) {});
  inspector.answer();
  for (std::uint64_t connection = 100; connection < 200; ++connection) {
    finds->find({.name = "one", .connection = connection}, {}, [](const Result<JobInfo>&) {});
  }
  ASSERT_EQ(inspector.asked.size(), std::size_t{ReadScheduler::kAtOnceOfOne});
  finds->find({.name = "one", .connection = 1}, {}, [](const Result<JobInfo>&) {});
  EXPECT_EQ(inspector.asked.size(), std::size_t{ReadScheduler::kAtOnceOfOne} + 1);
  while (!inspector.asked.empty()) inspector.answer();
}

TEST(ReadScheduler, ASingleJobForANewConnectionComesBeforeListsOfTheSameCaller) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::size_t listed = 0;
  for (std::uint64_t connection = 100; connection < 200; ++connection) {
    finds->list({.name = "one", .connection = connection}, {}, "", 10, [&](const Result<JobPage>&) { ++listed; });
  }
  bool found = false;
  finds->find({.name = "one", .connection = 1}, {}, [&](const Result<JobInfo>&) { found = true; });
  ASSERT_EQ(inspector.lists.size(), std::size_t{ReadScheduler::kAtOnceOfOne});
  inspector.answer_list();
  ASSERT_EQ(inspector.asked.size(), 1u);
  inspector.answer();
  EXPECT_TRUE(found);
  EXPECT_EQ(listed, 1u);
  while (!inspector.lists.empty()) inspector.answer_list();
  EXPECT_EQ(listed, 100u);
}

TEST(ReadScheduler, WhatWaitsForAConnectionThatIsGoneIsNotRead) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::vector<std::uint64_t> found, dropped;
  for (std::uint64_t connection = 1; connection <= 6; ++connection) {
    finds->find({.name = "one", .connection = connection}, {}, [&, connection](const Result<JobInfo>& info) {
      (info ? found : dropped).push_back(connection);
    });
  }
  for (const std::uint64_t gone : {1u, 3u, 5u}) finds->drop({.name = "one", .connection = gone});
  EXPECT_EQ(dropped, (std::vector<std::uint64_t>{3, 5})) << "the first is being read";
  finds->drop({.name = "two", .connection = 6});
  while (!inspector.asked.empty()) inspector.answer();
  EXPECT_EQ(found, (std::vector<std::uint64_t>{1, 2, 4, 6}));
}

TEST(ReadScheduler, LargeAnswersAreMadeOnAThreadOfTheirOwn) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::promise<std::thread::id> large;
  std::thread::id small;
  finds->find({.name = "one"}, {}, [&](const Result<JobInfo>& info) {
    EXPECT_EQ(info->job.body.size(), 1'000'000u);
    large.set_value(std::this_thread::get_id());
  });
  finds->find({.name = "one"}, {}, [&](const Result<JobInfo>&) { small = std::this_thread::get_id(); });
  JobInfo info;
  info.job.body = std::string(1'000'000, 'a');
  inspector.asked[0](info);
  inspector.asked[1](JobInfo{});
  EXPECT_NE(large.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(small, std::this_thread::get_id());
  finds->stop();
}

TEST(ReadScheduler, ManyThatAreAnsweredAtOnceDoNotUseUpTheStack) {
  SlowInspector inspector;
  const auto finds = std::make_shared<ReadScheduler>(inspector);
  std::size_t found = 0;
  const auto count = [&](const Result<JobInfo>&) { ++found; };
  for (int i = 0; i < 200'000; ++i) finds->find({.name = "one"}, {}, count);
  inspector.answers_at_once = true;
  for (const Completion<JobInfo>& each : std::exchange(inspector.asked, {})) each(JobInfo{});
  EXPECT_EQ(found, 200'000u);
}

}  // namespace
}  // namespace bide::server
