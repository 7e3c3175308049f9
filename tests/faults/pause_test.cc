// SIGSTOP: processes that fall silent without being dead, for longer than their leases, and wake up again.

#include "core/job_ids.h"
#include "faults/fault_bench.h"

namespace bide::faults {
namespace {

class PauseTest : public FaultBench {
 protected:
  // The history knows of it.
  JobId enqueue_known(const std::string& kind, const std::string& body) {
    const JobId id = ids_.next(crash::now_us() / 1000, ++last_);
    processes().history().say("enqueue " + id.to_string() + " 0");
    enqueue(kind, body, {.id = id});
    processes().history().say("enqueued " + id.to_string() + " 1");
    return id;
  }
  crash::Findings findings() {
    const Capabilities can = client().broker().capabilities();
    return crash::check(crash::read_histories(histories_.path()), crash::read_back(can, client().inspector()), can);
  }

 private:
  core::JobIdSource ids_;
  std::uint64_t last_ = 0;
};

TEST_F(PauseTest, TheLateOutcomeOfAGuestThatWasStoppedIsRefusedAndTheJobRanElsewhere) {
  const JobId id = enqueue_known("sleep", "3500");
  start_worker("sleeper", {"lease_ms=3000"});
  ASSERT_TRUE(eventually([&] { return events("sleeper", "start") == 1; }));
  processes().pause("sleeper");
  start_worker("other", {"lease_ms=3000"});
  ASSERT_TRUE(eventually([&] { return is(id, JobState::kDone); }));
  EXPECT_EQ(events("other", "start"), 1u);
  processes().resume("sleeper");
  ASSERT_TRUE(eventually([&] { return events("sleeper", "finish") == 1; }));
  processes().terminate("sleeper");
  EXPECT_EQ(processes().wait("sleeper", kPatience), 0);

  EXPECT_EQ(events("sleeper", "settled"), 0u);
  EXPECT_TRUE(said("sleeper", "stats", "lease_lost=1"));
  const auto found = findings();
  EXPECT_EQ(found.violation_count(), 0u) << found.report();
  EXPECT_EQ(found.duplicates.at("lease_lost"), 1u) << found.report();
}

TEST_F(PauseTest, AnOwnerThatWasStoppedGoesOnAndNoStaleOutcomeIsAccepted) {
  start_worker("owner", {"lease_ms=1000"});
  std::vector<JobId> ids;
  start_worker("guest", {"lease_ms=1000"});
  ASSERT_EQ(processes().owner(), "owner");
  for (int i = 0; i < 30; ++i) ids.push_back(enqueue_known("sleep", std::to_string(100 + i * 20)));
  ASSERT_TRUE(eventually([&] { return events("owner", "start") > 0 && events("guest", "start") > 0; }));
  processes().pause("owner");
  std::this_thread::sleep_for(2500ms);
  processes().resume("owner");
  for (const JobId id : ids) {
    EXPECT_TRUE(eventually([&] { return is(id, JobState::kDone); }));
  }
  for (const char* name : {"guest", "owner"}) {
    processes().terminate(name);
    EXPECT_EQ(processes().wait(name, kPatience), 0);
  }
  const auto found = findings();
  EXPECT_EQ(found.violation_count(), 0u) << found.report();
  EXPECT_TRUE(audit().ok());
}

TEST_F(PauseTest, AGuestCanBeStoppedAndItsCallsEndWhileTheOwnerStandsStill) {
  start_worker("owner");
  start_worker("guest", {"grace_ms=3000"});
  ASSERT_EQ(processes().owner(), "owner");
  const JobId hang = enqueue("hang", "");
  ASSERT_TRUE(eventually([&] { return events("owner", "start") + events("guest", "start") == 1; }));
  processes().pause("owner");
  const auto answer = client().enqueue("sleep", "1");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnconfirmed) << answer.error().message;
  processes().terminate("guest");
  EXPECT_EQ(processes().wait("guest", kPatience), 0);
  processes().resume("owner");
  EXPECT_TRUE(client().find(hang));
}

}  // namespace
}  // namespace bide::faults
