// BrokerConformance: what every broker must do, whatever it is made of. The fixture of the suite: a fresh subject for
// each test, and the calls of the seam in the short, blocking form that tests like to read.
//
// A call that returns a plain value throws when the broker refuses, which fails the test; the try_ form hands the
// refusal over. What a broker says it cannot do (capabilities) is skipped with its reason, and counted at the end.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/wait.h"
#include "conformance/recorder.h"
#include "conformance/subject.h"

namespace bide {

// For readable failures.
inline void PrintTo(const JobId& id, std::ostream* out) { *out << id.to_string(); }
inline void PrintTo(JobState state, std::ostream* out) { *out << to_string(state); }
inline void PrintTo(Fault fault, std::ostream* out) { *out << to_string(fault); }
inline void PrintTo(DeadReason reason, std::ostream* out) { *out << to_string(reason); }
inline void PrintTo(const AttemptCounts& counts, std::ostream* out) {
  *out << "failed " << counts.failed << ", timed out " << counts.timed_out << ", lost " << counts.lost << ", crashed "
       << counts.crashed;
}

namespace conformance {

template <class T>
testing::AssertionResult succeeded(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << to_string(result.error().code) << ": " << result.error().message;
}

template <class T>
testing::AssertionResult refused(const Result<T>& result, ErrorCode code) {
  if (result) return testing::AssertionFailure() << "succeeded";
  if (result.error().code != code) {
    return testing::AssertionFailure() << "refused with " << to_string(result.error().code) << ": "
                                       << result.error().message;
  }
  if (result.error().message.empty()) return testing::AssertionFailure() << "refused without saying why";
  return testing::AssertionSuccess();
}

enum class Restart { kClean, kCrash };

class BrokerConformance : public testing::TestWithParam<SubjectParam> {
 protected:
  void SetUp() override;

  Subject& subject() { return *subject_; }
  Broker& broker() { return subject_->broker(); }
  Inspector& inspector() { return subject_->inspector(); }
  Capabilities can() { return broker().capabilities(); }

  // ---- Time.
  Milliseconds beats(int count) { return count * subject_->beat(); }
  // So near to the end of a wait as can be told apart from it; and what is left then.
  Milliseconds nearly(Milliseconds wait);
  Milliseconds rest(Milliseconds wait) { return wait - nearly(wait); }
  // Time goes on until then. Before it no lease may arrive beyond those that have been expected already.
  void expect_nothing_before(Time due, Consumer& consumer, std::size_t already = 0);
  // Nobody minds when the end of a lease is noticed a little late; it is never early.
  Milliseconds grace() { return subject_->beat() / 4; }
  // How much earlier than its arrival here a lease may have begun, where time does not stand still.
  Milliseconds on_its_way() { return subject_->has_virtual_time() ? Milliseconds(0) : subject_->beat() / 2; }
  // True as soon as it holds; false when patience ran out.
  [[nodiscard]] static bool eventually(const std::function<bool()>& holds);
  void advance(Milliseconds by) { subject_->advance(by); }
  Time now() { return subject_->now(); }
  // The broker has worked past this point: what it was going to deliver by now, it has. Where time is real, that is very
  // likely and not certain: so it may show that something came too early or twice, not that everything came.
  void barrier();
  void restart(Restart how);
  // What ran when the broker crashed for the n-th time may run again: it waits for a random time.
  void let_crashed_jobs_return(std::uint64_t crashes = 1);

  // ---- Jobs.
  static Job make_job(std::string kind = "work", std::string queue = "default");
  static JobId make_id();
  Result<Enqueued> try_enqueue(Job job);
  JobId enqueue_one(Job job = make_job());
  std::vector<Result<Enqueued>> try_enqueue(std::vector<Job> jobs);
  std::vector<JobId> enqueue_all(std::vector<Job> jobs);
  std::vector<JobId> enqueue_many(int count, const Job& like = make_job());

  // ---- Leases.
  Consumer subscribe(SubscribeOptions options = {});
  Consumer subscribe_to(const std::string& queue, int credit = 64);
  // Subscribes for exactly one lease, and leaves again with it.
  Lease lease_one(const std::string& queue = "default");
  Lease lease_as(SubscribeOptions options);
  static LeaseRef ref(const Lease& lease) { return {lease.job.id, lease.token}; }
  Status settle_one(const Lease& lease, Outcome outcome = Done{}, std::vector<Job> effects = {});
  std::vector<Status> settle_all(std::vector<Settlement> settlements);
  Extended extend_one(const Lease& lease);
  std::vector<Extended> extend_all(std::vector<LeaseRef> leases);
  // Enqueues a job and brings it to the dead set by the word of its handler.
  JobId make_dead(Job job = make_job(), const std::string& error = "rejected");

  // ---- Looking around.
  Result<JobInfo> try_find(JobId id);
  JobInfo find(JobId id);
  QueueInfo queue(const std::string& name);
  Result<JobPage> try_list(JobFilter filter, std::string cursor, std::size_t limit);
  std::vector<JobInfo> list(const JobFilter& filter, std::size_t page_size = 100);
  std::vector<JobId> list_ids(const JobFilter& filter, std::size_t page_size = 100);
  std::string explain(JobId id);  // The code.
  AuditReport audit();
  Pending<JobInfo> watch(JobId id);
  Status cancel_one(JobId id, CancelOptions options = {});
  Status reschedule_one(JobId id, Time due);
  Status edit_one(JobId id, JobEdit edit);
  Status replay_one(JobId id, ReplayOptions options = {});
  Status pause(const std::string& queue, bool paused = true);
  Result<std::uint64_t> purge(const std::string& queue);
  Status put_rules(const QueueRules& rules);
  std::vector<QueueRules> rules();
  Result<PutSchedule> put_schedule(Schedule schedule);
  std::vector<ScheduleInfo> all_schedules();
  ScheduleInfo schedule_info(const std::string& name);
  Status remove_schedule(const std::string& name);
  Status pause_schedule(const std::string& name, bool paused);
  Result<JobId> run_schedule(const std::string& name);

  // The reason for a skip: what is missing, and the broker's own word about it.
  std::string without(const std::string& capability);

 private:
  std::unique_ptr<Subject> subject_;
};

#define BIDE_NEEDS(capability) \
  if (!can().capability) GTEST_SKIP() << without(#capability)

#define BIDE_NEEDS_VIRTUAL_TIME() \
  if (!subject().has_virtual_time()) GTEST_SKIP() << "no virtual_time: the clock of this broker cannot be moved"

#define BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH() \
  if (!subject().crash_keeps_attempts()) GTEST_SKIP() << "attempts begun need not survive this kind of crash"

#define BIDE_NEEDS_DEAD_WORKERS_TO_BE_NOTICED() \
  if (!subject().notices_dead_workers()) GTEST_SKIP() << "nobody sees a worker die here: its lease runs out, which is no crash"

}  // namespace conformance
}  // namespace bide
