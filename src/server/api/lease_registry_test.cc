#include "server/api/lease_registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "support/fake_broker.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

class LeaseRegistryTest : public testing::Test {
 protected:
  static LeaseRef ref(const Lease& lease) { return {lease.job.id, lease.token}; }
  Lease add(Milliseconds time = 10s) {
    const Lease lease = support::FakeBroker::lease_of(Job{.kind = "a"});
    registry_.add({lease}, time, now_);
    return lease;
  }

  int wakes_ = 0;
  LeaseRegistry registry_{[this] { ++wakes_; }};
  const Moment now_ = std::chrono::steady_clock::now();
};

TEST_F(LeaseRegistryTest, ATableThatIsNotEmptyHasANextSweep) {
  EXPECT_FALSE(registry_.next_sweep());
  const Lease lease = add();
  EXPECT_TRUE(registry_.next_sweep());
  EXPECT_EQ(wakes_, 1);
  std::vector<LeaseOut> taken = registry_.take({ref(lease)});
  EXPECT_FALSE(registry_.next_sweep());
  // The settlement failed: it is out again, and will be looked at again.
  registry_.put_back(std::move(taken));
  EXPECT_TRUE(registry_.next_sweep());
  EXPECT_EQ(wakes_, 2);
  registry_.sweep(now_ + 20s);
  EXPECT_EQ(registry_.size(), 0u);
  EXPECT_FALSE(registry_.next_sweep());
}

TEST_F(LeaseRegistryTest, ALeaseThatWasLostIsForgotten) {
  const Lease lease = add();
  registry_.extended({ref(lease)}, {Extended{.lost = true}}, now_);
  EXPECT_EQ(registry_.size(), 0u);
  EXPECT_FALSE(registry_.next_sweep());
}

TEST_F(LeaseRegistryTest, ALeaseIsMarkedWhenItsAnswerWasWrittenAWhileAgo) {
  const Lease lease = add();
  EXPECT_TRUE(registry_.sweep(now_ + 1s).empty());
  registry_.written({ref(lease)}, now_ + 1900ms);
  EXPECT_TRUE(registry_.sweep(now_ + 2s).empty());
  EXPECT_EQ(registry_.sweep(now_ + 3s).size(), 1u);
  EXPECT_TRUE(registry_.sweep(now_ + 4s).empty());
}

TEST_F(LeaseRegistryTest, ALeaseThatWasExtendedNeedsNoMark) {
  const Lease lease = add();
  registry_.written({ref(lease)}, now_);
  registry_.extended({ref(lease)}, {Extended{}}, now_);
  EXPECT_TRUE(registry_.sweep(now_ + 3s).empty());
  EXPECT_TRUE(registry_.take_unmarked().empty());
}

TEST_F(LeaseRegistryTest, AStaleTokenChangesNothing) {
  const Lease lease = add();
  const LeaseRef stale{lease.job.id, lease.token + 1};
  registry_.written({stale}, now_);
  EXPECT_TRUE(registry_.take({stale}).empty());
  EXPECT_FALSE(registry_.facts(stale));
  EXPECT_TRUE(registry_.facts(ref(lease)));
  EXPECT_TRUE(registry_.take_unmarked().empty());
}

}  // namespace
}  // namespace bide::server
