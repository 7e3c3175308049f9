// State: the engine's state in memory. It changes in one way only: apply(record), for live requests and for recovery. It does
// no I/O, reads no clock, and starts a thread only for recovery, when asked to.
//
// Whether a scheduled job is ready follows from its due time, so it is not written down: advance() moves it.
//
// A job waits for a time of the wall clock, or for a delay to pass. Delays are measured on a clock of their own, which steps
// of the wall clock do not change: the ledger's time less `shift`. So a step changes the shift, and no entry.
//
// Whatever could take long is done in bounded pieces, between which the state may change: advance() does one.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bide/result.h"
#include "engine/groups.h"
#include "engine/held_keys.h"
#include "engine/id_index.h"
#include "engine/journal/records.h"
#include "engine/lease_table.h"
#include "engine/live_bytes.h"
#include "engine/queues.h"
#include "engine/relations.h"
#include "engine/saved_steps.h"
#include "engine/schedules.h"
#include "engine/slab.h"
#include "engine/timer_wheel.h"
#include "engine/unique_keys.h"

namespace bide::engine {

// Since the store was made.
struct Counters {
  std::uint64_t accepted = 0;
  std::uint64_t done = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t deleted = 0;    // By hand, out of the dead set.
  std::uint64_t purged = 0;
  std::uint64_t forgotten = 0;  // Dead for longer than they are kept.

  std::uint64_t removed() const { return cancelled + deleted + purged + forgotten; }
};

// Why a job is in quarantine: one of its records cannot be read.
struct Quarantine {
  std::int64_t since_ms = 0;
  journal::RecordRef unreadable;
};

// Most queues, and most kinds.
inline constexpr std::size_t kMaxNames = Names::kMost;

class State {
 public:
  // Entries handled in one piece.
  static constexpr std::size_t kPiece = 32'768;

  // done_bytes: of records of jobs that are done, the newest ones.
  explicit State(std::uint64_t done_limit, std::size_t piece = kPiece, std::uint64_t done_bytes = 0);

  // Applying. kDamaged: the record does not fit what went before it; a live request is checked before it is applied.
  // A caller that knows the job's slot gives it and saves a look-up; kNoSlot: there is no such job yet.
  Result<Slot> apply(const journal::AcceptedBrief& record, journal::RecordRef at, Slot slot = kLookUp);
  Status apply(const journal::Granted& record, const std::vector<Slot>& slots = {});
  Status apply(const journal::Changed& record, journal::RecordRef at);
  Status apply(const journal::DoneRecord& record, journal::RecordRef at, Slot slot = kLookUp);
  Status apply(const journal::Removed& record);
  Status apply(const journal::QueueRecord& record);
  Status apply(const journal::ClockStep& record);
  Status apply(const journal::Moved& record, journal::RecordRef at);
  Status apply(const journal::CancelAsked& record);
  Status apply(const journal::Delivered& record);
  Status apply(const Binding& record);
  Status apply(const journal::StepRecord& record);
  Status apply(const QueueRules& record);
  Status apply(const journal::ScheduleRecord& record);
  Status apply(const journal::DecisionsRecord& record);
  // The effect of the records of a saved body on a running job. The lease stays as it is: its subscription and deadline are
  // not in the records.
  void apply_saved(Slot slot, journal::RecordRef at, std::int64_t accepted_ms);
  // The ledger generated the id of this job.
  void set_own_id(Slot slot) { slab_[slot].own_id = 1; }
  // Any record, decoded first.
  Status apply(const journal::RecordView& view);

  // In recovery ids are indexed in large batches, on a second thread if wanted; a look-up waits for them. kDamaged: a job was
  // accepted twice.
  void use_second_thread() { second_thread_ = true; }
  Status index_ids();

  // The end of recovery: puts jobs into their lists by their due times and counts live bytes. Returns kNoSlot, or a live job
  // whose record is in no segment, which is damage.
  Slot start(std::int64_t now_ms, std::int64_t wall_ms, const journal::Journal& journal);

  // Scheduled jobs that are due become ready. Those due by the wall clock also wait for that. A piece of it: while it
  // is_behind(), there is more to do.
  void advance(std::int64_t now_ms, std::int64_t wall_ms);
  bool is_behind() const { return behind_ || relations_.has_ended(); }
  // When advance() may have something to do next.
  std::optional<std::int64_t> next_due() const;
  // When a rate lets a job start that waits for it.
  std::optional<std::int64_t> next_start() const;
  // How many entries the pieces have handled.
  std::uint64_t handled() const { return handled_; }

  // The next ready job of a queue, taken out of its lane. It must be granted, changed, or given to put_back() or wait_again().
  // kNoSlot: there is none, or there are too many tombstones before it for one step.
  Slot take_ready(std::uint16_t queue, KindFilter& takes);
  // The job that was taken last is the next again.
  void put_back(Slot slot);
  // The wall clock was stepped back since the job became ready.
  bool is_early(Slot slot) const { return slab_[slot].due_is_wall && slab_[slot].due() > now_ms_; }
  void wait_again(Slot slot);

  // A scheduled, ready or running job leaves its list; a lease ends. Not written down: the next opening finds the damage
  // again, or finds it repaired. The job can still be removed or changed.
  void quarantine(Slot slot, const Quarantine& why);
  const std::map<Slot, Quarantine>& quarantined() const { return quarantined_; }

  // A job that waits for one that will not be done, and is to be removed by the ledger; kNoSlot: there is none.
  Slot next_to_cancel();
  const Relations& relations() const { return relations_; }
  const SavedSteps& steps() const { return steps_; }
  bool waits(Slot slot) const { return slab_[slot].has_relations && relations_.waits_for(slot) != 0; }

  // Forgets at most `most` done jobs, those beyond the limit or finished before this time. Not written down.
  void forget_done(std::int64_t before_ms, std::size_t most);
  std::optional<std::int64_t> oldest_done() const;
  // The dead job that died first, if it died before this time. Frees tombstones on the way, a piece at most.
  Slot dead_before(std::int64_t before_ms);
  std::optional<std::int64_t> oldest_dead() const;

  // Looking.
  Slot find(const JobId& id) const { return ids_.find(id); }
  void prefetch(const JobId& id) const { ids_.prefetch(id); }
  // The same for a job that has, or had, this lease.
  Slot find(const LeaseRef& lease) const {
    const Slot slot = leases_.find_recent(lease.token);
    return slot != kNoSlot && slab_[slot].id == lease.id ? slot : ids_.find(lease.id);
  }
  void prefetch(const LeaseRef& lease) const {
    const Slot slot = leases_.find_recent(lease.token);
    if (slot != kNoSlot) __builtin_prefetch(&slab_[slot]);
  }
  const Entry& operator[](Slot slot) const { return slab_[slot]; }
  // In the ledger's time. Done and dead: when it finished.
  std::int64_t due(const Entry& entry) const { return due(entry, shift_ms_); }
  static std::int64_t due(const Entry& entry, std::int64_t shift_ms) {
    return entry.due() + (waits_for_span(entry) ? shift_ms : 0);
  }
  std::int64_t due(Slot slot) const { return due(slab_[slot]); }
  std::int64_t shift_ms() const { return shift_ms_; }
  // By its due time, also when advance() has not moved it yet.
  JobState shown_state(Slot slot) const;
  // When the first ready job of the queue was due.
  std::optional<std::int64_t> oldest_ready(std::uint16_t queue);
  Slot slots() const { return slab_.size(); }
  std::uint64_t jobs() const { return ids_.size(); }
  const Queues& queues() const { return queues_; }
  const Names& kinds() const { return kinds_; }
  // The oldest records of done jobs are not kept any more, at most so many, until no more bytes are left.
  void drop_bodies_of_done(std::uint64_t keep_bytes, std::size_t most);

  // By queue. One without patterns is being removed, with what waits in its queue.
  using Bindings = std::map<std::string, Binding, std::less<>>;
  const Bindings& bindings() const { return bindings_; }
  // Queues that have rules, by name (state_rules.cc).
  const std::map<std::string, std::uint16_t, std::less<>>& ruled() const { return ruled_; }
  const GroupTable& groups() const { return groups_; }
  GroupNumber group_of(Slot slot) const { return slab_[slot].has_group ? groups_.of(slot) : kNoGroup; }
  const std::string& group_name(Slot slot) const { return groups_[group_of(slot)].name; }
  const Schedules& schedules() const { return schedules_; }
  const Names& workers() const { return workers_; }
  const LeaseTable& leases() const { return leases_; }
  LeaseTable& leases() { return leases_; }
  const UniqueKeys& unique_keys() const { return keys_; }
  const HeldKeys& held_keys() const { return held_keys_; }
  void restore_held_key(std::string_view key, const JobId& id, std::int64_t until_ms) { held_keys_.hold(key, id, until_ms); }
  const Counters& counters() const { return counters_; }
  LiveBytes& live_bytes() { return live_; }
  const LiveBytes& live_bytes() const { return live_; }
  std::uint64_t last_token() const { return last_token_; }
  std::int64_t last_time_ms() const { return last_time_ms_; }

  // Names (state_names.cc). A queue is there while it has a job, a subscription or a binding, or is paused; a kind while it has a job.
  // Held until released; the caller knows that there is room, but in recovery.
  std::uint16_t hold_queue(std::string_view name);
  std::uint16_t hold_kind(std::string_view name);
  std::uint16_t hold_worker(std::string_view name);  // 0, which has no name, when there are too many.
  void release_queue(std::uint16_t number);
  void release_kind(std::uint16_t number);
  // Whether the queue and kind of the job exist or `wanted` more names are free. Frees names that only done jobs use, by
  // forgetting those jobs.
  bool has_names_left(const Job& job, std::size_t wanted);
  // `of_kinds`: it takes some kinds only.
  void add_subscription(std::uint16_t queue, bool of_kinds);
  void remove_subscription(std::uint16_t queue, bool of_kinds);
  std::vector<std::uint16_t> take_new_queues() { return queues_.take_new(); }
  // One line for each wrong reference count of a name.
  std::vector<std::string> audit_names() const;

  // Checks that every job is in exactly one list and that the counters add up, as of begin_audit(): an entry that changes
  // later is counted before it does. audit_piece() handles a bounded piece; the last one returns a line for each problem. One
  // audit at a time.
  void begin_audit();
  std::optional<std::vector<std::string>> audit_piece();

  // For the snapshot: before an entry changes for the first time since begin_epoch(), `saved` sees it as it was.
  // Entries made since then carry the new epoch already.
  void begin_epoch(std::function<void(Slot)> saved);
  // Every entry has been saved, or is new.
  void end_epoch() { saved_ = nullptr; }
  // The snapshot failed: every entry counts as saved. settle_epoch() does a piece of that; true: there is more to do before
  // the next epoch.
  void abandon_epoch();
  bool settle_epoch();
  bool in_epoch(Slot slot) const { return slab_[slot].epoch == epoch_; }
  void enter_epoch(Slot slot) { slab_[slot].epoch = epoch_; }
  // Loading a snapshot, before start().
  void expect(std::uint64_t jobs) { ids_.expect(jobs); }
  Slot restore(const Entry& entry, std::string_view unique_key, std::string_view group);
  // When the bucket of a rate is full, in the ledger's time; 0: it is.
  std::int64_t full_at_ns(const core::TokenBucket& starts) const;
  void restore_full_at(std::uint16_t queue, std::int64_t ns);
  // Behind all entries, and first of all jobs; those that are not there are left out.
  void restore_relations(const JobId& id, const JobId& flow, AfterDeath after_death);
  void restore_wait(const JobId& awaited, const JobId& waiter);
  void restore_step(const JobId& id, Step step);
  void restore_full_at(std::uint16_t queue, std::string_view group, std::int64_t ns);
  bool restore_schedules(core::Decoder& in) { return schedules_.decode(in); }
  void restore_running(const JobId& id, const Running& running);
  void restore_counters(const Counters& counters, std::uint64_t last_token, std::int64_t last_time_ms);

 private:
  struct Audit;

  static bool is_waiting(const Entry& entry) {
    return entry.entry_state() == EntryState::kScheduled || entry.entry_state() == EntryState::kReady;
  }
  static bool waits_for_span(const Entry& entry) {
    switch (entry.entry_state()) {
      case EntryState::kScheduled:
      case EntryState::kReady:
      case EntryState::kRunning:
      case EntryState::kWaiting:
      case EntryState::kQuarantined: return !entry.due_is_wall;
      default: return false;
    }
  }
  // Of a job that waits; `due_is_wall` is set.
  void set_due(Entry& entry, std::int64_t due_ms) { entry.set_due(due_ms - (entry.due_is_wall ? 0 : shift_ms_)); }

  Slot allocate();
  void index_in_background();
  void finish_indexing();
  void resolve_duplicates(const std::vector<Slot>& slots);  // Their ids are in the index already.
  Entry& touch(Slot slot);
  Result<Slot> empty_for_edit(Slot slot, const JobId& id);
  void changing(Slot slot) {
    if (audit_) count_for_audit(slot);
  }
  void count_for_audit(Slot slot);
  void see_for_audit(Slot slot, EntryState expected);
  void count(const Entry& entry, int by);
  // The job begins to run.
  void count_start(Slot slot, std::int64_t at_ms);
  void wake_groups(std::size_t budget);
  void hold_group(Slot slot, std::string_view name);
  void release_group(Slot slot);
  void set_state(Slot slot, EntryState state);
  void set_time(std::int64_t now_ms, std::int64_t wall_ms);
  std::int64_t wall_due_ms() const { return std::min(now_ms_, wall_ms_); }
  TimerWheel& wheel_of(const Entry& entry) { return entry.due_is_wall ? wall_wheel_ : wheel_; }
  bool is_due(const Entry& entry) const {
    return entry.due() <= (entry.due_is_wall ? wall_due_ms() : now_ms_ - shift_ms_);
  }
  // Jobs that wait for others (state_relations.cc).
  Status relate(Slot slot, const journal::AcceptedBrief& record);
  void end_waits(Slot slot, Relations::End how);
  void tell_waiters(std::size_t& budget);
  void tell_waiters_now();
  void release(Slot slot, std::int64_t at_ms);
  void drop_relations(Slot slot);
  // A job without a list of its own is scheduled, or waits on.
  void settle_down(Slot slot);

  void place(Slot slot);     // A scheduled job into the wheel, or into its lane if it is due.
  void forget(Slot slot);    // Removes the job from every index.
  void unlink(Slot slot);    // Frees the entry, or leaves a tombstone in its list.
  Slot relocate(Slot slot);  // Moves the job to a fresh slot in no list; the old one becomes a tombstone.
  bool is_linked(const Entry& entry) const;
  void drop_tombstone(Slot slot);
  // A walk through all lists, in pieces: frees tombstones, and marks entries for the audit.
  void begin_walk();
  bool walk(std::size_t& budget);
  bool visit(Slot slot, EntryState expected);
  void end_lease(Slot slot);
  void no_longer_taken(Slot slot);
  void set_details(Entry& entry, journal::RecordRef at);
  void hold_names(Entry& entry, std::string_view queue, std::string_view kind);
  void release_names(const Entry& entry);
  void names_of_done(const Entry& entry, bool done);
  bool free_names(bool queues, std::size_t most);
  void place_all();
  void keep_body_of_done(Slot slot);
  void drop_body_of_done(Entry& entry);

  Slab slab_;
  IdIndex ids_;
  TimerWheel wheel_;       // On the clock of delays.
  TimerWheel wall_wheel_;  // On the ledger's time, or the wall clock if that is behind.
  GroupTable groups_;
  Queues queues_;
  Names kinds_;
  Names workers_;
  Bindings bindings_;
  std::map<std::string, std::uint16_t, std::less<>> ruled_;
  Schedules schedules_;
  LeaseTable leases_;
  UniqueKeys keys_;
  HeldKeys held_keys_;
  Relations relations_;
  SavedSteps steps_;
  std::size_t told_at_once_ = 0;  // Of those that wait, since the last advance().
  LiveBytes live_;
  RunList done_;  // Oldest first, and so are the dead.
  RunList dead_;
  std::map<Slot, Quarantine> quarantined_;
  Counters counters_;
  const std::uint64_t done_limit_;
  const std::size_t piece_;
  const std::uint64_t most_done_bytes_;
  // Done jobs whose records are kept, and when they finished, oldest first; some have been forgotten since.
  std::deque<std::pair<Slot, std::int64_t>> done_bodies_;
  std::uint64_t done_body_bytes_ = 0;
  std::uint64_t done_count_ = 0;
  std::uint64_t tombstones_ = 0;
  // Entries from here on are not in the index of ids, or are being put into it.
  Slot indexed_ = 0;
  Slot indexing_ = 0;  // Up to here.
  std::future<std::vector<Slot>> indexer_;
  Slot twice_ = kNoSlot;  // A job that was accepted a second time.
  bool second_thread_ = false;
  Slot names_cursor_ = 0;  // Where free_names() goes on.
  std::uint64_t last_token_ = 0;
  std::int64_t last_time_ms_ = 0;
  std::int64_t now_ms_ = 0;  // Of the last advance(); the wheels may be behind.
  std::uint64_t replaced_by_ = 0;  // The token of the last attempt that left a new body.
  std::int64_t wall_ms_ = 0;
  std::int64_t shift_ms_ = 0;
  std::uint64_t handled_ = 0;
  bool behind_ = false;
  bool started_ = false;
  bool walking_ = false;
  std::uint32_t pass_ = 0;    // Of the walk.
  std::size_t walk_at_ = 0;   // The number of the list.
  std::size_t walk_line_ = 0;  // The number of the line, of a queue that has lines.
  std::shared_ptr<Audit> audit_;  // Shared, because the type is incomplete here.
  Slot settled_epoch_ = kNoSlot;  // After a snapshot that failed: the entries from here on are not settled yet.
  std::uint8_t epoch_ : 1 = 0;
  std::function<void(Slot)> saved_;
};

}  // namespace bide::engine
