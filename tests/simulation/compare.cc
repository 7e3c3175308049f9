#include "simulation/compare.h"

#include <charconv>
#include <set>
#include <unordered_set>
#include <vector>

namespace bide::simulation {
namespace {

std::string name_of(const ModelJob& job) {
  return "job " + std::to_string(job.tag) + " (" + job.id.to_string() + ", " + to_string(job.phase) + ")";
}

template <class T>
std::string numbers(const char* what, T found, T expected) {
  return std::string(what) + " is " + std::to_string(found) + ", expected " + std::to_string(expected);
}

std::uint64_t tag_of(const Job& job) {
  std::uint64_t tag = 0;
  for (const auto& [name, value] : job.headers) {
    if (name == "tag") std::from_chars(value.data(), value.data() + value.size(), tag);
  }
  return tag;
}

bool is_job(engine::EntryState state) {
  return state != engine::EntryState::kFree && state != engine::EntryState::kTombstone;
}

bool may_be_forgotten(const ModelJob& job, const World& world, std::size_t done_there, const CompareOptions& options) {
  if (job.phase == Phase::kDead) {
    return options.dead_retention.count() != 0 &&
           job.finished_ms < options.latest_now_ms - options.dead_retention.count();
  }
  if (job.phase != Phase::kDone) return false;
  return job.seen_forgotten || done_there >= options.done_limit || world.count(Phase::kDone) > options.done_limit ||
         job.finished_ms < options.latest_now_ms - options.result_retention.count();
}

std::optional<std::string> rules_difference(const Job& found, const Job& expected) {
  if (found.kind != expected.kind) return "kind";
  if (found.queue != expected.queue) return "queue";
  if (found.content_type != expected.content_type) return "content type";
  if (found.headers != expected.headers) return "headers";
  if (found.expires != expected.expires) return "expiry";
  if (found.time_limit != expected.time_limit) return "time limit";
  if (found.priority != expected.priority) return "priority";
  if (found.retry != expected.retry) return "retry policy";
  if (found.unique_key != expected.unique_key) return "unique key";
  return std::nullopt;
}

}  // namespace

const Result<JobInfo>& Reading::find(const JobId& id) {
  const auto known = read_.find(id);
  return known != read_.end() ? known->second : read_.emplace(id, ledger_.find(id)).first->second;
}

void learn_ids(engine::Ledger& ledger, World& world) {
  std::set<std::uint64_t> nameless;
  for (const auto& [tag, job] : world.jobs()) {
    if (job->id.is_nil()) nameless.insert(tag);
  }
  if (nameless.empty()) return;
  for (engine::Slot slot = 0; slot < ledger.state().slots(); ++slot) {
    const engine::Entry& entry = ledger.state()[slot];
    if (!is_job(entry.entry_state()) || world.find(entry.id) != nullptr) continue;
    const auto info = ledger.find(entry.id);
    if (!info) continue;
    const std::uint64_t tag = tag_of(info->job);
    if (nameless.contains(tag)) world.change(tag).id = entry.id;
  }
}

void learn_waits(engine::Ledger& ledger, World& world) {
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, job] : world.jobs()) {
    if (job->due_slack_ms != 0) tags.push_back(tag);
  }
  for (const std::uint64_t tag : tags) {
    ModelJob& job = world.change(tag);
    const engine::Slot slot = ledger.state().find(job.id);
    if (slot == engine::kNoSlot) continue;
    const std::int64_t due_ms = ledger.state().due(slot);
    if (due_ms < job.due_ms || due_ms > job.due_ms + job.due_slack_ms) continue;
    job.due_ms = due_ms;
    job.due_slack_ms = 0;
  }
}

std::optional<std::string> difference(const JobInfo& info, const ModelJob& job, const Moment& moment) {
  const auto differs = [&](const std::string& how) { return name_of(job) + ": " + how; };
  const JobState expected = job.phase == Phase::kDone      ? JobState::kDone
                            : job.phase == Phase::kDead    ? JobState::kDead
                            : job.phase == Phase::kRunning ? JobState::kRunning
                            : World::is_due(job, moment)   ? JobState::kReady
                                                           : JobState::kScheduled;
  if (info.state != expected) return differs("is " + std::string(bide::to_string(info.state)));
  if (info.attempts != job.attempts) return differs(numbers("attempts", info.attempts, job.attempts));
  if (job.phase == Phase::kDone) {
    if (!is_body(job.result, info.result)) return differs("has another result");
    if (info.finished->time_since_epoch().count() != job.finished_ms) return differs("finished at another time");
    return std::nullopt;
  }
  if (const auto rule = rules_difference(info.job, *job.rules)) return differs("has another " + *rule);
  if (!is_body(job.body, info.job.body)) return differs("has another body");
  if (info.counts != job.counts)
    return differs(numbers("the sum of its counts", info.counts.total(), job.counts.total()));
  if (info.history.size() != job.history) return differs(numbers("history", info.history.size(), job.history));
  if (!job.last_error.empty() && (info.history.empty() || info.history.back().text != job.last_error)) {
    return differs("has another last error");
  }
  const std::int64_t time_ms = job.phase == Phase::kDead ? job.finished_ms : job.due_ms;
  if (info.due.time_since_epoch().count() != time_ms) {
    return differs(numbers("its due time", info.due.time_since_epoch().count(), time_ms));
  }
  if (job.phase == Phase::kDead && info.dead_reason != job.dead_reason) return differs("is dead for another reason");
  return std::nullopt;
}

std::optional<std::string> difference(Reading& reading, World& world, const Moment& moment,
                                      const CompareOptions& options) {
  engine::Ledger& ledger = reading.ledger();
  std::size_t done_there = 0;
  std::unordered_set<JobId> there;
  std::unordered_set<JobId> expected;
  for (const auto& [tag, job] : world.jobs()) expected.insert(job->id);
  for (engine::Slot slot = 0; slot < ledger.state().slots(); ++slot) {
    const engine::Entry& entry = ledger.state()[slot];
    if (!is_job(entry.entry_state())) continue;
    there.insert(entry.id);
    if (entry.entry_state() == engine::EntryState::kDone) ++done_there;
    if (!expected.contains(entry.id)) return "job " + entry.id.to_string() + " should not be there";
  }
  std::vector<std::uint64_t> forgotten;
  std::size_t keys = 0;
  for (const auto& [tag, job] : world.jobs()) {
    if (!there.contains(job->id)) {
      if (!may_be_forgotten(*job, world, done_there, options)) return name_of(*job) + " is missing";
      forgotten.push_back(tag);
      continue;
    }
    const Result<JobInfo>& info = reading.find(job->id);
    if (!info) {
      const bool reported =
          info.error().code == ErrorCode::kDamaged && info.error().message.find('/') != std::string::npos;
      if (options.damage_may_be_reported && reported) {
        if (job->is_live() && !job->rules->unique_key.empty()) ++keys;
        continue;
      }
      return name_of(*job) + " cannot be read: " + info.error().message;
    }
    if (auto found = difference(*info, *job, moment)) return found;
    if (job->phase == Phase::kRunning) {
      const engine::Slot place = ledger.state()[ledger.state().find(job->id)].next;
      if (ledger.state().leases()[place].token != job->token) return name_of(*job) + " is leased by another token";
      if (ledger.state().leases()[place].delivered != job->delivered) {
        return name_of(*job) + (job->delivered ? " was delivered" : " was not delivered");
      }
      if (ledger.state().leases()[place].lease_ms != job->lease_ms) {
        return name_of(*job) + ": " + numbers("its lease time", ledger.state().leases()[place].lease_ms, job->lease_ms);
      }
      const engine::Running& running = ledger.state().leases()[place];
      if (running.deadline_ms != job->deadline_elapsed_ms) {
        return name_of(*job) + ": " + numbers("the end of its lease", running.deadline_ms, job->deadline_elapsed_ms);
      }
      if (running.limit_ms != job->limit_elapsed_ms) {
        return name_of(*job) + ": " + numbers("its time limit", running.limit_ms, job->limit_elapsed_ms);
      }
      if (ledger.state().leases()[place].cancel_requested != job->cancel_requested) {
        return name_of(*job) + (job->cancel_requested ? " was cancelled" : " was not cancelled");
      }
    }
    if (job->is_live() && !job->rules->unique_key.empty()) {
      ++keys;
      const engine::Slot holder = ledger.state().unique_keys().holder(job->rules->unique_key);
      if (holder == engine::kNoSlot || ledger.state()[holder].id != job->id) {
        return name_of(*job) + " does not hold its unique key; " +
               (holder == engine::kNoSlot ? "nobody does" : "job " + ledger.state()[holder].id.to_string() + " does");
      }
    }
  }
  if (keys != ledger.state().unique_keys().size()) {
    return numbers("the number of unique keys", ledger.state().unique_keys().size(), keys);
  }
  for (const QueueInfo& queue : ledger.queues()) {
    if (queue.paused != world.is_paused(queue.name)) return "queue " + queue.name + " should not be as it is: paused";
  }
  for (const std::string& queue : world.paused()) {
    bool found = false;
    for (const QueueInfo& info : ledger.queues()) found = found || (info.name == queue && info.paused);
    if (!found) return "queue " + queue + " should be paused";
  }
  for (const std::uint64_t tag : forgotten) {
    if (world.find(tag)->phase == Phase::kDead) {
      world.remove(tag);
    } else {
      world.change(tag).seen_forgotten = true;
    }
  }
  return std::nullopt;
}

}  // namespace bide::simulation
