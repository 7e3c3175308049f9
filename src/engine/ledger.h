// Ledger: the engine without its thread. It checks requests against the state, writes down what follows from them, and
// gives out leases. Deterministic: time, disk and randomness come in from outside, so a simulation runs this very code.
//
// One step is: begin(), any number of requests, expire_leases(), grant(), commit(); then what they answered may be told,
// and the leases that grant() gave may be delivered. The caller is one thread.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bide/inspector.h"
#include "core/job_ids.h"
#include "engine/clock_file.h"
#include "engine/compactor.h"
#include "engine/finished_ids.h"
#include "engine/late_bodies.h"
#include "engine/offer.h"
#include "engine/options.h"
#include "engine/snapshot.h"
#include "engine/state.h"
#include "engine/subscriptions.h"
#include "engine/warm_jobs.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

// More than any record about a job takes, other than the job itself: its errors, and what is around them.
inline constexpr std::size_t kRoomForChange = Limits::kHistory * (Limits::kErrorBytes + 64) + 4096;

// Not enough room on the disk: how long it takes until the next try.
inline constexpr std::int64_t kRoomRetryMs = 1000;

// Nothing is wrong with what could not be read: there was no descriptor, or no memory.
inline bool is_passing(const Error& error) { return error.code == ErrorCode::kOverloaded; }

// More than it takes to let a job die without being asked, with the jobs that tell of it.
inline constexpr std::size_t kRoomForDeath = kRoomForChange + 2 * (Limits::kHeaderBytes + 4096);

// About what it takes to write a job down, and not less.
std::size_t room_for(const Job& job);

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
  // Everything since begin() is durable when it succeeds. After an error the ledger is of no more use.
  Status commit();
  // The first part of it: safe from the end of the process, but not of the machine.
  Status write();
  // commit() in two halves, for a caller who lets another thread wait for the disk: if it needs_sync(), that thread
  // calls what begin_commit() gives, and its answer goes to end_commit(). Steps may go on meanwhile, up to their own
  // commit; what they answer is durable no sooner than what came before. tidy() and everything else waits.
  bool needs_sync() const { return needs_sync_; }
  std::function<Status()> begin_commit();
  Status end_commit(const Status& outcome);
  // Jobs that nobody needs in memory any more, and files that nobody needs on the disk: freeing them is work too, and any
  // thread can do it, after a commit, also when the ledger is gone.
  std::function<void()> take_spent();
  // A bounded piece of housekeeping; while the store is busy only what cannot wait. True: there is more to do.
  Result<bool> tidy(bool busy = false);
  // The part of tidy() that need not wait for a commit. Only while a snapshot is under way.
  Result<bool> write_snapshot();
  bool is_writing_snapshot() const { return snapshot_ != nullptr; }
  // The journal grew by as much as the largest piece has.
  bool is_snapshot_behind() const;
  // Elapsed microseconds at which begin() has something to do again; nothing: only a request can change anything.
  std::optional<std::int64_t> next_wake_us() const;

  // --- Requests of a worker or a client. Answers may be told after commit().
  std::vector<Result<Enqueued>> enqueue(Offer offer);
  // The caller chooses the number of the subscription; 0 is none.
  void subscribe(std::uint32_t subscription, const SubscribeOptions& options, LeaseSink sink);
  void unsubscribe(std::uint32_t subscription);
  void set_credit(std::uint32_t subscription, int credit);
  void set_delivery_limit(std::uint32_t subscription, std::uint64_t deliveries);
  std::vector<Extended> extend(const std::vector<LeaseRef>& leases);
  // Leases that outlive the process have reached their workers: from now on the attempts are charged whatever happens.
  // Written, not synced. Leases that have ended meanwhile are passed over.
  Status mark_delivered(const std::vector<LeaseRef>& leases);
  std::vector<Status> settle(Verdicts verdicts);
  // A new body for a job that is being run; its lease stays as it is.
  Status save_body(const LeaseRef& lease, std::string body);
  // Their worker is gone: returned uncharged, or charged with a crash. Leases that are lost already are passed over.
  Status end_leases(const std::vector<LeaseRef>& leases, WorkerEnd how);

  // --- Looking around and putting right.
  std::vector<QueueInfo> queues();
  // With `late`, a large body is not read but left for it, also of a list.
  Result<JobInfo> find(const JobId& id, LateBodies* late = nullptr);
  // Like every task it works in pieces, one a step; done runs after the commit of the last one.
  void list(JobFilter filter, const std::string& cursor, std::size_t limit, Completion<JobPage> done,
            std::shared_ptr<LateBodies> late = nullptr);
  Result<Explanation> explain(const JobId& id);
  // Of the moment at which it begins; a task like the others.
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
  std::vector<Status> replay(const std::vector<JobId>& ids, const ReplayOptions& options);
  Status pause(const std::string& queue, bool paused);
  void purge(const std::string& queue, Completion<std::uint64_t> done);

  Pressure pressure() const;
  FinishedIds::Use id_use() const { return finished_ids_.use(); }
  const State& state() const { return state_; }
  const journal::Journal& journal() const { return *journal_; }
  const DuplicateStarts& duplicate_starts() const { return duplicate_starts_; }
  std::int64_t now_us() const { return now_us_; }
  std::int64_t now_ms() const { return now_us_ / 1000; }
  // What is to be called after the commit of this step, with its outcome.
  using Callbacks = std::vector<std::function<void(const Status&)>>;
  Callbacks take_callbacks() { return std::exchange(after_commit_, {}); }
  // Pieces of work are left that no request is waiting for: some jobs that are due have not been made ready yet.
  bool is_behind() const { return state_.is_behind(); }
  bool has_tasks() const { return !tasks_.empty(); }
  // There will be no more steps: whoever still waits for an answer is told this instead.
  void abandon(const Error& error);

 private:
  struct Loaded {
    Job job;
    journal::Past past;
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
  // Of a lease that outlived the process and that nobody has heard of since: given back uncharged, or poison.
  Status end_unheard(Slot slot, journal::Past past);

  // Room in the journal, from the reserve if it must be and the caller may.
  Status make_room(std::size_t bytes, bool may_use_reserve);
  Status keep_reserve();
  // Gives the reserve back to the disk, to be taken again when there is room. kDiskFull: it was not there.
  Status use_reserve();

  // ledger_ids.cc: done jobs are known for longer than they are kept.
  Status apply_recovered(const journal::RecordView& view);
  void collect_ids();
  void start_ids();
  Status write_ids();
  Status sync_ids();
  // A snapshot may be taken at the end of the journal, which is durable: their ids are durable too.
  Status cover_ids();

  Status admit(const Job& job);
  void accept(WarmJobs::BatchNumber batch, std::size_t index, const journal::JobFields& written, bool is_own_id);
  // A subscription to a queue that does not exist waits for it: names that nobody uses are not kept.
  void take_from(SubscribedQueue& share, std::uint16_t queue);
  void take_from_made_queues();
  Result<Loaded> load(Slot slot);
  Result<journal::Past> load_past(Slot slot);
  // `at`: the number of the job in what `late` will fill in.
  Result<JobInfo> describe(Slot slot, LateBodies* late = nullptr, std::size_t at = 0);
  AuditReport begin_audit();
  // A task that looks at all entries: where the piece ends that begins here.
  Slot piece_end(Slot begin) const;
  struct Listing;
  // True: the page is whole, and answered.
  Result<bool> search(Listing& listing, const Completion<JobPage>& done);
  Result<bool> read_page(Listing& listing, const Completion<JobPage>& done);
  // The effects are written from `first_effect` on.
  Status settle_one(Settlement& settlement, const Error* refused, const WrittenJobs& written, std::size_t first_effect);
  Result<bool> settled_before(Slot slot, const Settlement& settlement);
  // A settle may come again with its token and succeeds again; what the ledger ended by itself nobody has settled.
  enum class EndedBy { kSettle, kLedger };
  // The attempt ended in a fault: again later, or dead. Writes and applies the record.
  Status end_attempt(Slot slot, const Outcome& outcome, EndedBy by);
  // The jobs that tell of the end of a running job, as far as it asked for any.
  Result<std::vector<Job>> completions_of(Slot slot, const Outcome& outcome);
  // Of a job that is in no lease: it expired.
  std::vector<Job> completions_of(const Job& job, std::uint32_t attempts, const Outcome& outcome);
  // Made real in the batch of the outcome that they belong to. Those that are there already are passed over.
  void accept_effects(std::vector<Job> effects, const WrittenJobs& written, std::size_t first);
  void accept_effects(std::vector<Job> effects);
  Status give_back(Slot slot, const Returned& returned, EndedBy by);
  Status change(journal::Changed record);
  Status remove(const JobId& id, journal::RemoveCause cause);
  Status forget_old();
  void release_credit(Slot slot);
  // ledger_damage.cc: what cannot be read.
  void quarantine(Slot slot);
  // A request needs a job that cannot be read: quarantined, unless that may pass. Gives the error on.
  Error give_up_on(Slot slot, const Error& error);
  JobInfo describe_unread(Slot slot, const Error& error) const;
  std::string damage_text(const JobId& id, const Quarantine& why) const;
  std::string unreadable_text(journal::Address at) const;
  void tell_damage(journal::Address at, const std::string& text);
  void tell_unreadable_segments();
  void report_damage(std::vector<std::string>& problems) const;
  void finished(const JobId& id);
  template <class T>
  void answer_after_commit(Completion<T> done, Result<T> answer);
  Status recover_clock();
  // See ClockFile::write().
  void write_clock(std::int64_t before_us, std::int64_t after_us, journal::Address at);
  Status follow_clock();
  Result<std::size_t> grant_some(std::uint32_t id, Subscriber& subscriber, std::vector<Delivery>& deliveries);
  Status append_done(Slot slot, Done& done);
  // Of the process behind the subscription, as far as we can tell processes apart.
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
  std::vector<std::string> old_snapshots_;  // Files to delete: see take_spent().
  WarmJobs warm_;
  FinishedIds finished_ids_;
  std::int64_t ids_retry_ms_ = 0;  // Elapsed; not written before: there was no room on the disk.
  core::JobIdSource ids_;
  Subscriptions subscriptions_;
  platform::KeyedMap<std::string, std::set<std::uint32_t>> awaited_;  // Subscriptions to queues that do not exist, by name.
  std::uint32_t grant_first_ = 0;  // Whose turn it is to be served first.

  // Our time is elapsed time plus this: the wall clock as it was when we looked, and again after each step of it.
  std::int64_t clock_offset_us_ = 0;
  const ClockFile clock_file_;
  std::optional<journal::Address> clock_step_at_;  // Of the last one, until it is written.
  journal::Address commit_end_ = 0;                // Of what the commit under way writes.
  std::int64_t now_us_ = 0;
  std::int64_t wall_us_ = 0;
  std::int64_t elapsed_us_ = 0;
  // Elapsed; no lease is looked at before.
  std::int64_t lease_check_ms_ = std::numeric_limits<std::int64_t>::max();
  // Of the pass under way: the next lease to be looked at, and the earliest deadline of those before it.
  std::size_t next_lease_ = 0;
  std::int64_t earliest_deadline_ms_ = std::numeric_limits<std::int64_t>::max();

  std::uint64_t last_token_ = 0;
  bool needs_sync_ = false;
  bool more_to_grant_ = false;
  std::size_t granted_bytes_ = 0;  // In this step.
  bool reserve_there_ = false;
  bool disk_full_ = false;
  std::int64_t reserve_retry_ms_ = 0;
  std::int64_t read_retry_ms_ = 0;  // Elapsed; not 0: no lease is given before, there were no descriptors to read jobs.
  std::set<journal::Address> damage_told_;
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
