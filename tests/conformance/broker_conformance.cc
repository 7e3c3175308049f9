#include "conformance/broker_conformance.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>

#include "core/retry_decision.h"
#include <thread>

namespace bide::conformance {
namespace {

constexpr const char* kBarrierQueue = "conformance-barrier";

template <class T>
T require(Result<T> result, const char* what) {
  if (result) return std::move(result).value();
  throw std::runtime_error(std::string(what) + " was refused: " + result.error().message);
}

template <class T>
T only(std::vector<T> answers, const char* what) {
  if (answers.size() == 1) return std::move(answers.front());
  throw std::runtime_error(std::string(what) + " of one gave " + std::to_string(answers.size()) + " answers");
}

// Says at the end how much of the suite was run, and why the rest was not.
class Summary : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.skipped()) return;
    std::string reason = result.message();
    if (const auto start = reason.find_first_not_of('\n'); start != std::string::npos) reason.erase(0, start);
    while (!reason.empty() && reason.back() == '\n') reason.pop_back();
    reasons_[reason] += 1;
  }

  void OnTestEnd(const testing::TestInfo& test) override { (test.result()->Skipped() ? skipped_ : ran_) += 1; }

  void OnTestProgramEnd(const testing::UnitTest&) override {
    std::string reasons;
    for (const auto& [reason, count] : reasons_) {
      reasons += (reasons.empty() ? " (" : "; ") + std::to_string(count) + ": " + reason;
    }
    if (!reasons.empty()) reasons += ")";
    std::printf("conformance: %d ran, %d skipped%s\n", ran_, skipped_, reasons.c_str());
    std::fflush(stdout);
  }

  int ran_ = 0;
  int skipped_ = 0;
  std::map<std::string, int> reasons_;
};

// The listeners own it. Before main, because that belongs to GoogleTest.
[[maybe_unused]] const bool summary_added = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Summary);
  return true;
}();

}  // namespace

void BrokerConformance::SetUp() {
  if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
  subject_ = GetParam().make();
  ASSERT_NE(subject_, nullptr) << "no subject could be made";
}

Milliseconds BrokerConformance::nearly(Milliseconds wait) {
  return subject_->has_virtual_time() ? wait - Milliseconds(1) : wait / 2;
}

void BrokerConformance::expect_nothing_before(Time due, Consumer& consumer, std::size_t already) {
  if (!subject_->has_virtual_time()) {
    // The judge is the time of arrival: the test itself may be late in looking.
    advance(std::max(due - now(), Milliseconds(0)));
    EXPECT_EQ(consumer.leases().count_before(due), already);
    return;
  }
  advance(due - now() - Milliseconds(1));
  barrier();
  EXPECT_EQ(consumer.leases().count(), already);
  advance(Milliseconds(1));
}

bool BrokerConformance::eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void BrokerConformance::barrier() {
  // A broker may deliver everything of one round in any order, so the marker of one round proves only the round before.
  for (int round = 0; round < 2; ++round) {
    enqueue_one(make_job("barrier", kBarrierQueue));
    const Lease marker = lease_one(kBarrierQueue);
    if (Status status = settle_one(marker); !status) throw std::runtime_error("barrier: " + status.error().message);
  }
  if (!subject_->has_virtual_time()) advance(subject_->beat() / 4);
}

void BrokerConformance::restart(Restart how) {
  if (how == Restart::kClean) {
    subject_->reopen();
  } else {
    subject_->crash_and_reopen();
    advance(subject_->crash_notice());
  }
}

void BrokerConformance::let_crashed_jobs_return(std::uint64_t crashes) {
  if (!subject_->notices_dead_workers()) advance(SubscribeOptions().lease + grace());
  // Where time is real, whoever wants the lease waits for it.
  if (subject_->has_virtual_time()) advance(core::longest_wait_after_crash(crashes));
}

Job BrokerConformance::make_job(std::string kind, std::string queue) {
  Job job;
  job.kind = std::move(kind);
  job.queue = std::move(queue);
  job.body = "body of " + job.kind;
  return job;
}

JobId BrokerConformance::make_id() {
  static std::atomic<std::uint32_t> last{0};
  const std::uint32_t number = ++last;
  std::array<std::uint8_t, JobId::kSize> bytes{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80, 8, 9, 10};
  for (unsigned i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  return JobId(bytes);
}

Result<Enqueued> BrokerConformance::try_enqueue(Job job) {
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  return only(try_enqueue(std::move(jobs)), "enqueue");
}

JobId BrokerConformance::enqueue_one(Job job) { return require(try_enqueue(std::move(job)), "enqueue").id; }

std::vector<Result<Enqueued>> BrokerConformance::try_enqueue(std::vector<Job> jobs) {
  return require(wait<std::vector<Result<Enqueued>>>(
                     [&](auto done) { broker().enqueue(std::move(jobs), std::move(done)); }),
                 "enqueue");
}

std::vector<JobId> BrokerConformance::enqueue_all(std::vector<Job> jobs) {
  std::vector<JobId> ids;
  for (const Result<Enqueued>& result : try_enqueue(std::move(jobs))) ids.push_back(require(result, "enqueue").id);
  return ids;
}

std::vector<JobId> BrokerConformance::enqueue_many(int count, const Job& like) {
  return enqueue_all(std::vector<Job>(static_cast<std::size_t>(count), like));
}

Consumer BrokerConformance::subscribe(SubscribeOptions options) {
  Recorder recorder([subject = subject_.get()] { return subject->now(); });
  auto subscription = require(broker().subscribe(std::move(options), recorder.sink()), "subscribe");
  return Consumer(std::move(recorder), std::move(subscription));
}

Consumer BrokerConformance::subscribe_to(const std::string& queue, int credit) {
  return subscribe({.queues = {{queue, 1}}, .credit = credit});
}

Lease BrokerConformance::lease_one(const std::string& queue) { return lease_as({.queues = {{queue, 1}}}); }

Lease BrokerConformance::lease_as(SubscribeOptions options) {
  options.credit = 1;
  return subscribe(std::move(options)).leases().take();
}

Status BrokerConformance::settle_one(const Lease& lease, Outcome outcome, std::vector<Job> effects) {
  return only(settle_all({{ref(lease), std::move(outcome), std::move(effects)}}), "settle");
}

std::vector<Status> BrokerConformance::settle_all(std::vector<Settlement> settlements) {
  return require(
      wait<std::vector<Status>>([&](auto done) { broker().settle(std::move(settlements), std::move(done)); }),
      "settle");
}

Extended BrokerConformance::extend_one(const Lease& lease) { return only(extend_all({ref(lease)}), "extend"); }

std::vector<Extended> BrokerConformance::extend_all(std::vector<LeaseRef> leases) {
  return require(wait<std::vector<Extended>>([&](auto done) { broker().extend(std::move(leases), std::move(done)); }),
                 "extend");
}

JobId BrokerConformance::make_dead(Job job, const std::string& error) {
  const std::string queue_name = job.queue;
  const JobId id = enqueue_one(std::move(job));
  const Lease lease = lease_one(queue_name);
  if (lease.job.id != id) throw std::runtime_error("make_dead needs a queue with nothing else in it");
  const Status status = settle_one(lease, Dead{.reason = DeadReason::kRejected, .error = error});
  if (!status) throw std::runtime_error("make_dead: " + status.error().message);
  return id;
}

Result<JobInfo> BrokerConformance::try_find(JobId id) {
  return wait<JobInfo>([&](auto done) { inspector().find(id, std::move(done)); });
}

JobInfo BrokerConformance::find(JobId id) { return require(try_find(id), "find"); }

QueueInfo BrokerConformance::queue(const std::string& name) {
  auto all = require(wait<std::vector<QueueInfo>>([&](auto done) { inspector().queues(std::move(done)); }), "queues");
  for (QueueInfo& info : all) {
    if (info.name == name) return std::move(info);
  }
  throw std::runtime_error("queues does not know " + name);
}

Result<JobPage> BrokerConformance::try_list(JobFilter filter, std::string cursor, std::size_t limit) {
  return wait<JobPage>(
      [&](auto done) { inspector().list(std::move(filter), std::move(cursor), limit, std::move(done)); });
}

std::vector<JobInfo> BrokerConformance::list(const JobFilter& filter, std::size_t page_size) {
  std::vector<JobInfo> jobs;
  std::string cursor;
  do {
    JobPage page = require(try_list(filter, cursor, page_size), "list");
    if (page.jobs.size() > page_size) throw std::runtime_error("list gave more than it was asked for");
    if (page.jobs.empty() && !page.next.empty()) throw std::runtime_error("list gave an empty page before the end");
    for (JobInfo& job : page.jobs) jobs.push_back(std::move(job));
    cursor = std::move(page.next);
  } while (!cursor.empty());
  return jobs;
}

std::vector<JobId> BrokerConformance::list_ids(const JobFilter& filter, std::size_t page_size) {
  std::vector<JobId> ids;
  for (const JobInfo& info : list(filter, page_size)) ids.push_back(info.job.id);
  return ids;
}

std::string BrokerConformance::explain(JobId id) {
  Explanation explanation =
      require(wait<Explanation>([&](auto done) { inspector().explain(id, std::move(done)); }), "explain");
  EXPECT_FALSE(explanation.text.empty()) << "no sentence for " << explanation.code;
  return explanation.code;
}

AuditReport BrokerConformance::audit() {
  return require(wait<AuditReport>([&](auto done) { inspector().audit(std::move(done)); }), "audit");
}

Pending<JobInfo> BrokerConformance::watch(JobId id) {
  Pending<JobInfo> pending;
  (void)inspector().watch(id, pending.completion());
  return pending;
}

Status BrokerConformance::cancel_one(JobId id, CancelOptions options) {
  return only(require(wait<std::vector<Status>>([&](auto done) { inspector().cancel({id}, options, std::move(done)); }),
                      "cancel"),
              "cancel");
}

Status BrokerConformance::reschedule_one(JobId id, Time due) {
  return wait<void>([&](auto done) { inspector().reschedule(id, due, std::move(done)); });
}

Status BrokerConformance::edit_one(JobId id, JobEdit edit) {
  return wait<void>([&](auto done) { inspector().edit(id, std::move(edit), std::move(done)); });
}

Status BrokerConformance::replay_one(JobId id, ReplayOptions options) {
  return only(
      require(wait<std::vector<Status>>([&](auto done) { inspector().replay({id}, options, std::move(done)); }),
              "replay"),
      "replay");
}

Status BrokerConformance::put_rules(const QueueRules& rules) {
  return wait<void>([&](auto done) { inspector().put_rules(rules, std::move(done)); });
}

std::vector<QueueRules> BrokerConformance::rules() {
  return require(wait<std::vector<QueueRules>>([&](auto done) { inspector().rules(std::move(done)); }), "rules");
}

Status BrokerConformance::pause(const std::string& queue_name, bool paused) {
  return wait<void>([&](auto done) { inspector().pause(queue_name, paused, std::move(done)); });
}

Result<std::uint64_t> BrokerConformance::purge(const std::string& queue_name) {
  return wait<std::uint64_t>([&](auto done) { inspector().purge(queue_name, std::move(done)); });
}

Result<PutSchedule> BrokerConformance::put_schedule(Schedule schedule) {
  return wait<PutSchedule>([&](auto done) { inspector().put_schedule(std::move(schedule), std::move(done)); });
}

std::vector<ScheduleInfo> BrokerConformance::all_schedules() {
  return require(wait<std::vector<ScheduleInfo>>([&](auto done) { inspector().schedules(std::move(done)); }), "schedules");
}

ScheduleInfo BrokerConformance::schedule_info(const std::string& name) {
  for (ScheduleInfo& info : all_schedules()) {
    if (info.schedule.name == name) return std::move(info);
  }
  throw std::runtime_error("schedules does not know " + name);
}

Status BrokerConformance::remove_schedule(const std::string& name) {
  return wait<void>([&](auto done) { inspector().remove_schedule(name, std::move(done)); });
}

Status BrokerConformance::pause_schedule(const std::string& name, bool paused) {
  return wait<void>([&](auto done) { inspector().pause_schedule(name, paused, std::move(done)); });
}

Result<JobId> BrokerConformance::run_schedule(const std::string& name) {
  return wait<JobId>([&](auto done) { inspector().run_schedule(name, std::move(done)); });
}

std::string BrokerConformance::without(const std::string& capability) {
  const std::string why = can().why_not;
  return "no " + capability + (why.empty() ? "" : ": " + why);
}

}  // namespace bide::conformance
