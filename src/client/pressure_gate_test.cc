#include "client/pressure_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "brokers/open_broker.h"
#include "core/forwarding_broker.h"
#include "support/temporary_directory.h"

namespace bide::client {
namespace {

using namespace std::chrono_literals;
using Level = Pressure::Level;

// A real engine, and the pressure that the test says it has.
class Valve : public core::ForwardingBroker {
 public:
  explicit Valve(std::shared_ptr<Broker> real) : real_(std::move(real)) {}

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    calls.fetch_add(1);
    for (const Job& job : jobs) {
      const std::lock_guard lock(mutex_);
      order_.push_back(job.body);
    }
    if (refusals.load() > 0 && refusals.fetch_sub(1) > 0) return done(Error{ErrorCode::kOverloaded, "not now"});
    real_->enqueue(std::move(jobs), std::move(done));
  }
  Pressure pressure() const override {
    const std::lock_guard lock(mutex_);
    return pressure_;
  }
  void set(Level level) {
    const std::lock_guard lock(mutex_);
    pressure_ = {level, level == Level::kOk ? "" : "the pipe is full", level == Level::kOk ? 0ms : 250ms};
  }
  std::vector<std::string> order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  std::atomic<int> refusals = 0;
  std::atomic<int> calls = 0;

 private:
  Broker& next_broker() const override { return *real_; }

  const std::shared_ptr<Broker> real_;
  mutable std::mutex mutex_;
  Pressure pressure_;
  std::vector<std::string> order_;
};

class ClientUnderPressure : public ::testing::Test {
 protected:
  ClientUnderPressure() {
    auto opened = brokers::open_broker("bide:" + directory_.path() + "/data?durability=none").value();
    valve_ = std::make_shared<Valve>(opened.broker);
    client_.emplace(valve_, opened.inspector);
  }
  EnqueueOptions with(PressurePolicy policy) { return {.delay = 1h, .pressure = policy}; }
  std::future<Result<JobId>> start(std::string body, PressurePolicy policy) {
    auto promise = std::make_shared<std::promise<Result<JobId>>>();
    client_->enqueue_async("work", body, with(policy),
                           [promise](Result<JobId> id) { promise->set_value(std::move(id)); });
    return promise->get_future();
  }

  support::TemporaryDirectory directory_;
  std::shared_ptr<Valve> valve_;
  std::optional<Client> client_;
};

TEST_F(ClientUnderPressure, IsToldAtOnceWhyAndWhenToComeAgainIfItWantsToFail) {
  valve_->set(Level::kBlocked);
  const auto refused = client_->enqueue("work", "", with(PressurePolicy::fail()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(refused.error().message, "the broker takes nothing: the pipe is full; try again in 250ms");
  EXPECT_EQ(valve_->calls, 0);
  EXPECT_EQ(client_->pressure().retry_after, 250ms);
  valve_->set(Level::kOk);
  EXPECT_TRUE(client_->enqueue("work", "", with(PressurePolicy::fail())));
}

TEST_F(ClientUnderPressure, FailsOnHighPressureOnlyIfItSaysSo) {
  valve_->set(Level::kHigh);
  EXPECT_TRUE(client_->enqueue("work", "", with(PressurePolicy::fail())));
  EXPECT_FALSE(client_->enqueue("work", "", with(PressurePolicy::fail(Level::kHigh))));
}

TEST_F(ClientUnderPressure, ReachesTheBrokerAllTheSameIfItIgnoresIt) {
  valve_->set(Level::kBlocked);
  EXPECT_TRUE(client_->enqueue("work", "", with(PressurePolicy::ignore())));
  EXPECT_TRUE(client_->enqueue("work", ""));
}

TEST_F(ClientUnderPressure, GetsThroughWhenItWaitsLongEnough) {
  valve_->set(Level::kBlocked);
  auto waiting = start("a", PressurePolicy::wait(1h));
  EXPECT_EQ(valve_->calls, 0);
  valve_->set(Level::kOk);
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(valve_->calls, 1);
}

TEST_F(ClientUnderPressure, IsRefusedWhenItHasWaitedForTooLong) {
  valve_->set(Level::kBlocked);
  const auto late = client_->enqueue("work", "", with(PressurePolicy::wait(20ms)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(late.error().message, "waited 20ms: the broker takes nothing: the pipe is full; try again in 250ms");
  EXPECT_EQ(valve_->calls, 0);
}

TEST_F(ClientUnderPressure, WaitsAgainWhenTheBrokerRefusesAndIsEnqueuedOnce) {
  valve_->refusals = 3;
  const auto id = client_->enqueue("work", "a", with(PressurePolicy::wait(1h)));
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(valve_->calls, 4);
  EXPECT_TRUE(client_->find(*id));
}

TEST_F(ClientUnderPressure, ThousandsThatWaitAreLetThroughInTheirOrder) {
  valve_->set(Level::kBlocked);
  constexpr int kWaiters = 5'000;
  std::vector<std::future<Result<JobId>>> waiting;
  std::vector<std::string> bodies;
  for (int i = 0; i < kWaiters; ++i) {
    bodies.push_back(std::to_string(i));
    waiting.push_back(start(bodies.back(), PressurePolicy::wait(1h)));
  }
  valve_->set(Level::kOk);
  for (auto& each : waiting) EXPECT_TRUE(each.get());
  EXPECT_EQ(valve_->order(), bodies);
}

TEST_F(ClientUnderPressure, ManyThreadsThatWaitAreAllAnswered) {
  valve_->set(Level::kBlocked);
  std::atomic<int> through = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&] {
      if (client_->enqueue("work", "", with(PressurePolicy::wait(1h)))) through.fetch_add(1);
    });
  }
  valve_->set(Level::kOk);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(through, 32);
}

TEST_F(ClientUnderPressure, ThoseWhoWaitAreToldWhenTheClientCloses) {
  valve_->set(Level::kBlocked);
  auto waiting = start("a", PressurePolicy::wait(1h));
  client_->close();
  EXPECT_EQ(waiting.get().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client_->pressure().level, Level::kBlocked);
}

TEST_F(ClientUnderPressure, NeedsAnOutboxToSpillInto) {
  const auto nowhere = client_->enqueue("work", "", with(PressurePolicy::spill()));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ClientUnderPressure, SpillsUnderPressureAndWhatTheBrokerRefuses) {
  auto local = brokers::open_broker("bide:" + directory_.path() + "/outbox?durability=none").value();
  Client client(valve_, nullptr, {.pressure = PressurePolicy::spill(), .outbox = local.broker});
  Client outbox(local.broker, local.inspector);
  const auto straight = client.enqueue("work", "", {.delay = 1h});
  valve_->set(Level::kBlocked);
  const auto spilled = client.enqueue("work", "", {.delay = 1h});
  valve_->set(Level::kOk);
  valve_->refusals = 1;
  const auto refused = client.enqueue("work", "", {.delay = 1h});
  EXPECT_TRUE(client_->find(straight.value()));
  EXPECT_FALSE(outbox.find(*straight));
  EXPECT_FALSE(client_->find(spilled.value()));
  EXPECT_TRUE(outbox.find(*spilled));
  EXPECT_TRUE(outbox.find(refused.value()));
}

TEST_F(ClientUnderPressure, EventsAreRefusedAndWaitLikeJobsAndAreNotSpilled) {
  valve_->set(Level::kBlocked);
  EXPECT_EQ(client_->publish("a.b", "", {.pressure = PressurePolicy::fail()}).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(client_->publish("a.b", "", {.pressure = PressurePolicy::wait(1ms)}).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(client_->publish("a.b", "", {.pressure = PressurePolicy::spill()}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(client_->publish("a.b", ""));
}

TEST_F(ClientUnderPressure, IsCalledWhenTheLevelChanges) {
  std::promise<Pressure> blocked;
  std::promise<Pressure> over;
  const PressureWatch watch = client_->on_pressure(
      [&](const Pressure& now) { (now.level == Level::kBlocked ? blocked : over).set_value(now); });
  valve_->set(Level::kBlocked);
  EXPECT_EQ(blocked.get_future().get().reason, "the pipe is full");
  valve_->set(Level::kOk);
  EXPECT_EQ(over.get_future().get().level, Level::kOk);
}

TEST_F(ClientUnderPressure, AWatchCanEndWithinItsOwnCallback) {
  std::promise<void> called;
  PressureWatch watch;
  std::promise<void> ready;
  watch = client_->on_pressure([&, go = ready.get_future().share()](const Pressure&) {
    go.wait();
    watch.stop();
    called.set_value();  // Twice would throw.
  });
  ready.set_value();
  valve_->set(Level::kBlocked);
  called.get_future().get();
  // Another one sees both changes; the one that has ended is not called with them.
  std::promise<void> second;
  const PressureWatch other = client_->on_pressure([&](const Pressure& now) {
    if (now.level == Level::kOk)
      second.set_value();
    else
      valve_->set(Level::kOk);
  });
  second.get_future().get();
}

TEST_F(ClientUnderPressure, EndingAWatchWaitsForItsCallback) {
  std::promise<void> entered;
  std::promise<void> leave;
  std::atomic<bool> returned = false;
  PressureWatch watch = client_->on_pressure([&, left = leave.get_future().share()](const Pressure&) {
    entered.set_value();
    left.wait();
    returned = true;
  });
  valve_->set(Level::kBlocked);
  entered.get_future().get();
  std::thread ender([&] {
    watch.stop();
    EXPECT_TRUE(returned);
  });
  leave.set_value();
  ender.join();
}

TEST_F(ClientUnderPressure, TheClientCanBeClosedWithinACallback) {
  std::promise<void> called;
  const PressureWatch watch = client_->on_pressure([&](const Pressure&) {
    client_->close();
    called.set_value();
  });
  valve_->set(Level::kBlocked);
  called.get_future().get();
  EXPECT_FALSE(client_->enqueue("work", ""));
}

TEST_F(ClientUnderPressure, TheLastCopyOfAClientMayBeTheOneInItsCallback) {
  std::promise<void> destroyed;
  struct Tells {
    std::promise<void>& told;
    ~Tells() { told.set_value(); }
  };
  PressureWatch watch;
  {
    Client copy = std::exchange(client_, std::nullopt).value();
    const auto at_end = std::shared_ptr<Tells>(new Tells{destroyed});
    watch = copy.on_pressure([copy, at_end](const Pressure&) {});
  }
  watch.stop();
  destroyed.get_future().get();
}

TEST(ClientOnAFullStore, WaitsUntilThereIsRoom) {
  support::TemporaryDirectory directory;
  Client client = Client::open("bide:" + directory.path() + "/data?durability=none&max_jobs=2").value();
  const JobId first = client.enqueue("work", "", {.delay = 1h}).value();
  client.enqueue("work", "", {.delay = 1h}).value();
  const auto full = client.enqueue("work", "", {.pressure = PressurePolicy::fail()});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(client.pressure().cause, Pressure::Cause::kQueueLength);
  EXPECT_GT(client.pressure().retry_after, 0ms);
  std::promise<Result<JobId>> promise;
  client.enqueue_async("work", "", {.delay = 1h, .pressure = PressurePolicy::wait(1h)},
                       [&](Result<JobId> id) { promise.set_value(std::move(id)); });
  client.inspector().cancel({first}, {}, [](const Result<std::vector<Status>>&) {});
  EXPECT_TRUE(promise.get_future().get());
}

}  // namespace
}  // namespace bide::client
