#include "bide/client.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "bide/json.h"
#include "support/temporary_directory.h"

namespace bide {

struct Resize {
  std::string file;
  int width = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file, width)

namespace {

using namespace std::chrono_literals;

class ClientOnEngine : public ::testing::Test {
 protected:
  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
};

TEST_F(ClientOnEngine, AScheduleIsPutListedPausedRunAndRemoved) {
  const Schedule schedule{.name = "report", .cron = "@daily", .zone = "Europe/Berlin", .job = {.kind = "report"}};
  EXPECT_TRUE(client_.put_schedule(schedule).value().created);
  EXPECT_FALSE(client_.put_schedule(schedule).value().changed);
  EXPECT_TRUE(client_.schedules().value().at(0).next);
  client_.pause_schedule("report").value();
  EXPECT_FALSE(client_.schedules().value().at(0).next);
  client_.resume_schedule("report").value();
  const JobId id = client_.run_schedule("report").value();
  EXPECT_EQ(client_.find(id).value().job.kind, "report");
  client_.remove_schedule("report").value();
  EXPECT_TRUE(client_.schedules().value().empty());
  client_.close();
  EXPECT_EQ(client_.put_schedule(schedule).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ClientOnEngine, AnEnqueuedJobIsThereWithAllThatWasSaid) {
  const JobId id = client_
                       .enqueue("resize", "body",
                                {.queue = "images",
                                 .delay = 1h,
                                 .time_limit = 5s,
                                 .priority = 7,
                                 .retry = RetryPolicy::fixed(3s, 4),
                                 .unique_key = "key",
                                 .content_type = "text/plain",
                                 .headers = {{"trace", "1"}}})
                       .value();
  const JobInfo info = client_.find(id).value();
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.job.kind, "resize");
  EXPECT_EQ(info.job.queue, "images");
  EXPECT_EQ(info.job.body, "body");
  EXPECT_EQ(info.job.time_limit, 5s);
  EXPECT_EQ(info.job.priority, 7);
  EXPECT_EQ(info.job.retry, RetryPolicy::fixed(3s, 4));
  EXPECT_EQ(info.job.unique_key, "key");
  EXPECT_EQ(info.job.content_type, "text/plain");
  EXPECT_EQ(info.job.headers, (Headers{{"trace", "1"}}));
}

TEST_F(ClientOnEngine, OfManyTheGoodOnesAreTakenAndTheBadOnesNamed) {
  const auto results = client_.enqueue(std::vector<Job>{{.kind = "a"}, {.kind = ""}, {.kind = "b"}});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(results[2]);
}

TEST_F(ClientOnEngine, TheSameIdIsOneJob) {
  const JobId id = client_.enqueue("a", "", {.delay = 1h}).value();
  EXPECT_EQ(client_.enqueue("a", "", {.delay = 1h, .id = id}).value(), id);
}

TEST_F(ClientOnEngine, AHeldUniqueKeyIsATypedError) {
  client_.enqueue("a", "", {.delay = 1h, .unique_key = "one"}).value();
  const auto second = client_.enqueue("a", "", {.unique_key = "one"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(ClientOnEngine, AnAsynchronousEnqueueCompletes) {
  std::promise<Result<JobId>> promise;
  client_.enqueue_async("a", "", {.delay = 1h}, [&](Result<JobId> id) { promise.set_value(std::move(id)); });
  EXPECT_TRUE(client_.find(promise.get_future().get().value()));
}

TEST_F(ClientOnEngine, ATypedBodyIsJson) {
  const JobId id = client_.enqueue("resize", Resize{"cat.png", 640}, {.delay = 1h}).value();
  const Job job = client_.find(id)->job;
  EXPECT_EQ(job.content_type, "application/json");
  EXPECT_EQ(job.body, R"({"file":"cat.png","width":640})");
  EXPECT_EQ(BodyCodec<Resize>::decode(job.body).width, 640);
}

TEST_F(ClientOnEngine, WaitingForAJobThatDoesNotRunEndsInTime) {
  const JobId id = client_.enqueue("a", "", {.delay = 1h}).value();
  const auto waited = client_.wait_for(id, 1ms);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kUnavailable);
}

TEST_F(ClientOnEngine, AfterCloseEveryCopyAnswersWithATypedError) {
  Client copy = client_;
  client_.close();
  client_.close();
  EXPECT_EQ(copy.enqueue("a", "").error().message, "the client is closed");
  EXPECT_EQ(copy.enqueue(std::vector<Job>(2, Job{.kind = "a"}))[1].error().message, "the client is closed");
  EXPECT_EQ(copy.find(JobId()).error().message, "the client is closed");
  EXPECT_EQ(copy.put_schedule({.name = "report"}).error().message, "the client is closed");
  EXPECT_EQ(copy.put_rules({.queue = "mail"}).error().message, "the client is closed");
  copy.enqueue_async("a", "", {}, [](Result<JobId> id) { EXPECT_FALSE(id); });
}

TEST_F(ClientOnEngine, AClosedStoreCanBeOpenedAgainAndHasItsJobs) {
  const JobId id = client_.enqueue("a", "", {.delay = 1h}).value();
  client_.close();
  Client again = Client::open("bide:" + directory_.path() + "/data").value();
  EXPECT_TRUE(again.find(id));
}

TEST_F(ClientOnEngine, AStoreThatIsOpenIsSharedWithWhoeverOpensItNext) {
  auto second = Client::open("bide:" + directory_.path() + "/data");
  ASSERT_TRUE(second) << second.error().message;
  const auto id = second->enqueue("a", "from the second");
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(client_.find(*id)->job.body, "from the second");
}

TEST(ClientOpen, MayHappenOnAThreadThatEnds) {
  support::TemporaryDirectory directory;
  std::optional<Client> client;
  std::thread([&] { client = Client::open("bide:" + directory.path() + "/data").value(); }).join();
  EXPECT_TRUE(client->enqueue("a", ""));
}

}  // namespace
}  // namespace bide
