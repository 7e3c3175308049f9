// ExecHandler: a program as a handler. Body on stdin; id, kind, queue, attempt and headers in the environment; stdout is
// the result, the end of stderr the error. Exit 0 is done, 65 dead, 75 and everything else a failed attempt. A program that
// cannot be started, for whatever reason, is no attempt.
//
// The program runs in a process group of its own. When the attempt is to stop (time limit, lost lease, cancelled, the
// worker ends) the whole group gets SIGTERM, and SIGKILL two seconds later. When the worker itself is killed the group
// gets SIGKILL.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "bide/context.h"
#include "bide/worker.h"
#include "cli/invocation.h"

namespace bide::cli {

struct ExecOptions {
  std::vector<std::string> command;  // The program and its arguments.
  std::uint64_t memory_bytes = 0;    // 0: no limit.
  std::uint64_t cpu_seconds = 0;     // 0: no limit.
  // Told when the program could not be started, with errno. The job is given back uncharged: it is not its fault.
  std::function<void(int error)> on_not_started = {};
};

// Once, before anything is opened and any thread is started: what programs need of the process.
void prepare_for_programs();

// Called from several threads at once. Throws std::runtime_error for a failed attempt.
Outcome run_program(const ExecOptions& options, Context& context);

// How long what was given back for no fault of its own is left alone: longer each time, up to five minutes.
Milliseconds hold_time(const Context& context);

// Waits until no program is running, at most as long as those that were told to stop are given. True: none is left.
bool wait_for_programs();

// Kills every program that is still running, with all it has started. For the end of the process: a thread that was
// abandoned with its program may not get to it any more.
void kill_all_programs();

// What `bide work` was asked to do, read from its flags and checked before anything is opened.
struct WorkPlan {
  ExecOptions exec;
  WorkerOptions worker;
  std::set<std::string> kinds;  // Empty: all.
  bool drain = false;

  bool takes(const std::string& kind) const { return kinds.empty() || kinds.contains(kind); }
};

// Throws Failure.
WorkPlan work_plan(const Invocation& call);

}  // namespace bide::cli
