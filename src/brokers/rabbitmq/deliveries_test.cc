#include "brokers/rabbitmq/deliveries.h"

#include <array>

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq {
namespace {

using std::chrono::seconds;

JobId id_of(std::uint8_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  bytes[0] = number;
  return JobId(bytes);
}

class LeasesTest : public ::testing::Test {
 protected:
  HeldLease lease(std::uint8_t number, Steady until) {
    HeldLease held;
    held.delivery.job.message.job.id = id_of(number);
    held.owner = owner_;
    held.token = number;
    held.lease_until = until;
    held.limit_until = Steady::max();
    owner_->out += 1;
    return held;
  }

  const Steady start_ = {};
  const std::shared_ptr<Subscriber> owner_ = std::make_shared<Subscriber>();
  Leases leases_;
};

TEST_F(LeasesTest, ALeaseIsFoundByItsTokenOnly) {
  leases_.add(lease(1, start_ + seconds(1)));
  EXPECT_NE(leases_.find(LeaseRef{id_of(1), 1}), nullptr);
  EXPECT_EQ(leases_.find(LeaseRef{id_of(1), 2}), nullptr);
  EXPECT_EQ(leases_.find(LeaseRef{id_of(2), 1}), nullptr);
}

TEST_F(LeasesTest, TheOwnerCountsItsLeases) {
  leases_.add(lease(1, start_));
  leases_.add(lease(2, start_));
  EXPECT_EQ(owner_->leased, 2);
  leases_.remove(id_of(1));
  EXPECT_EQ(owner_->leased, 1);
  EXPECT_EQ(owner_->out, 1);
  EXPECT_EQ(owner_->delivered, 2u);
}

TEST_F(LeasesTest, ALeaseThatWasExtendedExpiresLater) {
  leases_.add(lease(1, start_ + seconds(1))).lease_until = start_ + seconds(3);
  leases_.add(lease(2, start_ + seconds(2)));
  EXPECT_EQ(leases_.expired(start_ + seconds(2)), std::vector{id_of(2)});
  EXPECT_EQ(leases_.next_deadline(), start_ + seconds(3));
  EXPECT_EQ(leases_.expired(start_ + seconds(3)), std::vector{id_of(1)});
}

TEST_F(LeasesTest, ALeaseThatIsBeingSettledExpiresOnlyWhenItIsWatchedAgain) {
  HeldLease& held = leases_.add(lease(1, start_ + seconds(1)));
  held.state = HeldLease::State::kSettling;
  EXPECT_TRUE(leases_.any_settling());
  EXPECT_TRUE(leases_.expired(start_ + seconds(2)).empty());
  held.state = HeldLease::State::kOut;
  leases_.watch(id_of(1), held);
  EXPECT_EQ(leases_.expired(start_ + seconds(2)), std::vector{id_of(1)});
}

TEST_F(LeasesTest, ALastChanceCountsAsLongAsItsLease) {
  HeldLease held = lease(1, start_);
  held.last_chance = true;
  leases_.add(std::move(held));
  EXPECT_EQ(leases_.last_chances(), 1);
  leases_.remove(id_of(1));
  EXPECT_EQ(leases_.last_chances(), 0);
}

TEST_F(LeasesTest, CountingADeliveryTwiceIsFatal) {
  EXPECT_DEATH(owner_->one_out_less(), "once");
}

TEST(UnconfirmedCopies, ACopyThatIsNotTakenInTimeIsStalledUntilItsAnswer) {
  UnconfirmedCopies copies;
  int stalled = 0;
  const Steady start = {};
  const auto copy = copies.begin(100, start, [&](int by) { stalled += by; });
  copies.find_stalled(start + UnconfirmedCopies::kStalled - Milliseconds(1));
  EXPECT_EQ(stalled, 0);
  EXPECT_EQ(copies.next(), start + UnconfirmedCopies::kStalled);
  copies.find_stalled(copies.next());
  EXPECT_EQ(stalled, 1);
  copies.end(*copy);
  EXPECT_EQ(stalled, 0);
  EXPECT_EQ(copies.next(), Steady::max());
}

TEST(UnconfirmedCopies, ACopyThatIsAnsweredInTimeNeverStalls) {
  UnconfirmedCopies copies;
  int stalled = 0;
  const auto copy = copies.begin(100, {}, [&](int by) { stalled += by; });
  copies.end(*copy);
  copies.find_stalled(Steady() + seconds(1));
  EXPECT_EQ(stalled, 0);
}

TEST(UnconfirmedCopies, BytesThatMayStallAreLimited) {
  UnconfirmedCopies copies;
  int stalled = 0;
  std::vector<std::shared_ptr<UnconfirmedCopies::Copy>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(copies.begin(UnconfirmedCopies::kMostStalledBytes + 1, {}, [&](int by) { stalled += by; }));
  }
  copies.find_stalled(Steady() + seconds(1));
  EXPECT_EQ(stalled, 1);
  for (const auto& copy : all) copies.end(*copy);
  EXPECT_EQ(stalled, 0);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
