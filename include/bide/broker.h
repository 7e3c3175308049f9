// Broker: the place where jobs live, as a worker or a client sees it. The seam that every adapter implements.
//
// Calls take batches and return at once; the completion runs on a thread of the broker when the broker has confirmed.
// A completion must not block and must not call back into the broker synchronously waiting for it (see bide/wait.h for
// a blocking face). All methods are safe to call from any thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bide/job.h"
#include "bide/lease.h"
#include "bide/pressure.h"
#include "bide/result.h"

namespace bide {

template <class T>
using Completion = std::function<void(Result<T>)>;

struct Enqueued {
  JobId id = {};
  bool existed = false;   // A job with this id, or with the unique key (OnConflict::kExisting), was there already; nothing was written.
  bool replaced = false;  // It took the place of the job with this id (OnConflict::kReplace).
};

struct Published {
  JobId id = {};             // Of the event.
  std::uint32_t groups = 0;  // Queues that have it, now or from an earlier call. A broker that cannot count says 1 for some.
  std::uint32_t full = 0;    // Queues that are bound to its topic and are full: they do not have it.
};

struct Extended {
  bool lost = false;              // Not ours any more: stop, the outcome would be refused.
  bool cancel_requested = false;  // Somebody cancelled the job: stop soon.
};

// What a broker can do. The conformance suite and the tools ask this, never the broker's name.
struct Capabilities {
  bool inspect = true;            // find, list, count; an unknown id is told from a known one.
  bool cancel = true;
  bool reschedule = true;         // At least to a later time.
  bool hasten = true;             // Also to an earlier one.
  bool unique_keys = true;
  bool idempotent_ids = true;     // The same id enqueued twice is one job.
  bool priorities = true;
  bool pause = true;
  bool results = true;
  bool expiry = true;
  bool dead_set = true;           // Find, list, replay and remove dead jobs.
  bool atomic_effects = true;     // Effects and outcome in one step; otherwise effects first.
  bool completions = true;        // bide-on-done and bide-reply-queue: told in the step that ends the job, by whomever.
  bool final_settle = true;       // After a confirmed settle the job never starts again.
  bool due_order = true;          // What becomes due at different times arrives in that order, however close.
  bool lasting_leases = true;     // outlives_process is obeyed.
  bool audit = true;
  bool requests = true;           // Replies to requests arrive: watch() of one's own requests works.
  bool carries_past = false;      // Job::past is honoured; otherwise a job that has one is refused.
  bool save_body = false;         // While the attempt goes on; otherwise with its outcome only.
  bool events = false;            // publish, bind and bindings.
  bool group_limits = false;      // Binding::most, keep and idle are obeyed; otherwise a binding that has one is refused.
  bool edit = false;              // Waiting and dead jobs can be changed.
  bool schedules = false;         // Recurring jobs.
  bool queue_rules = false;       // QueueRules are obeyed; otherwise put_rules() is unsupported.
  bool kinds = false;             // SubscribeOptions::kinds is obeyed; otherwise the worker gives the others back.
  bool unique_windows = false;    // Job::unique_for and on_conflict; otherwise a job that has one is refused.
  bool dependencies = false;      // Job::after and flow; otherwise a job that has one is refused.
  bool progress = false;          // Kept and shown; otherwise dropped.
  bool steps = false;             // save_step().
  bool virtual_time = false;      // Its clock can be moved by the test kit.
  std::string why_not = {};       // One line for people about what is missing.
};

struct QueueShare {
  std::string name = {};
  int weight = 1;  // Jobs are taken from several queues in proportion to their weights.
};

struct SubscribeOptions {
  std::vector<QueueShare> queues = {{"default", 1}};
  std::vector<std::string> kinds = {};  // Only jobs of these, which may be patterns as of events. Empty: of all.
  int credit = 64;                 // At most so many leases unsettled.
  // So many of them can be run at once; the others wait for their turn with the worker. 0: all of them. A job that one
  // more crash would kill is not given beyond it, where the broker can see to it: it would die with a worker that has
  // not even begun with it.
  int handlers = 0;
  Milliseconds lease{15'000};      // Lost when not extended for so long.
  std::string worker = {};         // Shown by explain and the dashboard.
  bool outlives_process = false;   // The worker is in another process: its leases survive a restart of the broker.
  // Told once, on a thread of the broker, when the broker refuses the subscription for good after it began, for example
  // because a token was revoked. No lease arrives afterwards. Must not block.
  std::function<void(const Error&)> on_failed = {};
};

// Ends the subscription when destroyed: no lease arrives afterwards; leases already out stay valid.
class Subscription {
 public:
  virtual ~Subscription() = default;
  // At most so many unsettled from now on. 0 pauses the flow.
  virtual void set_credit(int credit) = 0;
  // For whoever hands leases on to others and cannot know when each of them ends: at most so many leases in all, counted
  // from the first that this subscription delivered, settled or not. Takes the place of the credit. Since both sides count
  // the same deliveries, leases under way are neither forgotten nor asked for twice. Less than were delivered: no more.
  virtual void set_delivery_limit(std::uint64_t deliveries) = 0;
};

// Runs on a thread of the broker; must not block.
using LeaseSink = std::function<void(std::vector<Lease>)>;

class Broker {
 public:
  virtual ~Broker() = default;

  // Each job that succeeds is durable and will run at least once. One result for each job, in order.
  //
  // kInvalidArgument: see Limits. kAlreadyExists: a live job holds the unique key. kOverloaded, kDiskFull: nothing was
  // written. kUnavailable: nothing was done. kUnconfirmed: the job may exist; with an id of your own it can be enqueued
  // again without harm where capabilities() has idempotent_ids.
  virtual void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) = 0;

  // An event is a job whose kind is its topic: words between dots. Each queue that is bound to the topic at that moment
  // (Inspector::bind) gets a copy, with an id that follows from the event's and the queue's, and the event's id in the header
  // bide-event-id. When it succeeds every one of them has it, durably; when it fails none has, unless kUnconfirmed. Its queue
  // is not looked at. One result for each event, in order.
  //
  // kInvalidArgument: see Limits; the topic has an empty word; unique_key or past are given. Otherwise as with enqueue:
  // with an id of your own an event can be published again without harm where capabilities() has idempotent_ids.
  virtual void publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) {
    (void)events;
    done(Error{ErrorCode::kUnsupported, "this broker has no events"});
  }

  // The attempt is counted and written down before its lease is handed to the sink.
  virtual Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) = 0;

  // Keeps leases alive for another lease time, but not past the job's time limit. One answer for each, in order.
  virtual void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) = 0;

  // Durable when it succeeds; settling again with the same token and the same kind of outcome succeeds again while the
  // broker remembers it. One status for each, in order.
  //
  // kLeaseLost: the token is stale, or the lease was settled with another outcome. kNotFound: there is no such job.
  // kInvalidArgument: an effect is not valid; nothing of that settlement was written.
  virtual void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) = 0;

  // Leases with outlives_process that have reached their workers. A broker that is ended without a word between the grant
  // of such a lease and this does not charge the attempt when nobody is heard of it afterwards: the lease may never have
  // been handed on. An extend says the same. Not confirmed, and may be late: only leases that stay out need it.
  virtual void mark_delivered(std::vector<LeaseRef> leases) { (void)leases; }

  // Replaces the body of a job that is being run, for its next attempt. Durable when it succeeds; the attempt goes on.
  //
  // kLeaseLost, kNotFound: as with settle. kInvalidArgument: longer than Limits::kBodyBytes.
  virtual void save_body(LeaseRef lease, std::string body, Completion<void> done) {
    (void)lease, (void)body;
    done(Error{ErrorCode::kUnsupported, "this broker cannot change the body of a job that is being run"});
  }

  // The result of a step of the attempt, for it and later ones. Durable when it succeeds; fenced by the token.
  //
  // kLeaseLost, kNotFound: as with settle. kInvalidArgument: more than Limits::kSteps or kStepBytes.
  virtual void save_step(LeaseRef lease, Step step, Completion<void> done) {
    (void)lease, (void)step;
    done(Error{ErrorCode::kUnsupported, "this broker does not keep the results of steps"});
  }

  // Where capabilities() has progress: shown with the job until it ends. Not confirmed, and the last one wins.
  virtual void report_progress(LeaseRef lease, Progress progress) { (void)lease, (void)progress; }

  virtual Pressure pressure() const = 0;
  virtual Capabilities capabilities() const = 0;
};

}  // namespace bide
