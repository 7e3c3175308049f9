// HeldJobs: jobs of kinds that a worker was not asked to run. The broker hands out jobs by queue, so the worker gets
// them all the same: it gives them back uncharged, and leaves each alone for longer every time, up to five minutes.

#pragma once

#include <mutex>
#include <set>
#include <string>

#include "bide/client.h"
#include "bide/worker.h"

namespace bide::cli {

// Safe to share between threads.
class HeldJobs {
 public:
  // What to settle the attempt with.
  Outcome hold(const Context& context);
  // True for the first job of its kind.
  bool is_new(const std::string& kind);
  // When the worker ends: those that still wait because of it wait no longer.
  void let_go(const Client& client);

 private:
  std::mutex mutex_;  // Guards everything below.
  std::set<JobId> ids_;
  std::set<std::string> kinds_;
};

}  // namespace bide::cli
