#include "server/api/lease_dispatcher.h"

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
  LeaseDispatcher::Answer answer() {
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

class LeaseDispatcherTest : public testing::Test {
 protected:
  wire::LeaseRequest request(int max = 1, std::string queue = "q") {
    wire::LeaseRequest wanted;
    wanted.queues = {{std::move(queue), 1}};
    wanted.max = max;
    wanted.wait = 60s;
    return wanted;
  }
  std::shared_ptr<LeaseDispatcher::Poll> ask(Asked& asked, wire::LeaseRequest wanted) {
    const auto poll = leases_->make_poll(asked.answer());
    leases_->start(poll, std::move(wanted));
    leases_->subscribe_pending();
    leases_->tick(now_);
    return poll;
  }
  static LeaseRef ref(const Lease& lease) { return {lease.job.id, lease.token}; }

  support::FakeBroker broker_;
  std::shared_ptr<LeaseDispatcher> leases_ = std::make_shared<LeaseDispatcher>(broker_, LeaseDispatcherOptions{});
  Moment now_ = steady_clock::now();
};

TEST_F(LeaseDispatcherTest, ASubscriptionThatIsRefusedLaterIsToldToThoseWhoWait) {
  Asked one, two, again;
  ask(one, request());
  ask(two, request());
  broker_.subscribed().on_failed(Error{ErrorCode::kPermissionDenied, "the token was revoked"});
  EXPECT_EQ(one.wait_error().message, "the token was revoked");
  EXPECT_EQ(two.wait_error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(leases_->counts().pools, 0u);
  leases_->subscribe_pending();
  ask(again, request());
  broker_.give("a");
  EXPECT_EQ(again.wait().size(), 1u) << "the next who asks is subscribed anew";
}

TEST_F(LeaseDispatcherTest, PollersThatGoWithoutAWordAreForgotten) {
  std::vector<Asked> asked(20);
  for (int i = 0; i < 20; ++i) {
    wire::LeaseRequest wanted = request();
    wanted.poller = "p" + std::to_string(i);
    const auto poll = ask(asked[static_cast<std::size_t>(i)], std::move(wanted));
    if (i != 0) leases_->cancel(poll);
  }
  EXPECT_EQ(leases_->counts().pollers, 20u);
  leases_->tick(now_ + 30s);
  EXPECT_EQ(leases_->counts().pollers, 1u) << "this one waits";
}

TEST_F(LeaseDispatcherTest, TheBrokerMayDeliverWhatPollsWantAndNoMore) {
  Asked one, two;
  ask(one, request(2));
  ask(two, request(3));
  EXPECT_EQ(broker_.delivery_limit(), 5u);
  EXPECT_EQ(leases_->counts().pools, 1u);
  broker_.give("a");
  const std::vector<Lease> leases = one.wait();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(broker_.delivery_limit(), 4u);  // One has come, three are wanted.
  // Whatever becomes of it makes no room for another.
  leases_->registry().take({ref(leases[0])});
  EXPECT_EQ(broker_.delivery_limit(), 4u);
  EXPECT_EQ(leases_->counts().out, 0u);
}

TEST_F(LeaseDispatcherTest, WhatWasNotSettledIsStillOut) {
  Asked one;
  ask(one, request());
  broker_.give(Job{.kind = "a", .queue = "q"});
  const LeaseRef lease = ref(one.wait().at(0));
  EXPECT_EQ(leases_->registry().facts(lease)->kind, "a");
  std::vector<LeaseOut> known = leases_->registry().take({lease});
  EXPECT_EQ(leases_->registry().facts(lease), std::nullopt);
  leases_->registry().put_back(std::move(known));
  EXPECT_TRUE(leases_->registry().facts(lease));
  EXPECT_FALSE(leases_->registry().facts({lease.id, lease.token + 1}));
}

TEST_F(LeaseDispatcherTest, APollThatWaitsTooLongGetsNothingAndNothingIsWantedForIt) {
  Asked one;
  ask(one, request(7));
  EXPECT_EQ(broker_.delivery_limit(), 7u);
  leases_->tick(now_ + 59s);
  EXPECT_FALSE(one.answered());
  leases_->tick(now_ + 61s);
  EXPECT_TRUE(one.wait().empty());
  EXPECT_EQ(broker_.delivery_limit(), 0u);
}

TEST_F(LeaseDispatcherTest, LeasesOfAnAnswerThatCouldNotBeWrittenAreReturned) {
  Asked one;
  ask(one, request(2));
  broker_.give("a");
  const LeaseRef lease = ref(one.wait().at(0));
  leases_->answer_lost({lease});
  const std::vector<Settlement> settled = broker_.wait_for_settled(1);
  EXPECT_EQ(settled[0].lease.token, lease.token);
  EXPECT_TRUE(std::holds_alternative<Returned>(settled[0].outcome));
  EXPECT_EQ(leases_->counts().out, 0u);
  // Said a second time, or of a lease that was settled, it does nothing.
  leases_->answer_lost({lease});
  EXPECT_EQ(broker_.settled().size(), 1u);
}

TEST_F(LeaseDispatcherTest, LeasesThatStayWithTheirWorkersAreMarkedAsDeliveredOnce) {
  Asked one, two;
  ask(one, request());
  ask(two, request());
  broker_.give("a", 2);
  const LeaseRef written = ref(one.wait().at(0));
  two.wait();  // Its answer is still being written.
  leases_->answer_written({written});
  EXPECT_TRUE(broker_.marked().empty());
  leases_->tick(steady_clock::now() + 1100ms);
  leases_->tick(steady_clock::now() + 2200ms);
  ASSERT_EQ(broker_.marked().size(), 1u);
  EXPECT_EQ(broker_.marked()[0].token, written.token);
}

TEST_F(LeaseDispatcherTest, AnOrderlyEndMarksWhatWorkersHave) {
  Asked one;
  ask(one, request());
  broker_.give("a");
  const LeaseRef lease = ref(one.wait().at(0));
  leases_->answer_written({lease});
  leases_->stop();
  ASSERT_EQ(broker_.marked().size(), 1u);
  EXPECT_EQ(broker_.marked()[0].token, lease.token);
}

TEST_F(LeaseDispatcherTest, ALeaseOfAPollThatWentAwayGoesToTheNext) {
  Asked one, two, three;
  const auto gone = ask(one, request(2));
  ask(two, request());
  leases_->cancel(gone);
  EXPECT_EQ(broker_.delivery_limit(), 1u);
  broker_.give("a");
  EXPECT_EQ(two.wait().size(), 1u);
  EXPECT_FALSE(one.answered());
}

TEST_F(LeaseDispatcherTest, ALeaseThatNobodyWantsIsHeldForAMomentAndThenReturned) {
  Asked one;
  ask(one, request(2));
  // Two come one after the other, and the first takes the poll away.
  broker_.give("a", 2);
  const std::size_t first = one.wait().size();
  if (first == 1) {
    while (leases_->counts().held == 0 && broker_.not_given_out() == 0) std::this_thread::yield();
  }
  if (leases_->counts().held == 1) {
    Asked two;
    ask(two, request());
    EXPECT_EQ(two.wait().size(), 1u);
  }
  leases_->tick(now_ + 1s);
  EXPECT_EQ(leases_->counts().held, 0u);
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
      void set_credit(int) override { ADD_FAILURE() << "the dispatcher counts deliveries"; }
      void set_delivery_limit(std::uint64_t deliveries) override { broker_.limit = deliveries; }

     private:
      LateBroker& broker_;
    };
    EXPECT_EQ(options.credit, 0);
    options_ = options;
    deliver = std::move(sink);
    if (refuses) return *refuses;
    return std::unique_ptr<Subscription>(std::make_unique<Quiet>(*this));
  }
  LeaseSink deliver;
  std::uint64_t limit = 0;
  SubscribeOptions options_;
  int subscribed = 0;
  int ended = 0;
  std::optional<Error> refuses;
};

class LateLeases : public LeaseDispatcherTest {
 protected:
  void SetUp() override { leases_ = std::make_shared<LeaseDispatcher>(late_, LeaseDispatcherOptions{}); }
  void TearDown() override { leases_ = nullptr; }

  LateBroker late_;
};

TEST_F(LateLeases, AreGivenToTheNextPollOrReturned) {
  Asked one, two;
  leases_->cancel(ask(one, request(3)));
  late_.deliver({late_.lease_of(Job{.kind = "a"}), late_.lease_of(Job{.kind = "b"}), late_.lease_of(Job{.kind = "c"})});
  EXPECT_EQ(leases_->counts().held, 3u);
  ask(two, request(2));
  EXPECT_EQ(two.wait().size(), 2u);
  EXPECT_EQ(leases_->counts().held, 1u);
  leases_->tick(steady_clock::now() + 200ms);
  EXPECT_EQ(leases_->counts().held, 0u);
  EXPECT_EQ(leases_->counts().out, 2u);
  const std::vector<Settlement> settled = late_.wait_for_settled(1);
  EXPECT_TRUE(std::holds_alternative<Returned>(settled[0].outcome));
  EXPECT_EQ(late_.limit, 3u);  // As many as have come.
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
  EXPECT_EQ(late_.limit, 10u);
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
  EXPECT_EQ(leases_->counts().held, 2u);
}

TEST_F(LateLeases, ThatRanOutAreForgotten) {
  Asked one;
  wire::LeaseRequest wanted = request(2);
  wanted.lease = 2s;
  ask(one, std::move(wanted));
  late_.deliver({late_.lease_of(Job{.kind = "a"}), late_.lease_of(Job{.kind = "b"})});
  const std::vector<Lease> leases = one.wait();
  const Moment later = steady_clock::now() + 1500ms;
  leases_->tick(later);
  EXPECT_EQ(leases_->counts().out, 2u);
  leases_->registry().extended({ref(leases[0])}, {Extended{}}, later);
  leases_->tick(later + 1500ms);
  EXPECT_EQ(leases_->counts().out, 1u);
  leases_->tick(later + 3s);
  EXPECT_EQ(leases_->counts().out, 0u);
  EXPECT_EQ(late_.limit, 2u);
}

// A worker died, the broker has ended its leases, and nobody has told the dispatcher.
TEST_F(LateLeases, ThatTheBrokerEndedWithoutAWordMakeNoRoomForOthers) {
  Asked one, two;
  ask(one, request(8));
  std::vector<Lease> leases;
  for (int i = 0; i < 8; ++i) leases.push_back(late_.lease_of(Job{.kind = "a"}));
  late_.deliver(std::move(leases));
  EXPECT_EQ(one.wait().size(), 8u);
  EXPECT_EQ(late_.limit, 8u);
  // What nobody wants does not raise the limit, however much of it comes.
  for (int i = 0; i < 3; ++i) {
    late_.deliver({late_.lease_of(Job{.kind = "b"})});
    EXPECT_EQ(late_.limit, 9u + static_cast<unsigned>(i)) << "as many as have come";
  }
  ask(two, request(2));
  EXPECT_EQ(two.wait().size(), 2u);
  EXPECT_EQ(late_.limit, 11u);
}

TEST_F(LateLeases, OlderThanTheirLeaseAreReturnedAndNotHandedOut) {
  Asked one;
  wire::LeaseRequest wanted = request(3);
  wanted.lease = 2s;
  ask(one, std::move(wanted));
  Lease old = late_.lease_of(Job{.kind = "old"});
  old.age = 2s;
  Lease fresh = late_.lease_of(Job{.kind = "fresh"});
  late_.deliver({old, fresh});
  const std::vector<Lease> leases = one.wait();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].job.kind, "fresh");
  EXPECT_EQ(late_.wait_for_settled(1)[0].lease.token, old.token);
}

TEST_F(LateLeases, OfASubscriptionThatEndedAreReturned) {
  Asked one;
  leases_->cancel(ask(one, request()));
  leases_->tick(steady_clock::now() + 11s);
  leases_->subscribe_pending();
  EXPECT_EQ(leases_->counts().pools, 0u);
  EXPECT_EQ(late_.ended, 1);
  late_.deliver({late_.lease_of(Job{.kind = "a"})});
  EXPECT_TRUE(std::holds_alternative<Returned>(late_.wait_for_settled(1)[0].outcome));
}

TEST_F(LateLeases, ThousandsOfDifferentPollersLeaveNothingBehind) {
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 3000; ++i) {
    leases_->cancel(ask(*asked.emplace_back(std::make_unique<Asked>()), request(1, "q" + std::to_string(i))));
  }
  EXPECT_EQ(leases_->counts().pools, 3000u);
  EXPECT_EQ(leases_->counts().polls, 0u);
  leases_->tick(steady_clock::now() + 11s);
  leases_->subscribe_pending();
  EXPECT_EQ(leases_->counts().pools, 0u);
  EXPECT_EQ(late_.ended, late_.subscribed);
}

TEST_F(LateLeases, TooManyDifferentRequestsAreRefused) {
  leases_ = std::make_shared<LeaseDispatcher>(late_, LeaseDispatcherOptions{.most_pools = 2, .most_named = 1});
  Asked one, two, three;
  ask(one, request(1, "a"));
  ask(two, request(1, "b"));
  ask(three, request(1, "c"));
  EXPECT_EQ(three.wait_error().code, ErrorCode::kOverloaded);
}

TEST_F(LateLeases, WorkersBeyondTheNamedOnesShareASubscription) {
  leases_ = std::make_shared<LeaseDispatcher>(late_, LeaseDispatcherOptions{.most_named = 2});
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 10; ++i) {
    wire::LeaseRequest wanted = request();
    wanted.worker = "w" + std::to_string(i);
    ask(*asked.emplace_back(std::make_unique<Asked>()), std::move(wanted));
  }
  EXPECT_EQ(leases_->counts().pools, 3u);
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
  leases_->leave("p", [&left] { left = true; });
  EXPECT_TRUE(one.wait().empty());
  EXPECT_TRUE(two.wait().empty());
  EXPECT_FALSE(left);
  leases_->subscribe_pending();
  EXPECT_TRUE(left);
  EXPECT_EQ(late_.ended, 2);
  EXPECT_EQ(leases_->counts().pools, 0u);
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
  leases_->leave("p", [&left] { left = true; });
  leases_->subscribe_pending();
  EXPECT_TRUE(left);
  EXPECT_EQ(late_.ended, 0);
  late_.deliver({late_.lease_of(Job{.kind = "a"})});
  EXPECT_EQ(two.wait().size(), 1u);
  EXPECT_TRUE(one.wait().empty());
}

TEST_F(LateLeases, APollHasItsEndWhileTheBrokerStillThinksAboutTheSubscription) {
  Asked one;
  const auto poll = leases_->make_poll(one.answer());
  leases_->start(poll, request());
  leases_->tick(steady_clock::now() + 61s);  // Nobody has subscribed yet.
  EXPECT_TRUE(one.wait().empty());
  leases_->subscribe_pending();
  EXPECT_EQ(late_.limit, 0u);
}

TEST_F(LateLeases, ARefusedSubscriptionIsTold) {
  late_.refuses = Error{ErrorCode::kUnavailable, "not now"};
  Asked one;
  ask(one, request());
  EXPECT_EQ(one.wait_error().message, "not now");
  EXPECT_EQ(leases_->counts().pools, 0u);
}

}  // namespace
}  // namespace bide::server
