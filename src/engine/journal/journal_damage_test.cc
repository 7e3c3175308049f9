// What becomes of a journal whose bytes have changed: refused, or only what was never confirmed is cut.

#include "engine/journal/layout.h"
#include "support/journal_fixture.h"

namespace bide::engine::journal {
namespace {

class JournalDamage : public JournalFixture {
 protected:
  JournalDamage() { options_.segment_bytes = 400; }

  // A few segments, closed cleanly: every record in it is marked as synced.
  void make_small_journal() {
    auto journal = open();
    for (int i = 0; i < 14; ++i) {
      expected_.push_back("text " + std::to_string(i));
      commit(*journal, expected_.back());
      if (i % 5 == 0) {
        ASSERT_TRUE(journal->idle());
      }
    }
    ASSERT_GE(journal->segments().size(), 3u);
    segments_ = journal->segments();
  }

  void expect_damaged(const Result<std::unique_ptr<Journal>>& opened, const std::string& part) {
    ASSERT_FALSE(opened) << part;
    EXPECT_EQ(opened.error().code, ErrorCode::kDamaged) << opened.error().message;
    EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
  }

  Texts expected_;
  std::vector<Segment> segments_;
};

TEST_F(JournalDamage, AFlippedBitAnywhereIsRefusedAndNothingIsChanged) {
  make_small_journal();
  int refused = 0;
  int harmless = 0;
  for (const std::string& path : disk_.files()) {
    const std::size_t size = disk_.contents(path).size();
    for (std::size_t offset = 0; offset < size; ++offset) {
      auto image = disk_.clone();
      image->flip_bit(path, offset, static_cast<unsigned>(offset % 8));
      const std::string before = image->contents(path);
      auto opened = try_open(*image);
      if (opened) {
        // Only the mark at the very end and the zeros after it may be lost without a word to say against it.
        ++harmless;
        EXPECT_EQ(texts_, expected_) << path << " " << offset;
        if (path.ends_with("/synced")) continue;  // A mark that is not whole counts as none.
        EXPECT_EQ(path, segments_.back().path);
        EXPECT_GE(segments_.back().base + offset, segments_.back().end);
      } else {
        ++refused;
        EXPECT_EQ(opened.error().code, ErrorCode::kDamaged) << opened.error().message;
        EXPECT_EQ(opened.error().message.find(path + " offset "), 0u) << opened.error().message;
        EXPECT_EQ(image->contents(path), before);
      }
    }
  }
  EXPECT_GT(refused, 800);
  EXPECT_GT(harmless, 40);
}

TEST_F(JournalDamage, AFileThatIsCutAnywhereIsRefusedUnlessNothingConfirmedIsGone) {
  make_small_journal();
  for (const std::string& path : disk_.files()) {
    const std::size_t size = disk_.contents(path).size();
    for (std::size_t left = 0; left < size; ++left) {
      auto image = disk_.clone();
      image->truncate(path, left);
      auto opened = try_open(*image);
      if (path.ends_with("/synced")) {
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_EQ(texts_, expected_);
        continue;
      }
      if (path != segments_.back().path) {
        expect_damaged(opened, path + " offset ");
        continue;
      }
      // Behind the last confirmed record a cut does no harm.
      if (opened) {
        ASSERT_LE(texts_.size(), expected_.size());
        EXPECT_TRUE(std::equal(texts_.begin(), texts_.end(), expected_.begin()));
      } else {
        EXPECT_EQ(opened.error().code, ErrorCode::kDamaged);
      }
    }
  }
}

TEST_F(JournalDamage, DamageToTheLastConfirmedRecordIsFoundOnceThereIsAMark) {
  auto journal = open();
  const RecordRef ref = commit(*journal, "the last one");
  const std::string path = journal->segments().back().path;
  auto unmarked = disk_.clone();
  ASSERT_TRUE(journal->idle().value());
  auto marked = disk_.clone();
  unmarked->flip_bit(path, ref.address, 3);
  marked->flip_bit(path, ref.address, 3);
  const auto cut = try_open(*unmarked);
  ASSERT_TRUE(cut);
  EXPECT_EQ((*cut)->torn_tails().size(), 1u);
  expect_damaged(try_open(*marked), path + " offset 64: a batch fails its checksum");
}

TEST_F(JournalDamage, ATornTailIsCutReportedAndDoesNotComeBack) {
  auto journal = open();
  commit(*journal, "kept");
  const Address end = journal->written();
  const RecordRef ref = commit(*journal, "torn");
  const std::string path = journal->segments().back().path;
  kill(journal);
  disk_.flip_bit(path, ref.address, 0);
  journal = open();
  EXPECT_EQ(texts_, (Texts{"kept"}));
  ASSERT_EQ(journal->torn_tails().size(), 1u);
  EXPECT_EQ(journal->torn_tails()[0].path, path);
  EXPECT_EQ(journal->torn_tails()[0].offset, end);
  EXPECT_EQ(journal->torn_tails()[0].bytes, ref.address + ref.bytes - end);
  EXPECT_EQ(disk_.contents(path).size(), end);
  lose_power(journal, {.unsynced = support::Survival::kNothing});
  journal = open();
  EXPECT_TRUE(journal->torn_tails().empty());
  EXPECT_EQ(journal->written(), end);
}

TEST_F(JournalDamage, ATailThatBeginsWithZerosIsCutToo) {
  auto journal = open();
  commit(*journal, "kept");
  const Address end = journal->written();
  const std::string path = journal->segments().back().path;
  kill(journal);
  disk_.overwrite(path, end, std::string(3 << 20, '\0') + "garbage" + std::string(100, '\0'));
  journal = open();
  EXPECT_EQ(texts_, (Texts{"kept"}));
  ASSERT_EQ(journal->torn_tails().size(), 1u);
  EXPECT_EQ(journal->torn_tails()[0].offset, end);
  EXPECT_EQ(journal->torn_tails()[0].bytes, (3u << 20) + 7);
  EXPECT_EQ(disk_.contents(path).size(), end);
}

TEST_F(JournalDamage, AnOldHeaderInAFileThatWasBeingMadeIsNoDamage) {
  make_small_journal();
  const Address end = open()->written();
  const std::string path = "/journal/" + segment_name(end);
  {
    auto file = std::move(disk_.open(path, platform::OpenMode::kCreate)).value();
    ASSERT_TRUE(file->write(0, encode(SegmentHeader{kFormatVersion, 64, 64})));
  }
  const auto journal = open();
  EXPECT_EQ(texts_, expected_);
  EXPECT_EQ(journal->segments().back().path, segments_.back().path);
  EXPECT_FALSE(disk_.exists(path).value());
}

TEST_F(JournalDamage, AWholeBatchBehindATornOneProvesNothingUnlessTheFirstWasSynced) {
  options_.segment_bytes = 64 << 10;
  auto journal = open();
  commit(*journal, "kept");
  const RecordRef first = add(*journal, "first");
  ASSERT_TRUE(journal->write());
  add(*journal, "second");
  ASSERT_TRUE(journal->write());  // Not synced in between: the pages may reach the disk in any order.
  const std::string path = journal->segments().back().path;
  auto image = disk_.clone();
  image->flip_bit(path, first.address, 0);
  {
    const auto opened = try_open(*image);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(texts_, (Texts{"kept"}));
  }
  ASSERT_TRUE(journal->sync());
  add(*journal, "third");
  ASSERT_TRUE(journal->write());
  image = disk_.clone();
  image->flip_bit(path, first.address, 0);
  expect_damaged(try_open(*image), "and it had been synced");
}

TEST_F(JournalDamage, AClosedJournalThatIsCutShortIsRefused) {
  make_small_journal();
  const std::string path = segments_.back().path;
  const std::uint64_t end = segments_.back().end - segments_.back().base;
  for (std::uint64_t at = 0; at < end; ++at) {
    auto image = disk_.clone();
    image->truncate(path, at);
    const auto opened = try_open(*image);
    ASSERT_FALSE(opened) << "cut at " << at;
    EXPECT_EQ(opened.error().code, ErrorCode::kDamaged);
  }
}

TEST_F(JournalDamage, AMissingSegmentIsRefused) {
  make_small_journal();
  for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
    auto image = disk_.clone();
    ASSERT_TRUE(image->remove(segments_[i].path));
    expect_damaged(try_open(*image), i == 0 ? "is missing" : segments_[i - 1].path + " offset ");
  }
}

TEST_F(JournalDamage, AJournalThatEndsBeforeTheSnapshotIsRefused) {
  make_small_journal();
  expect_damaged(try_open(disk_, segments_.back().end + 1000), "the journal ends here");
  ASSERT_TRUE(disk_.remove(segments_.back().path));
  expect_damaged(try_open(disk_, segments_.back().end), "the journal ends here");
  support::SimulatedDisk empty(1);
  expect_damaged(try_open(empty, 5000), "is missing");
}

TEST_F(JournalDamage, ARenamedSegmentIsRefused) {
  make_small_journal();
  for (const Segment& segment : segments_) {
    auto image = disk_.clone();
    ASSERT_TRUE(image->rename(segment.path, "/journal/" + segment_name(segment.base + 8)));
    const auto opened = try_open(*image);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kDamaged);
  }
}

TEST_F(JournalDamage, OneSegmentInThePlaceOfAnotherIsRefused) {
  make_small_journal();
  disk_.overwrite(segments_[1].path, 0, disk_.contents(segments_[0].path));
  expect_damaged(try_open(disk_), "was it renamed?");
}

TEST_F(JournalDamage, ASegmentOfANewerVersionIsRefusedAsSuch) {
  make_small_journal();
  SegmentHeader header;
  header.version = kFormatVersion + 1;
  header.base = segments_.back().base;
  disk_.overwrite(segments_.back().path, 0, encode(header));
  const auto opened = try_open(disk_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNewerVersion);
}

TEST_F(JournalDamage, WhereTheCreationOfASegmentWasInterruptedTheOneBeforeGoesOn) {
  make_small_journal();
  const Address end = open()->written();
  const std::string path = "/journal/" + segment_name(end);
  const std::string whole = encode(SegmentHeader{kFormatVersion, end, end});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto image = disk_.clone();
    {
      auto file = std::move(image->open(path, platform::OpenMode::kCreate)).value();
      ASSERT_TRUE(file->write(0, whole.substr(0, size)));
    }
    {
      auto opened = try_open(*image);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_EQ(texts_, expected_);
      EXPECT_EQ((*opened)->torn_tails().size(), size == 0 ? 0u : 1u);
      EXPECT_EQ((*opened)->segments().back().path, segments_.back().path);
      EXPECT_FALSE(image->exists(path).value());
      commit(**opened, "after");
    }
    ASSERT_TRUE(try_open(*image));
    EXPECT_EQ(texts_.back(), "after");
  }
}

TEST_F(JournalDamage, ADamagedHeaderOfTheLastSegmentIsNotTakenForAnInterruptedCreation) {
  auto journal = open();
  commit(*journal, "confirmed");
  kill(journal);
  disk_.flip_bit("/journal/0000000000000000.seg", 20, 1);
  expect_damaged(try_open(disk_), "offset 0: the segment's header fails its checksum");
}

TEST_F(JournalDamage, BytesFromElsewhereInTheSameJournalNeverPass) {
  options_.segment_bytes = 64 << 10;
  auto journal = open();
  commit(*journal, "same size 1");
  const Address second = journal->written();
  const RecordRef ref = commit(*journal, "same size 2");
  const Address third = journal->written();
  const std::string path = journal->segments().back().path;
  kill(journal);
  const std::string content = disk_.contents(path);
  disk_.overwrite(path, second, std::string_view(content).substr(64, second - 64));
  disk_.overwrite(path, third, std::string_view(content).substr(second, third - second));
  journal = open();
  EXPECT_EQ(texts_, (Texts{"same size 1"}));
  EXPECT_EQ(journal->written(), second);
  EXPECT_EQ(journal->torn_tails().size(), 1u);
  EXPECT_FALSE(journal->read(ref));
}

TEST_F(JournalDamage, TwoBatchesOfTheSameShapeInTheSamePlaceAreNotMixed) {
  options_.segment_bytes = 64 << 10;
  auto journal = open();
  auto image = disk_.clone();
  std::vector<std::string> contents;
  for (const char letter : {'a', 'b'}) {
    auto disk = image->clone();
    auto other = std::move(try_open(*disk)).value();
    add(*other, std::string(1000, letter));
    add(*other, std::string(1000, letter));
    ASSERT_TRUE(other->write());
    contents.push_back(disk->contents("/journal/0000000000000000.seg"));
  }
  ASSERT_EQ(contents[0].size(), contents[1].size());
  kill(journal);
  // The first record from one, the second from the other.
  const std::size_t middle = 64 + kBatchHeaderBytes + kRecordHeaderBytes + 1000;
  disk_.overwrite("/journal/0000000000000000.seg", 0, contents[0].substr(0, middle) + contents[1].substr(middle));
  journal = open();
  EXPECT_TRUE(texts_.empty());
  EXPECT_EQ(journal->torn_tails().size(), 1u);
}

TEST_F(JournalDamage, ARecordThatChangesWhileTheJournalIsOpenIsNotGivenOut) {
  auto journal = open();
  const RecordRef ref = commit(*journal, "text");
  commit(*journal, "so that the first is not in memory any more");
  const std::string path = journal->segments().front().path;
  disk_.flip_bit(path, ref.address + 11, 0);
  const auto view = journal->read(ref);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ErrorCode::kDamaged);
  EXPECT_EQ(view.error().message.find(path + " offset " + std::to_string(ref.address)), 0u) << view.error().message;
  Address stopped_at = 0;
  const auto scanned = journal->scan(0, 0, 1 << 20, collect(texts_), stopped_at);
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, ErrorCode::kDamaged);
  EXPECT_EQ(journal->place_of(stopped_at).path, path);
  EXPECT_LE(stopped_at, ref.address);
  EXPECT_GT(stopped_at, 0u);
}

TEST_F(JournalDamage, ARecordThatCannotBeReadForAMomentIsReadAgain) {
  auto journal = open();
  const RecordRef ref = commit(*journal, "text");
  commit(*journal, "so that the first is not in memory any more");
  disk_.plan({.operation = support::Operation::kRead, .nth = 1});
  const auto view = journal->read(ref);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->payload, "text");
  EXPECT_EQ(disk_.faults_fired(), 1u);
}

TEST_F(JournalDamage, OtherFilesInTheDirectoryAreLeftAlone) {
  make_small_journal();
  for (const char* name : {"/journal/lock", "/journal/0000000000000000.seg.old", "/journal/notes.seg"}) {
    ASSERT_TRUE(disk_.open(name, platform::OpenMode::kCreate));
  }
  const auto files = disk_.files();
  open();
  EXPECT_EQ(texts_, expected_);
  EXPECT_EQ(disk_.files(), files);
}

}  // namespace
}  // namespace bide::engine::journal
