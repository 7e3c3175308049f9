#include "server/callbacks/server_broker.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bide::server {
namespace {

// Writes down what it is asked, and completes when told to.
class ScriptedBroker : public Broker {
 public:
  explicit ScriptedBroker(std::vector<std::string>& said) : said_(said) {}

  void enqueue(std::vector<Job>, Completion<std::vector<Result<Enqueued>>>) override { said_.push_back("enqueue"); }
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions, LeaseSink) override {
    return std::unique_ptr<Subscription>(std::make_unique<Given>(said_));
  }
  void extend(std::vector<LeaseRef>, Completion<std::vector<Extended>>) override { said_.push_back("extend"); }
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
    said_.push_back("settle " + std::to_string(settlements.size()));
    settled = std::move(done);
  }
  void save_step(LeaseRef, Step step, Completion<void>) override { said_.push_back("step " + step.name); }
  void report_progress(LeaseRef, Progress progress) override { said_.push_back("progress " + progress.note); }
  Pressure pressure() const override { return {}; }
  Capabilities capabilities() const override { return {}; }

  Completion<std::vector<Status>> settled;

 private:
  class Given : public Subscription {
   public:
    explicit Given(std::vector<std::string>& said) : said_(said) {}
    void set_credit(int credit) override { said_.push_back("credit " + std::to_string(credit)); }
    void set_delivery_limit(std::uint64_t) override {}

   private:
    std::vector<std::string>& said_;
  };

  std::vector<std::string>& said_;
};

class ServerBrokerTest : public testing::Test {
 protected:
  static LeaseRef lease(std::uint8_t number, std::uint64_t token = 1) {
    std::array<std::uint8_t, JobId::kSize> bytes{};
    bytes[0] = number;
    return {JobId(bytes), token};
  }
  using Said = std::vector<std::string>;

  Said said;
  std::shared_ptr<ScriptedBroker> inner = std::make_shared<ScriptedBroker>(said);
  std::shared_ptr<SentLeases> leases = std::make_shared<SentLeases>();
  ServerBroker broker{inner, leases, "callbacks"};

  void accept(const LeaseRef& ref) const {
    leases->sent(ref);
    leases->accepted(ref);
  }
  void open() { leases->open(broker.subscribe({}, {}).value(), 2); }
};

TEST_F(ServerBrokerTest, AnAcceptedLeaseGivesNoCreditFromBeforeTheBrokerHearsOfItsSettlement) {
  open();
  accept(lease(1));
  accept(lease(2));
  broker.settle({{.lease = lease(3)}, {.lease = lease(1)}, {.lease = lease(2, 9)}}, [](auto) {});
  EXPECT_EQ(said, (Said{"credit 3", "credit 4", "credit 3", "settle 3"}));
}

TEST_F(ServerBrokerTest, WhatBecameOfTheSettlementIsToldOfSentLeasesOnly) {
  open();
  accept(lease(1));
  accept(lease(2));
  Said told;
  leases->set_on_settled([&](const LeaseRef& about, const Status& status) {
    told.push_back(about.id.to_string().substr(0, 2) + (status ? " fine" : " " + status.error().message));
  });
  bool completed = false;
  broker.settle({{.lease = lease(3)}, {.lease = lease(1)}, {.lease = lease(2)}}, [&](auto) { completed = true; });
  inner->settled(std::vector<Status>{Status(Error{ErrorCode::kLeaseLost, "a"}), Status(),
                                     Status(Error{ErrorCode::kDiskFull, "b"})});
  EXPECT_EQ(told, (Said{"01 fine", "02 b"}));
  EXPECT_TRUE(completed);
}

TEST_F(ServerBrokerTest, WhatIsSettledBeforeItsAnswerCameMakesRoomOnlyWhenItHasCome) {
  open();
  leases->sent(lease(1));
  broker.settle({{.lease = lease(1)}}, [](auto) {});
  EXPECT_EQ(said, (Said{"credit 1", "settle 1"}));
  leases->remove(lease(1));
  EXPECT_EQ(leases->credit(), 2);
}

TEST_F(ServerBrokerTest, WhatIsNotSettledGivesCreditAgain) {
  open();
  accept(lease(1));
  broker.settle({{.lease = lease(1)}}, [](auto) {});
  EXPECT_EQ(leases->credit(), 2);
  leases->not_settled(lease(1));
  EXPECT_EQ(leases->credit(), 3);
}

TEST_F(ServerBrokerTest, ThoseThatEndedElsewhereGiveNoCreditUntilItIsKnownWhichTheyAre) {
  open();
  for (std::uint8_t i = 0; i < 5; ++i) accept(lease(i));
  leases->set_ended_elsewhere(3);
  EXPECT_EQ(leases->credit(), 2 + 2);
  for (std::uint8_t i = 0; i < 3; ++i) leases->remove(lease(i));
  leases->set_ended_elsewhere(0);
  EXPECT_EQ(leases->credit(), 2 + 2);
}

TEST_F(ServerBrokerTest, WhatAnAttemptSaysOfItselfReachesTheBroker) {
  broker.save_step(lease(1), {"charge", "ch_1"}, [](const Status&) {});
  broker.report_progress(lease(1), {0.5, "half"});
  EXPECT_EQ(said, (Said{"step charge", "progress half"}));
  broker.close();
  Status answer;
  broker.save_step(lease(1), {"charge", "ch_1"}, [&](const Status& status) { answer = status; });
  broker.report_progress(lease(1), {0.5, "half"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(said.size(), 2u);
}

TEST_F(ServerBrokerTest, WithoutRoomOnlySentLeasesGiveCredit) {
  open();
  accept(lease(1));
  leases->set_room(0);
  EXPECT_EQ(leases->credit(), 1);
}

TEST_F(ServerBrokerTest, OnceClosedItAnswersInPlaceOfABrokerThatIsGone) {
  const std::weak_ptr<ScriptedBroker> watched = inner;
  inner.reset();
  broker.close();
  EXPECT_TRUE(watched.expired());
  std::vector<ErrorCode> codes;
  broker.enqueue({Job{}}, [&](auto answer) { codes.push_back(answer.error().code); });
  broker.settle({Settlement{}}, [&](auto answer) { codes.push_back(answer.error().code); });
  broker.extend({LeaseRef{}}, [&](auto answer) { codes.push_back(answer.error().code); });
  EXPECT_EQ(codes, std::vector<ErrorCode>(3, ErrorCode::kUnavailable));
  EXPECT_FALSE(broker.subscribe({}, {}));
  EXPECT_EQ(broker.pressure().level, Pressure::Level::kBlocked);
  EXPECT_TRUE(said.empty());
}

}  // namespace
}  // namespace bide::server
