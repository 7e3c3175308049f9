// JournalFixture: a journal of short texts on a simulated disk, for the tests of the journal.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/journal/journal.h"
#include "support/simulated_disk.h"

namespace bide::engine::journal {

inline constexpr std::uint8_t kTextType = 100;

inline RecordRef add(Journal& journal, std::string_view text) {
  journal.begin(kTextType, 1).raw(text);
  return journal.finish();
}

inline RecordVisitor collect(std::vector<std::string>& texts) {
  return [&texts](const RecordView& view) -> Status {
    texts.emplace_back(view.payload);
    return {};
  };
}

class JournalFixture : public ::testing::Test {
 protected:
  using Texts = std::vector<std::string>;

  // What is in it afterwards is in texts_.
  Result<std::unique_ptr<Journal>> try_open(platform::Disk& disk, Address from = 0) {
    texts_.clear();
    return Journal::open(disk, "/journal", options_, from, collect(texts_));
  }
  std::unique_ptr<Journal> open(Address from = 0) { return std::move(try_open(disk_, from)).value(); }

  static RecordRef commit(Journal& journal, std::string_view text) {
    const RecordRef ref = add(journal, text);
    journal.write().value();
    journal.sync().value();
    return ref;
  }

  // As if the process had been killed: nothing is closed.
  void kill(std::unique_ptr<Journal>& journal) {
    disk_.halt();
    journal.reset();
    disk_.crash({.unsynced = support::Survival::kEverything});
  }
  void lose_power(std::unique_ptr<Journal>& journal, const support::CrashOptions& how = {}) {
    disk_.halt();
    journal.reset();
    disk_.crash(how);
  }

  support::SimulatedDisk disk_{7};
  JournalOptions options_{.segment_bytes = 64 << 10, .prewrite_bytes = 8 << 10};
  Texts texts_;
};

}  // namespace bide::engine::journal
