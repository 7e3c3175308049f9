#include "server/api/lease_desk.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "support/fake_broker.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// A poll's answer, waited for. It may come when the test is over.
class Asked {
 public:
  LeaseDesk::Answer answer() {
    return [slot = slot_](Result<std::vector<Lease>> leases) {
      std::lock_guard lock(slot->mutex);
      slot->leases = std::move(leases);
      slot->changed.notify_all();
    };
  }
  std::vector<Lease> wait() { return wait_result().value(); }
  Error wait_error() { return wait_result().error(); }
  bool answered() {
    std::lock_guard lock(slot_->mutex);
    return slot_->leases.has_value();
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<std::vector<Lease>>> leases;
  };
  Result<std::vector<Lease>> wait_result() {
    std::unique_lock lock(slot_->mutex);
    slot_->changed.wait(lock, [this] { return slot_->leases.has_value(); });
    return *slot_->leases;
  }

  std::shared_ptr<Slot> slot_ = std::make_shared<Slot>();
};

class LeaseDeskTest : public testing::Test {
 protected:
  wire::LeaseRequest request(int max = 1, std::string queue = "q") {
    wire::LeaseRequest wanted;
    wanted.queues = {{std::move(queue), 1}};
    wanted.max = max;
    wanted.wait = 60s;
    return wanted;
  }
  std::shared_ptr<LeaseDesk::Poll> ask(Asked& asked, wire::LeaseRequest wanted) {
    const auto poll = desk_->make_poll(asked.answer());
    desk_->take(poll, std::move(wanted));
    desk_->tick(now_);
    return poll;
  }
  static LeaseRef ref(const Lease& lease) { return {lease.job.id, lease.token}; }

  support::FakeBroker broker_;
  std::shared_ptr<LeaseDesk> desk_ = std::make_shared<LeaseDesk>(broker_, LeaseDeskOptions{});
  Moment now_ = steady_clock::now();
};

TEST_F(LeaseDeskTest, CreditIsWhatPollsWantAndWhatIsOut) {
  Asked one, two;
  ask(one, request(2));
  ask(two, request(3));
  EXPECT_EQ(broker_.credit(), 5);
  EXPECT_EQ(desk_->counts().pools, 1u);
  broker_.give("a");
  const std::vector<Lease> leases = one.wait();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(broker_.credit(), 4);  // One is out, three are wanted.
  desk_->settling({ref(leases[0])});
  EXPECT_EQ(broker_.credit(), 3);
  EXPECT_EQ(desk_->counts().out, 0u);
}

TEST_F(LeaseDeskTest, WhatWasNotSettledIsStillOut) {
  Asked one;
  ask(one, request());
  broker_.give(Job{.kind = "a", .queue = "q"});
  const LeaseRef lease = ref(one.wait().at(0));
  EXPECT_EQ(desk_->facts(lease)->kind, "a");
  std::vector<LeaseDesk::Out> known = desk_->settling({lease});
  EXPECT_EQ(desk_->facts(lease), std::nullopt);
  EXPECT_EQ(broker_.credit(), 0);
  desk_->not_settled(std::move(known));
  EXPECT_EQ(broker_.credit(), 1);
  EXPECT_TRUE(desk_->facts(lease));
  EXPECT_FALSE(desk_->facts({lease.id, lease.token + 1}));
}

TEST_F(LeaseDeskTest, APollThatWaitsTooLongGetsNothingAndTakesItsCreditAlong) {
  Asked one;
  ask(one, request(7));
  EXPECT_EQ(broker_.credit(), 7);
  desk_->tick(now_ + 59s);
  EXPECT_FALSE(one.answered());
  desk_->tick(now_ + 61s);
  EXPECT_TRUE(one.wait().empty());
  EXPECT_EQ(broker_.credit(), 0);
}

TEST_F(LeaseDeskTest, ALeaseOfAPollThatWentAwayGoesToTheNext) {
  Asked one, two, three;
  const auto gone = ask(one, request(2));
  ask(two, request());
  desk_->give_up(gone);
  EXPECT_EQ(broker_.credit(), 1);
  broker_.give("a");
  EXPECT_EQ(two.wait().size(), 1u);
  EXPECT_FALSE(one.answered());
}

TEST_F(LeaseDeskTest, ALeaseThatNobodyWantsIsHeldForAMomentAndThenReturned) {
  Asked one;
  ask(one, request(2));
  // Two come one after the other, and the first takes the poll away.
  broker_.give("a", 2);
  const std::size_t first = one.wait().size();
  if (first == 1) {
    while (desk_->counts().held == 0 && broker_.not_given_out() == 0) std::this_thread::yield();
  }
  if (desk_->counts().held == 1) {
    Asked two;
    ask(two, request());
    EXPECT_EQ(two.wait().size(), 1u);
  }
  desk_->tick(now_ + 1s);
  EXPECT_EQ(desk_->counts().held, 0u);
}

// The broker was asked for more than anybody wants any more.
class LateBroker : public support::FakeBroker {
 public:
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override {
    ++subscribed;
    class Quiet : public Subscription {
     public:
      explicit Quiet(LateBroker& broker) : broker_(broker) {}
      ~Quiet() override { ++broker_.ended; }
      void set_credit(int credit) override { broker_.credits.push_back(credit); }

     private:
      LateBroker& broker_;
    };
    credits.push_back(options.credit);
    options_ = options;
    deliver = std::move(sink);
    if (refuses) return *refuses;
    return std::unique_ptr<Subscription>(std::make_unique<Quiet>(*this));
  }
  LeaseSink deliver;
  std::vector<int> credits;
  SubscribeOptions options_;
  int subscribed = 0;
  int ended = 0;
  std::optional<Error> refuses;
};

class LateLeases : public LeaseDeskTest {
 protected:
  void SetUp() override { desk_ = std::make_shared<LeaseDesk>(late_, LeaseDeskOptions{}); }
  void TearDown() override { desk_ = nullptr; }

  LateBroker late_;
};

TEST_F(LateLeases, AreGivenToTheNextPollOrReturned) {
  Asked one, two;
  desk_->give_up(ask(one, request(3)));
  late_.deliver({late_.lease_of(Job{.kind = "a"}), late_.lease_of(Job{.kind = "b"}), late_.lease_of(Job{.kind = "c"})});
  EXPECT_EQ(desk_->counts().held, 3u);
  ask(two, request(2));
  EXPECT_EQ(two.wait().size(), 2u);
  EXPECT_EQ(desk_->counts().held, 1u);
  desk_->tick(steady_clock::now() + 200ms);
  EXPECT_EQ(desk_->counts().held, 0u);
  EXPECT_EQ(desk_->counts().out, 2u);
  const std::vector<Settlement> settled = late_.wait_for_settled(1);
  EXPECT_TRUE(std::holds_alternative<Returned>(settled[0].outcome));
  EXPECT_EQ(late_.credits.back(), 2);
}

TEST_F(LateLeases, AreSharedOutEvenly) {
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 4; ++i) ask(*asked.emplace_back(std::make_unique<Asked>()), request(10));
  std::vector<Lease> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(late_.lease_of(Job{.kind = "a"}));
  late_.deliver(std::move(leases));
  std::vector<std::size_t> shares;
  for (const auto& each : asked) shares.push_back(each->wait().size());
  EXPECT_EQ(shares, (std::vector<std::size_t>{3, 3, 2, 2}));
  EXPECT_EQ(late_.credits.back(), 10);
}

TEST_F(LateLeases, NeverExceedWhatAPollAskedFor) {
  Asked one, two;
  ask(one, request(1));
  ask(two, request(5));
  std::vector<Lease> leases;
  for (int i = 0; i < 8; ++i) leases.push_back(late_.lease_of(Job{.kind = "a"}));
  late_.deliver(std::move(leases));
  EXPECT_EQ(one.wait().size(), 1u);
  EXPECT_EQ(two.wait().size(), 5u);
  EXPECT_EQ(desk_->counts().held, 2u);
}

TEST_F(LateLeases, ThatRanOutAreForgotten) {
  Asked one;
  wire::LeaseRequest wanted = request(2);
  wanted.lease = 2s;
  ask(one, std::move(wanted));
  late_.deliver({late_.lease_of(Job{.kind = "a"}), late_.lease_of(Job{.kind = "b"})});
  const std::vector<Lease> leases = one.wait();
  EXPECT_EQ(late_.credits.back(), 2);
  const Moment later = steady_clock::now() + 1500ms;
  desk_->tick(later);
  EXPECT_EQ(desk_->counts().out, 2u);
  desk_->extended({ref(leases[0])}, {Extended{}});
  EXPECT_EQ(late_.credits.back(), 2);
  desk_->tick(later + 2s);
  EXPECT_EQ(desk_->counts().out, 0u);
  EXPECT_EQ(late_.credits.back(), 0);
}

TEST_F(LateLeases, OfASubscriptionThatEndedAreReturned) {
  Asked one;
  desk_->give_up(ask(one, request()));
  desk_->tick(steady_clock::now() + 11s);
  EXPECT_EQ(desk_->counts().pools, 0u);
  EXPECT_EQ(late_.ended, 1);
  late_.deliver({late_.lease_of(Job{.kind = "a"})});
  EXPECT_TRUE(std::holds_alternative<Returned>(late_.wait_for_settled(1)[0].outcome));
}

TEST_F(LateLeases, ThousandsOfDifferentPollersLeaveNothingBehind) {
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 3000; ++i) {
    desk_->give_up(ask(*asked.emplace_back(std::make_unique<Asked>()), request(1, "q" + std::to_string(i))));
  }
  EXPECT_EQ(desk_->counts().pools, 3000u);
  EXPECT_EQ(desk_->counts().polls, 0u);
  desk_->tick(steady_clock::now() + 11s);
  EXPECT_EQ(desk_->counts().pools, 0u);
  EXPECT_EQ(late_.ended, late_.subscribed);
}

TEST_F(LateLeases, TooManyDifferentRequestsAreRefused) {
  desk_ = std::make_shared<LeaseDesk>(late_, LeaseDeskOptions{.most_pools = 2, .most_named = 1});
  Asked one, two, three;
  ask(one, request(1, "a"));
  ask(two, request(1, "b"));
  ask(three, request(1, "c"));
  EXPECT_EQ(three.wait_error().code, ErrorCode::kOverloaded);
}

TEST_F(LateLeases, WorkersBeyondTheNamedOnesShareASubscription) {
  desk_ = std::make_shared<LeaseDesk>(late_, LeaseDeskOptions{.most_named = 2});
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 10; ++i) {
    wire::LeaseRequest wanted = request();
    wanted.worker = "w" + std::to_string(i);
    ask(*asked.emplace_back(std::make_unique<Asked>()), std::move(wanted));
  }
  EXPECT_EQ(desk_->counts().pools, 3u);
  EXPECT_EQ(late_.options_.worker, "http");
  EXPECT_TRUE(late_.options_.outlives_process);
}

TEST_F(LateLeases, OfAPollerThatLeavesAreReturnedAndItsSubscriptionEnds) {
  Asked one, two;
  wire::LeaseRequest wanted = request();
  wanted.poller = "p";
  ask(one, wanted);
  wanted.queues = {{"other", 1}};
  ask(two, wanted);
  bool left = false;
  desk_->leave("p", [&left] { left = true; });
  EXPECT_TRUE(one.wait().empty());
  EXPECT_TRUE(two.wait().empty());
  EXPECT_FALSE(left);
  desk_->tick(steady_clock::now());
  EXPECT_TRUE(left);
  EXPECT_EQ(late_.ended, 2);
  EXPECT_EQ(desk_->counts().pools, 0u);
  late_.deliver({late_.lease_of(Job{.kind = "a"})});
  EXPECT_TRUE(std::holds_alternative<Returned>(late_.wait_for_settled(1)[0].outcome));
}

TEST_F(LateLeases, GoToThoseWhoStayWhenOnePollerLeaves) {
  Asked one, two;
  wire::LeaseRequest wanted = request();
  wanted.poller = "p";
  ask(one, wanted);
  wanted.poller = "q";
  ask(two, wanted);
  bool left = false;
  desk_->leave("p", [&left] { left = true; });
  desk_->tick(steady_clock::now());
  EXPECT_TRUE(left);
  EXPECT_EQ(late_.ended, 0);
  late_.deliver({late_.lease_of(Job{.kind = "a"})});
  EXPECT_EQ(two.wait().size(), 1u);
  EXPECT_TRUE(one.wait().empty());
}

TEST_F(LateLeases, ARefusedSubscriptionIsTold) {
  late_.refuses = Error{ErrorCode::kUnavailable, "not now"};
  Asked one;
  ask(one, request());
  EXPECT_EQ(one.wait_error().message, "not now");
  EXPECT_EQ(desk_->counts().pools, 0u);
}

}  // namespace
}  // namespace bide::server
