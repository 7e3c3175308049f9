// Receivers that answered 202 and are still at work while the server is started anew.

#include <filesystem>
#include <thread>

#include "callbacks/callback_bench.h"

namespace bide::server {
namespace {

class Restarted : public CallbackTest {
 protected:
  CallbackOptions lasting(Milliseconds lease = 30s) const {
    CallbackOptions made = options();
    made.accepted_folder = accepted_folder();
    made.lease = lease;
    return made;
  }
  std::string accepted_folder() const { return folder_.path() + "/data/accepted"; }
  std::ptrdiff_t kept() const {
    return std::distance(std::filesystem::directory_iterator(accepted_folder()), std::filesystem::directory_iterator());
  }

  bool has_accepted(int count) {
    const std::string body = ask(Method::kGet, "/v1/callbacks", {}).body;
    return body.find("\"accepted\":" + std::to_string(count) + ",") != std::string::npos;
  }
  // The lease that the receiver was given, once its 202 has arrived.
  LeaseRef accepted(const JobId& id) {
    const HttpReceived request = receiver.wait_for(1).at(0);
    while (!has_accepted(1)) std::this_thread::sleep_for(1ms);
    return {id, std::stoull(request.fields.at("bide-lease-token"))};
  }
  static Settlement made(const LeaseRef& lease) {
    return {.lease = lease, .outcome = Done{.result = "made", .content_type = "text/plain"}};
  }

  HttpReceiver receiver{[](const HttpReceived&, HttpPeer& peer) { peer.answer("202 Accepted"); }};
};

TEST_F(Restarted, AnAcceptedJobStaysWithItsReceiverForLongerThanALease) {
  start(lasting(2s));
  const JobId id = enqueue(job_to(receiver.url()));
  const LeaseRef lease = accepted(id);
  stop();
  start(lasting(2s));
  ASSERT_TRUE(has_accepted(1));
  witness->wait_for_extensions(4);  // Longer than a lease.
  EXPECT_EQ(find(id).state, JobState::kRunning);
  ASSERT_TRUE(settle(made(lease)));
  EXPECT_EQ(end_of(id).result, "made");
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(Restarted, AlsoWhenTheBrokerIsStartedAnewWithIt) {
  start(lasting());
  const JobId id = enqueue(job_to(receiver.url()));
  const LeaseRef lease = accepted(id);
  close();
  open();
  start(lasting());
  ASSERT_TRUE(has_accepted(1));
  witness->wait_for_extensions_since(0, 1);
  ASSERT_TRUE(settle(made(lease)));
  EXPECT_EQ(end_of(id).result, "made");
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(Restarted, TheTimeLimitGoesOn) {
  start(lasting());
  Job job = job_to(receiver.url());
  job.time_limit = 2s;
  job.retry = RetryPolicy::none();
  const JobId id = enqueue(job);
  accepted(id);
  close();
  open();
  start(lasting());
  const JobInfo info = end_of(id);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.counts.timed_out, 1u);  // By whoever looked first, the deliverer or the engine.
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(Restarted, WhatWasSettledMeanwhileIsForgotten) {
  start(lasting());
  const LeaseRef lease = accepted(enqueue(job_to(receiver.url())));
  EXPECT_EQ(kept(), 1);
  stop();
  EXPECT_EQ(kept(), 1);
  const auto settled = wait<std::vector<Status>>([&](auto done) { witness->settle({made(lease)}, std::move(done)); });
  ASSERT_TRUE(settled.value().at(0));
  const int before = witness->extensions();
  start(lasting());
  witness->wait_for_extensions_since(before, 1);
  EXPECT_TRUE(has_accepted(0));
  EXPECT_EQ(kept(), 0);
}

TEST_F(Restarted, WhatTheReceiverSettlesIsNotKept) {
  start(lasting(1s));
  const LeaseRef lease = accepted(enqueue(job_to(receiver.url())));
  ASSERT_TRUE(settle(made(lease)));
  while (!has_accepted(0)) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(kept(), 0);
}

TEST_F(Restarted, WhatIsAdoptedTakesNoPlaceFromOthers) {
  CallbackOptions narrow = lasting();
  narrow.concurrency = narrow.per_host = 1;
  start(narrow);
  const LeaseRef lease = accepted(enqueue(job_to(receiver.url())));
  stop();
  start(narrow);
  ASSERT_TRUE(has_accepted(1));
  const JobId second = enqueue(job_to(receiver.url()));
  receiver.wait_for(2);
  while (!has_accepted(2)) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(settle(made(lease)));
  ASSERT_TRUE(settle(made({second, std::stoull(receiver.received().at(1).fields.at("bide-lease-token"))})));
}

TEST_F(Restarted, AFolderThatCannotBeWrittenCostsNothingElse) {
  CallbackOptions chosen = lasting();
  chosen.accepted_folder = folder_.path() + "/missing/accepted";
  start(chosen);
  const JobId id = enqueue(job_to(receiver.url()));
  ASSERT_TRUE(settle(made(accepted(id))));
  EXPECT_EQ(end_of(id).result, "made");
}

}  // namespace
}  // namespace bide::server
