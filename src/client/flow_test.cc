#include "bide/flow.h"

#include <gtest/gtest.h>

#include <string>

#include "bide/wait.h"
#include "support/temporary_directory.h"

namespace bide {
namespace {

class Flows : public ::testing::Test {
 protected:
  JobState state_of(JobId id) { return client_.find(id).value().state; }

  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
};

TEST_F(Flows, StartTogetherAndWaitForOneAnother) {
  Flow flow;
  const JobId fetch = flow.add("fetch", "address");
  const JobId small = flow.add("encode", "small", {.after = {fetch}});
  const JobId publish = flow.add("publish", "");
  ASSERT_TRUE(flow.after(publish, {small, fetch}));
  const auto started = flow.start(client_);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(*started, flow.id());
  EXPECT_EQ(state_of(fetch), JobState::kReady);
  EXPECT_EQ(state_of(small), JobState::kWaiting);
  EXPECT_EQ(client_.find(publish).value().waits_for, 2u);
  EXPECT_EQ(client_.find(publish).value().job.flow, flow.id());
}

TEST_F(Flows, AreStartedWhateverTheOrderInWhichJobsWereAdded) {
  Flow flow;
  const JobId last = flow.add("last");
  const JobId first = flow.add("first");
  ASSERT_TRUE(flow.after(last, {first}));
  ASSERT_TRUE(flow.start(client_));
  EXPECT_EQ(state_of(last), JobState::kWaiting);
}

TEST_F(Flows, WithAJobThatIsNotValidStartNothing) {
  Flow flow;
  const JobId good = flow.add("good");
  flow.add("not a name", "", {.after = {good}});
  const auto started = flow.start(client_);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(client_.find(good));
}

TEST_F(Flows, GrowByJobsThatAreAddedLater) {
  Flow flow;
  const JobId first = flow.add("first");
  ASSERT_TRUE(flow.start(client_));
  Flow more(flow.id());
  const JobId second = more.add("second", "", {.after = {first}});
  ASSERT_TRUE(more.start(client_));
  EXPECT_EQ(state_of(second), JobState::kWaiting);
  EXPECT_EQ(more.after(second, {first}).error().code, ErrorCode::kNotFound) << "it was started";
  const auto page = wait<JobPage>([&](auto done) { client_.inspector().list({.flow = flow.id()}, "", 10, std::move(done)); });
  EXPECT_EQ(page.value().jobs.size(), 2u);
}

}  // namespace
}  // namespace bide
