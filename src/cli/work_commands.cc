// bide work: a worker whose handlers are programs.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "bide/worker.h"
#include "cli/command_groups.h"
#include "cli/drain.h"
#include "cli/exec_handler.h"
#include "cli/failure.h"
#include "cli/held_jobs.h"
#include "cli/invocation.h"
#include "cli/open_store.h"
#include "cli/work_log.h"
#include "cli/work_options.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::chrono::milliseconds kFirstLook{50};
constexpr std::chrono::milliseconds kLongestLook{500};
constexpr int kMostFailedLooks = 60;

// Ends a worker when its queues are drained.
class Watcher {
 public:
  Watcher(Worker& worker, const Drain& drain, const std::atomic<int>& not_started)
      : worker_(worker), drain_(drain), not_started_(not_started), thread_([this] { watch(); }) {}
  ~Watcher() { join(); }

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
  Client client = open_client(call, Missing::kCreate);

  WorkLog log({.json = call.json(), .quiet = call.has("--quiet")});
  HeldJobs held;
  std::atomic<int> not_started = 0;
  plan.exec.on_not_started = [&](int error) {
    if (not_started.exchange(error) == error) return;
    log.problem("the program " + core::quoted(plan.exec.command.front()) +
                " cannot be started: " + std::strerror(error) + "; its jobs are given back");
  };

  Worker worker(client, plan.worker);
  worker.handle("*", [&](Context& context) -> Outcome {
    const std::string& kind = context.job().kind;
    if (plan.takes(kind)) {
      log.started(context);
      return run_program(plan.exec, context);
    }
    if (held.is_new(kind) && !call.has("--quiet")) {
      log.problem("jobs of kind " + core::quoted(kind) + " are left to other workers");
    }
    return held.hold(context);
  });
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
  std::optional<Watcher> watcher;
  if (plan.drain) watcher.emplace(worker, drain, not_started);
  const int exit_code = worker.run();
  if (watcher) watcher->join();
  // A program past its time limit has its two seconds between SIGTERM and SIGKILL also when it was the last one; after
  // a signal the grace time is what counts.
  if (watcher && watcher->drained()) wait_for_programs();
  kill_all_programs();
  held.let_go(client);
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
           "Jobs of a queue go to any worker of that queue. With --kind, those of other kinds are given back\n"
           "uncharged, to be handed out again after 1s, 2s, 4s and so on up to 5m; where much of that is to be\n"
           "expected a queue for each kind is better.\n\n"
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
                 {"--drain", "", "stop when no job is left that it could run"},
                 {"--quiet", "", "no line for each attempt"},
                 kUrlFlag,
                 {"--json", "", "each event as a JSON object on a line of stdout"}},
       .run = work}};
}

}  // namespace bide::cli
