// bide work: a worker whose handlers are programs.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "bide/worker.h"
#include "cli/command.h"
#include "cli/exec_handler.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/metrics_endpoint.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::chrono::milliseconds kFirstLook{50};
constexpr std::chrono::milliseconds kLongestLook{500};
constexpr int kMostFailedLooks = 60;

struct OutcomeText {
  std::string event;
  std::string line;
  std::string error = {};
};

struct DescribeOutcome {
  OutcomeText operator()(const Done&) const { return {"done", "done"}; }
  OutcomeText operator()(const RetryAt& retry) const {
    return {"retry", "failed, again in " + core::rough_duration(retry.after) + ": " + retry.error, retry.error};
  }
  OutcomeText operator()(const Dead& dead) const {
    return {"dead", "dead, " + std::string(to_string(dead.reason)) + ": " + dead.error, dead.error};
  }
  OutcomeText operator()(const Returned& returned) const {
    return {"returned", "given back: " + returned.note, returned.note};
  }
};

// What is told about attempts: lines for people on stderr, or one JSON object a line on stdout. Safe to share between
// threads.
class WorkLog {
 public:
  WorkLog(bool json, bool quiet) : json_(json), quiet_(quiet) {}

  void started(const Context& context) {
    if (quiet_) return;
    JsonObject json = event("started");
    add_attempt(json, context.job(), context.attempt());
    write(name_of(context.job(), context.attempt()) + ": starts", json);
  }
  // By its real end: a result that is too large, for instance, is a failure whatever the program said.
  void finished(const Finished& finished) {
    if (quiet_) return;
    const OutcomeText told = std::visit(DescribeOutcome{}, finished.outcome);
    const auto took = std::chrono::duration_cast<Milliseconds>(finished.took);
    JsonObject json = event(told.event);
    add_attempt(json, finished.job, finished.attempt).add("took_ms", took.count());
    if (!told.error.empty()) json.add("error", told.error);
    write(name_of(finished.job, finished.attempt) + " after " + core::rough_duration(took) + ": " + told.line, json);
  }
  void listening(const std::string& url) { write("metrics at " + url, event("metrics").add("url", url)); }
  void problem(std::string_view text) {
    write("warning: " + std::string(text), event("problem").add("text", text));
  }
  // At the end, what --drain left behind.
  void left(std::string_view queue, const std::string& why, std::uint64_t jobs, bool at_least) {
    write("left in queue " + std::string(queue) + ": " + (at_least ? "at least " : "") + std::to_string(jobs) +
              (jobs == 1 ? " job " : " jobs ") + why,
          event("left").add("queue", queue).add("why", why).add("jobs", jobs).add("at_least", at_least));
  }

 private:
  static JsonObject event(std::string_view name) { return JsonObject().add("at", now()).add("event", name); }

  static JsonObject& add_attempt(JsonObject& json, const Job& job, std::uint32_t attempt) {
    return json.add("id", job.id).add("kind", job.kind).add("queue", job.queue).add("attempt", attempt);
  }

  static std::string name_of(const Job& job, std::uint32_t attempt) {
    return job.kind + " " + job.id.to_string() + " attempt " + std::to_string(attempt);
  }

  void write(const std::string& line, const JsonObject& json) {
    std::lock_guard lock(mutex_);
    if (!json_) return tell(line);
    print(json);
    std::fflush(stdout);
  }

  const bool json_;
  const bool quiet_;  // Nothing about single attempts.
  std::mutex mutex_;  // One line at a time.
};

// Jobs of kinds that the worker was not asked to run. Some brokers hand out jobs by queue only, so it gets them all the
// same: it gives them back uncharged, and leaves each alone for longer every time, up to five minutes. Safe to share
// between threads.
class HeldJobs {
 public:
  // What to settle the attempt with.
  Outcome hold(const Context& context) {
    std::lock_guard lock(mutex_);
    if (ids_.size() < kMostRemembered) ids_.insert(context.job().id);
    return Returned{.after = hold_time(context), .note = kNote};
  }
  // True for the first job of its kind.
  bool is_new(const std::string& kind) {
    std::lock_guard lock(mutex_);
    return kinds_.size() < kMostRemembered && kinds_.insert(kind).second;
  }
  // When the worker ends: those that still wait because of it wait no longer.
  void release(const Client& client) {
    std::lock_guard lock(mutex_);
    for (const JobId& id : std::exchange(ids_, {})) {
      const auto info = client.find(id);
      if (!info || info->state != JobState::kScheduled || info->note != kNote) continue;
      // Somebody may have been faster: just as well.
      (void)wait<void>([&](auto done) { client.inspector().reschedule(id, now(), std::move(done)); });
    }
  }

 private:
  static constexpr std::size_t kMostRemembered = 1000;  // A producer that makes up kinds must not grow the memory.
  static constexpr char kNote[] = "the worker that got it runs other kinds only";

  std::mutex mutex_;  // Guards everything below.
  std::set<JobId> ids_;
  std::set<std::string> kinds_;
};

// When `bide work --drain` has come to its end, and what it leaves behind.
class Drain {
 public:
  Drain(const Client& client, const WorkPlan& plan) : client_(client), plan_(plan) {}

  // Whether a job is left that this worker could run, now or later. Jobs of other kinds and those of a paused queue are
  // not; one that runs elsewhere is, since it may come back. Throws Failure when the broker does not answer.
  bool has_work() const {
    for (const QueueInfo& queue : worker_queues()) {
      const std::uint64_t waiting = queue.paused ? 0 : queue.scheduled + queue.ready;
      if (waiting + queue.running == 0) continue;
      if (plan_.kinds.empty()) return true;
      std::vector<JobState> states = {JobState::kRunning};
      if (!queue.paused) states.insert(states.end(), {JobState::kScheduled, JobState::kReady});
      if (has_any(queue.name, states)) return true;
    }
    return false;
  }

  void tell_what_is_left(WorkLog& log) const {
    if (!client_.broker().capabilities().inspect) return;  // Nobody can tell which ones.
    for (const QueueInfo& queue : worker_queues()) {
      if (queue.waiting > 0) log.left(queue.name, "that wait for other jobs", queue.waiting, false);
      if (queue.paused && queue.scheduled + queue.ready > 0) {
        log.left(queue.name, "that wait, because the queue is paused", queue.scheduled + queue.ready, false);
        continue;
      }
      if (queue.scheduled + queue.ready + queue.running == 0) continue;
      const JobFilter filter{.states = {JobState::kScheduled, JobState::kReady, JobState::kRunning},
                             .queue = queue.name,
                             .bodies = false};
      std::map<std::string, std::uint64_t> kinds;
      const std::vector<JobInfo> jobs = list_all(client_, filter, kMostCounted).jobs;
      for (const JobInfo& info : jobs) ++kinds[info.job.kind];
      for (const auto& [kind, count] : kinds) {
        log.left(queue.name, "of kind " + kind, count, jobs.size() == kMostCounted);
      }
    }
  }

 private:
  static constexpr std::size_t kMostCounted = 1000;

  // Those of the worker's queues that are there.
  std::vector<QueueInfo> worker_queues() const {
    std::vector<QueueInfo> all = queues_of(client_);
    std::erase_if(all, [&](const QueueInfo& queue) {
      return std::none_of(plan_.worker.queues.begin(), plan_.worker.queues.end(),
                          [&](const WorkerQueue& mine) { return mine.name == queue.name; });
    });
    return all;
  }

  bool has_any(const std::string& queue, const std::vector<JobState>& states) const {
    return std::any_of(plan_.kinds.begin(), plan_.kinds.end(), [&](const std::string& kind) {
      const JobFilter filter{.states = states, .queue = queue, .kind = kind, .bodies = false};
      return !list_all(client_, filter, 1).jobs.empty();
    });
  }

  const Client client_;
  const WorkPlan& plan_;
};

// Ends a worker when its queues are drained.
class DrainWatcher {
 public:
  DrainWatcher(Worker& worker, const Drain& drain, const std::atomic<int>& not_started)
      : worker_(worker), drain_(drain), not_started_(not_started), thread_([this] { watch(); }) {}
  ~DrainWatcher() { join(); }

  void join() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  // After join(): true when nothing was left, not when somebody else stopped the worker.
  bool drained() const { return drained_; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  void watch() {
    for (auto look = kFirstLook; pause(look); look = std::min(look * 2, kLongestLook)) {
      if (not_started_ != 0) break;
      const std::optional<bool> more = has_work();
      const bool for_good = failure_ && failure_->exit_code == kNotPermitted;
      if (!more && !for_good && failed_looks_ < kMostFailedLooks) continue;
      drained_ = more == false;
      if (!more || drained_) break;
    }
    worker_.stop();
  }

  // False: the worker has ended meanwhile.
  bool pause(std::chrono::milliseconds how_long) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, how_long, [this] { return ended_; });
  }

  // Nothing when the broker did not answer.
  std::optional<bool> has_work() {
    try {
      const bool more = drain_.has_work();
      failed_looks_ = 0;
      failure_.reset();
      return more;
    } catch (const Failure& failure) {
      ++failed_looks_;
      failure_ = failure;
      return std::nullopt;
    }
  }

  Worker& worker_;
  const Drain& drain_;
  const std::atomic<int>& not_started_;
  std::optional<Failure> failure_;
  int failed_looks_ = 0;
  bool drained_ = false;

  std::condition_variable changed_;
  std::mutex mutex_;  // Guards the next.
  bool ended_ = false;

  std::thread thread_;
};

[[noreturn]] void fail_not_started(const WorkPlan& plan, int error) {
  const int exit_code = error == ENOENT ? kNotThere : error == EACCES ? kNotPermitted : kTryAgain;
  throw Failure{exit_code, "the program " + core::quoted(plan.exec.command.front()) +
                               " cannot be started: " + std::strerror(error) + "; no attempt was charged"};
}

// Better than a worker that runs jobs and cannot tell whether it is through.
void require_drain(const Drain& drain) {
  try {
    (void)drain.has_work();
  } catch (const Failure& failure) {
    if (failure.exit_code != kNotPermitted) return;  // It may pass.
    throw Failure{failure.exit_code, "--drain asks what is left in the queues: " + failure.message, failure.code};
  }
}

int work(const Invocation& call) {
  WorkPlan plan = work_plan(call);
  prepare_for_programs();
  const auto metrics_at = call.value("--metrics");
  Client client = open_client(url_of(call), Missing::kCreate, {.metrics = metrics_at.has_value()});
  std::optional<MetricsEndpoint> endpoint;

  WorkLog log(call.json(), call.has("--quiet"));
  if (metrics_at) {
    endpoint.emplace(*metrics_at);
    if (!call.has("--quiet")) log.listening(endpoint->url());
  }
  HeldJobs held;
  std::atomic<int> not_started = 0;
  plan.exec.on_not_started = [&](int error) {
    if (not_started.exchange(error) == error) return;
    log.problem("the program " + core::quoted(plan.exec.command.front()) +
                " cannot be started: " + std::strerror(error) + "; its jobs are given back");
  };

  Worker worker(client, plan.worker);
  // Where the broker minds kinds, no job of another kind arrives.
  std::set<std::string> kinds = client.broker().capabilities().kinds ? plan.kinds : std::set<std::string>();
  if (kinds.empty()) kinds.insert("*");
  const auto handle = [&](Context& context) -> Outcome {
    const std::string& kind = context.job().kind;
    if (plan.takes(kind)) {
      log.started(context);
      return run_program(plan.exec, context);
    }
    if (held.is_new(kind) && !call.has("--quiet")) {
      log.problem("jobs of kind " + core::quoted(kind) + " are left to other workers");
    }
    return held.hold(context);
  };
  for (const std::string& kind : kinds) worker.handle(kind, handle);
  worker.on_outcome([&](const Finished& finished) {
    if (plan.takes(finished.job.kind)) log.finished(finished);
  });
  // From this very thread it is the reason why the worker could not start.
  std::string at_start;
  worker.on_problem([&, caller = std::this_thread::get_id()](std::string_view text) {
    if (std::this_thread::get_id() == caller) {
      at_start = text;
    } else {
      log.problem(text);
    }
  });

  const Drain drain(client, plan);
  if (plan.drain) require_drain(drain);
  std::optional<DrainWatcher> watcher;
  if (plan.drain) watcher.emplace(worker, drain, not_started);
  const int exit_code = worker.run();
  if (watcher) watcher->join();
  // A program past its time limit has its two seconds between SIGTERM and SIGKILL also when it was the last one; after
  // a signal the grace time is what counts.
  if (watcher && watcher->drained()) wait_for_programs();
  kill_all_programs();
  held.release(client);
  if (exit_code != kOk) throw Failure{exit_code, at_start};
  if (!at_start.empty()) log.problem(at_start);
  if (!watcher) return kOk;
  if (not_started != 0) fail_not_started(plan, not_started);
  if (watcher->failure()) throw Failure(*watcher->failure());
  if (watcher->drained()) drain.tell_what_is_left(log);
  return kOk;
}

}  // namespace

std::vector<Command> work_commands() {
  return {
      {.path = "work",
       .summary = "Run a program for each job, until SIGTERM",
       .details =
           "The program gets the body on stdin, and BIDE_JOB_ID, BIDE_KIND, BIDE_QUEUE, BIDE_ATTEMPT,\n"
           "BIDE_CONTENT_TYPE and BIDE_HEADER_NAME for each header in its environment.\n\n"
           "Exit status 0: done, and stdout is the result. 65: dead. 75 and all others: the attempt failed, and the\n"
           "job's retry policy decides; the end of stderr is the error. The program and all it has started is\n"
           "stopped at the job's time limit: SIGTERM, and SIGKILL two seconds later; it is killed when the worker is.\n"
           "A program that cannot be started costs no attempt.\n\n"
           "Jobs of a queue go to any worker of that queue; with --kind, only those of these kinds. A broker that has\n"
           "no `kinds` (bide capabilities) hands out the others all the same: they are given back uncharged, to be\n"
           "handed out again after 1s, 2s, 4s and so on up to 5m. There a queue for each kind is better.\n\n"
           "--drain waits for scheduled jobs too, and says at the end which jobs it left: those of other kinds, and\n"
           "those of a paused queue.",
       .arguments = {{"ARGUMENT", "of the program", true, true}},
       .flags = {{"--exec", "PROGRAM", "the program, looked for along $PATH unless it has a slash"},
                 {"--shell", "COMMAND", "or a command for /bin/sh"},
                 {"--queue", "NAME[=WEIGHT]",
                  "where to take jobs from, weight 1 to 1000; may be given several times; default: default", true},
                 {"--kind", "KIND", "only these kinds; may be given several times; default: all", true},
                 {"--concurrency", "N", "programs at once, 1 to 10000; default: one for each core"},
                 {"--memory", "SIZE", "address space of a program at most, from 16M: 500M, 2G"},
                 {"--cpu", "DURATION", "CPU time of a program at most, from 1s"},
                 {"--lease", "DURATION", "how soon a dead worker is noticed, 1s to 1h; default: 15s"},
                 {"--grace", "DURATION", "to finish after SIGTERM, up to 1d; default: 25s"},
                 {"--metrics", "ADDRESS", "answer GET /metrics there, for Prometheus: 127.0.0.1:9464"},
                 {"--drain", "", "stop when no job is left that it could run"},
                 {"--quiet", "", "no line for each attempt"},
                 kUrlFlag,
                 {"--json", "", "each event as a JSON object on a line of stdout"}},
       .run = work}};
}

}  // namespace bide::cli
