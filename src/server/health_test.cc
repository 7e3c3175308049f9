#include "server/health.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "brokers/open_broker.h"
#include "metrics/metered_broker.h"
#include "support/child_process.h"
#include "support/fake_broker.h"
#include "support/fake_inspector.h"
#include "support/temporary_directory.h"
#include "support/virtual_clock.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

// Where an answer can be looked at.
class Answered : public ReplyTarget {
 public:
  void send(Response given) override { response = std::move(given); }
  std::shared_ptr<Stream> stream(Response) override { return nullptr; }
  void on_gone(std::function<void()>) override {}

  std::optional<Response> response;
};

class BlockableBroker : public support::FakeBroker {
 public:
  Pressure pressure() const override { return now; }

  Pressure now;
};

// Knows one queue, and tells it when the test wants it to.
class SlowInspector : public support::FakeInspector {
 public:
  std::vector<Completion<std::vector<QueueInfo>>> asked;
  bool answers_at_once = true;
  std::optional<Error> error;

  void answer() {
    for (auto& done : std::exchange(asked, {})) {
      if (error)
        done(*error);
      else
        done(std::vector<QueueInfo>{{.name = "mail", .ready = 3}});
    }
  }

  void queues(Completion<std::vector<QueueInfo>> done) override {
    asked.push_back(std::move(done));
    if (answers_at_once) answer();
  }
};

class HealthTest : public testing::Test {
 protected:
  std::shared_ptr<Answered> get(std::string_view path, Scope as = Scope::kRead) const {
    const auto target = std::make_shared<Answered>();
    Request request;
    request.path = path;
    request.caller.scopes = static_cast<std::uint8_t>(as);
    for (const Route& route : health->routes()) {
      if (route.pattern == path) route.answer(std::move(request), Reply(target));
    }
    return target;
  }
  Response answer(std::string_view path, Scope as = Scope::kRead) const {
    const auto target = get(path, as);
    EXPECT_TRUE(target->response) << path;
    return target->response.value_or(Response{.status = 0});
  }

  support::VirtualClock clock;
  std::shared_ptr<BlockableBroker> broker = std::make_shared<BlockableBroker>();
  std::shared_ptr<SlowInspector> inspector = std::make_shared<SlowInspector>();
  std::shared_ptr<metrics::Metrics> metrics = std::make_shared<metrics::Metrics>();
  std::shared_ptr<Health> health =
      Health::make({.broker = broker, .inspector = inspector, .metrics = metrics, .version = "1.2.3", .clock = &clock});
};

TEST_F(HealthTest, MetricsNeedATokenThatReadsAndTheOthersNone) {
  for (const Route& route : health->routes()) {
    EXPECT_EQ(route.scope, route.pattern == "/metrics" ? Scope::kRead : Scope::kNone) << route.pattern;
  }
}

TEST_F(HealthTest, MetricsTellWhatWasCountedAndHowTheQueuesAre) {
  metrics->queue("mail").enqueued.add(5);
  const Response response = answer("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {"bide_jobs_enqueued_total{queue=\"mail\"} 5\n", "bide_queue_jobs{queue=\"mail\",state=\"ready\"} 3\n",
        "bide_pressure{reason=\"none\"} 0\n", "bide_build_info{version=\"1.2.3\""}) {
    EXPECT_NE(response.body.find(line), std::string::npos) << line << response.body;
  }
}

TEST_F(HealthTest, MetricsAreToldAlsoWhenTheBrokerIsAway) {
  metrics->queue("mail").enqueued.add(5);
  inspector->error = Error{ErrorCode::kUnavailable, "away"};
  const Response response = answer("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find("bide_jobs_enqueued_total{queue=\"mail\"} 5\n"), std::string::npos);
  EXPECT_EQ(response.body.find("bide_queue_jobs"), std::string::npos);
}

TEST_F(HealthTest, TheBrokerIsAskedOnceForAllWhoAskMeanwhile) {
  inspector->answers_at_once = false;
  const auto first = get("/metrics");
  const auto second = get("/metrics");
  const auto third = get("/readyz");
  EXPECT_EQ(inspector->asked.size(), 1u);
  EXPECT_FALSE(first->response);
  inspector->answer();
  for (const auto& each : {first, second, third}) {
    ASSERT_TRUE(each->response);
    EXPECT_EQ(each->response->status, 200);
  }
  EXPECT_NE(second->response->body.find("bide_queue_jobs"), std::string::npos);
}

TEST_F(HealthTest, ABrokerThatDoesNotAnswerKeepsNobodyWaitingForLong) {
  inspector->answers_at_once = false;
  const auto first = get("/readyz");
  clock.advance(5s);
  const auto second = get("/readyz");
  const auto third = get("/metrics");
  for (const auto& each : {first, second}) {
    ASSERT_TRUE(each->response);
    EXPECT_EQ(each->response->status, 503);
    EXPECT_EQ(each->response->body,
              "{\"ready\":false,\"code\":\"unreachable\",\"pressure\":\"ok\",\"detail\":\"the broker has not answered "
              "for 5 s\"}");
  }
  ASSERT_TRUE(third->response);
  EXPECT_EQ(third->response->status, 200);
  inspector->answers_at_once = true;
  inspector->answer();
  EXPECT_EQ(answer("/readyz").status, 200);
}

TEST_F(HealthTest, IsReadyUntilItDrains) {
  EXPECT_EQ(answer("/readyz").body, "{\"ready\":true,\"code\":\"ok\",\"pressure\":\"ok\"}");
  health->set_draining();
  const Response response = answer("/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("\"code\":\"draining\""), std::string::npos);
  EXPECT_EQ(answer("/healthz").status, 200);
}

TEST_F(HealthTest, IsNotReadyWhileTheBrokerIsBlockedAndTellsStrangersNoMoreThanThat) {
  broker->now = {Pressure::Level::kBlocked, "the store failed: /secret/place", 1s};
  const Response known = answer("/readyz");
  EXPECT_EQ(known.status, 503);
  EXPECT_NE(known.body.find("/secret/place"), std::string::npos);
  EXPECT_EQ(answer("/readyz", Scope::kNone).body, "{\"ready\":false,\"code\":\"blocked\",\"pressure\":\"blocked\"}");
  broker->now = {Pressure::Level::kHigh, "much to do", 1s};
  EXPECT_EQ(answer("/readyz").status, 200);
}

TEST_F(HealthTest, ShowsAWeakerDurabilityWhereverHealthIsShown) {
  health = Health::make({.broker = broker, .inspector = inspector, .metrics = metrics, .durability = "os"});
  EXPECT_NE(answer("/healthz", Scope::kNone).body.find("\"durability\":\"os\""), std::string::npos);
  EXPECT_NE(answer("/readyz", Scope::kNone).body.find("\"durability\":\"os\""), std::string::npos);
  EXPECT_EQ(weaker_durability("bide:./data"), "");
  EXPECT_EQ(weaker_durability("bide:./data?durability=fsync"), "");
  EXPECT_EQ(weaker_durability("bide:./data?durability=os"), "os");
  EXPECT_EQ(weaker_durability("bide:./data?max_jobs=5&durability=none&done_limit=2"), "none");
}

// The whole of it, with the engine behind, as promtool wants it.
TEST(HealthOfAnEngine, IsAsPromtoolWantsIt) {
  const support::TemporaryDirectory directory;
  const auto counted = std::make_shared<metrics::Metrics>();
  const auto opened = brokers::open_broker("bide:" + directory.path() + "/data",
                                           {.on_commit = [counted](auto time) { counted->commit_took(time); }});
  ASSERT_TRUE(opened) << opened.error().message;
  const auto broker = std::make_shared<metrics::MeteredBroker>(opened->broker, counted);
  std::promise<void> enqueued;
  broker->enqueue({{.kind = "k", .queue = "mail"}, {.kind = "k", .queue = "a.b:c-d_e"}},
                  [&](auto) { enqueued.set_value(); });
  enqueued.get_future().wait();
  counted->callback_attempt("a \"quoted\" \\ outcome\n");

  const auto health =
      Health::make({.broker = broker, .inspector = opened->inspector, .metrics = counted, .version = "1.2.3"});
  struct Waiting : ReplyTarget {
    void send(Response given) override { response.set_value(std::move(given)); }
    std::shared_ptr<Stream> stream(Response) override { return nullptr; }
    void on_gone(std::function<void()>) override {}
    std::promise<Response> response;
  };
  const auto target = std::make_shared<Waiting>();
  health->routes()[0].answer({}, Reply(target));
  const Response response = target->response.get_future().get();
  ASSERT_EQ(response.status, 200);
  ASSERT_NE(response.body.find("bide_jobs_enqueued_total{queue=\"mail\"} 1\n"), std::string::npos) << response.body;
  // The engine told how long it took to make them durable.
  EXPECT_EQ(response.body.find("bide_commit_duration_seconds_count 0\n"), std::string::npos) << response.body;

  if (::access("/usr/bin/promtool", X_OK) != 0) GTEST_SKIP() << "promtool is not installed";
  const support::Ended ended =
      support::run({.arguments = {"/usr/bin/promtool", "check", "metrics"}, .environment = {}}, response.body, 60s);
  EXPECT_TRUE(ended.succeeded()) << ended.output << response.body;
  EXPECT_EQ(ended.output, "");
}

}  // namespace
}  // namespace bide::server
