// Drain: when `bide work --drain` has come to its end, and what it leaves behind.

#pragma once

#include "bide/client.h"
#include "cli/work_log.h"
#include "cli/work_options.h"

namespace bide::cli {

class Drain {
 public:
  Drain(const Client& client, const WorkPlan& plan) : client_(client), plan_(plan) {}

  // Whether a job is left that this worker could run, now or later. Jobs of other kinds and those of a paused queue are
  // not; one that runs elsewhere is, since it may come back. Throws Failure when the broker does not answer.
  bool has_work() const;
  void tell_what_is_left(WorkLog& log) const;

 private:
  bool has_any(const std::string& queue, const std::vector<JobState>& states) const;

  const Client client_;
  const WorkPlan& plan_;
};

}  // namespace bide::cli
