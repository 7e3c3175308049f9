#include "engine/journal/record_fields.h"
#include "engine/journal/records.h"
#include "engine/journal/schedule_records.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/seeded_random.h"
#include "support/simulated_disk.h"

namespace bide::engine::journal {
namespace {

using support::SeededRandom;

// Makes records with every field now at its default, now at its edge, now somewhere in between.
class RecordMaker {
 public:
  explicit RecordMaker(std::uint64_t seed) : random_(seed) {}

  std::uint64_t number() {
    static constexpr std::uint64_t kEdges[] = {0, 1, 127, 128, 0xffff'ffff, 0x7fff'ffff'ffff'ffff, ~0ull};
    if (random_.chance(0.3)) return kEdges[random_.next_below(std::size(kEdges))];
    return random_.next() >> random_.next_below(64);
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  std::int64_t time_ms() { return static_cast<std::int64_t>(number()); }
  Milliseconds duration() { return Milliseconds(static_cast<std::int64_t>(number() >> 1)); }
  bool flag() { return random_.chance(0.5); }
  std::string text(std::size_t most = 300) {
    std::string out(random_.chance(0.3) ? 0 : random_.next_below(most), '\0');
    for (char& c : out) c = static_cast<char>(random_.next());
    return out;
  }
  JobId id() {
    std::array<std::uint8_t, JobId::kSize> bytes;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_.next());
    return JobId(bytes);
  }
  RetryPolicy retry() {
    RetryPolicy policy;
    if (flag()) return policy;
    policy.shape = static_cast<RetryPolicy::Shape>(random_.next_below(4));
    policy.max_attempts = static_cast<std::uint32_t>(1 + random_.next_below(RetryPolicy::kMaxAttemptsLimit));
    if (flag()) policy.factor = 1.0 + static_cast<double>(random_.next_below(99));
    if (flag()) policy.jitter = 0.25;
    if (flag()) policy.cap = duration();
    if (policy.shape == RetryPolicy::Shape::kSteps) {
      policy.waits.resize(random_.next_below(RetryPolicy::kMaxSteps + 1));
      for (auto& wait : policy.waits) wait = duration();
    } else if (policy.shape != RetryPolicy::Shape::kNone) {
      policy.wait = duration();
    }
    return policy;
  }
  Past past() {
    Past past;
    if (flag()) return past;
    past.counts = {number32(), number32(), number32(), number32()};
    past.history.resize(random_.next_below(Limits::kHistory + 1));
    for (auto& error : past.history) {
      error = {number32(), Time(Milliseconds(time_ms())), static_cast<Fault>(random_.next_below(4)), text()};
    }
    past.note = text();
    return past;
  }
  Accepted accepted() {
    Accepted record;
    record.how.due_ms = time_ms();
    record.how.accepted_ms = time_ms();
    record.how.due_is_wall = flag();
    record.how.past = past();
    record.how.attempts = number32();
    record.how.token = number();
    Job& job = record.job;
    job.id = id();
    job.kind = text(128);
    if (flag()) job.queue = text(128);
    job.body = text(3000);
    if (flag()) job.content_type = text();
    if (flag()) job.headers.resize(random_.next_below(20));
    for (auto& [name, value] : job.headers) name = text(), value = text();
    job.due = Time(Milliseconds(record.how.due_ms));
    if (flag()) job.expires = Time(Milliseconds(time_ms()));
    if (flag()) job.time_limit = duration();
    job.priority = static_cast<int>(random_.next_below(201)) - 100;
    job.retry = retry();
    if (flag()) job.unique_key = text(512);
    if (flag()) relations(job);
    return record;
  }
  void relations(Job& job) {
    if (flag()) job.group = text(128);
    if (flag()) {
      job.after.resize(1 + random_.next_below(20));
      for (JobId& other : job.after) other = id();
      job.after_death = static_cast<AfterDeath>(random_.next_below(3));
    }
    if (flag()) job.flow = id();
    if (flag()) job.unique_for = duration();
  }
  Granted granted() {
    Granted record{.at_ms = time_ms(), .outlives_process = flag(), .worker = text(), .grants = {}};
    record.grants.resize(random_.next_below(40));
    for (auto& grant : record.grants) grant = {id(), number()};
    record.lease_ms = number32();
    return record;
  }
  Changed changed() {
    Changed record;
    record.id = id();
    record.cause = static_cast<ChangeCause>(1 + random_.next_below(5));
    record.token = number();
    record.at_ms = time_ms();
    record.due_ms = time_ms();
    record.due_is_wall = flag();
    if (flag()) record.dead = static_cast<DeadReason>(random_.next_below(4));
    record.attempts = number32();
    record.past = past();
    if (flag()) record.unique_key = text();
    if (flag()) record.past.unheard = number32();
    return record;
  }
  DoneRecord done() { return {id(), number(), time_ms(), number32(), text(), text(), past()}; }
  Removed removed() {
    Removed record{static_cast<RemoveCause>(1 + random_.next_below(4)), time_ms(), {}};
    record.ids.resize(random_.next_below(40));
    for (auto& removed_id : record.ids) removed_id = id();
    return record;
  }

 private:
  SeededRandom random_;
};

auto fields(const Past& p) { return std::tie(p.counts, p.history, p.note); }
auto fields(const Job& j) {
  return std::tie(j.id, j.kind, j.queue, j.body, j.content_type, j.headers, j.delay, j.due, j.expires, j.time_limit,
                  j.priority, j.retry, j.unique_key, j.group, j.after, j.after_death, j.flow, j.unique_for);
}
bool same(const Accepted& a, const Accepted& b) {
  return fields(a.job) == fields(b.job) && fields(a.how.past) == fields(b.how.past) &&
         std::tie(a.how.due_ms, a.how.accepted_ms, a.how.due_is_wall, a.how.attempts, a.how.token) ==
             std::tie(b.how.due_ms, b.how.accepted_ms, b.how.due_is_wall, b.how.attempts, b.how.token);
}
bool same(const std::vector<Grant>& a, const std::vector<Grant>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Grant& x, const Grant& y) { return x.id == y.id && x.token == y.token; });
}
bool same(const Granted& a, const Granted& b) {
  if (!same(a.grants, b.grants)) return false;
  if (a.outlives_process && a.lease_ms != b.lease_ms) return false;  // Otherwise it is not written.
  return std::tie(a.at_ms, a.outlives_process, a.worker) == std::tie(b.at_ms, b.outlives_process, b.worker);
}
bool same(const Changed& a, const Changed& b) {
  return fields(a.past) == fields(b.past) && a.past.unheard == b.past.unheard &&
         std::tie(a.id, a.cause, a.token, a.at_ms, a.due_ms, a.due_is_wall, a.dead, a.attempts, a.unique_key) ==
             std::tie(b.id, b.cause, b.token, b.at_ms, b.due_ms, b.due_is_wall, b.dead, b.attempts, b.unique_key);
}
bool same(const DoneRecord& a, const DoneRecord& b) {
  return fields(a.past) == fields(b.past) &&
         std::tie(a.id, a.token, a.at_ms, a.attempts, a.result, a.content_type) ==
         std::tie(b.id, b.token, b.at_ms, b.attempts, b.result, b.content_type);
}
bool same(const Removed& a, const Removed& b) {
  return std::tie(a.cause, a.at_ms, a.ids) == std::tie(b.cause, b.at_ms, b.ids);
}
bool same(const Binding& a, const Binding& b) { return a == b; }
bool same(const QueueRules& a, const QueueRules& b) { return a == b; }
bool same(const QueueRecord& a, const QueueRecord& b) {
  return std::tie(a.name, a.paused) == std::tie(b.name, b.paused);
}
bool same(const ClockStep& a, const ClockStep& b) { return a.by_ms == b.by_ms; }
bool same(const Delivered& a, const Delivered& b) { return same(a.leases, b.leases); }
bool same(const CancelAsked& a, const CancelAsked& b) { return std::tie(a.id, a.at_ms) == std::tie(b.id, b.at_ms); }

bool same(const ScheduleRecord& a, const ScheduleRecord& b) {
  const auto text = [](const ScheduleRecord& record) {
    std::string bytes;
    Encoder out(bytes);
    put_schedule(out, record);
    return bytes;
  };
  return text(a) == text(b) && a.schedule.job.body == b.schedule.job.body && a.schedule.anchor == b.schedule.anchor &&
         std::tie(a.removed, a.paused, a.version, a.put_ms, a.decided_ms) ==
             std::tie(b.removed, b.paused, b.version, b.put_ms, b.decided_ms);
}
bool same(const DecisionsRecord& a, const DecisionsRecord& b) {
  return std::tie(a.name, a.decided_ms) == std::tie(b.name, b.decided_ms) &&
         std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(),
                    [](const Decision& x, const Decision& y) {
                      return std::tie(x.kind, x.due_ms, x.version, x.job, x.note) ==
                             std::tie(y.kind, y.due_ms, y.version, y.job, y.note);
                    });
}

ScheduleRecord some_schedule() {
  ScheduleRecord record;
  record.schedule = {.name = "report", .owner = "billing", .every = Milliseconds(900'000), .job = {.kind = "k", .queue = "q"}};
  record.schedule.anchor = to_time(1'750'000'000'000);
  record.schedule.job.body = "body";
  record.schedule.job.group = "tenant:42";
  record.schedule.job.headers = {{"a", "b"}};
  record.schedule.job.on_conflict = OnConflict::kReplace;
  record.schedule.missed = Missed::kAll;
  record.schedule.overlap = Overlap::kQueue;
  record.paused = true;
  record.version = 3;
  record.put_ms = 1;
  record.decided_ms = 2;
  return record;
}

DecisionsRecord some_decisions(const JobId& id) {
  return {.name = "report",
          .decided_ms = 7,
          .decisions = {{DecisionKind::kMade, 5, 1, id, ""},
                        {DecisionKind::kNotMade, 6, 2, {}, "it was missed"},
                        {DecisionKind::kWaits, 7, 2, {}, ""},
                        {DecisionKind::kByHand, 7, 2, id, ""}}};
}

class Records : public ::testing::Test {
 protected:
  // The record as the journal gives it back; the bytes are kept.
  template <class Record>
  RecordView written(const Record& record) {
    auto view = journal_->read(append(*journal_, record));
    payload_ = std::string(view.value().payload);
    return {view->type, view->version, payload_, view->at};
  }

  template <class Record>
  void comes_back(const Record& record) {
    const RecordView view = written(record);
    Record back;
    const Status status = decode(view, back);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_TRUE(same(record, back));
  }

  // Neither a shortened payload nor any payload with a changed byte may do worse than be refused.
  template <class Record>
  void refuses_what_is_cut(const Record& record) {
    const RecordView view = written(record);
    for (std::size_t size = 0; size < view.payload.size(); ++size) {
      RecordView cut = view;
      cut.payload = view.payload.substr(0, size);
      Record back;
      const Status status = decode(cut, back);
      ASSERT_FALSE(status) << size << " of " << view.payload.size();
      EXPECT_EQ(status.error().code, ErrorCode::kDamaged);
    }
    const std::string longer = std::string(view.payload) + '\0';
    RecordView more = view;
    more.payload = longer;
    Record back;
    EXPECT_FALSE(decode(more, back));
    std::string changed(view.payload);
    for (char& byte : changed) {
      for (int bit = 0; bit < 8; ++bit) {
        byte = static_cast<char>(byte ^ (1 << bit));
        RecordView wrong = view;
        wrong.payload = changed;
        if (const Status status = decode(wrong, back); !status) {
          EXPECT_EQ(status.error().code, ErrorCode::kDamaged);
        }
        byte = static_cast<char>(byte ^ (1 << bit));
      }
    }
  }

  support::SimulatedDisk disk_{1};
  std::unique_ptr<Journal> journal_ =
      std::move(Journal::open(disk_, "/journal", {.durability = Durability::kNone}, 0, [](auto&) {
        return Status();
      })).value();
  std::string payload_;
  RecordMaker make_{20260711};
};

TEST_F(Records, EveryAcceptedRecordComesBack) {
  for (int i = 0; i < 2000; ++i) comes_back(make_.accepted());
}
TEST_F(Records, EveryGrantedRecordComesBack) {
  for (int i = 0; i < 500; ++i) comes_back(make_.granted());
}
TEST_F(Records, EveryChangedRecordComesBack) {
  for (int i = 0; i < 2000; ++i) comes_back(make_.changed());
}
TEST_F(Records, EveryDoneRecordComesBack) {
  for (int i = 0; i < 1000; ++i) comes_back(make_.done());
}
TEST_F(Records, EveryRemovedRecordComesBack) {
  for (int i = 0; i < 500; ++i) comes_back(make_.removed());
}
TEST_F(Records, EveryQueueClockAndCancelRecordComesBack) {
  for (int i = 0; i < 200; ++i) {
    comes_back(QueueRecord{make_.text(), make_.flag()});
    comes_back(ClockStep{make_.time_ms()});
    comes_back(CancelAsked{make_.id(), make_.time_ms()});
    comes_back(Delivered{make_.granted().grants});
    comes_back(Binding{.queue = make_.text(), .patterns = {make_.text(), make_.text()}, .most = 7,
                       .keep = Milliseconds(86'400'000), .idle = Milliseconds(3)});
    comes_back(QueueRules{.queue = make_.text(),
                          .at_once = 50,
                          .rate = {.count = 10, .period = Milliseconds(60'000), .burst = 3},
                          .group_at_once = 1,
                          .group_rate = {.count = 4'000'000'000, .period = Milliseconds(1), .burst = 7},
                          .fair = true,
                          .weights = {{make_.text(), 100}, {make_.text(), 1}},
                          .ageing = Milliseconds(5),
                          .most_jobs = 1ull << 40,
                          .most_bytes = 9,
                          .oldest = Milliseconds(86'400'000)});
  }
}

TEST_F(Records, EveryRecordOfAScheduleComesBack) {
  comes_back(some_schedule());
  ScheduleRecord by_cron = some_schedule();
  by_cron.schedule = {.name = "report", .cron = "@daily", .zone = "Europe/Berlin", .job = {.kind = "k"}};
  comes_back(by_cron);
  ScheduleRecord removed;
  removed.removed = true;
  removed.schedule.name = "report";
  comes_back(removed);
  comes_back(some_decisions(make_.id()));
}

TEST_F(Records, ARecordThatWasMovedCarriesTheOldOneWhole) {
  for (int i = 0; i < 200; ++i) {
    const Accepted record = make_.accepted();
    const RecordRef old = append(*journal_, record);
    const RecordView read = journal_->read(old).value();
    const std::string inner(read.payload);
    Moved moved{old, {read.type, read.version, inner, old}};
    const RecordView view = written(moved);
    Moved back;
    ASSERT_TRUE(decode(view, back));
    EXPECT_EQ(back.from.address, old.address);
    EXPECT_EQ(back.from.bytes, old.bytes);
    EXPECT_EQ(back.inner.at.address, view.at.address);
    Accepted accepted;
    ASSERT_TRUE(decode(back.inner, accepted));
    EXPECT_TRUE(same(record, accepted));
  }
}

TEST_F(Records, OnlyRecordsOfJobsAreMoved) {
  for (int type = 0; type < 17; ++type) {
    const RecordView view = written(Moved{{64, 10}, {static_cast<std::uint8_t>(type), 1, "x", {}}});
    Moved back;
    EXPECT_EQ(decode(view, back).has_value(), type == 2 || type == 4 || type == 5) << type;
  }
}

TEST_F(Records, TheBriefSaysTheSameAsTheWhole) {
  for (int i = 0; i < 2000; ++i) {
    const Accepted record = make_.accepted();
    AcceptedBrief brief;
    ASSERT_TRUE(decode(written(record), brief));
    EXPECT_EQ(brief.id, record.job.id);
    EXPECT_EQ(brief.kind, record.job.kind);
    EXPECT_EQ(brief.queue, record.job.queue);
    EXPECT_EQ(brief.unique_key, record.job.unique_key);
    EXPECT_EQ(brief.due_ms, record.how.due_ms);
    EXPECT_EQ(brief.due_is_wall, record.how.due_is_wall);
    EXPECT_EQ(brief.has_expiry, record.job.expires.has_value());
    EXPECT_EQ(brief.priority, record.job.priority);
    EXPECT_EQ(brief.attempts, record.how.attempts);
    EXPECT_EQ(brief.crashed, record.how.past.counts.crashed);
    EXPECT_EQ(brief.token, record.how.token);
  }
}

TEST_F(Records, WhatIsCutOrChangedIsRefusedOrReadWithoutHarm) {
  for (int i = 0; i < 10; ++i) {
    refuses_what_is_cut(make_.accepted());
    refuses_what_is_cut(make_.granted());
    refuses_what_is_cut(make_.changed());
    refuses_what_is_cut(make_.done());
    refuses_what_is_cut(make_.removed());
  }
  refuses_what_is_cut(QueueRecord{"default", true});
  refuses_what_is_cut(ClockStep{-3600'000});
  refuses_what_is_cut(CancelAsked{make_.id(), 1});
  refuses_what_is_cut(Delivered{make_.granted().grants});
  refuses_what_is_cut(some_schedule());
  refuses_what_is_cut(some_decisions(make_.id()));
  refuses_what_is_cut(Binding{.queue = "billing", .patterns = {"order.*", "#"}});
  refuses_what_is_cut(QueueRules{.queue = "billing", .at_once = 3, .fair = true, .weights = {{"a", 2}}});
}

TEST_F(Records, AJobWithNothingSpecialCostsLittleMoreThanItsBody) {
  Accepted record;
  record.job.kind = "send_email";
  record.job.body.assign(200, 'x');
  record.how.accepted_ms = record.how.due_ms = 1'750'000'000'000;
  // Id, two bytes of flags, time, due, kind with its length, body with its length.
  EXPECT_EQ(written(record).payload.size(), 16u + 2 + 8 + 1 + 11 + 202);
}

TEST_F(Records, OnlyTheNewestOfTooLongAHistoryIsWritten) {
  Changed record = make_.changed();
  record.past.history.assign(Limits::kHistory + 3, AttemptError{});
  for (std::uint32_t i = 0; i < record.past.history.size(); ++i) record.past.history[i].attempt = i;
  Changed back;
  ASSERT_TRUE(decode(written(record), back));
  ASSERT_EQ(back.past.history.size(), Limits::kHistory);
  EXPECT_EQ(back.past.history.front().attempt, 3u);
}

TEST_F(Records, ADecoderDoesNotKeepWhatWasThereBefore) {
  Changed with = make_.changed();
  with.dead = DeadReason::kPoison;
  with.token = 7;
  Changed out;
  ASSERT_TRUE(decode(written(with), out));
  ASSERT_TRUE(decode(written(Changed{}), out));
  EXPECT_TRUE(same(out, Changed{}));
}

TEST_F(Records, ARecordOfANewerVersionIsRefusedAsSuch) {
  RecordView view = written(ClockStep{5});
  view.version = 2;
  ClockStep back;
  const Status status = decode(view, back);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNewerVersion);
  EXPECT_NE(status.error().message.find("clock record"), std::string::npos) << status.error().message;
}

TEST_F(Records, WhatAnOlderVersionCanSayIsWrittenInIt) {
  Granted granted;
  EXPECT_EQ(written(granted).version, 1);
  granted.outlives_process = true;
  EXPECT_EQ(written(granted).version, 2);
  Changed changed;
  EXPECT_EQ(written(changed).version, 1);
  changed.past.unheard = 1;
  EXPECT_EQ(written(changed).version, 2);
  Accepted accepted;
  EXPECT_EQ(written(accepted).version, 1);
  accepted.job.group = "tenant:42";
  EXPECT_EQ(written(accepted).version, 2);
}

TEST_F(Records, AGrantOfTheFirstVersionHasNoLeaseTime) {
  // Flags: it outlives the process. Then the time, and no grants.
  const std::string payload = std::string(1, 1) + std::string(8, 0) + std::string(1, 0);
  Granted back;
  back.lease_ms = 5;
  ASSERT_TRUE(decode(RecordView{static_cast<std::uint8_t>(RecordType::kGranted), 1, payload, {64, 0}}, back));
  EXPECT_TRUE(back.outlives_process);
  EXPECT_EQ(back.lease_ms, 0u);
}

TEST_F(Records, ARecordOfAnotherTypeIsRefused) {
  const RecordView view = written(ClockStep{5});
  QueueRecord queue;
  const Status status = decode(view, queue);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDamaged);
  EXPECT_NE(status.error().message.find("queue record"), std::string::npos) << status.error().message;
}

TEST_F(Records, APriorityOutOfRangeIsRefused) {
  Accepted record;
  record.job.priority = 100;
  RecordView view = written(record);
  std::string payload(view.payload);
  const std::size_t at = 16 + 2 + 8 + 1 + 1;  // After the empty kind.
  ASSERT_EQ(payload[at], 100);
  payload[at] = 101;
  view.payload = payload;
  AcceptedBrief brief;
  EXPECT_FALSE(decode(view, brief));
  EXPECT_FALSE(decode(view, record));
}

}  // namespace
}  // namespace bide::engine::journal
