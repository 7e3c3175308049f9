#include "cli/held_jobs.h"

#include <utility>

#include "bide/wait.h"
#include "cli/exec_handler.h"
#include "cli/invocation.h"

namespace bide::cli {

namespace {

// A producer that makes up kinds must not grow the worker's memory.
constexpr std::size_t kMostRemembered = 1000;
constexpr char kNote[] = "the worker that got it runs other kinds only";

}  // namespace

Outcome HeldJobs::hold(const Context& context) {
  std::lock_guard lock(mutex_);
  if (ids_.size() < kMostRemembered) ids_.insert(context.job().id);
  return Returned{.after = hold_time(context), .note = kNote};
}

bool HeldJobs::is_new(const std::string& kind) {
  std::lock_guard lock(mutex_);
  return kinds_.size() < kMostRemembered && kinds_.insert(kind).second;
}

void HeldJobs::let_go(const Client& client) {
  std::lock_guard lock(mutex_);
  for (const JobId& id : std::exchange(ids_, {})) {
    const auto info = client.find(id);
    if (!info || info->state != JobState::kScheduled || info->note != kNote) continue;
    // Somebody may have been faster: just as well.
    (void)wait<void>([&](auto done) { client.inspector().reschedule(id, now(), std::move(done)); });
  }
}

}  // namespace bide::cli
