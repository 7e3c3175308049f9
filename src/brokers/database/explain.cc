#include "brokers/database/explain.h"

#include <string>

#include "core/duration.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "platform/clock.h"

namespace bide::brokers::database {

Explanation explanation_of(const JobInfo& info, const QueueInfo& at, bool has_room) {
  const Time now{Milliseconds(platform::real_clock().now().wall_us / 1000)};
  const std::string queue = "queue " + core::quoted(info.job.queue);
  const std::string last_error = info.history.empty() ? "" : "; the last error was " + core::quoted(info.history.back().text);
  const std::string finished = core::rough_duration(now - info.finished.value_or(now));
  switch (info.state) {
    case JobState::kDone:
      return {"done", "It is done, after " + std::to_string(info.attempts) + " attempt(s), " + finished + " ago."};
    case JobState::kDead:
      return {"dead", "It is dead (" + std::string(to_string(info.dead_reason.value_or(DeadReason::kRejected))) + ") since " +
                          finished + last_error + ". Replay it to give it a fresh start."};
    case JobState::kRunning:
      return {"running", "Attempt " + std::to_string(info.attempts) + " is running in worker " + core::quoted(info.worker) + "."};
    case JobState::kScheduled: {
      const std::string wait = core::rough_duration(info.due - now);
      if (!info.note.empty()) return {"returned", "It was given back (" + info.note + ") and is due in " + wait + "."};
      if (info.counts.total() > 0) {
        return {"retry", "It waits for attempt " + std::to_string(info.attempts + 1) + " of " +
                             std::to_string(info.job.retry.max_attempts) + ", due in " + wait + last_error + "."};
      }
      return {"scheduled", "It is due in " + wait + "."};
    }
    case JobState::kReady:
    case JobState::kWaiting: break;
  }
  if (info.job.expires && info.attempts == 0 && *info.job.expires <= now) {
    return {"expired", "It was to start before " + core::format_time(*info.job.expires) +
                           " and has not: it will not run, and is dead as soon as a worker looks at " + queue + "."};
  }
  if (at.paused) return {"paused", "It is ready, but " + queue + " is paused. Resume the queue to run it."};
  if (at.workers == 0) return {"no_worker", "It is ready, but no worker takes jobs from " + queue + ". Start one."};
  const std::string ready = std::to_string(at.ready) + " job(s) are ready there.";
  if (!has_room) {
    return {"credit", "It is ready, but all " + std::to_string(at.workers) + " worker(s) of " + queue +
                          " hold as many jobs as they may; " + ready};
  }
  return {"behind", "It is ready and waits for its turn in " + queue + "; " + ready};
}

}  // namespace bide::brokers::database
