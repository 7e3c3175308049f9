// Inspector: looking around in a broker, and putting things right by hand. Like Broker, it completes asynchronously.
// What a broker cannot do it answers with kUnsupported and the reason.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bide/backup.h"
#include "bide/broker.h"
#include "bide/queue_rules.h"
#include "bide/schedule.h"

namespace bide {

struct JobInfo {
  Job job = {};  // Once it is done, only id, kind and queue are sure to be there; see `whole`.
  JobState state = JobState::kScheduled;
  Time due = {};
  std::uint32_t attempts = 0;  // Started so far.
  AttemptCounts counts = {};
  std::vector<AttemptError> history = {};

  std::string worker = {};                  // Running: who has it.
  std::optional<Progress> progress = {};    // Running: what it reported.
  std::vector<Step> steps = {};             // Done so far.
  std::uint32_t waits_for = 0;              // Waiting: for so many of Job::after.
  std::optional<Time> finished = {};        // Done or dead: since when.
  std::optional<DeadReason> dead_reason = {};
  std::string note = {};                    // Why it was returned, if it was.
  std::string result = {};                  // Done, while kept.
  std::string result_content_type = {};
  bool whole = false;  // Done: the job is still kept as it was enqueued, with body and headers.
};

struct QueueInfo {
  std::string name = {};
  bool paused = false;
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t waiting = 0;  // For other jobs.
  std::uint64_t running = 0;
  std::uint64_t dead = 0;
  std::uint64_t done = 0;              // Still remembered.
  std::optional<Time> oldest_ready = {};  // When the longest waiting ready job was due.
  int workers = 0;                     // Subscriptions that take from it.
};

// Which events a queue gets. Such a queue is a group: whoever takes from it shares its events.
struct Binding {
  std::string queue = {};
  // Of topics: words between dots, where * stands for one word and # for any number of them, also none.
  std::vector<std::string> patterns = {};

  // What it keeps while nobody takes from it. 0: no limit.
  std::uint64_t most = 0;  // With so many jobs waiting, now or for their time, it gets no further events.
  Milliseconds keep{0};    // An event that was not begun by then is dead, as expired.
  Milliseconds idle{0};    // Nobody has subscribed to it for so long: it is unbound, and what waits in it is removed.

  friend bool operator==(const Binding&, const Binding&) = default;
};

// Empty fields match everything.
struct JobFilter {
  std::vector<JobState> states = {};
  std::string queue = {};
  std::string kind = {};
  std::string group = {};
  JobId flow = {};
  Headers headers = {};                // All of these, with these values.
  std::string error = {};              // Contained in the newest error text.
  std::optional<Time> since = {};      // Dead or done: finished at or after; others: due at or after.
  std::optional<Time> until = {};

  bool bodies = true;  // What list() gives of each: without, neither body nor result.
};

struct JobPage {
  static constexpr std::size_t kMostBytes = 4 * 1024 * 1024;  // The job that goes beyond it is the last of its page.

  std::vector<JobInfo> jobs = {};  // Dead and done: newest first. Others: next due first.
  std::string next = {};      // Empty: that was all. Otherwise the cursor of the next page.
};

struct CancelOptions {
  std::optional<JobState> state = {};  // Only jobs that are in this state at that moment; others: kWrongState.
};

// Gives up what it came from. Safe to call from any thread, at any time, more than once; never blocks.
using GiveUp = std::function<void()>;

// What is to be different about a waiting or a dead job. Empty: as it is.
struct JobEdit {
  std::optional<std::string> body = {};
  std::optional<std::string> content_type = {};
  std::optional<Headers> headers = {};
  std::optional<std::string> queue = {};
  std::optional<int> priority = {};
  std::optional<RetryPolicy> retry = {};
  std::optional<Milliseconds> time_limit = {};
  std::optional<Time> due = {};
};

struct ReplayOptions {
  bool keep_attempts = false;  // Keep the old counters: the budget is not fresh.
  Milliseconds delay{0};
};

// The one reason why a job is not running, or what it is doing.
struct Explanation {
  std::string code = {};  // Stable: "scheduled", "paused", "no_worker", "behind", "credit", "running", "dead", "done" ...
  std::string text = {};  // One sentence, for people.
};

struct AuditReport {
  std::uint64_t accepted = 0;
  std::uint64_t done = 0;
  std::uint64_t removed = 0;  // Cancelled, deleted, purged, or forgotten by retention while dead.
  std::uint64_t live = 0;     // Scheduled, ready, waiting, running or dead.
  std::map<std::string, std::uint64_t> details = {};  // By state and by reason of removal.
  std::vector<std::string> problems = {};             // Empty: every accepted job is in exactly one place.
  bool ok() const { return problems.empty(); }
};

class Inspector {
 public:
  virtual ~Inspector() = default;

  virtual void queues(Completion<std::vector<QueueInfo>> done) = 0;
  virtual void find(JobId id, Completion<JobInfo> done) = 0;
  // A page has at most `limit` jobs (1 to 1000), and ends early when they have more than JobPage::kMostBytes.
  virtual void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) = 0;
  virtual void explain(JobId id, Completion<Explanation> done) = 0;
  virtual void audit(Completion<AuditReport> done) = 0;

  // Completes when the job is done or dead, with what became of it. kNotFound also when it is removed meanwhile.
  // Once given up, `done` is released without being called, unless it was on its way already.
  virtual GiveUp watch(JobId id, Completion<JobInfo> done) = 0;

  // Takes jobs out of scheduled, ready, waiting or dead; a running attempt is told to stop at its next extend.
  virtual void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) = 0;
  virtual void reschedule(JobId id, Time due, Completion<void> done) = 0;
  // All of it or nothing; what it was changed to is in the job's history. kWrongState: it runs or is done.
  virtual void edit(JobId id, JobEdit edit, Completion<void> done) {
    (void)id, (void)edit;
    done(Error{ErrorCode::kUnsupported, "this broker cannot change a job"});
  }
  virtual void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) = 0;

  virtual void pause(std::string queue, bool paused, Completion<void> done) = 0;
  // Removes every scheduled, ready and waiting job of the queue; how many.
  virtual void purge(std::string queue, Completion<std::uint64_t> done) = 0;

  // From now on the queue gets these events (Broker::publish), whatever it was bound to before. Without patterns it is
  // unbound: what waits in it stays, unless its binding had `idle`. kInvalidArgument: a pattern or a limit is not one.
  virtual void bind(Binding binding, Completion<void> done) {
    (void)binding;
    done(Error{ErrorCode::kUnsupported, "this broker has no events"});
  }
  virtual void bindings(Completion<std::vector<Binding>> done) {
    done(Error{ErrorCode::kUnsupported, "this broker has no events"});
  }

  // From now on the queue has these rules, whatever it had before; default ones remove them. kInvalidArgument: the message
  // names the field.
  virtual void put_rules(QueueRules rules, Completion<void> done) {
    (void)rules;
    done(Error{ErrorCode::kUnsupported, "this broker has no rules for queues"});
  }
  virtual void rules(Completion<std::vector<QueueRules>> done) {
    done(Error{ErrorCode::kUnsupported, "this broker has no rules for queues"});
  }

  // Makes the schedule, or changes it where it is different; one that is equal stays as it is.
  //
  // kInvalidArgument: the message names the field. kAlreadyExists: the name belongs to another owner's schedule.
  virtual void put_schedule(Schedule schedule, Completion<PutSchedule> done) {
    (void)schedule;
    done(Error{ErrorCode::kUnsupported, "this broker has no schedules"});
  }
  virtual void schedules(Completion<std::vector<ScheduleInfo>> done) {
    done(Error{ErrorCode::kUnsupported, "this broker has no schedules"});
  }
  // kNotFound: there is no such schedule; likewise below. Jobs that it has made stay.
  virtual void remove_schedule(std::string name, Completion<void> done) {
    (void)name;
    done(Error{ErrorCode::kUnsupported, "this broker has no schedules"});
  }
  virtual void pause_schedule(std::string name, bool paused, Completion<void> done) {
    (void)name, (void)paused;
    done(Error{ErrorCode::kUnsupported, "this broker has no schedules"});
  }
  // A job of it now, beside its occurrences.
  virtual void run_schedule(std::string name, Completion<JobId> done) {
    (void)name;
    done(Error{ErrorCode::kUnsupported, "this broker has no schedules"});
  }

  // Begins a copy of the whole store (bide/backup.h); how it goes, backup_info() says.
  virtual void backup(std::string target, Completion<void> done) {
    (void)target;
    done(Error{ErrorCode::kUnsupported, "this broker has no data directory of its own: back up its server"});
  }
  virtual void backup_info(Completion<BackupInfo> done) {
    done(Error{ErrorCode::kUnsupported, "this broker has no data directory of its own: back up its server"});
  }
};

}  // namespace bide
