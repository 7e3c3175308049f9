// Simulation, the requests of clients and workers: each is put to the ledger, its answer is judged by the model, and
// the model follows.

#include <algorithm>
#include <iterator>

#include "simulation/simulation.h"

namespace bide::simulation {

using engine::kNoSlot;

namespace {

constexpr const char* kKinds[] = {"send", "resize", "bill"};
constexpr std::size_t kRemembered = 40;

template <class T>
void remember(std::vector<T>& list, const T& value) {
  if (list.size() >= kRemembered) list.erase(list.begin());
  list.push_back(value);
}

std::string code_of(const Status& status) {
  return status ? "success" : std::string(to_string(status.error().code)) + " (" + status.error().message + ")";
}

}  // namespace

RetryPolicy Simulation::make_policy() {
  RetryPolicy policy;
  switch (below(4)) {
    case 0:
      return RetryPolicy::none();
    case 1:
      policy = RetryPolicy::fixed(Milliseconds(between(1, 5000)), static_cast<std::uint32_t>(between(1, 8)));
      break;
    case 2:
      policy = RetryPolicy::steps({Milliseconds(between(1, 100)), Milliseconds(between(100, 60'000))});
      break;
    default:
      policy = RetryPolicy::exponential(Milliseconds(between(1, 2000)), 2.0, std::chrono::hours(1), 6);
      break;
  }
  if (chance(0.3)) policy.jitter = 0.5;
  return policy;
}

std::string Simulation::any_queue() {
  const char* queue = kQueues[below(std::size(kQueues))];
  return is_rare(queue) && chance(0.7) ? "a" : queue;
}

Simulation::NewJob Simulation::make_job(bool is_effect) {
  NewJob made;
  made.tag = ++last_tag_;
  Job& job = made.job;
  job.kind = kKinds[below(std::size(kKinds))];
  if (chance(0.05)) job.kind += std::to_string(below(10));
  job.queue = any_queue();
  job.headers = {{"tag", std::to_string(made.tag)}};
  if (chance(0.1)) job.headers.emplace_back("more", std::string(below(200), 'h'));
  const std::uint64_t size = full_ && chance(0.5) ? 95 : below(100);
  made.body = {made.tag, static_cast<std::size_t>(size < 60   ? below(300)
                                                  : size < 95 ? below(4097)
                                                  : size < 99 ? below(20'000)
                                                              : 100'000)};
  job.body = make_body(made.body);
  if (chance(0.1)) job.content_type = "text/plain";
  const std::uint64_t when = below(100);
  if (when < 10) {
    job.delay = Milliseconds(between(1, 50));
  } else if (when < 25) {
    job.delay = Milliseconds(between(1, 10'000));
  } else if (when < 32) {
    job.delay = Milliseconds(between(1, 3 * 24 * 3'600'000));
  } else if (when < 45) {
    job.due = Time(Milliseconds(moment_.wall_ms() + between(-5000, 20'000)));
  } else if (when < 50) {
    job.due = Time(Milliseconds(moment_.wall_ms() + between(0, 3 * 24 * 3'600'000)));
  }
  if (chance(0.08)) job.expires = Time(Milliseconds(moment_.wall_ms() + between(-1000, 60'000)));
  if (chance(0.2)) job.time_limit = Milliseconds(between(50, 20'000));
  if (chance(0.3)) job.priority = static_cast<int>(between(-2, 2)) * 50;
  job.retry = make_policy();
  if (!is_effect && chance(0.08)) job.past = make_past();
  if (chance(0.2)) job.unique_key = "key " + std::to_string(below(15));
  if (chance(is_effect ? 0.5 : 0.25)) {
    const JobId known = ids_.empty() ? JobId() : ids_[below(ids_.size())];
    const ModelJob* same = now_.find(known);
    // When a done job is forgotten within a batch, nobody outside knows whether that was before an effect or after.
    const bool unclear =
        is_effect && same != nullptr && (same->phase == Phase::kDone || same->phase == Phase::kRunning);
    if (!known.is_nil() && !unclear && chance(0.2)) {
      job.id = known;
    } else {
      std::array<std::uint8_t, JobId::kSize> bytes;
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(chance_.next());
      job.id = JobId(bytes);
      remember(ids_, job.id);
    }
  }
  return made;
}

// As if it came from another store.
std::shared_ptr<const JobPast> Simulation::make_past() {
  auto past = std::make_shared<JobPast>();
  const auto some_time_ago = [&] { return Time(Milliseconds(moment_.wall_ms() - between(0, 100'000))); };
  past->counts = {.failed = static_cast<std::uint32_t>(below(3)),
                  .timed_out = static_cast<std::uint32_t>(below(2)),
                  .lost = static_cast<std::uint32_t>(below(2)),
                  .crashed = static_cast<std::uint32_t>(below(3))};
  past->attempts = past->counts.total();
  for (std::uint32_t attempt = 1; attempt <= past->attempts; ++attempt) {
    past->history.push_back({attempt, some_time_ago(), Fault::kFailed, "carried " + std::to_string(attempt)});
  }
  if (chance(0.2)) past->attempts = 0;  // Replayed.
  if (chance(0.4)) {
    past->dead = chance(0.5) ? DeadReason::kExhausted : DeadReason::kExpired;
    if (chance(0.8)) past->finished = some_time_ago();
  }
  return past;
}

const ModelJob* Simulation::pick_job(const std::function<bool(const ModelJob&)>& wanted) {
  std::vector<const ModelJob*> fitting;
  for (const auto& [tag, job] : now_.jobs()) {
    if (!job->id.is_nil() && wanted(*job)) fitting.push_back(job.get());
  }
  return fitting.empty() ? nullptr : fitting[below(fitting.size())];
}

// Whether a refusal with this error is the disk's fault, which was ours.
bool Simulation::may_fail(const Error& error, bool fault_fired) {
  if (crashed_ || (fault_fired && error.code == ErrorCode::kIoError)) return true;
  if (disk_.faults_fired() != faults_seen_ && error.code == ErrorCode::kDiskFull) return full_;
  if (!has_no_reserve() || error.code != ErrorCode::kDiskFull) return false;
  // What the reserve is for, it must be enough for.
  return !reserve_expected_ || ledger_->journal().end() - full_since_address_ > options_.reserve_bytes / 4;
}

// When it could not be made, because of a fault, there is no room for new jobs until the next try.
bool Simulation::reserve_is_missing() {
  const auto there = disk_.exists("/store/reserve");
  return !there || !*there;
}

// The ledger cannot tell a clock that was set forward while the store was closed from time that has passed.
bool Simulation::must_be_remembered(const ModelJob& job) const {
  const std::int64_t age_us =
      clock_.now().elapsed_us - job.finished_elapsed_us + clock_forward_us_ - job.clock_forward_us;
  return job.phase == Phase::kDone && age_us / 1000 + 1000 < options_.id_retention.count();
}

void Simulation::request() {
  const bool crowded = now_.jobs().size() > 120;
  struct Choice {
    std::uint64_t weight;
    void (Simulation::*run)();
  };
  const Choice choices[] = {{full_     ? 60u
                             : crowded ? 5u
                                       : 30u,
                             &Simulation::request_enqueue},
                            {40, &Simulation::request_settle},
                            {10, &Simulation::request_extend},
                            {2, &Simulation::request_mark_delivered},
                            {4, &Simulation::request_save_body},
                            {crowded ? 12u : 4u, &Simulation::request_cancel},
                            {4, &Simulation::request_reschedule},
                            {6, &Simulation::request_replay},
                            {2, &Simulation::request_pause},
                            {1, &Simulation::request_purge},
                            {2, &Simulation::request_list},
                            {6, &Simulation::request_look},
                            {subscribed_.size() < 3 ? 12u : 1u, &Simulation::request_subscribe},
                            {2, &Simulation::request_unsubscribe},
                            {3, &Simulation::request_credit}};
  std::uint64_t total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  std::uint64_t at = below(total);
  for (const Choice& choice : choices) {
    if (at < choice.weight) {
      (this->*choice.run)();
      return;
    }
    at -= choice.weight;
  }
}

void Simulation::request_enqueue() {
  std::vector<NewJob> made;
  std::vector<Job> jobs;
  std::vector<bool> valid;
  for (std::uint64_t left = chance(0.1) ? 1 + below(12) : 1 + below(3); left > 0; --left) {
    made.push_back(make_job(false));
    valid.push_back(!chance(0.01));
    if (!valid.back()) made.back().job.queue = "not a name";
    jobs.push_back(made.back().job);
  }
  // A job that is done may have been forgotten; nothing is forgotten by an enqueue.
  std::set<JobId> known;
  for (const Job& job : jobs) {
    if (!job.id.is_nil() && ledger_->state().find(job.id) != kNoSlot) known.insert(job.id);
  }
  const std::uint64_t fired = disk_.faults_fired();
  const std::uint64_t stored = ledger_->state().jobs();
  const engine::journal::Address end = ledger_->journal().end();
  const auto results = ledger_->enqueue(engine::EnqueueBatch::of(std::move(jobs), Time(Milliseconds(clock_.now().wall_us / 1000))));
  full_since_address_ += ledger_->journal().end() - end;  // The reserve is not for these.
  const bool fault_fired = disk_.faults_fired() != fired;
  expect(results.size() == made.size(), "not one result for each job");
  promised_ = true;
  for (std::size_t i = 0; i < made.size() && !crashed_; ++i) {
    NewJob& one = made[i];
    const auto& result = results[i];
    const auto refused_as = [&](ErrorCode code, Event event) {
      expect(!result && result.error().code == code, "an enqueue should be refused as " + std::string(to_string(code)) +
                                                         ", but it was " +
                                                         (result ? "accepted" : result.error().message));
      tally_.add(event);
    };
    note("enqueue", one.tag, result ? 0 : static_cast<std::uint64_t>(result.error().code) + 1, one.body.bytes);
    const ModelJob* same = one.job.id.is_nil() ? nullptr : now_.find(one.job.id);
    if (!valid[i]) {
      refused_as(ErrorCode::kInvalidArgument, Event::kEnqueuesInvalid);
    } else if (same != nullptr && (same->phase != Phase::kDone || known.contains(one.job.id))) {
      expect(result && result->existed && result->id == one.job.id, "an id that is there was not recognised");
      tally_.add(Event::kIdsThereAlready);
    } else if (result && result->existed && done_ids_.contains(one.job.id)) {
      tally_.add(Event::kIdsRemembered);
    } else if (same != nullptr && must_be_remembered(*same)) {
      expect(!result && may_fail(result.error(), fault_fired), "the id of done job " + std::to_string(same->tag) +
                                                                   " is not remembered");
    } else if (!(one.job.past && one.job.past->dead) && now_.holder(one.job.unique_key) != nullptr) {
      if (trace_) note("held by", now_.holder(one.job.unique_key)->tag);
      refused_as(ErrorCode::kAlreadyExists, Event::kJobsRefusedAsHeld);
    } else if (!result && result.error().code == ErrorCode::kDiskFull && (full_ || reserve_is_missing())) {
      tally_.add(Event::kDiskFullRefusals);
      if (committing_) tally_.add(Event::kDiskFullDuringCommits);
    } else if (!result && result.error().code == ErrorCode::kOverloaded && stored + i >= options_.max_jobs) {
      continue;
    } else if (!result) {
      expect(may_fail(result.error(), fault_fired), "an enqueue was refused: " + result.error().message);
    } else {
      expect(!result->existed, "an id is said to be there that is not");
      expect(one.job.id.is_nil() || one.job.id == result->id, "a job was given another id");
      expect(one.job.id.is_nil() == false || now_.find(result->id) == nullptr, "an id was given twice");
      one.job.id = result->id;
      now_.accept(one.job, one.tag, one.body, moment_);
      tally_.add(Event::kJobsConfirmed);
      if (one.job.past) tally_.add(one.job.past->dead ? Event::kDeadJobsCarried : Event::kJobsCarried);
    }
  }
}

void Simulation::request_settle() {
  struct Planned {
    std::vector<NewJob> effects = {};
    std::optional<BodyPlan> body = {};  // Of the result or of the retry.
    bool valid = true;
  };
  std::vector<Settlement> settlements;
  std::vector<Planned> plans;
  for (std::uint64_t left = 1 + below(4); left > 0; --left) {
    const std::uint64_t which = below(100);
    auto& from = which < 80 ? held_ : which < 90 ? stale_ : settled_;
    if (from.empty()) continue;
    const std::size_t index = below(from.size());
    const Held lease = from[index];
    Settlement settlement{.lease = {lease.id, lease.token}};
    Planned plan;
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        settlement.outcome = RetryAt{.after = Milliseconds(chance(0.3) ? 0 : between(1, 20'000)),
                                     .fault = chance(0.2) ? Fault::kTimedOut : Fault::kFailed,
                                     .error = "error " + std::to_string(lease.token)};
        if (chance(0.3)) {
          plan.body = BodyPlan{++last_tag_, static_cast<std::size_t>(below(2000))};
          std::get<RetryAt>(settlement.outcome).body = make_body(*plan.body);
        }
        break;
      case 3:
        settlement.outcome = Dead{.reason = chance(0.5) ? DeadReason::kRejected : DeadReason::kExhausted,
                                  .error = "dead " + std::to_string(lease.token)};
        break;
      case 4:
        settlement.outcome = Returned{.after = Milliseconds(chance(0.5) ? 0 : between(1, 5000)), .note = "back"};
        break;
      default:
        plan.body = BodyPlan{++last_tag_, static_cast<std::size_t>(chance(0.5) ? 0 : below(500))};
        settlement.outcome = Done{.result = make_body(*plan.body)};
        break;
    }
    for (std::uint64_t effects = chance(0.3) ? 1 + below(3) : 0; effects > 0; --effects) {
      plan.effects.push_back(make_job(true));
      settlement.effects.push_back(plan.effects.back().job);
    }
    if (!settlement.effects.empty() && chance(0.03)) {
      settlement.effects.back().priority = 1000;
      plan.valid = false;
    }
    settlements.push_back(std::move(settlement));
    plans.push_back(std::move(plan));
    if (&from == &held_ && plans.back().valid) {
      remember(settled_, lease);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  if (settlements.empty()) return;
  const std::uint64_t fired = disk_.faults_fired();
  const auto statuses = ledger_->settle(engine::SettleBatch::of(settlements, Time(Milliseconds(clock_.now().wall_us / 1000))));
  const bool fault_fired = disk_.faults_fired() != fired;
  expect(statuses.size() == settlements.size(), "not one status for each settlement");
  promised_ = true;
  for (std::size_t i = 0; i < statuses.size() && !crashed_; ++i) {
    apply_settled(settlements[i], plans[i].effects, plans[i].body, statuses[i], plans[i].valid, fault_fired);
  }
}

void Simulation::apply_settled(const Settlement& settlement, const std::vector<NewJob>& effects,
                               const std::optional<BodyPlan>& body, const Status& status, bool valid,
                               bool fault_fired) {
  const LeaseRef& lease = settlement.lease;
  const ModelJob* job = now_.find(lease.id);
  note("settle", job == nullptr ? 0 : job->tag, lease.token,
       (status ? 0 : static_cast<std::uint64_t>(status.error().code) + 1) * 10 + settlement.outcome.index());
  std::size_t bytes = body ? body->bytes : 0;
  for (const NewJob& effect : effects) bytes += effect.body.bytes;
  const bool too_large = full_ && bytes > options_.reserve_bytes / 4;
  const bool no_room = !status && status.error().code == ErrorCode::kDiskFull && too_large;
  if (no_room || (!status && may_fail(status.error(), fault_fired))) {
    // Not ours any more as far as the worker knows; if it is, it will be lost in time.
    remember(stale_, {lease.id, lease.token});
    return;
  }
  const auto refused_as = [&](ErrorCode code) {
    expect(!status && status.error().code == code, "a settle with token " + std::to_string(lease.token) + " of " +
                                                       (job == nullptr ? "no job" : "job " + std::to_string(job->tag)) +
                                                       " should be refused as " + std::string(to_string(code)) +
                                                       ", not " + code_of(status));
  };
  const bool is_done = std::holds_alternative<Done>(settlement.outcome);
  if (job != nullptr && job->phase == Phase::kDone && !status && status.error().code == ErrorCode::kNotFound) {
    const bool is_repeated = is_done && job->ended_token_known && job->ended_token == lease.token;
    expect(!is_repeated || !must_be_remembered(*job), "the settle that finished job " + std::to_string(job->tag) +
                                                          " is not remembered");
    now_.change(job->tag).seen_forgotten = true;  // Whether it may be is asked when all is compared.
    tally_.add(Event::kResultsForgotten);
    return;
  }
  // Said once more, also when the job is forgotten, or its id has been given again since.
  const bool is_of_another = job == nullptr || (job->token != lease.token && job->ended_token != lease.token);
  if (is_of_another && status && is_done && done_tokens_.contains(lease.token)) return;
  if (job == nullptr) return refused_as(ErrorCode::kNotFound);
  if (job->phase != Phase::kRunning || job->token != lease.token) {
    if (!job->ended_token_known && (status || status.error().code == ErrorCode::kLeaseLost)) return;
    if (job->ended_token == lease.token && job->ended_as == settlement.outcome.index()) {
      expect(status.has_value(), "a settle that was repeated is refused: " + code_of(status));
      tally_.add(Event::kRepeatedSettlesAccepted);
    } else {
      refused_as(ErrorCode::kLeaseLost);
      tally_.add(Event::kStaleSettlesRefused);
    }
    return;
  }
  if (!valid) {
    refused_as(ErrorCode::kInvalidArgument);
    tally_.add(Event::kSettlesInvalid);
    return;
  }
  expect(status.has_value(), "a settle is refused: " + code_of(status));
  if (full_) tally_.add(Event::kSettlesOnAFullDisk);
  if (!effects.empty()) tally_.add(Event::kSettlesWithEffects);
  const std::uint64_t tag = job->tag;
  const bool cancelled = job->cancel_requested;
  if (std::holds_alternative<Done>(settlement.outcome)) {
    now_.finish(tag, *body, moment_);
    // Without a step that the ledger has yet to follow: if it never does, the span counts as time that passed.
    now_.change(tag).clock_forward_us = clock_forward_us_ - std::max<std::int64_t>(0, moment_.wall_us - moment_.now_us);
    done_ids_.insert(lease.id);
    done_tokens_.insert(lease.token);
    tally_.add(Event::kSettledDone);
  } else if (const auto* dead = std::get_if<Dead>(&settlement.outcome)) {
    now_.die(tag, *dead, moment_, true);
    tally_.add(Event::kSettledDead);
  } else if (cancelled) {
    now_.remove(tag);
    tally_.add(Event::kCancelledWhileRunning);
  } else if (const auto* again = std::get_if<RetryAt>(&settlement.outcome)) {
    now_.retry(tag, *again, body, moment_, true);
    tally_.add(body ? Event::kSettledRetryWithBody : Event::kSettledRetry);
  } else {
    now_.give_back(tag, std::get<Returned>(settlement.outcome), moment_, true);
    tally_.add(Event::kSettledReturned);
  }
  for (const NewJob& effect : effects) {
    const ModelJob* same = effect.job.id.is_nil() ? nullptr : now_.find(effect.job.id);
    if (same != nullptr || now_.holder(effect.job.unique_key) != nullptr) continue;
    now_.accept(effect.job, effect.tag, effect.body, moment_);
  }
}

void Simulation::request_extend() {
  std::vector<LeaseRef> leases;
  for (std::uint64_t left = 1 + below(4); left > 0; --left) {
    const auto& from = chance(0.85) ? held_ : stale_;
    if (from.empty()) continue;
    const Held& lease = from[below(from.size())];
    leases.push_back({lease.id, lease.token});
  }
  const auto answers = ledger_->extend(leases);
  expect(answers.size() == leases.size(), "not one answer for each lease");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ModelJob* job = now_.find(leases[i].id);
    const bool valid = job != nullptr && job->phase == Phase::kRunning && job->token == leases[i].token;
    note("extend", leases[i].token, valid);
    expect(answers[i].lost != valid, "an extend says of a lease what is not so");
    if (!valid) {
      tally_.add(Event::kExtendsOfLostLeases);
      continue;
    }
    expect(answers[i].cancel_requested == job->cancel_requested, "an extend is wrong about a cancellation");
    ModelJob& changed = now_.change(job->tag);
    changed.deadline_elapsed_ms = moment_.elapsed_ms() + changed.lease_ms;
    tally_.add(Event::kLeasesExtended);
    learn_delivered(changed);
  }
}

void Simulation::request_mark_delivered() {
  std::vector<LeaseRef> leases;
  for (const Held& lease : held_) {
    if (chance(0.3)) leases.push_back({lease.id, lease.token});
  }
  if (!stale_.empty()) leases.push_back({stale_.back().id, stale_.back().token});
  (void)ledger_->mark_delivered(leases);
  for (const LeaseRef& lease : leases) {
    const ModelJob* job = now_.find(lease.id);
    if (job == nullptr || job->phase != Phase::kRunning || job->token != lease.token) continue;
    learn_delivered(now_.change(job->tag));
    tally_.add(Event::kLeasesMarkedDelivered);
  }
}

void Simulation::request_save_body() {
  const auto& from = chance(0.9) ? held_ : stale_;
  if (from.empty()) return;
  const Held lease = from[below(from.size())];
  const BodyPlan body{++last_tag_, static_cast<std::size_t>(below(3000))};
  const std::uint64_t fired = disk_.faults_fired();
  const Status status = ledger_->save_body({lease.id, lease.token}, make_body(body));
  if (crashed_) return;
  const ModelJob* job = now_.find(lease.id);
  const bool valid = job != nullptr && job->phase == Phase::kRunning && job->token == lease.token;
  note("save body", lease.token, valid, status ? 0 : static_cast<std::uint64_t>(status.error().code) + 1);
  if (!valid) {
    expect(!status, "a body was saved without a lease");
    return;
  }
  if (!status) {
    const bool full = status.error().code == ErrorCode::kDiskFull && (full_ || reserve_is_missing());
    expect(full || may_fail(status.error(), disk_.faults_fired() != fired), "a body is not saved: " + code_of(status));
    return;
  }
  ModelJob& changed = now_.change(job->tag);
  changed.body = body;
  changed.ended_token = 0;  // A settlement of an attempt before this one is not known any more.
  changed.ended_token_known = true;
  changed.delivered = changed.delivered || changed.outlives_process;
  promised_ = true;
  tally_.add(Event::kBodiesSaved);
}

// A full disk may have no room for the mark.
void Simulation::learn_delivered(ModelJob& job) {
  if (!job.outlives_process || job.delivered) return;
  const engine::Slot slot = ledger_->state().find(job.id);
  job.delivered = ledger_->state().leases()[ledger_->state()[slot].next].delivered;
  expect(job.delivered || has_no_reserve() || planned_ || crashed_, "a lease is not marked as delivered");
}

}  // namespace bide::simulation
