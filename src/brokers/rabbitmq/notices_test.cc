#include "brokers/rabbitmq/notices.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace bide::brokers::rabbitmq {
namespace {

using Kind = Notice::Kind;

const JobId kId = *JobId::parse("01900000-0000-7000-8000-000000000001");
const JobId kOther = *JobId::parse("01900000-0000-7000-8000-000000000002");

Notice about_job(Kind kind, std::int64_t stamp, const JobId& id = kId) {
  Notice notice;
  notice.kind = kind;
  notice.id = id;
  notice.stamp = stamp;
  return notice;
}

Notice about_queue(Kind kind, std::int64_t stamp) {
  Notice notice;
  notice.kind = kind;
  notice.name = "images";
  notice.stamp = stamp;
  return notice;
}

TEST(Notice, IsALineOfText) {
  EXPECT_EQ(about_job(Kind::kCancel, 12).to_text(), "cancel 01900000-0000-7000-8000-000000000001 12");
  EXPECT_EQ(about_queue(Kind::kPause, 7).to_text(), "pause images 7");
  Notice put_off = about_job(Kind::kPutOff, 12);
  put_off.due = Time(Milliseconds(34));
  EXPECT_EQ(put_off.to_text(), "put-off 01900000-0000-7000-8000-000000000001 12 34");
}

TEST(Notice, ReadsBackWhatWasWritten) {
  for (const Kind kind : {Kind::kCancel, Kind::kPutOff, Kind::kPurge, Kind::kPause, Kind::kResume, Kind::kQueue,
                          Kind::kLost, Kind::kSpare, Kind::kOver}) {
    Notice notice;
    notice.kind = kind;
    const bool copy = kind == Kind::kLost || kind == Kind::kSpare || kind == Kind::kOver;
    const bool job = kind == Kind::kCancel || kind == Kind::kPutOff || copy;
    if (job) notice.id = kId;
    if (!job) notice.name = "a.b:c";
    notice.stamp = 1'700'000'000'000'000;
    if (kind == Kind::kPutOff) notice.due = Time(Milliseconds(1'800'000'000'000));
    if (copy) notice.published = 42;
    const auto read = Notice::parse(notice.to_text());
    ASSERT_TRUE(read) << notice.to_text();
    EXPECT_EQ(read->to_text(), notice.to_text());
    EXPECT_EQ(read->kind, kind);
    EXPECT_EQ(read->due, notice.due);
    EXPECT_EQ(read->published, notice.published);
  }
}

TEST(Notice, AMessageMayHaveSeveral) {
  const std::vector<Notice> notices = Notice::parse_lines("pause a 5\nnonsense\n\nresume b 6\n");
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_EQ(notices[0].to_text(), "pause a 5");
  EXPECT_EQ(notices[1].to_text(), "resume b 6");
}

TEST(NoticeBoard, PausesThatLastAndAreOldAreSaidAgain) {
  NoticeBoard board;
  for (const Notice& notice : Notice::parse_lines("pause old 5\npause new 50\npause over 5\nresume over 6")) board.add(notice);
  const std::vector<Notice> again = board.pauses_before(10);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].to_text(), "pause old 5") << "with its own stamp: a later resume counts";
}

TEST(Notice, NonsenseIsNotUnderstood) {
  for (const char* text :
       {"", "cancel", "cancel x 1", "cancel 01900000-0000-7000-8000-000000000001",
        "cancel 01900000-0000-7000-8000-000000000001 x", "shout images 1", "pause  1", "pause images",
        "put-off 01900000-0000-7000-8000-000000000001 1", "lost 01900000-0000-7000-8000-000000000001 1"}) {
    EXPECT_FALSE(Notice::parse(text)) << text;
  }
}

RC_GTEST_PROP(Notice, AnyBytesCanBeLookedAt, (const std::string& text)) { (void)Notice::parse(text); }

TEST(NoticeBoard, CancelHitsEarlierGenerationsOnly) {
  NoticeBoard board;
  board.add(about_job(Kind::kCancel, 100));
  EXPECT_TRUE(board.is_cancelled(kId, 99));
  EXPECT_TRUE(board.is_cancelled(kId, 100));
  EXPECT_FALSE(board.is_cancelled(kId, 101)) << "enqueued again afterwards";
  EXPECT_FALSE(board.is_cancelled(kOther, 99));
}

TEST(NoticeBoard, OtherNoticesAboutAJobDoNotCancelIt) {
  NoticeBoard board;
  board.add(about_job(Kind::kPutOff, 100));
  board.add(about_job(Kind::kLost, 100));
  EXPECT_FALSE(board.is_cancelled(kId, 0));
}

TEST(NoticeBoard, OfSeveralTimesTheOneSaidLastCounts) {
  NoticeBoard board;
  Notice late = about_job(Kind::kPutOff, 200);
  late.due = Time(Milliseconds(5));
  Notice early = about_job(Kind::kPutOff, 100);
  early.due = Time(Milliseconds(9));
  board.add(late);
  board.add(early);
  EXPECT_EQ(board.put_off_until(kId, 50), Time(Milliseconds(5)));
  EXPECT_EQ(board.put_off_until(kId, 201), std::nullopt);
  EXPECT_EQ(board.put_off_until(kOther, 50), std::nullopt);
}

TEST(NoticeBoard, PauseLastsUntilALaterResumeInWhateverOrderTheyArrive) {
  NoticeBoard board;
  EXPECT_FALSE(board.is_paused("images"));
  board.add(about_queue(Kind::kResume, 20));
  board.add(about_queue(Kind::kPause, 10));
  EXPECT_FALSE(board.is_paused("images"));
  board.add(about_queue(Kind::kPause, 30));
  EXPECT_TRUE(board.is_paused("images"));
  EXPECT_EQ(board.queues(), std::set<std::string>{"images"});
}

TEST(NoticeBoard, PurgeHitsWhatWasPublishedBeforeIt) {
  NoticeBoard board;
  board.add(about_queue(Kind::kQueue, 5));
  EXPECT_FALSE(board.is_purged("images", 0));
  board.add(about_queue(Kind::kPurge, 10));
  EXPECT_TRUE(board.is_purged("images", 10));
  EXPECT_FALSE(board.is_purged("images", 11));
  EXPECT_FALSE(board.is_purged("videos", 1));
}

TEST(NoticeBoard, InterruptionsAreCountedOnceForEachCopy) {
  NoticeBoard board;
  Notice lost = about_job(Kind::kLost, 10);
  lost.published = 7;
  board.add(lost);
  board.add(lost);  // From the stream and as news.
  EXPECT_EQ(board.lost(kId, 7), 1u);
  EXPECT_EQ(board.spared(kId, 7), 0u);
  EXPECT_EQ(board.lost(kId, 8), 0u);
  Notice spare = about_job(Kind::kSpare, 11);
  spare.published = 7;
  board.add(spare);
  EXPECT_EQ(board.spared(kId, 7), 1u);
  spare.published = 9;
  spare.stamp = 12;
  board.add(spare);
  EXPECT_EQ(board.spared(kId, 9), 1u);
  EXPECT_EQ(board.lost(kId, 9), 0u);
}

TEST(NoticeBoard, ForgetsWhatTheStreamHasForgotten) {
  NoticeBoard board;
  board.add(about_job(Kind::kCancel, 10));
  board.add(about_job(Kind::kCancel, 20, kOther));
  board.forget_before(15);
  EXPECT_FALSE(board.is_cancelled(kId, 1));
  EXPECT_TRUE(board.is_cancelled(kOther, 1));
}

TEST(NoticeBoard, OneCopyOfAJobIsOverAndNoOther) {
  NoticeBoard board;
  for (const std::int64_t published : {7, 9}) {
    Notice over = about_job(Kind::kOver, 10);
    over.published = published;
    board.add(over);
  }
  EXPECT_TRUE(board.is_over(kId, 7));
  EXPECT_TRUE(board.is_over(kId, 9));
  EXPECT_FALSE(board.is_over(kId, 8));
  EXPECT_FALSE(board.is_over(kOther, 7));
  EXPECT_FALSE(board.is_cancelled(kId, 7));
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
