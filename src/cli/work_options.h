// What `bide work` was asked to do, read from its flags and checked before anything is opened.

#pragma once

#include <set>
#include <string>

#include "bide/worker.h"
#include "cli/exec_handler.h"
#include "cli/invocation.h"

namespace bide::cli {

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
