// JobStore: the atomic steps of a broker over a shared database server, as DatabaseBroker needs them. One method, one
// step at the server: a transaction or a script. What is the same for every such server (lanes, batches, subscriptions,
// retry decisions, completions, watches, reconnecting) is in DatabaseBroker; a store knows its server and nothing else.
//
//   state of a job at the server
//
//     waiting (due or not) --grant--> running --end--> waiting | done | dead | gone
//
// Time is the server's: every "now" below is its clock, in milliseconds. Several processes use one server at once: every
// step must hold whatever other sessions do between two steps, so each change names what it expects (LeaseRef).
//
// Errors of a step, for the whole step: kUnavailable: nothing was done. kUnconfirmed: not known. Anything else: the
// server refused, in its own words and without secrets; nothing was done. After an error that ended the connection
// is_broken() is true. A step that may simply be tried again (a deadlock, a lost script cache) is tried again inside.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "core/job_rules.h"

namespace bide::brokers::database {

// What these brokers keep of a job; as in their capabilities().
inline constexpr core::Kept kKept{.past = true};

// One broker object in one process: its leases end when it is not heard of any more. Random, never 0, fits 63 bits.
using ClientId = std::uint64_t;

// A queue of a subscription and its place in the smooth weighted round-robin (see weighted_turns.h).
struct QueueTurn {
  std::string name = {};
  int weight = 1;
  int score = 0;
};

struct GrantRequest {
  ClientId client = 0;
  std::string worker = {};
  Milliseconds lease{15'000};
  bool outlives_process = false;  // The lease does not end with the client; see overdue().
  int room = 0;                   // At most so many leases.
  // A job that one more crash would kill (core::would_die_by_crash) is given only while fewer than so many leases were
  // given by this call: the pick ends in front of it. Negative: no such limit.
  int free_handlers = -1;
  // Whether one job may be given that one more crash makes poison (core::is_last_chance). All others of that kind are
  // put off by a random 1 to 2 s, with kOneAtATimeNote.
  bool may_take_last_chance = true;
};

inline constexpr const char* kOneAtATimeNote = "its worker died before; jobs like that run one at a time";
inline constexpr const char* kExpiredNote = "not started before it expired";

struct Granted {
  Time now = {};  // The server's clock at the pick.
  // In order: priority, due, arrival within a queue. attempt is counted and written; token is greater than every one
  // that a job of this id had before, also if it was removed and enqueued again.
  std::vector<Lease> leases = {};
  // Ready jobs that have never been started and whose time to start is over. They were left as they are, for the caller
  // to end with Ends::kExpired. At most as many as room.
  std::vector<std::pair<LeaseRef, JobInfo>> expired = {};
  bool held_back = false;  // The pick ended because of free_handlers.
  // Until the next job in these queues is due that was not given, paused ones apart; nothing: there is none. Zero: some
  // are ready and somebody else has them locked, or room did not suffice.
  std::optional<Milliseconds> next_due = {};
};

enum class Ends : std::uint8_t {
  kDone,
  kRetry,
  kDead,
  kReturned,  // Not charged: attempts is one less. Without a wait it keeps its due time and its place.
  kExpired,   // From waiting, not from running: dead with kExpiredNote as its note and no new fault in its history.
  kUnheard,   // Back to waiting as it was, with attempts as it is, `note`, and JobInfo's unheard counter one more.
};

// How an attempt ends, decided by the caller.
struct Ending {
  LeaseRef lease = {};  // kExpired: the token that Granted::expired gave.
  Ends how = Ends::kDone;
  // By its worker: a repeated settle with the same token and the same kind of end succeeds again, and writes nothing.
  bool is_settled = true;

  std::string result = {};  // kDone, with its content type.
  std::string content_type = {};
  Milliseconds after{0};    // kRetry, kReturned.
  Fault fault = Fault::kFailed;  // kRetry, kDead: counted, and noted in the history with `error` (already cut).
  std::string error = {};
  DeadReason reason = DeadReason::kRejected;  // kDead.
  std::optional<std::string> body = {};       // kRetry: replaces the body.
  std::string note = {};                      // kReturned, kUnheard; others clear it.

  // Of an OverdueLease. Not empty: kLeaseLost if the lease was extended since, or, where its client was gone, that was heard of
  // again. Compared in the step that writes.
  std::string stamp = {};

  // Jobs that become real in the same step, or not at all: effects and completions, valid, with ids. One whose id or
  // unique key is taken is left out; a key that this end frees is free for them.
  std::vector<Job> effects = {};
};

struct OverdueLease {
  LeaseRef lease = {};
  JobInfo info = {};  // Without body.
  Fault fault = Fault::kLost;  // kTimedOut: past its time limit. kCrashed: its client is gone and it does not outlive it.
  bool cancel_requested = false;
  // The lease outlives its process, was never marked as delivered, and its client is gone; so often in a row before.
  bool is_unheard = false;
  std::uint32_t unheard_before = 0;
  std::string stamp = {};  // What was seen of the lease and of its client: for Ending::stamp.
};

struct Overdue {
  std::vector<OverdueLease> leases = {};
  std::optional<Milliseconds> next = {};  // Until the next lease runs out if nobody extends it; nothing: none is out.
};

struct Retention {
  Milliseconds done{3'600'000};
  Milliseconds dead{0};  // 0: kept until somebody deletes them.
};

struct Notice {
  enum class Kind : std::uint8_t {
    kQueue,       // Something in `queue` may be had from `due` on.
    kEnded,       // A watched job `id` is done, dead or gone.
    kEverything,  // Notices may have been missed: look everywhere.
  };
  Kind kind = Kind::kEverything;
  std::string queue = {};
  std::optional<Milliseconds> wait = {};  // From now on until then; goes before `due`.
  std::optional<Time> due = {};  // By the server's clock. Neither: now.
  JobId id = {};
};

// One connection. Called by one thread at a time, except interrupt(). Every call blocks.
class Session {
 public:
  virtual ~Session() = default;

  virtual bool is_broken() const = 0;
  // From any thread: a call under way ends soon with an error, and so does every later one.
  virtual void interrupt() = 0;

  // ---- Jobs in. Valid jobs with ids. One result each, in order: existed where a job of this id is remembered, otherwise
  // kAlreadyExists naming the holder where the unique key is held. A due time in the past means now.
  virtual Result<std::vector<Result<Enqueued>>> enqueue(const std::vector<Job>& jobs) = 0;

  // ---- Leases. The first grant makes the client known, as keep_alive() does. `turns` are the queues of the subscription; their scores are moved on by what was given.
  virtual Result<Granted> grant(const GrantRequest& request, std::vector<QueueTurn>& turns) = 0;
  // Leases that the client holds at the server, whether it knows of them or not: the answer to a grant may have been lost.
  virtual Result<std::vector<LeaseRef>> leases_of(ClientId client) = 0;
  virtual Result<std::vector<Extended>> extend(const std::vector<LeaseRef>& leases) = 0;  // Also marks as delivered.
  virtual Status mark_delivered(const std::vector<LeaseRef>& leases) = 0;
  // kLeaseLost, kNotFound.
  virtual Status save_body(const LeaseRef& lease, const std::string& body) = 0;
  // One status each, in order: kLeaseLost: not running with this token (nor settled alike before), kNotFound. All that
  // succeed become real together. A job whose cancellation was asked for is removed by kRetry, kReturned and kUnheard.
  virtual Result<std::vector<Status>> end(const std::vector<Ending>& endings) = 0;

  // ---- Keeping order.
  // The client lives, with these subscriptions (a queue once for each). To be called more often than client_timeout.
  virtual Status keep_alive(ClientId client, const std::vector<std::string>& queues, Milliseconds client_timeout) = 0;
  // It ends in good order: leases that do not outlive it are given back, not charged, with this note.
  virtual Status close_client(ClientId client, const std::string& note) = 0;
  // Leases that ran out, passed their limit, or belong to clients not heard of for client_timeout; nothing is changed but
  // that clients without leases may be forgotten. At most so many. A server that was away, stood still or had its clock set has
  // heard of nobody: the first sign of life of anybody afterwards (keep_alive, overdue) counts as one of every client.
  virtual Result<Overdue> overdue(Milliseconds client_timeout, std::size_t limit) = 0;
  // Done and dead jobs older than that, at most so many; how many. Dead ones count as removed (forgotten).
  virtual Result<std::size_t> forget(const Retention& retention, std::size_t limit) = 0;

  // ---- Looking around; see Inspector. kNotFound.
  virtual Result<JobInfo> find(JobId id) = 0;
  // The same, and kEnded will be told when it ends, unless it is done or dead already.
  virtual Result<JobInfo> watch(JobId id) = 0;
  virtual Result<JobPage> list(const JobFilter& filter, const std::string& cursor, std::size_t limit) = 0;
  virtual Result<std::vector<QueueInfo>> queues() = 0;
  virtual Result<AuditReport> audit() = 0;

  // ---- By hand; see Inspector.
  virtual Result<std::vector<Status>> cancel(const std::vector<JobId>& ids, const CancelOptions& options) = 0;
  virtual Status reschedule(JobId id, Time due) = 0;
  virtual Result<std::vector<Status>> replay(const std::vector<JobId>& ids, const ReplayOptions& options) = 0;
  virtual Status pause(const std::string& queue, bool paused) = 0;
  // At most so many scheduled and ready jobs; how many. Called again until it is fewer.
  virtual Result<std::uint64_t> purge(const std::string& queue, std::size_t limit) = 0;

  // ---- Being told. A session used for this is used for nothing else.
  // Waits until there is something to tell, at most so long; nothing may be told of what happened before listen().
  // Everything that makes a job available earlier, or ends a watched one, is told, to the process that did it as well.
  virtual Status listen() = 0;
  virtual Result<std::vector<Notice>> wait(Milliseconds at_most) = 0;
};

// Safe to share between threads.
class JobStore {
 public:
  virtual ~JobStore() = default;
  // A new connection. Creates or checks the schema the first time.
  //
  // kUnavailable, kPermissionDenied, kNewerVersion, kUnsupported: with the server's own words; no password.
  virtual Result<std::unique_ptr<Session>> connect() = 0;
  virtual Capabilities capabilities() const = 0;
};

}  // namespace bide::brokers::database
