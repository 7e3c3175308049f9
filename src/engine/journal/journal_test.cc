#include "engine/journal/journal.h"

#include <filesystem>
#include <map>

#include "engine/journal/layout.h"
#include "support/journal_fixture.h"
#include "support/temporary_directory.h"

namespace bide::engine::journal {
namespace {

using support::Fault;
using support::Operation;

using JournalTest = JournalFixture;

TEST_F(JournalTest, WhatIsWrittenComesBackInOrder) {
  auto journal = open();
  EXPECT_TRUE(texts_.empty());
  add(*journal, "one");
  add(*journal, "");
  ASSERT_TRUE(journal->write());
  commit(*journal, "three");
  journal.reset();
  journal = open();
  EXPECT_EQ(texts_, (Texts{"one", "", "three"}));
  commit(*journal, "four");
  journal.reset();
  open();
  EXPECT_EQ(texts_, (Texts{"one", "", "three", "four"}));
}

TEST_F(JournalTest, ItWorksOnARealDisk) {
  support::TemporaryDirectory folder;
  const std::string directory = folder.path() + "/journal";
  options_.segment_bytes = 1000;
  Texts expected;
  {
    auto journal = Journal::open(platform::real_disk(), directory, options_, 0, collect(texts_));
    ASSERT_TRUE(journal) << journal.error().message;
    for (int i = 0; i < 100; ++i) {
      expected.push_back("record " + std::to_string(i));
      ASSERT_TRUE((*journal)->reserve(100));
      commit(**journal, expected.back());
      if (i % 7 == 0) {
        ASSERT_TRUE((*journal)->idle());
      }
    }
    EXPECT_GT((*journal)->segments().size(), 3u);
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      if (file.path().extension() == ".seg") bytes += file.file_size();
    }
    EXPECT_EQ((*journal)->disk_bytes(), bytes);
  }
  auto journal = Journal::open(platform::real_disk(), directory, options_, 0, collect(texts_));
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_EQ(texts_, expected);
  EXPECT_TRUE((*journal)->torn_tails().empty());
  journal->reset();
  // Read by another thread it is the same.
  options_.read_ahead = true;
  texts_.clear();
  journal = Journal::open(platform::real_disk(), directory, options_, 0, collect(texts_));
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_EQ(texts_, expected);
}

TEST_F(JournalTest, AnAddressIsFinalBeforeTheRecordIsWritten) {
  auto journal = open();
  const RecordRef first = add(*journal, "first");
  const RecordRef second = add(*journal, "second");
  EXPECT_EQ(second.address, first.address + first.bytes);
  EXPECT_EQ(journal->end(), second.address + second.bytes);
  EXPECT_FALSE(journal->batch_empty());
  EXPECT_EQ(journal->read(second).value().payload, "second");
  ASSERT_TRUE(journal->write());
  EXPECT_TRUE(journal->batch_empty());
  EXPECT_EQ(journal->end(), journal->written());
  EXPECT_LT(journal->synced(), journal->written());
  ASSERT_TRUE(journal->sync());
  EXPECT_EQ(journal->synced(), journal->written());
  EXPECT_EQ(journal->read(first).value().payload, "first");
  EXPECT_EQ(journal->read(first).value().type, kTextType);
}

TEST_F(JournalTest, WhatIsOnItsWayToTheDiskCanBeReadAndBuiltUpon) {
  auto journal = open();
  const RecordRef first = add(*journal, "first");
  const auto to_disk = journal->begin_commit();
  EXPECT_TRUE(journal->batch_empty());
  EXPECT_EQ(journal->read(first).value().payload, "first");
  const RecordRef second = add(*journal, "second");
  EXPECT_GT(second.address, first.address);
  EXPECT_EQ(journal->read(second).value().payload, "second");
  EXPECT_LT(journal->synced(), first.address + first.bytes);
  ASSERT_TRUE(journal->end_commit(to_disk()));
  EXPECT_GE(journal->synced(), first.address + first.bytes);
  ASSERT_TRUE(journal->write());
  EXPECT_EQ(journal->read(first).value().payload, "first");
  journal.reset();
  open();
  EXPECT_EQ(texts_, (Texts{"first", "second"}));
}

TEST_F(JournalTest, NothingIsConfirmedAfterACommitThatFailed) {
  for (const Operation operation : {Operation::kWrite, Operation::kSync}) {
    auto journal = open();
    commit(*journal, "before");
    add(*journal, "lost");
    const auto to_disk = journal->begin_commit();
    disk_.plan({.operation = operation});
    EXPECT_FALSE(journal->end_commit(to_disk()));
    EXPECT_FALSE(journal->sync());
    EXPECT_EQ(disk_.faults_outstanding(), 0u);
  }
}

TEST_F(JournalTest, OpeningBeginsWhereItIsTold) {
  auto journal = open();
  commit(*journal, "old");
  const Address from = journal->written();
  commit(*journal, "new");
  journal.reset();
  open(from);
  EXPECT_EQ(texts_, (Texts{"new"}));
}

TEST_F(JournalTest, SegmentsFollowOneAnotherWithoutAGap) {
  options_.segment_bytes = 300;
  auto journal = open();
  Texts expected;
  std::map<Address, std::string> where;
  std::vector<RecordRef> refs;
  for (int i = 0; i < 40; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i), 'a'));
    refs.push_back(commit(*journal, expected.back()));
  }
  const auto segments = journal->segments();
  ASSERT_GT(segments.size(), 5u);
  for (std::size_t i = 1; i < segments.size(); ++i) {
    EXPECT_EQ(segments[i - 1].end, segments[i].base);
    EXPECT_EQ(segments[i].path, "/journal/" + segment_name(segments[i].base));
    EXPECT_EQ(disk_.contents(segments[i - 1].path).size(), segments[i].base - segments[i - 1].base);
  }
  for (std::size_t i = 0; i < refs.size(); ++i) EXPECT_EQ(journal->read(refs[i]).value().payload, expected[i]);
  journal.reset();
  journal = open();
  EXPECT_EQ(texts_, expected);
  for (std::size_t i = refs.size(); i-- > 0;) EXPECT_EQ(journal->read(refs[i]).value().payload, expected[i]);
}

TEST_F(JournalTest, ABatchIsNeverSplitHoweverLargeItIs) {
  options_.segment_bytes = 1000;
  auto journal = open();
  const std::string large(100'000, 'x');
  add(*journal, "small");
  add(*journal, large);
  ASSERT_TRUE(journal->write());
  ASSERT_TRUE(journal->sync());
  EXPECT_EQ(journal->segments().size(), 2u);
  journal.reset();
  open();
  EXPECT_EQ(texts_, (Texts{"small", large}));
}

TEST_F(JournalTest, ASegmentBeforeTheSnapshotCanBeRemoved) {
  options_.segment_bytes = 200;
  auto journal = open();
  std::vector<RecordRef> refs;
  for (int i = 0; i < 20; ++i) refs.push_back(commit(*journal, "text " + std::to_string(i)));
  ASSERT_GT(journal->segments().size(), 4u);
  const std::uint64_t before = journal->disk_bytes();
  ASSERT_TRUE(journal->read(refs.front()));
  // From the middle, too: what compaction leaves behind has gaps.
  for (const std::size_t segment : {2u, 0u}) {
    ASSERT_TRUE(disk_.remove(journal->forget(journal->segments()[segment].base).value()));
  }
  ASSERT_TRUE(disk_.sync_directory("/journal"));
  EXPECT_LT(journal->disk_bytes(), before);
  const auto gone = journal->read(refs.front());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kDamaged);
  const Address from = journal->written();
  lose_power(journal);
  journal = open(from);
  EXPECT_TRUE(texts_.empty());
  EXPECT_EQ(journal->read(refs.back()).value().payload, "text 19");
  journal.reset();
  const auto without_snapshot = try_open(disk_);
  ASSERT_FALSE(without_snapshot);
  EXPECT_EQ(without_snapshot.error().code, ErrorCode::kDamaged);
}

TEST_F(JournalTest, AScanGoesThroughASegmentInPieces) {
  options_.segment_bytes = 4000;
  auto journal = open();
  Texts expected;
  while (journal->segments().size() < 2) {
    expected.push_back("text " + std::to_string(expected.size()));
    commit(*journal, expected.back());
  }
  const Segment segment = journal->segments().front();
  Texts seen;
  Address at = segment.base;
  Address stopped_at = 0;
  int pieces = 0;
  for (; at < segment.end; ++pieces) {
    at = journal->scan(segment.base, at, 500, collect(seen), stopped_at).value();
  }
  EXPECT_EQ(seen, expected);
  EXPECT_GT(pieces, 4);
}

TEST_F(JournalTest, TheVisitorOfAScanMayAppend) {
  options_.segment_bytes = 1000;
  auto journal = open();
  while (journal->segments().size() < 2) commit(*journal, "text " + std::to_string(journal->written()));
  Texts seen;
  const Segment segment = journal->segments().front();
  const auto copy = [&](const RecordView& view) -> Status {
    seen.emplace_back(view.payload);
    add(*journal, std::string("copy of ") + std::string(view.payload));
    return {};
  };
  Address stopped_at = 0;
  const auto end = journal->scan(segment.base, segment.base, 1 << 20, copy, stopped_at);
  EXPECT_EQ(end.value(), segment.end);
  ASSERT_TRUE(journal->write());
  ASSERT_TRUE(journal->sync());
  journal.reset();
  open();
  ASSERT_EQ(texts_.size(), 2 * seen.size());
  EXPECT_EQ(texts_.back(), "copy of " + seen.back());
}

TEST_F(JournalTest, ReadsInOrderAreReadAhead) {
  options_.segment_bytes = 64 << 20;
  auto journal = open();
  std::vector<RecordRef> refs;
  for (int i = 0; i < 5000; ++i) refs.push_back(add(*journal, std::string(200, static_cast<char>('a' + i % 26))));
  ASSERT_TRUE(journal->write());
  commit(*journal, "the newest batch is in memory");
  const std::uint64_t before = disk_.operation_count(Operation::kRead);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(journal->read(refs[static_cast<std::size_t>(i)]).value().payload[7], 'a' + i % 26);
  }
  EXPECT_LT(disk_.operation_count(Operation::kRead) - before, 15u);
}

TEST_F(JournalTest, ReservedSpaceIsThereWhenTheDiskIsFull) {
  options_.segment_bytes = 16 << 10;
  auto journal = open();
  ASSERT_TRUE(journal->reserve(100'000));
  disk_.set_capacity(disk_.used_bytes());
  std::uint64_t bytes = 0;
  Texts expected;
  while (bytes + 1000 < 100'000) {
    expected.push_back(std::string(1000, static_cast<char>('a' + expected.size() % 26)));
    const RecordRef ref = add(*journal, expected.back());
    bytes += ref.bytes;
    const Status written = journal->write();
    ASSERT_TRUE(written) << written.error().message;
    ASSERT_TRUE(journal->sync());
  }
  const Status more = journal->reserve(10 << 20);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kDiskFull);
  journal.reset();
  disk_.set_capacity(1ull << 30);
  journal = open();
  EXPECT_EQ(texts_, expected);
  // With space again, segments are begun again.
  for (int i = 0; i < 2000; ++i) commit(*journal, std::string(1000, 'x'));
  EXPECT_GT(journal->segments().size(), 2u);
}

TEST_F(JournalTest, WhatWasReservedIsReservedInTheNextSegmentToo) {
  options_.segment_bytes = 16 << 10;
  auto journal = open();
  ASSERT_TRUE(journal->reserve(100'000));
  int texts = 0;
  for (; journal->segments().size() < 2; ++texts) commit(*journal, std::string(990, 'x'));
  disk_.set_capacity(disk_.used_bytes());
  for (; texts < 100; ++texts) {
    add(*journal, std::string(990, 'x'));
    const Status written = journal->write();
    ASSERT_TRUE(written) << written.error().message << " after " << texts;
    ASSERT_TRUE(journal->sync());
    disk_.set_capacity(disk_.used_bytes());  // Whatever is given back is taken by somebody else.
  }
}

TEST_F(JournalTest, ReservingWhatIsReservedTouchesNothing) {
  auto journal = open();
  ASSERT_TRUE(journal->reserve(10'000));
  const std::uint64_t before = disk_.operation_count();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(journal->reserve(1000));
    add(*journal, std::string(500, 'x'));
  }
  EXPECT_EQ(disk_.operation_count(), before);
}

TEST_F(JournalTest, NothingIsConfirmedAfterAFailedSync) {
  auto journal = open();
  commit(*journal, "kept");
  disk_.plan({.operation = Operation::kSync});
  add(*journal, "lost");
  ASSERT_TRUE(journal->write());
  EXPECT_FALSE(journal->sync());
  EXPECT_FALSE(journal->sync());
  EXPECT_LT(journal->synced(), journal->written());
  add(*journal, "more");
  EXPECT_FALSE(journal->write());
  EXPECT_FALSE(journal->reserve(1));
  EXPECT_FALSE(journal->idle());
  const std::uint64_t syncs = disk_.operation_count(Operation::kSync);
  journal.reset();
  EXPECT_EQ(disk_.operation_count(Operation::kSync), syncs);
  EXPECT_EQ(disk_.faults_outstanding(), 0u);
}

TEST_F(JournalTest, NothingIsConfirmedAfterAFailedWrite) {
  for (const Fault fault : {Fault::kIoError, Fault::kDiskFull, Fault::kShortWrite}) {
    auto journal = open();
    disk_.plan({.operation = Operation::kWrite, .fault = fault});
    add(*journal, std::string(10'000, 'x'));
    EXPECT_FALSE(journal->write());
    EXPECT_FALSE(journal->write());
    EXPECT_FALSE(journal->sync());
    EXPECT_EQ(disk_.faults_outstanding(), 0u);
  }
}

TEST_F(JournalTest, ASegmentAndItsNameAreDurableBeforeAnythingIsWrittenToIt) {
  options_.segment_bytes = 400;
  auto journal = open();
  std::map<std::string, int> progress;  // 1: made, 2: synced, 3: and the directory after that.
  int violations = 0;
  disk_.on_operation([&](const support::OperationInfo& info) {
    const std::string path(info.path);
    if (info.operation == Operation::kCreate) progress[path] = 1;
    if (info.operation == Operation::kSync && progress.count(path)) progress[path] = 2;
    if (info.operation == Operation::kSyncDirectory) {
      for (auto& [file, step] : progress) step = step == 2 ? 3 : step;
    }
    if (info.operation == Operation::kWrite && info.offset > 0 && progress.count(path) && progress[path] != 3 &&
        info.offset == kSegmentHeaderBytes) {
      ++violations;
    }
  });
  for (int i = 0; i < 30; ++i) commit(*journal, "some text " + std::to_string(i));
  EXPECT_GT(progress.size(), 2u);
  EXPECT_EQ(violations, 0);
  disk_.on_operation(nullptr);
}

TEST_F(JournalTest, TheFirstSegmentAndTheDirectoryAreDurableWhenOpenReturns) {
  auto journal = open();
  lose_power(journal, {.unsynced = support::Survival::kNothing});
  EXPECT_EQ(disk_.files(), (std::vector<std::string>{"/journal/0000000000000000.seg"}));
  EXPECT_EQ(disk_.contents("/journal/0000000000000000.seg").size(), kSegmentHeaderBytes);
}

TEST_F(JournalTest, WhatAKilledProcessLeftIsDurableBeforeItIsBuiltUpon) {
  auto journal = open();
  add(*journal, "written, not synced");
  ASSERT_TRUE(journal->write());
  kill(journal);
  journal = open();
  EXPECT_EQ(texts_.size(), 1u);
  lose_power(journal, {.unsynced = support::Survival::kNothing});
  open();
  EXPECT_EQ(texts_.size(), 1u);
}

TEST_F(JournalTest, AnIdleJournalDoesNothing) {
  auto journal = open();
  EXPECT_FALSE(journal->idle().value());
  commit(*journal, "text");
  EXPECT_TRUE(journal->idle().value());
  const std::uint64_t before = disk_.operation_count();
  const std::uint64_t bytes = journal->disk_bytes();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(journal->idle().value());
  journal.reset();
  EXPECT_EQ(disk_.operation_count(), before);
  // Opening and closing does not make it grow either.
  for (int i = 0; i < 5; ++i) open();
  journal = open();
  EXPECT_EQ(journal->disk_bytes(), bytes);
}

TEST_F(JournalTest, SmallCommitsAreWrittenOverZeros) {
  options_.segment_bytes = 1 << 20;
  auto journal = open();
  const std::string path = journal->segments().back().path;
  commit(*journal, "text");
  ASSERT_TRUE(journal->idle().value());
  const std::size_t size = disk_.contents(path).size();
  EXPECT_GE(size, journal->written() + options_.prewrite_bytes / 2);
  for (int i = 0; i < 20; ++i) commit(*journal, "more");
  EXPECT_EQ(disk_.contents(path).size(), size);
  EXPECT_EQ(journal->disk_bytes(), size);
  while (journal->written() + options_.prewrite_bytes / 5 < size) commit(*journal, std::string(100, 'x'));
  ASSERT_TRUE(journal->idle().value());
  EXPECT_GT(disk_.contents(path).size(), size);
  // The room is no torn tail, and it is used again.
  const std::size_t larger = disk_.contents(path).size();
  kill(journal);
  journal = open();
  EXPECT_TRUE(journal->torn_tails().empty());
  commit(*journal, "again");
  EXPECT_EQ(disk_.contents(path).size(), larger);
}

TEST_F(JournalTest, LargeCommitsAreNotWrittenOverZeros) {
  options_.segment_bytes = 1 << 20;
  auto journal = open();
  commit(*journal, std::string(100'000, 'x'));
  ASSERT_TRUE(journal->idle().value());  // The mark.
  EXPECT_EQ(journal->disk_bytes(), journal->written());
}

TEST_F(JournalTest, AFullDiskDoesNotDisturbAnIdleJournal) {
  auto journal = open();
  commit(*journal, "text");
  disk_.set_capacity(0);
  const auto idle = journal->idle();
  ASSERT_TRUE(idle) << idle.error().message;
  disk_.set_capacity(1 << 30);
  commit(*journal, "more");
}

TEST_F(JournalTest, WeakerDurabilityNeverSyncs) {
  for (const Durability durability : {Durability::kOs, Durability::kNone}) {
    options_.durability = durability;
    options_.segment_bytes = 500;
    const std::uint64_t before = disk_.operation_count(Operation::kSync);
    auto journal = open();
    for (int i = 0; i < 20; ++i) commit(*journal, "text " + std::to_string(i));
    ASSERT_TRUE(journal->idle());
    EXPECT_EQ(journal->synced(), journal->written());
    EXPECT_EQ(disk_.operation_count(Operation::kSync), before);
    kill(journal);
    open();
    EXPECT_EQ(texts_.back(), "text 19");
  }
}

TEST_F(JournalTest, WithoutSyncNothingIsDeletedBeforeItsCopiesAreDurable) {
  options_.durability = Durability::kOs;
  options_.segment_bytes = 500;
  auto journal = open();
  while (journal->segments().size() < 4) commit(*journal, "text");
  const RecordRef copy = commit(*journal, "copy");
  const Address from = journal->written();
  ASSERT_TRUE(disk_.remove(journal->forget(journal->segments().front().base).value()));
  lose_power(journal, {.unsynced = support::Survival::kNothing});
  journal = open(from);
  EXPECT_EQ(journal->read(copy).value().payload, "copy");
}

TEST_F(JournalTest, TheErrorOfAVisitorStopsTheOpening) {
  auto journal = open();
  commit(*journal, "one");
  commit(*journal, "two");
  journal.reset();
  int seen = 0;
  const auto opened = Journal::open(disk_, "/journal", options_, 0, [&](const RecordView&) -> Status {
    ++seen;
    return Error{ErrorCode::kNewerVersion, "a record from the future"};
  });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNewerVersion);
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace bide::engine::journal
