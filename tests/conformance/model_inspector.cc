// The Inspector half of ModelBroker, and the names of its faults.

#include <algorithm>
#include <charconv>
#include <tuple>

#include "conformance/model_broker.h"
#include "core/broker_answers.h"

namespace bide::conformance {
namespace {

bool matches(const JobInfo& info, const JobFilter& filter) {
  const auto& states = filter.states;
  if (!states.empty() && std::find(states.begin(), states.end(), info.state) == states.end()) return false;
  if (!filter.queue.empty() && info.job.queue != filter.queue) return false;
  if (!filter.kind.empty() && info.job.kind != filter.kind) return false;
  const std::string newest = info.history.empty() ? "" : info.history.back().text;
  if (newest.find(filter.error) == std::string::npos) return false;
  const Time when = info.finished.value_or(info.due);
  return (!filter.since || when >= *filter.since) && (!filter.until || when <= *filter.until);
}

}  // namespace

std::string_view to_string(ModelFault fault) {
  static constexpr std::string_view kNames[] = {
      "none", "early_by_one_millisecond", "delay_on_wall_clock", "due_on_elapsed_time", "lease_on_wall_clock",
      "token_not_compared", "token_not_growing", "attempt_counted_at_settle", "extend_past_time_limit",
      "credit_ignored", "credit_leaks_with_leases", "effects_before_validation", "effects_of_stale_settle",
      "effects_of_repeated_settle", "outcome_not_compared", "priority_ignored", "arrival_order_lost", "unique_key_leaks",
      "unique_key_unchecked", "replay_with_old_budget", "return_charged", "crashes_not_counted",
      "pause_forgotten_by_restart", "cursor_by_offset", "cancel_restarts_running", "reschedule_ignores_state",
      "watch_forgets_removed", "purge_takes_dead", "batch_fails_whole", "weights_ignored", "headers_sorted",
      "last_chances_together", "lease_time_forgotten_by_restart",
      "delivery_limit_freed_by_settling",
      "carried_history_lost",
      "carried_dead_revived"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(ModelFault::kLast));
  return kNames[static_cast<std::size_t>(fault)];
}

JobInfo ModelBroker::shown(const Entry& entry) const {
  JobInfo info = entry.info;
  info.due = due_of(entry);
  return info;
}

void ModelBroker::queues(Completion<std::vector<QueueInfo>> done) {
  done(locked([&] {
    std::map<std::string, QueueInfo> infos;
    for (const auto& [id, entry] : jobs_) {
      QueueInfo& info = infos[entry.info.job.queue];
      std::uint64_t* const counts[] = {&info.scheduled, &info.ready, &info.running, &info.done, &info.dead};
      *counts[static_cast<std::size_t>(entry.info.state)] += 1;
      if (entry.info.state == JobState::kReady) {
        info.oldest_ready = std::min(info.oldest_ready.value_or(due_of(entry)), due_of(entry));
      }
    }
    for (const std::string& name : paused_) infos[name].paused = true;
    for (const auto& [number, subscriber] : subscribers_) {
      for (const QueueShare& share : subscriber.options.queues) infos[share.name].workers += 1;
    }
    std::vector<QueueInfo> all;
    for (auto& [name, info] : infos) {
      info.name = name;
      all.push_back(std::move(info));
    }
    return all;
  }));
}

void ModelBroker::find(JobId id, Completion<JobInfo> done) {
  done(locked([&]() -> Result<JobInfo> {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return Error{ErrorCode::kNotFound, "no such job"};
    return shown(found->second);
  }));
}

void ModelBroker::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  done(locked([&]() -> Result<JobPage> {
    // The place in the order of the last job given: a key, not an offset, so that nothing slips by when jobs go.
    using Key = std::tuple<int, std::int64_t, std::uint64_t>;
    std::vector<std::pair<Key, JobInfo>> all;
    for (const auto& [id, entry] : jobs_) {
      JobInfo info = shown(entry);
      if (!matches(info, filter)) continue;
      const Key key = info.finished ? Key(1, -info.finished->time_since_epoch().count(), ~entry.sequence)
                                    : Key(0, info.due.time_since_epoch().count(), entry.sequence);
      all.emplace_back(key, std::move(info));
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::int64_t numbers[3] = {-1, 0, 0};
    const char* at = cursor.data();
    for (std::size_t i = 0; i < 3 && !cursor.empty(); ++i) {
      const auto parsed = std::from_chars(at, cursor.data() + cursor.size(), numbers[i]);
      if (parsed.ec != std::errc()) return Error{ErrorCode::kInvalidArgument, "not a cursor"};
      at = parsed.ptr + 1;
    }
    const Key after(static_cast<int>(numbers[0]), numbers[1], static_cast<std::uint64_t>(numbers[2]));
    JobPage page;
    std::size_t bytes = 0;
    std::size_t place = 0;
    for (auto& [key, info] : all) {
      place += 1;
      const bool before = has(ModelFault::kCursorByOffset) ? static_cast<std::int64_t>(place) <= numbers[1] : key <= after;
      if (before && !cursor.empty()) continue;
      if (!filter.bodies) info.job.body = info.result = {};
      bytes += core::shown_bytes(info);
      page.jobs.push_back(std::move(info));
      if (page.jobs.size() < limit && bytes < JobPage::kMostBytes) continue;
      if (place == all.size()) break;
      const std::int64_t second = has(ModelFault::kCursorByOffset) ? static_cast<std::int64_t>(place) : std::get<1>(key);
      page.next = std::to_string(std::get<0>(key)) + "," + std::to_string(second) + "," +
                  std::to_string(static_cast<std::int64_t>(std::get<2>(key)));
      break;
    }
    return page;
  }));
}

void ModelBroker::explain(JobId id, Completion<Explanation> done) {
  done(locked([&]() -> Result<Explanation> {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return Error{ErrorCode::kNotFound, "no such job"};
    const JobInfo& info = found->second.info;
    std::string code(to_string(info.state));
    if (info.state == JobState::kReady) {
      code = "no_worker";
      for (const auto& [number, subscriber] : subscribers_) {
        for (const QueueShare& share : subscriber.options.queues) {
          if (share.name == info.job.queue) code = "credit";
        }
      }
      if (paused_.contains(info.job.queue)) code = "paused";
    }
    return Explanation{code, "It is " + code + "."};
  }));
}

void ModelBroker::audit(Completion<AuditReport> done) {
  done(locked([&] {
    AuditReport report = totals_;
    report.live = static_cast<std::uint64_t>(std::count_if(
        jobs_.begin(), jobs_.end(), [](const auto& item) { return item.second.info.state != JobState::kDone; }));
    if (report.accepted != report.done + report.removed + report.live) report.problems.push_back("the sum is wrong");
    return report;
  }));
}

GiveUp ModelBroker::watch(JobId id, Completion<JobInfo> done) {
  const std::uint64_t number = locked([&] {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) {
      outside_.push_back([done] { done(Error{ErrorCode::kNotFound, "no such job"}); });
    } else if (found->second.info.finished && found->second.info.state != JobState::kScheduled) {
      outside_.push_back([done, info = shown(found->second)] { done(info); });
    } else {
      watches_.emplace(id, Watch{last_watch_ + 1, done});
    }
    return ++last_watch_;
  });
  return [this, number] {
    locked([&] { return std::erase_if(watches_, [&](const auto& item) { return item.second.number == number; }); });
  };
}

void ModelBroker::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  done(locked([&] {
    std::vector<Status> statuses;
    for (const JobId& id : ids) {
      const auto found = jobs_.find(id);
      Status status;
      if (found == jobs_.end()) {
        status = Error{ErrorCode::kNotFound, "no such job"};
      } else if (options.state && found->second.info.state != *options.state) {
        status = Error{ErrorCode::kWrongState, "it is in another state"};
      } else if (found->second.info.state == JobState::kDone) {
        status = Error{ErrorCode::kWrongState, "it is done"};
      } else if (found->second.info.state != JobState::kRunning) {
        remove(id);
      } else if (has(ModelFault::kCancelRestartsRunning)) {
        end_lease(found->second);
        found->second.info.state = JobState::kReady;
      } else {
        found->second.cancel_requested = true;
      }
      statuses.push_back(status);
    }
    return statuses;
  }));
}

void ModelBroker::reschedule(JobId id, Time due, Completion<void> done) {
  done(locked([&]() -> Status {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return Error{ErrorCode::kNotFound, "no such job"};
    Entry& entry = found->second;
    const bool waits = entry.info.state == JobState::kScheduled || entry.info.state == JobState::kReady;
    if (!waits && !has(ModelFault::kRescheduleIgnoresState)) return Error{ErrorCode::kWrongState, "it does not wait"};
    entry.due_ms = due.time_since_epoch().count();
    entry.due_is_wall = true;
    entry.info.state = JobState::kScheduled;
    return {};
  }));
}

void ModelBroker::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  done(locked([&] {
    std::vector<Status> statuses;
    for (const JobId& id : ids) {
      const auto found = jobs_.find(id);
      if (found == jobs_.end()) {
        statuses.push_back(Error{ErrorCode::kNotFound, "no such job"});
        continue;
      }
      Entry& entry = found->second;
      if (entry.info.state != JobState::kDead) {
        statuses.push_back(Error{ErrorCode::kWrongState, "it is not dead"});
        continue;
      }
      if (key_is_held(entry.info.job.unique_key, id)) {
        statuses.push_back(Error{ErrorCode::kAlreadyExists, "the unique key is held"});
        continue;
      }
      if (!options.keep_attempts && !has(ModelFault::kReplayWithOldBudget)) {
        entry.info.attempts = 0;
        entry.info.counts = {};
      }
      entry.info.dead_reason.reset();
      entry.info.finished.reset();
      entry.info.state = JobState::kScheduled;
      entry.sequence = ++last_number_;
      entry.token = ++last_number_;  // A settle from before must not pass for a repeated one.
      set_delay(entry, options.delay);
      statuses.push_back(Status());
    }
    return statuses;
  }));
}

void ModelBroker::pause(std::string queue, bool paused, Completion<void> done) {
  done(locked([&]() -> Status {
    if (paused) paused_.insert(queue);
    if (!paused) paused_.erase(queue);
    return {};
  }));
}

void ModelBroker::purge(std::string queue, Completion<std::uint64_t> done) {
  done(locked([&]() -> Result<std::uint64_t> {
    std::vector<JobId> ids;
    for (const auto& [id, entry] : jobs_) {
      const JobState state = entry.info.state;
      const bool waits = state == JobState::kScheduled || state == JobState::kReady ||
                         (state == JobState::kDead && has(ModelFault::kPurgeTakesDead));
      if (waits && entry.info.job.queue == queue) ids.push_back(id);
    }
    for (const JobId& id : ids) remove(id);
    return ids.size();
  }));
}

}  // namespace bide::conformance
