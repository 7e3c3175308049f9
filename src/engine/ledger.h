// Ledger: the engine without its threads. It checks requests against the state, appends the records that follow to the
// journal, applies them, and grants leases. Deterministic: time, disk and randomness are arguments, so the simulation runs
// this code.
//
// One step is: begin(), any number of requests, expire_leases(), grant(), commit(). After the commit the requests may be
// answered and the leases delivered. Not safe to share between threads.
//
//   ledger.cc               a step: clock, commit, the time of the next step
//   ledger_open.cc          opening, recovery, closing
//   ledger_enqueue.cc       jobs accepted: of a call, as effects, as completions
//   ledger_events.cc        events and the bindings of queues
//   ledger_grant.cc         subscriptions and leases, from grant to expiry
//   ledger_relations.cc     jobs that wait for others
//   ledger_settle.cc        outcomes
//   ledger_steps.cc         what a running attempt says of itself
//   ledger_schedules.cc     schedules, and the jobs that they make
//   ledger_unique.cc        unique keys that are held
//   ledger_operate.cc       cancel, reschedule, replay, pause, purge
//   ledger_edit.cc          other content and rules for a job that waits or is dead
//   ledger_rules.cc         rules of queues
//   ledger_inspect.cc       find, list, watch, explain, audit
//   ledger_damage.cc        quarantine, and what is reported of damage
//   ledger_backup.cc        what a backup consists of, and keeping it
//   ledger_housekeeping.cc  snapshots, compaction, disk space, retention, remembered ids

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bide/inspector.h"
#include "core/drain_rate.h"
#include "core/job_ids.h"
#include "engine/backup.h"
#include "engine/clock_file.h"
#include "engine/compactor.h"
#include "engine/finished_ids.h"
#include "engine/deferred_bodies.h"
#include "engine/request_batches.h"
#include "engine/options.h"
#include "engine/schedule_times.h"
#include "engine/snapshot.h"
#include "engine/state.h"
#include "engine/subscriptions.h"
#include "engine/job_cache.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

// Upper bound for a record about a job, without the job itself: its history and the fields around it.
inline constexpr std::size_t kRoomForChange = Limits::kHistory * (Limits::kErrorBytes + 64) + 4096;

// How long until the next try when the disk is full.
inline constexpr std::int64_t kRoomRetryMs = 1000;

// Out of descriptors or memory: a later try may succeed, and nothing is damaged.
inline bool is_transient(const Error& error) { return error.code == ErrorCode::kOverloaded; }

// Upper bound for the death of a job, with the completion jobs that announce it.
inline constexpr std::size_t kRoomForDeath = kRoomForChange + 2 * (Limits::kHeaderBytes + 4096);

// Upper bound for the record of a job.
std::size_t room_for(const Job& job);

// How the note of a job begins that was edited.
inline constexpr std::string_view kEditedNote = "edited: ";

Error no_such_job(const JobId& id);
Error lease_lost(const JobId& id);
Error wrong_state(const JobId& id, EntryState state, const char* allowed);
Error too_many_names();

struct Delivery {
  std::uint32_t subscription = 0;
  LeaseSink sink;
  std::int64_t granted_us = 0;  // Elapsed time from which the leases run.
  std::vector<Lease> leases;
};

// What opening found and did.
struct OpenReport {
  std::uint64_t jobs = 0;
  std::vector<journal::TornTail> torn_tails;
  bool elapsed_known = false;  // How much time has passed since the store was last open; otherwise the wall clock told.
  std::uint64_t crashed_attempts = 0;  // Attempts that were running when the process died, and are charged.
};

// Attempts that may have run a job a second time, by reason.
struct DuplicateStarts {
  std::uint64_t lost = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t crashed = 0;
};

// How a worker in another process came to its end.
enum class WorkerEnd { kStopped, kCrashed };

class Ledger {
 public:
  // Opens the store in options.directory, making it if need be. Disk, clock and random must be given.
  //
  // kBusy, kPermissionDenied, kCannotCreate, kDamaged, kNewerVersion, kDiskFull, kIoError.
  static Result<std::unique_ptr<Ledger>> open(EngineOptions options);
  // Returns the leases of this process, uncharged, and leaves the journal marked as whole.
  ~Ledger();

  const OpenReport& open_report() const { return open_report_; }

  // --- One step.
  // Looks at the clock: jobs become ready, old results are forgotten.
  Status begin();
  // Leases run out. After the requests: when the engine was held up, whoever wanted to keep a lease may be among them.
  Status expire_leases();
  // Leases for whoever has credit, to be delivered after the commit. Leases that outlive the process are synced by it: a
  // worker on another machine has them after a power loss too. The others are only written: the count of attempts must
  // survive the process, their workers do not survive the machine, and the next sync takes them along.
  Result<std::vector<Delivery>> grant();
  // Everything since begin() is durable when it succeeds. After an error the ledger cannot be used any more.
  Status commit();
  // The first half of commit(): survives the process, but not a power loss.
  Status write();
  // commit() in two halves, so that another thread can wait for the disk: if it needs_sync(), that thread calls the
  // function that begin_commit() returns, and its result goes to end_commit(). Steps may go on meanwhile, up to their own
  // commit; tidy() may not be called.
  bool needs_sync() const { return needs_sync_; }
  std::function<Status()> begin_commit();
  Status end_commit(const Status& outcome);
  // Frees memory and deletes files that are not needed any more. Any thread may call it, after a commit, also when the
  // ledger is gone.
  std::function<void()> take_garbage();
  // A bounded piece of housekeeping; while the store is busy only what cannot wait. True: there is more to do.
  Result<bool> tidy(bool busy = false);
  // The part of tidy() that need not wait for a commit. Only while a snapshot is under way.
  Result<bool> write_snapshot();
  bool is_writing_snapshot() const { return snapshot_ != nullptr; }
  // The journal has grown by as much as the largest piece of a snapshot.
  bool is_snapshot_behind() const;
  // Elapsed microseconds at which begin() has something to do again; nothing: only a request can change anything.
  std::optional<std::int64_t> next_wake_us() const;

  // --- Requests of clients and workers. The answers are valid after commit().
  std::vector<Result<Enqueued>> enqueue(EnqueueBatch batch);
  std::vector<Result<Published>> publish(EventBatch batch);
  // The caller chooses the number of the subscription; 0 is none.
  void subscribe(std::uint32_t subscription, const SubscribeOptions& options, LeaseSink sink);
  void unsubscribe(std::uint32_t subscription);
  void set_credit(std::uint32_t subscription, int credit);
  void set_delivery_limit(std::uint32_t subscription, std::uint64_t deliveries);
  std::vector<Extended> extend(const std::vector<LeaseRef>& leases);
  // Leases that outlive the process have reached their workers: from now on the attempts are charged whatever happens.
  // Written, not synced. Leases that have ended meanwhile are skipped.
  Status mark_delivered(const std::vector<LeaseRef>& leases);
  std::vector<Status> settle(SettleBatch batch);
  // A new body for a job that is being run; its lease stays as it is.
  Status save_body(const LeaseRef& lease, std::string body);
  Status save_step(const LeaseRef& lease, Step step);
  void report_progress(const LeaseRef& lease, Progress progress);
  // Their worker is gone: returned uncharged, or charged with a crash. Leases that are lost already are skipped.
  Status end_leases(const std::vector<LeaseRef>& leases, WorkerEnd how);

  // --- Inspecting and operating.
  std::vector<QueueInfo> queues();
  // With `deferred`, a large body is not read but added to it; the same for a list.
  Result<JobInfo> find(const JobId& id, DeferredBodies* deferred = nullptr);
  // A task: runs in bounded pieces, one a step; done runs after the commit of the last one.
  void list(JobFilter filter, const std::string& cursor, std::size_t limit, Completion<JobPage> done,
            std::shared_ptr<DeferredBodies> deferred = nullptr);
  Result<Explanation> explain(const JobId& id);
  // A task; it describes the moment at which it begins.
  void audit(Completion<AuditReport> done);
  // All pieces at once, for tests.
  AuditReport audit();
  // done runs after the commit in which the job finished, or at once after the next when it has.
  // The caller chooses the number, by which a watch is given up.
  void watch(const JobId& id, std::uint64_t number, Completion<JobInfo> done);
  void give_up_watch(const JobId& id, std::uint64_t number);
  std::size_t watches() const;
  std::vector<Status> cancel(const std::vector<JobId>& ids, const CancelOptions& options = {});
  Status reschedule(const JobId& id, Time due);
  Status edit(const JobId& id, JobEdit edit);
  std::vector<Status> replay(const std::vector<JobId>& ids, const ReplayOptions& options);
  Status pause(const std::string& queue, bool paused);
  void purge(const std::string& queue, Completion<std::uint64_t> done);
  Status bind(Binding binding);
  std::vector<Binding> bindings() const;
  Status put_rules(const QueueRules& rules);
  std::vector<QueueRules> rules() const;
  Result<PutSchedule> put_schedule(Schedule schedule);
  std::vector<ScheduleInfo> schedules();
  Status remove_schedule(const std::string& name);
  Status pause_schedule(const std::string& name, bool paused);
  Result<JobId> run_schedule(const std::string& name);

  // The store as it is on the disk, without what has been collected since the last commit, and synced. Its files are kept
  // until end_backup(), unless the disk is full. Not while a commit is under way. kOverloaded: not now.
  Result<BackupPlan> begin_backup();
  void end_backup();

  Pressure pressure() const;
  FinishedIds::Use id_use() const { return finished_ids_.use(); }
  const State& state() const { return state_; }
  const journal::Journal& journal() const { return *journal_; }
  std::int64_t now_us() const { return now_us_; }
  std::int64_t now_ms() const { return now_us_ / 1000; }
  // What is to be called after the commit of this step, with its outcome.
  using Callbacks = std::vector<std::function<void(const Status&)>>;
  Callbacks take_callbacks() { return std::exchange(after_commit_, {}); }
  // Some jobs that are due have not been made ready yet.
  bool is_behind() const { return state_.is_behind(); }
  bool has_tasks() const { return !tasks_.empty(); }
  // There will be no more steps: everything that still waits is completed with this error.
  void abandon(const Error& error);

 private:
  struct Loaded {
    Job job;
    journal::Past past;
    std::int64_t accepted_ms = 0;
  };
  // A task works in pieces: run() gives true when it is finished.
  struct Task {
    std::function<Result<bool>()> run;
    std::function<void(const Error&)> abandon;
  };

  explicit Ledger(EngineOptions options);
  Status recover();
  Status charge_crashes();
  // kDiskFull: nothing has been done.
  Status charge_crash(Slot slot);
  void resume_lease(Running& running);
  void note_deadline(const Running& running);
  Result<bool> end_overdue(Slot slot, Fault fault);
  // For a lease that outlived its process and whose worker was not heard of since: returned uncharged, or poison.
  Status end_unheard(Slot slot, journal::Past past);

  // Room in the journal, from the reserve if it must be and the caller may.
  Status make_room(std::size_t bytes, bool may_use_reserve);
  Status create_reserve();
  // Deletes the reserve; it is created again when there is room. kDiskFull: it did not exist.
  Status release_reserve();

  // The ids of done jobs are remembered for longer than the jobs.
  Status apply_recovered(const journal::RecordView& view);
  void collect_ids();
  void start_ids();
  Status write_ids();
  Status sync_ids();
  // Makes the ids durable up to the end of the journal, so that a snapshot may be taken there.
  Status cover_ids();

  Status admit(const Job& job);
  // What the job gets when its unique key is held; nothing: it is not.
  std::optional<Result<Enqueued>> conflict_of(const Job& job);
  JobId holder_of(const std::string& key) const;  // Nil: nobody.
  Result<Enqueued> replace(Slot slot, const Job& job);
  // Now.
  journal::Acceptance acceptance_of(const Job& job) const;
  // kOverloaded: by its rules the queue takes no further jobs.
  Status admit_to(std::string_view queue);
  // What in the rules of its queue keeps a ready job from starting; nothing: they do not.
  std::optional<Explanation> held_by_rules(Slot slot);
  // Whether the jobs that it waits for are known. `beside`: those that come with it.
  Status check_awaited(const Job& job, const std::vector<Job>& beside = {});
  // Jobs that wait for one that will not be done, and do not want to run without it: a piece of them.
  Status cancel_waiters();
  Explanation explain_wait(const Job& job);
  Result<Published> publish_one(const Job& event);
  // Removes what waits in the queue, in pieces, one a step. `done` runs within the last one.
  void remove_waiting(const std::string& queue, Completion<std::uint64_t> done);
  Status write_binding(const Binding& binding);
  // A group that nobody needs any more: no more events, then without what waits in it, then unbound.
  Status retire(const Binding& binding);
  Status retire_idle();
  void note_idle(const std::string& queue);
  // Makes what is due, a bounded number of schedules and jobs.
  Status run_schedules();
  void start_schedules();
  std::optional<std::int64_t> next_schedule_us() const;
  std::int64_t schedule_now_ms() const;
  bool lives(const JobId& id) const;
  void set_schedule_time(const std::string& name);
  // The errors of both pass: the due time is decided later.
  Status decide(const std::string& name);
  Result<journal::Decision> make_occurrence(const Schedule& schedule, std::uint32_t version, Time due);
  Result<JobId> make_scheduled(Job job);
  Status write_decisions(const journal::DecisionsRecord& record);
  Status write_schedule(const journal::ScheduleRecord& record);
  Result<const KnownSchedule*> known_schedule(const std::string& name) const;
  void audit_schedules(AuditReport& report) const;
  void accept(JobCache::BatchNumber batch, std::size_t index, const journal::JobFields& encoded, bool is_own_id);
  void carry(const JobId& id, const JobPast& past, const journal::Acceptance& how);
  // A subscription to a queue that does not exist is attached when the queue is made.
  void attach(const Subscriber& subscriber, SubscribedQueue& share, std::uint16_t queue);
  void attach_to_new_queues();
  Result<Loaded> load(Slot slot);
  Result<journal::Past> load_past(Slot slot);
  // `at`: the index of the job for `deferred`.
  Result<JobInfo> describe(Slot slot, DeferredBodies* deferred = nullptr, std::size_t at = 0);
  AuditReport begin_audit();
  bool audit_piece(AuditReport& report);  // True: the report is complete.
  // Where the piece of a scan over all entries ends that begins here.
  Slot piece_end(Slot begin) const;
  struct Listing;
  // True: the page is complete and answered.
  Result<bool> search(Listing& listing, const Completion<JobPage>& done);
  Result<bool> read_page(Listing& listing, const Completion<JobPage>& done);
  // The effects are encoded from `first_effect` on.
  Status settle_one(Settlement& settlement, const Error* refused, const EncodedJobs& encoded, std::size_t first_effect);
  Result<bool> settled_before(Slot slot, const Settlement& settlement);
  // A repeated settle with its token succeeds again. An attempt that the ledger ended has no such token.
  enum class EndedBy { kSettle, kLedger };
  // The attempt ended in a fault: retry or dead.
  Status end_attempt(Slot slot, const Outcome& outcome, EndedBy by);
  // The completion jobs that a running job asked for (core/completion.h).
  Result<std::vector<Job>> completions_of(Slot slot, const Outcome& outcome);
  // For a job without a lease: it expired.
  std::vector<Job> completions_of(const Job& job, std::uint32_t attempts, const Outcome& outcome);
  // In the batch of their outcome. Those that exist already are skipped.
  void accept_effects(std::vector<Job> effects, const EncodedJobs& encoded, std::size_t first);
  void accept_effects(std::vector<Job> effects);
  Status give_back(Slot slot, const Returned& returned, EndedBy by);
  // A change that leaves attempts as they are; the caller sets the due time or the reason of death.
  journal::Changed change_of(Slot slot, journal::ChangeCause cause, journal::Past past) const;
  Status change(const journal::Changed& record);
  // What was last said of the job, or nothing new.
  Result<journal::Changed> last_change(Slot slot);
  Status remove(const JobId& id, journal::RemoveCause cause);
  Status forget_old();
  void count_drained();
  core::DrainRate::Moment drain_moment() const { return core::DrainRate::Moment(std::chrono::microseconds(elapsed_us_)); }
  void release_credit(Slot slot);
  void quarantine(Slot slot);
  // For a request that failed with this error: quarantines the job if its record is damaged. Returns the error.
  Error quarantine_if_unreadable(Slot slot, const Error& error);
  JobInfo describe_unreadable(Slot slot, const Error& error) const;
  std::string damage_text(const JobId& id, const Quarantine& why) const;
  std::string unreadable_text(journal::Address at) const;
  void report_damage(journal::Address at, const std::string& text);
  void report_unreadable_segments();
  void list_damage(std::vector<std::string>& problems) const;
  void finished(const JobId& id);
  template <class T>
  void answer_after_commit(Completion<T> done, Result<T> answer) {
    // Shared: std::function copies what it holds, and a page of a list has megabytes.
    auto shared = std::make_shared<Result<T>>(std::move(answer));
    after_commit_.push_back([done = std::move(done), shared = std::move(shared)](const Status& committed) {
      done(committed ? std::move(*shared) : Result<T>(committed.error()));
    });
  }
  Status recover_clock();
  // See ClockFile::write().
  void write_clock(std::int64_t before_us, std::int64_t after_us, journal::Address at);
  Status follow_clock();
  Status expire(Slot slot, Lease& lease);
  Status postpone(Slot slot, Lease& lease);
  Running& lease_of(Slot slot) { return state_.leases()[state_[slot].next]; }
  // Null: the lease is lost.
  Running* find_lease(const LeaseRef& lease);
  // In milliseconds of now_ms(). A delay counts from this microsecond, rounded up; 0 is due now.
  std::int64_t due_after(Milliseconds delay) const {
    return delay.count() <= 0 ? now_ms() : (now_us_ + 999) / 1000 + delay.count();
  }
  Result<std::size_t> grant_some(std::uint32_t id, Subscriber& subscriber, std::vector<Delivery>& deliveries);
  Status append_done(Slot slot, Done& done);
  // Whether the process behind the subscription, as far as processes can be told apart, runs a job on its last chance.
  bool runs_last_chance(std::uint32_t subscription, bool outlives_process) const;

  EngineOptions options_;
  platform::Disk& disk_;
  platform::Clock& clock_;
  platform::Random& random_;
  std::unique_ptr<platform::DirectoryLock> lock_;

  State state_;
  std::unique_ptr<journal::Journal> journal_;
  std::unique_ptr<Compactor> compactor_;
  std::unique_ptr<SnapshotWriter> snapshot_;
  journal::Address snapshot_at_ = 0;
  journal::Address snapshot_grown_ = 0;  // The end of the journal when the last piece was written.
  std::vector<std::string> old_snapshots_;  // To be deleted by take_garbage().
  int backups_ = 0;                         // Under way.
  std::vector<std::string> kept_files_;     // For them.
  JobCache cache_;
  // By token; of some leases that have ended, too.
  std::unordered_map<std::uint64_t, std::pair<JobId, Progress>> progress_;
  FinishedIds finished_ids_;
  core::DrainRate drain_rate_;
  std::optional<std::uint64_t> drained_ = {};  // Jobs that had left when it was told.
  std::int64_t ids_retry_ms_ = 0;  // Elapsed time of the next try after a full disk.
  core::JobIdSource ids_;
  Subscriptions subscriptions_;
  platform::KeyedMap<std::string, std::set<std::uint32_t>> awaited_;  // Subscriptions to queues that do not exist, by name.
  // Queues that are unbound when nobody subscribes to them: elapsed milliseconds since the last subscription ended.
  std::map<std::string, std::int64_t, std::less<>> idle_since_ms_;
  ScheduleTimes schedule_times_;
  platform::KeyedMap<JobId, std::string> schedules_by_last_job_;  // Those where something waits for its end.
  std::int64_t schedules_seen_ms_ = 0;   // The time of the last look.
  std::int64_t schedule_retry_ms_ = 0;   // Elapsed time of the next try after there was no room for a job.
  std::uint32_t grant_first_ = 0;  // The subscription that was served first.

  // The ledger's time is elapsed time plus this; it follows steps of the wall clock.
  std::int64_t clock_offset_us_ = 0;
  const ClockFile clock_file_;
  std::optional<journal::Address> clock_step_at_;  // The record of the last step, until it is written.
  journal::Address commit_end_ = 0;                // Where the commit under way ends.
  std::int64_t now_us_ = 0;
  std::int64_t wall_us_ = 0;
  std::int64_t elapsed_us_ = 0;
  // Elapsed time of the next pass over the leases.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t lease_check_ms_ = kNever;
  // Of the pass under way: the next lease, and the earliest deadline of those before it.
  std::size_t next_lease_ = 0;
  std::int64_t earliest_deadline_ms_ = kNever;

  std::uint64_t last_token_ = 0;
  bool needs_sync_ = false;
  bool more_to_grant_ = false;
  std::size_t granted_bytes_ = 0;  // In this step.
  // Of queues that were asked for it in this step, which may have many lines: when their oldest ready job was due.
  std::map<std::uint16_t, std::optional<std::int64_t>> oldest_in_step_;
  bool has_reserve_ = false;
  bool disk_full_ = false;
  std::int64_t reserve_retry_ms_ = 0;
  std::int64_t cancel_retry_ms_ = 0;  // Elapsed time of the next try to cancel those that wait, after a full disk.
  std::int64_t read_retry_ms_ = 0;  // Elapsed time of the next grant after a read failed for want of descriptors; 0: none.
  std::set<journal::Address> damage_reported_;
  bool tidy_wanted_ = true;
  bool failed_ = false;
  OpenReport open_report_;
  DuplicateStarts duplicate_starts_;
  std::deque<Task> tasks_;
  Callbacks after_commit_;
  struct Watch {
    std::uint64_t number = 0;
    Completion<JobInfo> done;
  };
  platform::KeyedMap<JobId, std::vector<Watch>> watchers_;
};

}  // namespace bide::engine
