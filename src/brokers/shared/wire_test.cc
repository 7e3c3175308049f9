#include "brokers/shared/wire.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "brokers/shared/calls.h"

namespace bide::brokers::shared {
namespace {

template <class T>
std::string encoded(const T& value) {
  std::string bytes;
  Encoder out(bytes);
  put(out, value);
  return bytes;
}

// ---- Things with every field drawn by chance.

std::string any_text() { return *rc::gen::arbitrary<std::string>(); }
bool any_bool() { return *rc::gen::arbitrary<bool>(); }
std::uint32_t any_count() { return *rc::gen::arbitrary<std::uint32_t>(); }
std::uint64_t any_number() { return *rc::gen::arbitrary<std::uint64_t>(); }
Milliseconds any_span() { return Milliseconds(*rc::gen::inRange<std::int64_t>(-kLongestSpanMs, kLongestSpanMs)); }
Time any_time() { return Time(Milliseconds(*rc::gen::inRange<std::int64_t>(-kFarthestTimeMs, kFarthestTimeMs))); }
std::optional<Time> maybe_time() { return any_bool() ? std::optional(any_time()) : std::nullopt; }
JobId any_id() { return JobId(*rc::gen::arbitrary<std::array<std::uint8_t, 16>>()); }

template <class E>
E any_of() {
  return static_cast<E>(*rc::gen::inRange<int>(0, static_cast<int>(core::kLast<E>) + 1));
}

template <class Make>
auto some(Make make) {
  std::vector<decltype(make())> all;
  for (int left = *rc::gen::inRange(0, 4); left > 0; --left) all.push_back(make());
  return all;
}

RetryPolicy any_policy() {
  return {.shape = any_of<RetryPolicy::Shape>(),
          .max_attempts = any_count(),
          .factor = *rc::gen::arbitrary<double>(),
          .jitter = *rc::gen::arbitrary<double>(),
          .cap = any_span(),
          .wait = any_span(),
          .waits = some(any_span)};
}

AttemptCounts any_counts() { return {any_count(), any_count(), any_count(), any_count()}; }
AttemptError any_error() { return {any_count(), any_time(), any_of<Fault>(), any_text()}; }

std::shared_ptr<const JobPast> maybe_past() {
  if (any_bool()) return nullptr;
  JobPast past{.attempts = any_count(), .counts = any_counts(), .history = some(any_error)};
  if (any_bool()) past.dead = any_of<DeadReason>();
  past.finished = maybe_time();
  return std::make_shared<const JobPast>(std::move(past));
}

Job any_job() {
  return {.id = any_id(),
          .kind = any_text(),
          .queue = any_text(),
          .body = any_text(),
          .content_type = any_text(),
          .headers = some([] { return std::pair(any_text(), any_text()); }),
          .delay = any_span(),
          .due = maybe_time(),
          .expires = maybe_time(),
          .time_limit = any_span(),
          .priority = *rc::gen::arbitrary<int>(),
          .retry = any_policy(),
          .unique_key = any_text(),
          .unique_for = any_span(),
          .on_conflict = any_of<OnConflict>(),
          .group = any_text(),
          .after = some(any_id),
          .after_death = any_of<AfterDeath>(),
          .flow = any_id(),
          .past = maybe_past()};
}

Step any_step() { return {any_text(), any_text()}; }

Lease any_lease() {
  return {.job = any_job(),
          .token = any_number(),
          .attempt = any_count(),
          .due = any_time(),
          .counts = any_counts(),
          .history = some(any_error),
          .steps = some(any_step)};
}

Outcome any_outcome() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return Done{any_text(), any_text()};
    case 1:
      return RetryAt{any_span(), any_of<Fault>(), any_text(), any_bool() ? std::optional(any_text()) : std::nullopt};
    case 2:
      return Dead{any_of<DeadReason>(), any_of<Fault>(), any_text()};
    default:
      return Returned{any_span(), any_text()};
  }
}

Settlement any_settlement() { return {{any_id(), any_number()}, any_outcome(), some(any_job)}; }

JobInfo any_info() {
  return {.job = any_job(),
          .state = any_of<JobState>(),
          .due = any_time(),
          .attempts = any_count(),
          .counts = any_counts(),
          .history = some(any_error),
          .worker = any_text(),
          .progress = any_bool() ? std::optional(Progress{*rc::gen::arbitrary<double>(), any_text()}) : std::nullopt,
          .steps = some(any_step),
          .waits_for = any_count(),
          .finished = maybe_time(),
          .dead_reason = any_bool() ? std::optional(any_of<DeadReason>()) : std::nullopt,
          .note = any_text(),
          .result = any_text(),
          .result_content_type = any_text()};
}

QueueInfo any_queue() {
  return {any_text(),   any_bool(),   any_number(),
          any_number(), any_number(), any_number(),
          any_number(), any_number(), maybe_time(), *rc::gen::arbitrary<int>()};
}

JobFilter any_filter() {
  return {.states = some([] { return any_of<JobState>(); }),
          .queue = any_text(),
          .kind = any_text(),
          .group = any_text(),
          .flow = any_id(),
          .headers = some([] { return std::pair(any_text(), any_text()); }),
          .error = any_text(),
          .since = maybe_time(),
          .until = maybe_time(),
          .bodies = any_bool()};
}

SubscribeOptions any_options() {
  return {some([] {
            return QueueShare{any_text(), *rc::gen::arbitrary<int>()};
          }),
          some(any_text),
          *rc::gen::arbitrary<int>(),
          *rc::gen::arbitrary<int>(),
          any_span(),
          any_text(),
          any_bool()};
}

AuditReport any_report() {
  AuditReport report{any_number(), any_number(), any_number(), any_number(), {}, some(any_text)};
  for (const std::string& name : some(any_text)) report.details[name] = any_number();
  return report;
}

// What comes back is the same, and no part of the bytes is taken for the whole.
template <class T>
void comes_back(const T& value) {
  const std::string bytes = encoded(value);
  Decoder in(bytes);
  const T back = take<T>(in);
  RC_ASSERT(in.done());
  RC_ASSERT(encoded(back) == bytes);
  const std::size_t cut = bytes.empty() ? 0 : *rc::gen::inRange<std::size_t>(0, bytes.size());
  Decoder part(std::string_view(bytes).substr(0, cut));
  (void)take<T>(part);
  RC_ASSERT(!part.done() || bytes.empty());
}

template <class Make>
void always_comes_back(const char* what, Make make) {
  EXPECT_TRUE(rc::check(what, [&] { comes_back(make()); }));
}

TEST(Wire, EverythingComesBackAsItWas) {
  always_comes_back("job", any_job);
  always_comes_back("lease", any_lease);
  always_comes_back("settlement", any_settlement);
  always_comes_back("job info", any_info);
  always_comes_back("queue info", any_queue);
  always_comes_back("filter", any_filter);
  always_comes_back("subscribe options", any_options);
  always_comes_back("audit report", any_report);
  always_comes_back("page", [] { return JobPage{some(any_info), any_text()}; });
  always_comes_back("replay options", [] { return ReplayOptions{any_bool(), any_span()}; });
  always_comes_back("explanation", [] { return Explanation{any_text(), any_text()}; });
  always_comes_back("pressure", [] { return Pressure{any_of<Pressure::Level>(), any_text(), any_span(), any_of<Pressure::Cause>()}; });
  always_comes_back("results", [] {
    return Result<std::vector<Result<Enqueued>>>(some([]() -> Result<Enqueued> {
      if (any_bool()) return Enqueued{any_id(), any_bool(), any_bool()};
      return Error{any_of<ErrorCode>(), any_text()};
    }));
  });
  always_comes_back("statuses", [] {
    return some([] { return any_bool() ? Status() : Status(Error{any_of<ErrorCode>(), any_text()}); });
  });
  always_comes_back("extended", [] { return some([] { return Extended{any_bool(), any_bool()}; }); });
}

// The bytes of two values differ wherever a field does, so that none is left out.
TEST(Wire, NoFieldOfAJobIsLeftOut) {
  const std::string plain = encoded(Job{});
  const auto differs = [&](auto change) {
    Job job;
    change(job);
    return encoded(job) != plain;
  };
  EXPECT_TRUE(differs([](Job& j) { j.id = JobId(std::array<std::uint8_t, 16>{1}); }));
  EXPECT_TRUE(differs([](Job& j) { j.kind = "x"; }));
  EXPECT_TRUE(differs([](Job& j) { j.queue = "x"; }));
  EXPECT_TRUE(differs([](Job& j) { j.body = "x"; }));
  EXPECT_TRUE(differs([](Job& j) { j.content_type = "x"; }));
  EXPECT_TRUE(differs([](Job& j) { j.headers = {{"x", "y"}}; }));
  EXPECT_TRUE(differs([](Job& j) { j.delay = Milliseconds(1); }));
  EXPECT_TRUE(differs([](Job& j) { j.due = Time(); }));
  EXPECT_TRUE(differs([](Job& j) { j.expires = Time(); }));
  EXPECT_TRUE(differs([](Job& j) { j.time_limit = Milliseconds(1); }));
  EXPECT_TRUE(differs([](Job& j) { j.priority = 1; }));
  EXPECT_TRUE(differs([](Job& j) { j.retry = RetryPolicy::none(); }));
  EXPECT_TRUE(differs([](Job& j) { j.unique_key = "x"; }));
  EXPECT_TRUE(differs([](Job& j) { j.unique_for = Milliseconds(1); }));
  EXPECT_TRUE(differs([](Job& j) { j.on_conflict = OnConflict::kReplace; }));
  EXPECT_TRUE(differs([](Job& j) { j.group = "x"; }));
  EXPECT_TRUE(differs([](Job& j) { j.after = {JobId()}; }));
  EXPECT_TRUE(differs([](Job& j) { j.after_death = AfterDeath::kRun; }));
  EXPECT_TRUE(differs([](Job& j) { j.flow = JobId(std::array<std::uint8_t, 16>{1}); }));
}

TEST(Wire, ACountWithNothingBehindItIsRefused) {
  std::string bytes;
  Encoder(bytes).count(std::uint64_t{1} << 60);
  Decoder in(bytes);
  EXPECT_TRUE(take<std::vector<Job>>(in).empty());
  EXPECT_FALSE(in.ok());
}

TEST(Wire, AValueOutsideItsRangeIsRefused) {
  const auto refused = [](std::uint8_t byte, auto read) {
    const std::string bytes(1, static_cast<char>(byte));
    Decoder in(bytes);
    read(in);
    return !in.ok();
  };
  EXPECT_TRUE(refused(6, [](Decoder& in) { take<JobState>(in); }));
  EXPECT_TRUE(refused(255, [](Decoder& in) { take<ErrorCode>(in); }));
  EXPECT_TRUE(refused(2, [](Decoder& in) { take<bool>(in); }));
  EXPECT_TRUE(refused(4, [](Decoder& in) { take<Outcome>(in); }));
  EXPECT_FALSE(refused(5, [](Decoder& in) { take<JobState>(in); }));
}

TEST(Wire, TimesAreKeptWithinWhatCanBeReckonedWith) {
  for (const std::int64_t value :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    std::string bytes;
    Encoder out(bytes);
    out.i64(value);
    out.i64(value);
    Decoder in(bytes);
    EXPECT_EQ(std::abs(take<Milliseconds>(in).count()), kLongestSpanMs);
    EXPECT_EQ(std::abs(take<Time>(in).time_since_epoch().count()), kFarthestTimeMs);
  }
}

TEST(Wire, AnyBytesAtAllAreReadOrRefused) {
  EXPECT_TRUE(rc::check("any bytes", [](const std::string& bytes) {
    const auto read = [&](auto reader) {
      Decoder in(bytes);
      reader(in);
      RC_ASSERT(in.left() <= bytes.size());
    };
    read([](Decoder& in) { take<std::vector<Job>>(in); });
    read([](Decoder& in) { take<std::vector<Settlement>>(in); });
    read([](Decoder& in) { take<std::vector<Lease>>(in); });
    read([](Decoder& in) { take<SubscribeOptions>(in); });
    read([](Decoder& in) { take<JobFilter>(in); });
    read([](Decoder& in) { (void)take<Result<JobPage>>(in); });
  }));
}

TEST(Calls, OnlyWhatIsHarmlessIsRepeated) {
  EXPECT_FALSE(is_repeatable(FrameType::kEnqueue));
  EXPECT_FALSE(is_repeatable(FrameType::kPurge));
  EXPECT_FALSE(is_repeatable(FrameType::kCancel));
  EXPECT_FALSE(is_repeatable(FrameType::kReplay));
  EXPECT_TRUE(is_repeatable(FrameType::kSettle));
  EXPECT_TRUE(is_repeatable(FrameType::kWatch));
  EXPECT_FALSE(is_repeatable(static_cast<FrameType>(200)));
}

}  // namespace
}  // namespace bide::brokers::shared
