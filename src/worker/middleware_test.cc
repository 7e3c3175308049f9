#include "bide/middleware.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

TEST(Middleware, TheFirstOneAddedIsTheOutermost) {
  Bench bench;
  Notes notes;
  bench.worker.use([&](Context&, const Next& next) {
    notes.add("first in");
    Outcome outcome = next();
    notes.add("first out");
    return outcome;
  });
  bench.worker.use([&](Context&, const Next& next) {
    notes.add("second in");
    Outcome outcome = next();
    notes.add("second out");
    return outcome;
  });
  bench.worker.handle("a", [&] { notes.add("handler"); });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  bench.outcome();
  EXPECT_EQ(notes.all(),
            (std::vector<std::string>{"first in", "second in", "handler", "second out", "first out"}));
}

TEST(Middleware, ItMayDecideWithoutTheHandler) {
  Bench bench;
  bench.worker.use([](Context&, const Next&) -> Outcome { return dead("not today"); });
  bench.worker.handle("a", [] { FAIL() << "it was not to be called"; });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  EXPECT_EQ(std::get<Dead>(bench.outcome()).error, "not today");
}

TEST(Middleware, ItSeesTheExceptionsOfTheHandler) {
  Bench bench;
  bench.worker.use([](Context&, const Next& next) -> Outcome {
    try {
      return next();
    } catch (const std::runtime_error&) {
      return Done{};
    }
  });
  bench.worker.handle("a", [] { throw std::runtime_error("oops"); });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  EXPECT_TRUE(std::holds_alternative<Done>(bench.outcome()));
}

TEST(Middleware, LogAttemptsSaysHowEachOneEnded) {
  Bench bench({.concurrency = 1});
  Notes notes;
  bench.worker.use(log_attempts([&](std::string_view line) { notes.add(std::string(line)); }));
  bench.worker.handle("good", [] {});
  bench.worker.handle("bad", [] { throw std::runtime_error("oops"); });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("good");
  bench.broker->give("bad");
  const auto lines = notes.wait_for(4);
  EXPECT_NE(lines[0].find("attempt 1: starts"), std::string::npos);
  EXPECT_NE(lines[1].find("attempt 1: done after"), std::string::npos);
  EXPECT_NE(lines[3].find("threw oops"), std::string::npos);
}

TEST(Middleware, TimeAttemptsMeasuresThoseThatThrowToo) {
  Bench bench({.concurrency = 1});
  Notes notes;
  bench.worker.use(time_attempts([&](const Job& job, std::chrono::nanoseconds) { notes.add(job.kind); }));
  bench.worker.handle("good", [] {});
  bench.worker.handle("bad", [] { throw std::runtime_error("oops"); });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("good");
  bench.broker->give("bad");
  EXPECT_EQ(notes.wait_for(2), (std::vector<std::string>{"good", "bad"}));
}

}  // namespace
}  // namespace bide::worker
