#include "server/api/event_hub.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "support/embedded_store.h"
#include "support/temporary_directory.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

// Everything that one listener was told.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  std::size_t longest = 0;  // Of the writes.
  bool left = false;

  std::string wait_for(const std::string& wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return text.find(wanted) != std::string::npos; });
    return text;
  }
  std::string so_far() {
    std::lock_guard lock(mutex);
    return text;
  }
};

class Ear : public Stream {
 public:
  explicit Ear(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
  bool write(std::string bytes) override {
    std::lock_guard lock(heard_->mutex);
    if (heard_->left) return false;
    heard_->longest = std::max(heard_->longest, bytes.size());
    heard_->text += bytes;
    heard_->changed.notify_all();
    return true;
  }

 private:
  const std::shared_ptr<Heard> heard_;
};

class EventHubTest : public testing::Test {
 protected:
  std::shared_ptr<Heard> listen(const std::string& last_id = "", const std::string& queue = "") {
    auto heard = std::make_shared<Heard>();
    hub_->listen(std::make_shared<Ear>(heard), queue, last_id);
    return heard;
  }
  void leave(const std::shared_ptr<Heard>& heard) {
    std::lock_guard lock(heard->mutex);
    heard->left = true;
  }
  void enqueue(std::vector<Job> jobs) {
    ASSERT_TRUE(bide::wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { store_.broker().enqueue(std::move(jobs), std::move(done)); }));
  }
  // Another second is over, and what was counted has been told: the inspector answers in order.
  void beat() {
    now_ += 1s;
    hub_->tick(now_);
    (void)bide::wait<std::vector<QueueInfo>>([&](auto done) { store_.inspector().queues(std::move(done)); });
  }
  static JobEvent event(const std::string& queue, const std::string& kind = "a") {
    return {.type = "job.enqueued", .kind = kind, .queue = queue};
  }
  static std::string last_id(const std::string& text) {
    const std::size_t at = text.rfind("\nid: ") + 5;
    return text.substr(at, text.find('\n', at) - at);
  }

  support::TemporaryDirectory folder_;
  support::EmbeddedStore store_{folder_.path() + "/data"};
  std::shared_ptr<EventHub> hub_ = std::make_shared<EventHub>(&store_.inspector(), [] {});
  Moment now_ = std::chrono::steady_clock::now();
};

TEST_F(EventHubTest, ThousandsOfQueuesAreToldInPartsThatAReaderKeepsUpWith) {
  constexpr int kQueues = 4000;
  std::vector<Job> jobs;
  for (int i = 0; i < kQueues; ++i) jobs.push_back({.kind = "a", .queue = "queue" + std::to_string(i) + "."});
  enqueue(std::move(jobs));
  const auto heard = listen();
  std::set<std::string> told;
  for (int i = 0; i < 100 && told.size() < kQueues; ++i) {
    beat();
    const std::string text = heard->so_far();
    told.clear();
    for (std::size_t at = text.find("\"name\":\""); at != std::string::npos; at = text.find("\"name\":\"", at + 1)) {
      told.insert(text.substr(at + 8, text.find('"', at + 8) - at - 8));
    }
  }
  EXPECT_EQ(told.size(), static_cast<std::size_t>(kQueues));
  EXPECT_LT(heard->longest, 256u * 1024);
  // From then on only what changed.
  const std::size_t before = heard->so_far().size();
  beat();
  EXPECT_EQ(heard->so_far().size(), before);
  enqueue({{.kind = "a", .queue = "queue7."}});
  beat();
  const std::string rest = heard->so_far().substr(before);
  EXPECT_NE(rest.find("\"name\":\"queue7.\""), std::string::npos);
  EXPECT_EQ(rest.find("\"name\":\"queue8.\""), std::string::npos);
}

TEST_F(EventHubTest, AListenerOfOneQueueHearsOnlyOfIt) {
  enqueue({{.kind = "a", .queue = "one"}, {.kind = "a", .queue = "two"}});
  const auto heard = listen("", "one");
  beat();
  EXPECT_NE(heard->so_far().find("\"name\":\"one\""), std::string::npos);
  EXPECT_EQ(heard->so_far().find("\"name\":\"two\""), std::string::npos);
  const auto nothing = listen("", "none");
  beat();
  EXPECT_NE(nothing->so_far().find("{\"queues\":[]}"), std::string::npos);
}

TEST_F(EventHubTest, WhoComesBackHearsWhatWasMissed) {
  const auto first = listen();
  hub_->publish({event("q", "before")});
  const std::string id = last_id(first->so_far());
  leave(first);
  // Of a job that was leased before this process, nobody knows the queue.
  hub_->publish({event("q", "missed"), event("other", "elsewhere"), event("", "nowhere")});
  EXPECT_TRUE(hub_->active());
  const auto again = listen(id, "q");
  const std::string text = again->so_far();
  EXPECT_EQ(text.find("before"), std::string::npos);
  EXPECT_NE(text.find("missed"), std::string::npos);
  EXPECT_EQ(text.find("elsewhere"), std::string::npos);
  EXPECT_EQ(text.find("nowhere"), std::string::npos);
  EXPECT_EQ(text.find("event: reset"), std::string::npos);
}

TEST_F(EventHubTest, ManyLongEventsAreToldOnlyAsFarAsAReaderKeepsUpWith) {
  const auto heard = listen();
  hub_->publish(std::vector<JobEvent>(1000, event(std::string(128, 'q'), std::string(128, 'k'))));
  EXPECT_LE(heard->longest, EventHub::kReplayBytes + 1024);
  beat();
  EXPECT_NE(heard->wait_for("event: skipped").find("job.enqueued"), std::string::npos);
}

TEST_F(EventHubTest, WhoWasAwayTooLongIsTold) {
  const auto first = listen();
  hub_->publish({event("q", "before")});
  const std::string id = last_id(first->so_far());
  leave(first);
  hub_->publish({event("q")});
  now_ = std::chrono::steady_clock::now() + 60s;
  hub_->tick(now_);
  EXPECT_FALSE(hub_->active());
  const auto again = listen(id);
  EXPECT_NE(again->so_far().find("event: reset\nid: "), std::string::npos);
  // With the id of the reset it goes on.
  const std::string next = last_id(again->so_far());
  hub_->publish({event("q", "after")});
  EXPECT_NE(listen(next)->so_far().find("after"), std::string::npos);
  EXPECT_EQ(listen(next)->so_far().find("event: reset"), std::string::npos);
}

TEST_F(EventHubTest, WhatCanBeToldAgainIsBounded) {
  const auto first = listen();
  const std::string id = last_id(first->so_far() + "\n");
  std::vector<JobEvent> events(EventHub::kMostEventsASecond, event("q"));
  hub_->publish(events);
  EXPECT_NE(listen(id)->so_far().find("event: reset"), std::string::npos);
  const auto back = listen(last_id(first->so_far()));
  EXPECT_EQ(back->so_far().find("event: reset"), std::string::npos);
  EXPECT_LT(back->longest, EventHub::kReplayBytes + 1024);
}

}  // namespace
}  // namespace bide::server
