// Simulation: the real ledger on a simulated disk and a virtual clock, driven by chance, beside a model that knows what
// must be true. One seed is one run, the same every time.
//
// A change is confirmed when commit() has succeeded after it; then it must survive everything. What is written but not
// confirmed may be lost by a power failure, in the order it was written and one batch at a time: after each reopening
// the store must equal one of the Worlds on the timeline since the last confirmation. What was written must survive the
// death of the process alone, so then it must be the newest of them.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ledger.h"
#include "simulation/compare.h"
#include "simulation/model.h"
#include "simulation/tally.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::simulation {

struct Violation {
  std::string text;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Tally& tally, bool trace);
  ~Simulation();

  // Throws Violation.
  void run(int steps);
  // Of everything that happened, in order.
  std::uint64_t hash() const { return hash_; }
  int step() const { return step_; }

 private:
  struct Checkpoint {
    World world;
    bool written = false;  // The operating system has it: it survives the death of the process.
  };
  struct Held {
    JobId id;
    std::uint64_t token = 0;
    bool outlives_process = false;
  };
  struct Subscribed {
    std::vector<std::string> queues;
    int credit = 0;
    std::uint32_t lease_ms = 0;
    bool outlives_process = false;
  };
  struct Task {  // Of the ledger: done in the step after the one in which it was asked for.
    bool is_purge = false;
    std::string queue = {};
    std::shared_ptr<std::optional<std::uint64_t>> purged = {};
    std::shared_ptr<std::optional<Result<JobPage>>> page = {};
    std::vector<JobState> states = {};
    std::optional<std::uint64_t> expected_purged = {};
    std::set<JobId> expected_page = {};
    bool may_fail = false;
  };
  // A step, or several, being written and synced by another thread as far as the ledger knows. Ours does it at some
  // moment before end_commit(), and the next steps are collected meanwhile.
  struct Committing {
    World world;
    std::vector<Held> granted;
    std::vector<Task> finished_tasks;
    engine::Ledger::Callbacks callbacks;
    std::function<Status()> run;
    std::optional<Status> outcome;
    bool stepped = false;
  };
  struct NewJob {
    Job job;
    std::uint64_t tag = 0;
    BodyPlan body = {};
  };

  // simulation.cc: the loop.
  void choose_options();
  void one_step();
  bool begin();
  bool expire();
  bool tidy();
  bool tidy_to_quiet();
  void notice_room();
  void move_clocks();
  void step_wall_clock(bool closed);
  void plan_faults();

  // commits.cc
  bool commit();
  bool commit_all();
  bool commit_at_once();
  void begin_commit();
  void run_commit();
  bool finish_commit();
  void confirm();

  // checks.cc: what the engine does by itself, tasks, and that all is well.
  void check();
  void check_wake();
  bool is_auditing() const;
  void observe_leases();
  bool leases_may_wait();
  void observe_forgotten();
  void run_task();
  void finish_tasks(const std::vector<Task>& tasks);

  // requests.cc and console.cc: what a client, a worker or somebody at the console may ask for.
  NewJob make_job(bool is_effect);
  RetryPolicy make_policy();
  std::shared_ptr<const JobPast> make_past();
  void request();
  void request_enqueue();
  void request_settle();
  void request_extend();
  void request_mark_delivered();
  void request_save_body();
  void learn_delivered(ModelJob& job);
  void request_cancel();
  void request_reschedule();
  void request_replay();
  void request_pause();
  void request_purge();
  void request_list();
  void request_look();
  // Rare ones are often without a job: then they do not exist, and their numbers are given to others.
  static constexpr const char* kQueues[] = {"a", "b", "c", "d", "rare1", "rare2", "rare3", "rare4"};
  static bool is_rare(std::string_view queue) { return queue.size() > 1; }
  std::string any_queue();
  void request_subscribe();
  void request_unsubscribe();
  void request_credit();
  void apply_settled(const Settlement& settlement, const std::vector<NewJob>& effects,
                     const std::optional<BodyPlan>& body, const Status& status, bool valid, bool fault_fired);
  const ModelJob* pick_job(const std::function<bool(const ModelJob&)>& wanted);
  bool may_fail(const Error& error, bool fault_fired);
  bool reserve_is_missing();
  // The disk is full, and what was set aside for this has been used.
  bool has_no_reserve() { return full_ && (reserve_is_stuck_ || reserve_is_missing()); }
  // Of a job that is done: its id and its token are known, whatever has happened since.
  bool must_be_remembered(const ModelJob& job) const;

  // deliveries.cc
  bool grant();
  void receive(const engine::Delivery& delivery, const Lease& lease);
  void deliver(const std::vector<Held>& leases);
  void check_order(const World& before, const std::vector<std::uint64_t>& delivered);
  void check_nobody_waits();
  bool observe_expired();  // True: there were some.
  void observe_postponed();
  void check_last_chances();
  bool is_ready(const ModelJob& job) const;

  // crashes.cc
  void arm_crash(std::uint64_t operations);
  void disarm();
  void count_fault();
  // A call of the ledger failed: true never, so that callers can return it.
  bool failed(const Error& error, const char* where, bool is_commit);
  void crash();
  void close_cleanly();
  void flip_bits();
  void reopen();
  bool try_to_open();
  void adopt_what_survived();
  engine::EngineOptions engine_options(support::SimulatedDisk& disk, platform::Random& random);
  CompareOptions compare_options() const;

  [[noreturn]] void violated(const std::string& text) const;
  void expect(bool holds, const std::string& text) const {
    if (!holds) violated(text);
  }
  void note(const char* what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0);
  std::uint64_t below(std::uint64_t limit) { return chance_.next_below(limit); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool chance(double probability) { return chance_.chance(probability); }

  Tally& tally_;
  const bool trace_;
  support::SeededRandom chance_;
  support::SeededRandom engine_random_;
  support::SimulatedDisk disk_;
  support::VirtualClock clock_;
  engine::EngineOptions options_;
  std::unique_ptr<engine::Ledger> ledger_;

  World now_;
  std::vector<Checkpoint> timeline_;  // The first is confirmed.
  Moment moment_;                     // Of the step.
  // Since the last commit was begun.
  bool promised_ = false;        // The next one confirms something.
  bool stepped_ = false;         // The clock.
  std::vector<Held> granted_;    // Not delivered before it.
  std::vector<Task> finished_tasks_;
  engine::Ledger::Callbacks callbacks_;
  std::optional<Committing> committing_;
  std::int64_t latest_now_ms_ = 0;

  // Worker's side.
  std::vector<Held> held_;
  std::vector<Held> stale_;         // Leases that should not be good any more, and those of crashed processes.
  std::vector<Held> settled_;       // For settling again.
  std::set<std::uint64_t> tokens_;  // All that were ever given.
  std::uint64_t last_token_ = 0;    // Since the power was lost.
  std::map<std::uint32_t, Subscribed> subscribed_;
  std::uint32_t last_subscription_ = 0;
  std::deque<Task> tasks_;
  std::vector<JobId> ids_;  // That were given by clients.
  std::set<JobId> done_ids_;  // Of all that were ever done, and what finished them.
  std::set<std::uint64_t> done_tokens_;
  std::uint64_t last_tag_ = 0;

  // Faults.
  std::uint64_t crash_in_ = 0;  // Operations; 0: none planned.
  bool crashed_ = false;
  bool power_lost_ = false;
  bool fault_while_opening_ = false;
  std::int64_t clock_forward_us_ = 0;  // By how much the wall clock was set forward, in all.
  bool clock_unsure_ = true;  // Whether the store knows how much time passes while it is closed.
  std::optional<support::PlannedFault> planned_;
  std::uint64_t faults_seen_ = 0;
  bool full_ = false;
  int full_until_ = 0;
  bool room_again_ = false;
  int roomy_since_ = 0;  // A step.
  bool reserve_expected_ = false;
  bool reserve_is_stuck_ = false;  // A file without its space, which could not be deleted.
  std::int64_t leases_wait_until_ms_ = 0;  // Elapsed.
  bool leases_waited_ = false;     // In the last step.
  std::int64_t lease_pass_ms_ = 0;  // Elapsed: a pass that had been put off went on.
  std::uint64_t full_since_address_ = 0;   // The end of the journal then, and what was enqueued since.
  bool in_tidy_ = false;
  int tidied_in_step_ = 0;
  int opening_ = 0;

  int step_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace bide::simulation
