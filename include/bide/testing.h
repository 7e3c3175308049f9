// The test kit: your handlers on the real engine, in virtual time. A retry after three hours takes no time at all.
//
//   TEST(Invoices, AreSentAgainWhenTheMailServerWasDown) {
//     bide::testing::Kit kit;
//     register_handlers(kit.worker());                     // The function that your program calls, too.
//     auto id = kit.client().enqueue("send_invoice", "42", {.delay = 3h}).value();
//
//     EXPECT_EQ(kit.run_due(), 0u);                        // Not due yet.
//     kit.advance(3h);
//     mail_server.down = true;
//     EXPECT_EQ(kit.run_due(), 1u);
//     EXPECT_EQ(kit.failed().at(0).history.back().text, "connection refused");
//
//     mail_server.down = false;
//     kit.play(1h);                                        // An hour, with everything that falls due in it.
//     EXPECT_EQ(kit.find(id).state, bide::JobState::kDone) << kit.why(id);
//   }
//
// Handlers run one at a time, in the order of the engine, on the thread that calls. While one runs no time passes, so
// time limits and lost leases are not part of this. The store lies in a temporary directory and goes with the kit.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/client.h"
#include "bide/inspector.h"
#include "bide/worker.h"

namespace bide::testing {

// For one thread. What cannot be done here, such as making the directory, prints a line and aborts: it is a test.
class Kit {
 public:
  explicit Kit(WorkerOptions options = {});
  ~Kit();
  Kit(const Kit&) = delete;
  Kit& operator=(const Kit&) = delete;

  Client& client();
  // For handlers, middleware and hooks. It is not to be started: run_due() and play() run its jobs.
  Worker& worker();

  Time now() const;

  // Time passes; nothing runs.
  void advance(Milliseconds time);
  // Runs what is due in the worker's queues, and what that makes due, until nothing is. How many attempts that took.
  std::size_t run_due();
  // Time passes, and everything that falls due meanwhile runs at its moment. How many attempts that took.
  std::size_t play(Milliseconds time);

  JobInfo find(JobId id);
  std::string why(JobId id);  // What it does, or the one reason why it does not run.

  // Each in the order of its due time; an empty kind is all of them.
  std::vector<JobInfo> enqueued(std::string_view kind = {});  // Waiting to run, now or later.
  std::vector<JobInfo> failed(std::string_view kind = {});    // Waiting after a fault, or dead.
  std::vector<JobInfo> done(std::string_view kind = {});

 private:
  struct State;
  std::vector<JobInfo> list(const JobFilter& filter);

  std::unique_ptr<State> state_;
};

}  // namespace bide::testing
