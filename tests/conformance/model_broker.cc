#include "conformance/model_broker.h"

#include <algorithm>
#include <tuple>

#include "core/job_rules.h"
#include "core/retry_decision.h"

namespace bide::conformance {

class ModelBroker::Handle : public Subscription {
 public:
  Handle(ModelBroker& broker, std::uint64_t number) : broker_(broker), number_(number) {}
  ~Handle() override {
    broker_.locked([this] { return broker_.subscribers_.erase(number_); });
  }
  void set_credit(int credit) override {
    broker_.locked([&] { return broker_.subscribers_.at(number_).options.credit = credit; });
  }
  void set_delivery_limit(std::uint64_t deliveries) override {
    broker_.locked([&] { return broker_.subscribers_.at(number_).delivery_limit = deliveries; });
  }

 private:
  ModelBroker& broker_;
  const std::uint64_t number_;
};

Capabilities ModelBroker::capabilities() const {
  Capabilities all;
  all.virtual_time = true;
  all.completions = false;
  all.requests = false;  // A worker beside the test would be a second thread.
  all.carries_past = true;
  return all;
}

// ---- Enqueuing.

void ModelBroker::set_delay(Entry& entry, Milliseconds delay) {
  entry.due_is_wall = has(ModelFault::kDelayOnWallClock);
  entry.due_ms = (entry.due_is_wall ? wall_ms() : elapsed_ms()) + delay.count();
  if (has(ModelFault::kEarlyByOneMillisecond)) entry.due_ms -= 1;
}

bool ModelBroker::key_is_held(const std::string& key, JobId by) const {
  if (key.empty() || has(ModelFault::kUniqueKeyUnchecked)) return false;
  if (leaked_keys_.contains(key)) return true;
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& item) {
    const JobInfo& info = item.second.info;
    return info.job.unique_key == key && info.job.id != by && info.state != JobState::kDone &&
           info.state != JobState::kDead;
  });
}

Result<Enqueued> ModelBroker::accept(Job job) {
  if (Status status = core::validate(job, wall()); !status) return status.error();
  const std::uint64_t number = ++last_number_;
  if (job.id.is_nil()) {
    std::array<std::uint8_t, JobId::kSize> bytes{0xff};
    for (unsigned i = 0; i < 8; ++i) bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
    job.id = JobId(bytes);
  }
  if (jobs_.contains(job.id)) return Enqueued{job.id, true};
  const bool is_dead = job.past && job.past->dead;
  if (!is_dead && key_is_held(job.unique_key, job.id)) return Error{ErrorCode::kAlreadyExists, "the unique key is held"};
  if (has(ModelFault::kUniqueKeyLeaks) && !job.unique_key.empty()) leaked_keys_.insert(job.unique_key);
  if (has(ModelFault::kHeadersSorted)) std::sort(job.headers.begin(), job.headers.end());
  Entry entry;
  entry.sequence = has(ModelFault::kArrivalOrderLost) ? number * 7919 % 1000 : number;
  set_delay(entry, job.delay);
  if (job.due) {
    entry.due_is_wall = !has(ModelFault::kDueOnElapsedTime);
    entry.due_ms = job.due->time_since_epoch().count() - (entry.due_is_wall ? 0 : wall_ms() - elapsed_ms());
  }
  if (const auto past = std::exchange(job.past, nullptr)) {
    entry.info.attempts = past->attempts;
    entry.info.counts = past->counts;
    if (!has(ModelFault::kCarriedHistoryLost)) entry.info.history = past->history;
    entry.info.dead_reason = past->dead;
    if (past->dead && !has(ModelFault::kCarriedDeadRevived)) {
      entry.info.state = JobState::kDead;
      entry.info.finished = past->finished.value_or(wall());
    }
  }
  entry.info.job = std::move(job);
  const JobId id = entry.info.job.id;
  jobs_.emplace(id, std::move(entry));
  totals_.accepted += 1;
  return Enqueued{id};
}

void ModelBroker::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  done(locked([&] {
    std::vector<Result<Enqueued>> results;
    const bool spoilt = has(ModelFault::kBatchFailsWhole) && std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) {
      return !core::validate(job, wall());
    });
    for (Job& job : jobs) {
      if (spoilt) results.push_back(Error{ErrorCode::kInvalidArgument, "somewhere in the batch"});
      if (!spoilt) results.push_back(accept(std::move(job)));
    }
    return results;
  }));
}

// ---- Time.

Time ModelBroker::due_of(const Entry& entry) const {
  return Time(Milliseconds(entry.due_is_wall ? entry.due_ms : entry.due_ms + wall_ms() - elapsed_ms()));
}

void ModelBroker::wake() {
  locked([] { return 0; });
}

void ModelBroker::tick() {
  const Time now = wall();
  const std::int64_t lease_now = has(ModelFault::kLeaseOnWallClock) ? wall_ms() : elapsed_ms();
  std::vector<JobId> forgotten, cancelled;
  for (auto& [id, entry] : jobs_) {
    JobInfo& info = entry.info;
    if (info.state == JobState::kRunning && lease_now >= entry.limit_ms) {
      after_fault(entry, Fault::kTimedOut, "ran past its time limit");
    } else if (info.state == JobState::kRunning && lease_now >= entry.deadline_ms) {
      after_fault(entry, Fault::kLost, "the worker fell silent");
    }
    const bool waits = info.state == JobState::kScheduled || info.state == JobState::kReady;
    if (waits && entry.cancel_requested) cancelled.push_back(id);
    if (waits && info.attempts == 0 && info.job.expires && *info.job.expires <= now) {
      info.dead_reason = DeadReason::kExpired;
      finish(entry, JobState::kDead);
    }
    if (info.state == JobState::kScheduled && due_of(entry) <= now) info.state = JobState::kReady;
    if (info.state == JobState::kReady && due_of(entry) > now) info.state = JobState::kScheduled;
    if (info.state == JobState::kDone && *info.finished + kRetention <= now) forgotten.push_back(id);
  }
  for (const JobId& id : forgotten) jobs_.erase(id);
  for (const JobId& id : cancelled) remove(id);
}

void ModelBroker::restart() {
  std::unique_lock lock(mutex_);
  subscribers_.clear();
  for (const auto& [id, watch] : std::exchange(watches_, {})) watch.done(Error{ErrorCode::kUnavailable, "closed"});
  if (has(ModelFault::kPauseForgottenByRestart)) paused_.clear();
  for (auto& [id, entry] : jobs_) {
    if (entry.info.state != JobState::kRunning) continue;
    entry.subscription = 0;
    if (!entry.outlives_process) {
      after_fault(entry, Fault::kCrashed, "the process died");
      continue;
    }
    if (has(ModelFault::kLeaseTimeForgottenByRestart)) entry.lease = SubscribeOptions().lease;
    entry.deadline_ms = elapsed_ms() + entry.lease.count();
  }
}

// ---- Leases.

bool ModelBroker::comes_before(const Entry& a, const Entry& b) const {
  const bool flat = has(ModelFault::kPriorityIgnored);
  const int left = flat ? 0 : -a.info.job.priority, right = flat ? 0 : -b.info.job.priority;
  return std::tuple(left, due_of(a), a.sequence) < std::tuple(right, due_of(b), b.sequence);
}

// Another job that one more crash would make poison runs where this one would.
bool ModelBroker::must_wait(const Entry& entry, const Subscriber& subscriber) const {
  if (!core::is_last_chance(entry.info.counts) || has(ModelFault::kLastChancesTogether)) return false;
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& item) {
    const Entry& other = item.second;
    return other.info.state == JobState::kRunning && core::is_last_chance(other.info.counts) &&
           other.outlives_process == subscriber.options.outlives_process;
  });
}

ModelBroker::Entry* ModelBroker::choose(Subscriber& subscriber) {
  auto& queues = subscriber.options.queues;
  Entry* best = nullptr;
  std::size_t from = 0;
  int total = 0;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    Entry* first = nullptr;
    for (auto& [id, entry] : jobs_) {
      if (entry.info.state != JobState::kReady || entry.info.job.queue != queues[i].name) continue;
      if (must_wait(entry, subscriber)) continue;
      if (first == nullptr || comes_before(entry, *first)) first = &entry;
    }
    if (first == nullptr || paused_.contains(queues[i].name)) continue;
    const int weight = has(ModelFault::kWeightsIgnored) ? 1 : queues[i].weight;
    subscriber.scores[i] += weight;
    total += weight;
    if (best == nullptr || subscriber.scores[i] > subscriber.scores[from]) best = first, from = i;
  }
  if (best != nullptr) subscriber.scores[from] -= total;
  return best;
}

void ModelBroker::grant() {
  const std::int64_t now = has(ModelFault::kLeaseOnWallClock) ? wall_ms() : elapsed_ms();
  for (auto& [number, subscriber] : subscribers_) {
    std::vector<Lease> leases;
    while (subscriber.has_room() || has(ModelFault::kCreditIgnored)) {
      Entry* entry = choose(subscriber);
      if (entry == nullptr) break;
      subscriber.unsettled += 1;
      subscriber.delivered += 1;
      JobInfo& info = entry->info;
      info.state = JobState::kRunning;
      if (!has(ModelFault::kAttemptCountedAtSettle)) info.attempts += 1;
      info.worker = subscriber.options.worker;
      if (!has(ModelFault::kTokenNotGrowing) || entry->token == 0) entry->token = ++last_number_;
      entry->subscription = number;
      entry->lease = subscriber.options.lease;
      entry->outlives_process = subscriber.options.outlives_process;
      entry->cancel_requested = false;
      entry->limit_ms = now + info.job.time_limit.count();
      entry->deadline_ms = now + entry->lease.count();
      leases.push_back({.job = info.job,
                        .token = entry->token,
                        .attempt = std::max(info.attempts, 1u),
                        .due = due_of(*entry),
                        .counts = info.counts,
                        .history = info.history});
    }
    if (leases.empty()) continue;
    outside_.push_back([sink = subscriber.sink, leases = std::move(leases)] { sink(leases); });
  }
}

Result<std::unique_ptr<Subscription>> ModelBroker::subscribe(SubscribeOptions options, LeaseSink sink) {
  const std::uint64_t number = locked([&] {
    std::vector<int> scores(options.queues.size());
    subscribers_[++last_number_] = {.options = std::move(options), .sink = std::move(sink), .scores = std::move(scores)};
    return last_number_;
  });
  return std::unique_ptr<Subscription>(std::make_unique<Handle>(*this, number));
}

void ModelBroker::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  done(locked([&] {
    std::vector<Extended> answers;
    for (const LeaseRef& lease : leases) {
      const auto found = jobs_.find(lease.id);
      const bool held = found != jobs_.end() && found->second.info.state == JobState::kRunning &&
                        (found->second.token == lease.token || has(ModelFault::kTokenNotCompared));
      if (!held) {
        answers.push_back({.lost = true});
        continue;
      }
      Entry& entry = found->second;
      const std::int64_t now = has(ModelFault::kLeaseOnWallClock) ? wall_ms() : elapsed_ms();
      entry.deadline_ms = now + entry.lease.count();
      if (has(ModelFault::kExtendPastTimeLimit)) entry.limit_ms = now + entry.info.job.time_limit.count();
      answers.push_back({.lost = false, .cancel_requested = entry.cancel_requested});
    }
    return answers;
  }));
}

// ---- Settling.

void ModelBroker::end_lease(Entry& entry) {
  const auto found = subscribers_.find(entry.subscription);
  if (found != subscribers_.end()) {
    found->second.unsettled -= 1;
    if (has(ModelFault::kDeliveryLimitFreedBySettling)) found->second.delivered -= 1;
  }
  entry.subscription = 0;
  entry.settled_as.reset();
  entry.info.worker.clear();
  if (has(ModelFault::kAttemptCountedAtSettle)) entry.info.attempts += 1;
}

void ModelBroker::charge(Entry& entry, Fault fault, std::string text) {
  AttemptCounts& counts = entry.info.counts;
  std::uint32_t* const counters[] = {&counts.failed, &counts.timed_out, &counts.lost, &counts.crashed};
  *counters[static_cast<std::size_t>(fault)] += 1;
  text.resize(std::min(text.size(), Limits::kErrorBytes));
  entry.info.history.push_back({entry.info.attempts, wall(), fault, std::move(text)});
  if (entry.info.history.size() > Limits::kHistory) entry.info.history.erase(entry.info.history.begin());
}

void ModelBroker::after_fault(Entry& entry, Fault fault, std::string text) {
  const std::uint32_t most = has(ModelFault::kCrashesNotCounted) ? 1'000'000 : core::kMaxCrashes;
  const Outcome outcome = core::decide_after_fault(entry.info.job.retry, entry.info.counts, fault, text, 0, most);
  const std::uint64_t subscription = entry.subscription;
  end_lease(entry);
  if (has(ModelFault::kCreditLeaksWithLeases) && subscribers_.contains(subscription)) {
    subscribers_[subscription].unsettled += 1;
  }
  charge(entry, fault, std::move(text));
  if (entry.cancel_requested) {
    entry.info.state = JobState::kScheduled;  // For tick() to take away.
  } else if (const auto* dead = std::get_if<Dead>(&outcome)) {
    entry.info.dead_reason = dead->reason;
    finish(entry, JobState::kDead);
  } else {
    set_delay(entry, std::get<RetryAt>(outcome).after);
    entry.info.state = JobState::kScheduled;
  }
}

void ModelBroker::finish(Entry& entry, JobState state) {
  entry.info.state = state;
  entry.info.finished = wall();
  if (state == JobState::kDone) {
    entry.info.job.body.clear();
    totals_.done += 1;
  }
  const auto [first, last] = watches_.equal_range(entry.info.job.id);
  for (auto watch = first; watch != last; ++watch) {
    outside_.push_back([done = watch->second.done, info = shown(entry)] { done(info); });
  }
  watches_.erase(first, last);
}

void ModelBroker::remove(JobId id) {
  jobs_.erase(id);
  totals_.removed += 1;
  if (has(ModelFault::kWatchForgetsRemoved)) return;
  const auto [first, last] = watches_.equal_range(id);
  for (auto watch = first; watch != last; ++watch) {
    outside_.push_back([done = watch->second.done] { done(Error{ErrorCode::kNotFound, "the job was removed"}); });
  }
  watches_.erase(first, last);
}

Status ModelBroker::settle_one(Settlement& settlement) {
  const auto found = jobs_.find(settlement.lease.id);
  const auto make_effects = [&] {
    for (const Job& effect : settlement.effects) (void)accept(effect);
  };
  if (found == jobs_.end()) return Error{ErrorCode::kNotFound, "no such job"};
  Entry& entry = found->second;
  JobInfo& info = entry.info;
  if (entry.token != settlement.lease.token && !(has(ModelFault::kTokenNotCompared) && info.state == JobState::kRunning)) {
    if (has(ModelFault::kEffectsOfStaleSettle)) make_effects();
    return Error{ErrorCode::kLeaseLost, "the token is stale"};
  }
  if (info.state != JobState::kRunning) {
    if (!entry.settled_as) return Error{ErrorCode::kLeaseLost, "the lease ended without a settle"};
    if (*entry.settled_as != settlement.outcome.index() && !has(ModelFault::kOutcomeNotCompared)) {
      return Error{ErrorCode::kLeaseLost, "the lease ended by another outcome"};
    }
    if (has(ModelFault::kEffectsOfRepeatedSettle)) make_effects();
    return {};
  }
  for (const Job& effect : settlement.effects) {
    if (Status status = core::validate(effect, wall()); !status) return status.error();
    if (has(ModelFault::kEffectsBeforeValidation)) (void)accept(effect);
  }
  make_effects();
  end_lease(entry);
  entry.settled_as = settlement.outcome.index();
  const bool again = std::holds_alternative<RetryAt>(settlement.outcome) ||
                     std::holds_alternative<Returned>(settlement.outcome);
  if (entry.cancel_requested && again) {
    remove(settlement.lease.id);
    return {};
  }
  if (auto* done = std::get_if<Done>(&settlement.outcome)) {
    info.result = std::move(done->result);
    info.result_content_type = std::move(done->content_type);
    finish(entry, JobState::kDone);
  } else if (auto* retry = std::get_if<RetryAt>(&settlement.outcome)) {
    charge(entry, retry->fault, std::move(retry->error));
    if (retry->body) info.job.body = std::move(*retry->body);
    set_delay(entry, retry->after);
    info.state = JobState::kScheduled;
  } else if (auto* dead = std::get_if<Dead>(&settlement.outcome)) {
    charge(entry, dead->fault, std::move(dead->error));
    info.dead_reason = dead->reason;
    finish(entry, JobState::kDead);
  } else if (auto* returned = std::get_if<Returned>(&settlement.outcome)) {
    if (!has(ModelFault::kReturnCharged)) info.attempts -= 1;
    info.note = std::move(returned->note);
    set_delay(entry, returned->after);
    info.state = JobState::kScheduled;
  }
  return {};
}

void ModelBroker::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  done(locked([&] {
    std::vector<Status> statuses;
    for (Settlement& settlement : settlements) statuses.push_back(settle_one(settlement));
    return statuses;
  }));
}

}  // namespace bide::conformance
