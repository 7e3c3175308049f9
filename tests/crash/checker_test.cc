// The checker, given histories that no right broker would cause: each violation is found, and what looks like one and
// is none is not.

#include "crash/checker.h"

#include <sstream>

#include <gtest/gtest.h>

namespace bide::crash {
namespace {

using State = JobState;

// Lines are "process: event", with times of their own; see history.h.
Findings examine(const std::string& text, const Readback& readback = {{{"a", State::kDone}}, {}, {}},
                 const Capabilities& can = {}) {
  std::vector<Event> events;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::size_t name = line.find_first_not_of(' ');
    events.push_back(parse_event(line.substr(name, colon - name), line.substr(colon + 2)));
  }
  return check(events, readback, can);
}

// Exactly this one, once.
void expect_only(const Findings& findings, const std::string& violation) {
  EXPECT_EQ(findings.violation_count(), 1u) << findings.report();
  EXPECT_EQ(findings.violations.at(violation), 1u) << findings.report();
  EXPECT_FALSE(findings.examples.empty());
}

void expect_none(const Findings& findings) { EXPECT_EQ(findings.violation_count(), 0u) << findings.report(); }

const std::string kEnqueued = R"(
  p: 100 enqueue a 0
  p: 200 enqueued a 1
)";
const std::string kFirst = kEnqueued + R"(
  w: 300 leased a 1 1 1000
  w: 310 start a 1 1
)";
const std::string kDoneAtFirst = kFirst + R"(
  w: 400 finish a 1
  w: 410 settle a 1 done 0
  w: 500 settled a 1
)";

TEST(Checker, FindsNothingWhereNothingIs) {
  const Findings findings = examine(kDoneAtFirst);
  expect_none(findings);
  EXPECT_EQ(findings.confirmed, 1u);
  EXPECT_EQ(findings.starts, 1u);
  EXPECT_EQ(findings.accepted_outcomes, 1u);
  EXPECT_TRUE(findings.duplicates.empty());
}

TEST(Checker, AConfirmedJobThatNeverStartedAndIsNowhereIsLost) { expect_only(examine(kEnqueued, {}), "lost"); }

TEST(Checker, AnUnconfirmedJobMayBeNowhere) { expect_none(examine("p: 100 enqueue a 0", {})); }

TEST(Checker, AStartedJobThatIsNowhereHasVanished) { expect_only(examine(kFirst, {}), "vanished"); }

TEST(Checker, WithoutInspectionAnOutcomeThatNobodyConfirmedMayHaveBeenAccepted) {
  Capabilities can;
  can.inspect = false;
  expect_only(examine(kFirst, {}, can), "vanished");
  const Findings findings = examine(kFirst + "w: 410 settle a 1 done 0", {}, can);
  expect_none(findings);
  EXPECT_EQ(findings.unsaid, 1u);
}

TEST(Checker, AJobThatStillWaitsAtTheEndIsUnfinished) {
  expect_only(examine(kEnqueued, {{{"a", State::kReady}}, {}, {}}), "unfinished");
}

TEST(Checker, AnUnconfirmedJobThatIsThereMustBeFinishedToo) {
  expect_only(examine("p: 100 enqueue a 0", {{{"a", State::kScheduled}}, {}, {}}), "unfinished");
}

TEST(Checker, AStartBeforeTheDelayIsOverIsEarly) {
  const std::string text = R"(
    p: 100 enqueue a 2
    p: 200 enqueued a 1
    w: 300 leased a 1 1 1000
    w: 2099 start a 1 1
    w: 2200 settle a 1 done 0
    w: 2300 settled a 1
  )";
  expect_only(examine(text), "early");
}

TEST(Checker, ARetryBeforeItsWaitIsOverIsEarly) {
  const std::string retried = kFirst + R"(
    w: 400 settle a 1 retry 5
    w: 410 settled a 1
    w: 420 leased a 2 2 1000
  )";
  expect_only(examine(retried + "w: 5399 start a 2 2"), "early");
  const Findings findings = examine(retried + "w: 5400 start a 2 2");
  expect_none(findings);
  EXPECT_EQ(findings.retries, 1u);
  EXPECT_TRUE(findings.duplicates.empty());
}

TEST(Checker, AStartWithALaterTokenThanTheOneThatSettledIsARunAfterSettle) {
  const std::string again = kDoneAtFirst + R"(
    v: 600 leased a 2 2 1000
    v: 610 start a 2 2
  )";
  expect_only(examine(again), "run_after_settle");
  Capabilities can;
  can.final_settle = false;
  const Findings findings = examine(again, {{{"a", State::kDone}}, {}, {}}, can);
  expect_none(findings);
  EXPECT_EQ(findings.duplicates.at("redelivered"), 1u);
}

TEST(Checker, TwoLeasesThatAreValidAtOnceOverlap) {
  const Findings findings = examine(kFirst + R"(
    v: 600 leased a 2 2 1000
    v: 610 start a 2 2
  )");
  EXPECT_EQ(findings.violations.at("overlap"), 1u) << findings.report();
  EXPECT_EQ(findings.violations.at("unexplained"), 1u) << findings.report();
}

TEST(Checker, AnExtendedLeaseIsValidForLonger) {
  const std::string text = kFirst + R"(
    w: 900300 extended a 1 900000
    v: 1800000 leased a 2 2 1000
    v: 1800010 start a 2 2
  )";
  EXPECT_EQ(examine(text).violations.at("overlap"), 1u);
}

TEST(Checker, ALeaseThatRanOutIsADuplicateAndNoOverlap) {
  const Findings findings = examine(kFirst + R"(
    v: 1000300 leased a 2 2 1000
    v: 1000310 start a 2 2
  )");
  expect_none(findings);
  EXPECT_EQ(findings.duplicates.at("lease_lost"), 1u);
}

TEST(Checker, TheTimeOfALeaseRunsFromWhenItWasGiven) {
  const auto again_when_given = [](const std::string& given) {
    return examine(kEnqueued + "w: 300 leased a 1 1 1000 " + given + R"(
      w: 400 start a 1 1
      v: 940300 leased a 2 2 1000
      v: 940310 start a 2 2
    )");
  };
  EXPECT_EQ(again_when_given("300").violations.at("overlap"), 1u);
  expect_none(again_when_given("-49700"));
}

TEST(Checker, ALeaseThatArrivesAfterAPauseMayHaveBeenGrantedBefore) {
  const std::string text = kEnqueued + R"(
    injector: 250 paused w guest
    injector: 900000 resumed w
    w: 900100 leased a 1 1 1000
    w: 900200 start a 1 1
  )";
  // Counted from its arrival, the first would be valid until 1900100.
  const std::string again = R"(
    v: 1900050 leased a 2 2 1000
    v: 1900060 start a 2 2
  )";
  const Findings findings = examine(text + again);
  expect_none(findings);
  EXPECT_EQ(findings.duplicates.at("lease_lost"), 1u);
  EXPECT_EQ(findings.pauses.at("guest"), 1u);
  // What it was told of later, it may rely on.
  EXPECT_EQ(examine(text + "w: 950200 extended a 1 950000" + again).violations.at("overlap"), 1u);
}

TEST(Checker, ALeaseEndsWithItsProcess) {
  const Findings findings = examine(kFirst + R"(
    injector: 400 killed w guest
    v: 450 leased a 2 2 1000
    v: 460 start a 2 2
    injector: 470 gone w 137
  )");
  expect_none(findings);
  EXPECT_EQ(findings.duplicates.at("crashed"), 1u);
  EXPECT_EQ(findings.kills.at("guest"), 1u);
}

TEST(Checker, AProcessThatEndedByItselfWasAliveAsLongAsItSpoke) {
  const std::string text = R"(
    v: 350 leased a 2 2 1000
    v: 360 start a 2 2
    w: 400 problem x
    injector: 470 gone w 134
  )";
  EXPECT_EQ(examine(kFirst + text).violations.at("overlap"), 1u);
}

TEST(Checker, OneLeaseThatIsStartedTwiceOverlaps) {
  expect_only(examine(kDoneAtFirst + "w: 320 start a 1 1"), "overlap");
}

TEST(Checker, AnOutcomeThatIsAcceptedAfterALaterLeaseHasBegunIsStale) {
  const std::string lost = kFirst + R"(
    v: 1000300 leased a 2 2 1000
    v: 1000310 start a 2 2
    w: 1000400 settle a 1 retry 0
  )";
  expect_only(examine(lost + "w: 1000500 settled a 1"), "stale_accepted");
  const Findings findings = examine(lost + "w: 1000500 not_settled a 1");
  expect_none(findings);
  EXPECT_EQ(findings.refused_outcomes, 1u);
}

TEST(Checker, AJobThatNobodyEnqueuedIsUnexpected) {
  expect_only(examine("", {{{"a", State::kDone}}, {}, {}}), "unexpected");
  expect_only(examine(R"(
    w: 300 leased a 1 1 1000
    w: 310 start a 1 1
  )",
                      {}),
              "unexpected");
}

TEST(Checker, AJobThatWasRefusedIsUnexpected) {
  expect_only(examine(R"(
    p: 100 enqueue a 0
    p: 200 not_enqueued a
  )"),
              "unexpected");
}

TEST(Checker, AnEffectIsAsRealAsTheOutcomeThatItBelongsTo) {
  const std::string parent = kFirst + R"(
    w: 400 settle a 1 done 0
    w: 400 effect b 0 a 1
  )";
  const Readback both{{{"a", State::kDone}, {"b", State::kDone}}, {}, {}};
  const Findings found = examine(parent + "w: 500 settled a 1", both);
  expect_none(found);
  EXPECT_EQ(found.effects, 1u);
  EXPECT_EQ(found.confirmed, 2u);
  expect_only(examine(parent + "w: 500 settled a 1"), "lost");
  expect_only(examine(parent + "w: 500 not_settled a 1", both), "unexpected");
  expect_none(examine(parent + R"(
    injector: 450 killed x owner
    injector: 460 gone x 137
    w: 500 not_settled a 1
  )",
                      both));
  // Nobody heard whether it was accepted.
  expect_none(examine(parent, both));
  expect_none(examine(parent));
}

TEST(Checker, AnIdThatIsNewTwiceIsADuplicate) {
  expect_only(examine(kDoneAtFirst + R"(
    p: 600 enqueue a 0
    p: 700 enqueued a 1
  )"),
              "duplicate_id");
  expect_none(examine(kDoneAtFirst + R"(
    p: 600 enqueue a 0
    p: 700 enqueued a 0
  )"));
}

TEST(Checker, AnIdThatIsListedTwiceIsADuplicate) {
  expect_only(examine(kDoneAtFirst, {{{"a", State::kDone}, {"a", State::kDone}}, {}, {}}), "duplicate_id");
}

TEST(Checker, AnAttemptThatWasNotCountedIsFound) {
  const std::string killed = kFirst + R"(
    injector: 400 killed w guest
    injector: 410 gone w 137
    v: 500 leased a 2 1 1000
    v: 510 start a 2 1
  )";
  expect_only(examine(killed), "uncounted");
}

TEST(Checker, AReturnedAttemptIsNotCounted) {
  const Findings findings = examine(kFirst + R"(
    w: 400 settle a 1 returned 0
    w: 410 settled a 1
    v: 500 leased a 2 1 1000
    v: 510 start a 2 1
  )");
  expect_none(findings);
  EXPECT_EQ(findings.retries, 1u);
}

TEST(Checker, ATimedOutAttemptIsADuplicateOfItsOwnKind) {
  EXPECT_EQ(examine(kFirst + R"(
    w: 400 settle a 1 timed_out 0
    w: 410 settled a 1
    w: 500 leased a 2 2 1000
    w: 510 start a 2 2
  )")
                .duplicates.at("timed_out"),
            1u);
}

TEST(Checker, ARetryWhoseConfirmationWasLostIsExplainedByThat) {
  const Findings findings = examine(kFirst + R"(
    w: 400 settle a 1 retry 0
    v: 500 leased a 2 2 1000
    v: 510 start a 2 2
  )");
  expect_none(findings);
  EXPECT_EQ(findings.duplicates.at("lost_reply"), 1u);
}

TEST(Checker, ADoneJobThatIsDeadIsUnexpected) {
  expect_only(examine(kDoneAtFirst, {{{"a", State::kDead}}, {}, {}}), "unexpected");
}

TEST(Checker, WhatTheBrokerComplainsOfIsAViolation) {
  expect_only(examine(kDoneAtFirst, {{{"a", State::kDone}}, {}, {"two places"}}), "audit");
}

TEST(Checker, LatenessAndRecoveryAreMeasured) {
  const Findings findings = examine(kEnqueued + R"(
    injector: 1000 killed x owner
    w: 7000 leased a 1 1 1000
    w: 8100 start a 1 1
    w: 8200 settle a 1 done 0
    w: 8300 settled a 1
  )");
  EXPECT_EQ(findings.latest_start_ms, 8);
  EXPECT_EQ(findings.longest_recovery_ms, 7);
}

}  // namespace
}  // namespace bide::crash
