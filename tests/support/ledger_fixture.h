// LedgerFixture: a ledger on a simulated disk and a virtual clock, for the tests of the ledger.

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {

class LedgerFixture : public ::testing::Test {
 protected:
  // What the ledger returns when it is destroyed is not the subject of these tests.
  void TearDown() override { disk_.halt(); }

  void open_ledger(EngineOptions options) {
    options.directory = "/store";
    options.disk = &disk_;
    options.clock = &clock_;
    options.random = &random_;
    auto opened = Ledger::open(std::move(options));
    ASSERT_TRUE(opened) << opened.error().message;
    ledger_ = std::move(*opened);
  }
  // The process dies, or the whole machine.
  void die(support::Survival unsynced) {
    disk_.halt();
    ledger_.reset();
    disk_.crash({.unsynced = unsynced});
  }
  // Everything of a step that comes after the requests. Gives the leases, which may be handed out now.
  std::vector<Lease> end_step() {
    EXPECT_TRUE(ledger_->expire_leases());
    auto deliveries = ledger_->grant();
    EXPECT_TRUE(deliveries);
    EXPECT_TRUE(ledger_->commit());
    for (const auto& callback : ledger_->take_callbacks()) callback({});
    std::vector<Lease> leases;
    for (Delivery& delivery : *deliveries) {
      for (Lease& lease : delivery.leases) leases.push_back(std::move(lease));
    }
    return leases;
  }

  support::SimulatedDisk disk_{1};
  support::VirtualClock clock_;
  support::SeededRandom random_{1};
  std::unique_ptr<Ledger> ledger_;
};

}  // namespace bide::engine
