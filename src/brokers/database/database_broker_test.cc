#include "brokers/database/database_broker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <optional>
#include <set>
#include <thread>

#include "bide/wait.h"
#include "brokers/database/database_broker_test_store.h"
#include "brokers/database/weighted_turns.h"

namespace bide::brokers::database {
namespace {

bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

JobId id_of(std::uint8_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  bytes[0] = number;
  return JobId(bytes);
}

Lease lease_of(std::uint8_t number) {
  Lease lease;
  lease.job.id = id_of(number);
  lease.job.kind = "work";
  lease.token = number;
  return lease;
}

std::shared_ptr<DatabaseBroker> open(const std::shared_ptr<Script>& script, Milliseconds client_timeout = Milliseconds(5'000)) {
  auto opened = DatabaseBroker::open(std::make_unique<ScriptedStore>(script), {.client_timeout = client_timeout, .retention = {}});
  EXPECT_TRUE(opened);
  return *opened;
}

TEST(DatabaseBroker, CallsThatArriveDuringAStepAreJoinedIntoTheNext) {
  auto script = std::make_shared<Script>();
  std::mutex mutex;
  std::condition_variable changed;
  bool go_on = false;
  std::vector<std::size_t> batches;
  script->enqueue = [&, plain = script->enqueue](const std::vector<Job>& jobs) {
    std::unique_lock lock(mutex);
    batches.push_back(jobs.size());
    changed.notify_all();
    changed.wait(lock, [&] { return go_on; });
    lock.unlock();
    return plain(jobs);
  };
  const auto broker = open(script);
  Job job;
  job.kind = "work";
  std::atomic<int> answered = 0;
  const auto enqueue = [&] { broker->enqueue({job}, [&](auto results) { answered += results && results->front(); }); };
  enqueue();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !batches.empty(); });
  }
  for (int i = 0; i < 10; ++i) enqueue();
  {
    const std::lock_guard lock(mutex);
    go_on = true;
    changed.notify_all();
  }
  EXPECT_TRUE(eventually([&] { return answered == 11; }));
  EXPECT_EQ(batches, (std::vector<std::size_t>{1, 10}));
}

TEST(DatabaseBroker, ABusyProcessStillSaysThatItLives) {
  auto script = std::make_shared<Script>();
  std::atomic<int> signs = 0;
  std::atomic<bool> stop = false;
  script->keep_alive = [&] { return ++signs, Status(); };
  script->end = [&](const std::vector<Ending>& endings) {
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The settling lane does not come back.
    return std::vector<Status>(endings.size());
  };
  const auto broker = open(script, Milliseconds(400));
  auto subscription = broker->subscribe({}, [](std::vector<Lease>) {});
  ASSERT_TRUE(subscription);
  broker->settle({Settlement{.lease = {id_of(1), 1}}}, [](auto) {});
  EXPECT_TRUE(eventually([&] { return signs >= 5; }));
  stop = true;
}

// Connections that nobody has used for a while are the first to hang: something on the way has forgotten them.
TEST(DatabaseBroker, AConnectionThatHangsDoesNotKeepBackTheSignOfLife) {
  auto script = std::make_shared<Script>();
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::thread::id> keeper;  // Its lane is the first to look.
  bool keeper_is_held = false;
  bool stop = false;
  std::atomic<int> signs = 0;
  script->overdue = [&] {
    std::unique_lock lock(mutex);
    if (!keeper) keeper = std::this_thread::get_id();
    changed.notify_all();
    changed.wait(lock, [&] { return !keeper_is_held || stop; });
    return Overdue();
  };
  script->keep_alive = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return keeper == std::this_thread::get_id() || stop; });  // On other lanes it hangs.
    return ++signs, Status();
  };
  const auto broker = open(script, Milliseconds(200));
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return keeper.has_value(); });
    keeper_is_held = true;
  }
  auto subscription = broker->subscribe({}, [](std::vector<Lease>) {});
  ASSERT_TRUE(subscription);
  std::atomic<bool> answered = false;
  broker->queues([&](const auto&) { answered = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // Time for another lane to begin what is not its work.
  {
    const std::lock_guard lock(mutex);
    keeper_is_held = false;
    changed.notify_all();
  }
  EXPECT_TRUE(eventually([&] { return signs >= 5 && answered; }));
  const std::lock_guard lock(mutex);
  stop = true;
  changed.notify_all();
}

// "Nothing was done" is said only where that is known.
TEST(DatabaseBroker, AChangeWhoseAnswerWasLostIsUnconfirmedAndALookIsNot) {
  auto script = std::make_shared<Script>();
  script->save_body = script->pause = [] { return Status(Error{ErrorCode::kUnconfirmed, "the answer was lost"}); };
  script->find = [] { return Result<JobInfo>(Error{ErrorCode::kUnconfirmed, "the answer was lost"}); };
  const auto broker = open(script);
  const auto saved = wait<void>([&](auto done) { broker->save_body({id_of(1), 1}, "body", std::move(done)); });
  EXPECT_EQ(saved.error().code, ErrorCode::kUnconfirmed);
  const auto paused = wait<void>([&](auto done) { broker->pause("default", true, std::move(done)); });
  EXPECT_EQ(paused.error().code, ErrorCode::kUnconfirmed);
  const auto found = wait<JobInfo>([&](auto done) { broker->find(id_of(1), std::move(done)); });
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
}

TEST(DatabaseBroker, LeasesWhoseGrantWasNotAnsweredAreGivenBack) {
  auto script = std::make_shared<Script>();
  std::atomic<int> grants = 0;
  std::mutex mutex;
  std::set<std::uint64_t> returned;
  script->grant = [&](const GrantRequest&) -> Result<Granted> {
    if (++grants == 1) return Error{ErrorCode::kUnconfirmed, "the connection is gone"};
    return Granted();
  };
  script->leases_of = [] { return std::vector<LeaseRef>{{id_of(7), 7}}; };
  script->end = [&](const std::vector<Ending>& endings) {
    const std::lock_guard lock(mutex);
    for (const Ending& ending : endings) {
      if (ending.how == Ends::kReturned && !ending.is_settled) returned.insert(ending.lease.token);
    }
    return std::vector<Status>(endings.size());
  };
  const auto broker = open(script);
  auto subscription = broker->subscribe({}, [](std::vector<Lease>) {});
  ASSERT_TRUE(subscription);
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return returned.contains(7);
  }));
}

TEST(DatabaseBroker, ALeaseThatTheServerStillHasIsNotForgottenHere) {
  auto script = std::make_shared<Script>();
  std::atomic<int> grants = 0;
  std::atomic<int> asked = 0;
  script->grant = [&](const GrantRequest&) -> Result<Granted> {
    Granted granted;
    if (++grants == 1) granted.leases.push_back(lease_of(3));
    return granted;
  };
  // The server was away and has given it its whole time anew.
  script->leases_of = [&] { return ++asked, std::vector<LeaseRef>{{id_of(3), 3}}; };
  const auto broker = open(script);
  auto subscription = broker->subscribe({.credit = 1, .lease = Milliseconds(50)}, [](std::vector<Lease>) {});
  ASSERT_TRUE(subscription);
  EXPECT_TRUE(eventually([&] { return asked >= 3; }));
  EXPECT_EQ(grants, 1) << "its credit was free again";
}

TEST(DatabaseBroker, AWatchIsAskedForAgainWhenTheFirstTimeFailed) {
  auto script = std::make_shared<Script>();
  std::atomic<int> asked = 0;
  script->watch = [&](JobId) -> Result<JobInfo> {
    if (++asked <= 3) return Error{ErrorCode::kIoError, "not now"};
    JobInfo info;
    info.state = JobState::kDone;
    return info;
  };
  const auto broker = open(script);
  const auto info = wait<JobInfo>([&](auto done) { (void)broker->watch(id_of(1), std::move(done)); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->state, JobState::kDone);
}

TEST(WeightedTurns, AreSpreadInProportionAmongThoseThatCanGive) {
  std::vector<QueueTurn> turns = {{.name = "heavy", .weight = 3}, {.name = "light", .weight = 1}, {.name = "idle", .weight = 100}};
  std::string order;
  for (int i = 0; i < 8; ++i) order += next_turn(turns, [](std::size_t index) { return index < 2; })->name[0];
  EXPECT_EQ(order, "hhlhhhlh");
  EXPECT_EQ(next_turn(turns, [](std::size_t) { return false; }), nullptr);
}

}  // namespace
}  // namespace bide::brokers::database
