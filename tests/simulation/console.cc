// Simulation, the requests of people and of subscribers: looking around, putting right by hand, coming and going.

#include <algorithm>
#include <iterator>

#include "simulation/simulation.h"

namespace bide::simulation {

namespace {

std::string code_of(const Status& status) {
  return status ? "success" : std::string(to_string(status.error().code)) + " (" + status.error().message + ")";
}

}  // namespace

void Simulation::request_cancel() {
  std::vector<JobId> ids;
  for (std::uint64_t left = 1 + below(3); left > 0; --left) {
    const ModelJob* job = pick_job([](const ModelJob&) { return true; });
    if (job != nullptr) ids.push_back(job->id);
  }
  if (!ids_.empty() && chance(0.2)) ids.push_back(ids_[below(ids_.size())]);
  const std::uint64_t fired = disk_.faults_fired();
  const auto statuses = ledger_->cancel(ids);
  const bool fault_fired = disk_.faults_fired() != fired;
  for (std::size_t i = 0; i < statuses.size() && !crashed_; ++i) {
    const ModelJob* job = now_.find(ids[i]);
    const Status& status = statuses[i];
    note("cancel", job == nullptr ? 0 : job->tag, status ? 0 : static_cast<std::uint64_t>(status.error().code) + 1);
    const auto refused_as = [&status](ErrorCode code) { return !status && status.error().code == code; };
    if (job == nullptr) {
      expect(refused_as(ErrorCode::kNotFound), "a job that is not there was cancelled: " + code_of(status));
    } else if (job->phase == Phase::kDone) {
      expect(refused_as(ErrorCode::kNotFound) || refused_as(ErrorCode::kWrongState), "a done job was cancelled");
    } else if (!status) {
      expect(may_fail(status.error(), fault_fired), "a cancel is refused: " + code_of(status));
    } else if (job->phase == Phase::kRunning) {
      now_.change(job->tag).cancel_requested = true;
      promised_ = true;
    } else {
      now_.remove(job->tag);
      promised_ = true;
      tally_.add(Event::kCancelled);
    }
  }
}

void Simulation::request_reschedule() {
  const ModelJob* job = pick_job([](const ModelJob&) { return true; });
  if (job == nullptr) return;
  const Time due(Milliseconds(moment_.wall_ms() + (chance(0.7) ? between(-1000, 10'000) : between(0, 86'400'000))));
  const std::uint64_t fired = disk_.faults_fired();
  const Status status = ledger_->reschedule(job->id, due);
  note("reschedule", job->tag, status ? 0 : static_cast<std::uint64_t>(status.error().code) + 1);
  if (!status && may_fail(status.error(), disk_.faults_fired() != fired)) return;
  if (job->phase == Phase::kDone) {
    expect(!status, "a done job was rescheduled");
  } else if (job->phase != Phase::kWaiting) {
    expect(!status && status.error().code == ErrorCode::kWrongState, "rescheduled: " + code_of(status));
  } else {
    expect(status.has_value(), "a reschedule is refused: " + code_of(status));
    now_.reschedule(job->tag, due, moment_);
    promised_ = true;
    tally_.add(Event::kRescheduled);
  }
}

void Simulation::request_replay() {
  const ModelJob* job = pick_job([](const ModelJob& one) { return one.phase == Phase::kDead; });
  if (job == nullptr || chance(0.05)) job = pick_job([](const ModelJob&) { return true; });
  if (job == nullptr) return;
  const ReplayOptions options{.keep_attempts = chance(0.4), .delay = Milliseconds(chance(0.6) ? 0 : between(1, 5000))};
  const std::uint64_t fired = disk_.faults_fired();
  const Status status = ledger_->replay({job->id}, options).front();
  note("replay", job->tag, status ? 0 : static_cast<std::uint64_t>(status.error().code) + 1);
  promised_ = true;
  if (!status && may_fail(status.error(), disk_.faults_fired() != fired)) return;
  if (job->phase != Phase::kDead) {
    expect(!status, "a job that is not dead was replayed");
  } else if (now_.holder(job->rules->unique_key) != nullptr) {
    expect(!status && status.error().code == ErrorCode::kAlreadyExists, "replayed: " + code_of(status));
    tally_.add(Event::kReplaysRefusedByKey);
  } else {
    expect(status.has_value(), "a replay is refused: " + code_of(status));
    now_.replay(job->tag, options.keep_attempts, options.delay, moment_);
    tally_.add(options.keep_attempts ? Event::kReplayedKeepingAttempts : Event::kReplayed);
  }
}

void Simulation::request_pause() {
  const std::string queue = any_queue();
  const bool paused = !now_.is_paused(queue) && chance(0.6);
  const std::uint64_t fired = disk_.faults_fired();
  const Status status = ledger_->pause(queue, paused);
  note(paused ? "pause" : "resume", static_cast<std::uint64_t>(queue[0]));
  if (!status) {
    expect(may_fail(status.error(), disk_.faults_fired() != fired), "a pause is refused: " + code_of(status));
    return;
  }
  now_.pause(queue, paused);
  promised_ = true;
  tally_.add(Event::kPauses);
}

void Simulation::request_purge() {
  if (is_auditing()) return;
  Task task{.is_purge = true, .queue = any_queue()};
  task.purged = std::make_shared<std::optional<std::uint64_t>>();
  ledger_->purge(task.queue, [answer = task.purged](Result<std::uint64_t> result) {
    if (result) *answer = *result;
  });
  // A queue that nobody ever named has no task.
  const auto queues = ledger_->queues();
  if (std::any_of(queues.begin(), queues.end(), [&](const QueueInfo& info) { return info.name == task.queue; })) {
    tasks_.push_back(std::move(task));
  }
}

void Simulation::request_list() {
  if (is_auditing()) return;
  Task task;
  task.page = std::make_shared<std::optional<Result<JobPage>>>();
  for (const JobState state :
       {JobState::kScheduled, JobState::kReady, JobState::kRunning, JobState::kDead, JobState::kDone}) {
    if (chance(0.4)) task.states.push_back(state);
  }
  if (task.states.empty()) task.states.push_back(JobState::kDead);
  ledger_->list({.states = task.states}, "", 1000,
                [answer = task.page](Result<JobPage> page) { answer->emplace(std::move(page)); });
  tasks_.push_back(std::move(task));
}

void Simulation::request_look() {
  const ModelJob* job = pick_job([](const ModelJob& one) { return !one.seen_forgotten; });
  if (job == nullptr || planned_) return;
  const auto info = ledger_->find(job->id);
  if (!info) {
    expect(info.error().code == ErrorCode::kNotFound && job->phase == Phase::kDone,
           "job " + std::to_string(job->tag) + " cannot be found: " + info.error().message);
    now_.change(job->tag).seen_forgotten = true;
    tally_.add(Event::kResultsForgotten);
    return;
  }
  if (const auto found = difference(*info, *job, moment_)) violated(*found);
  const auto why = ledger_->explain(job->id);
  expect(why.has_value() && !why->code.empty() && !why->text.empty(), "a job is not explained");
  expect((why->code == "running") == (job->phase == Phase::kRunning) &&
             (why->code == "done") == (job->phase == Phase::kDone) &&
             (why->code == "dead") == (job->phase == Phase::kDead),
         "job " + std::to_string(job->tag) + " is explained as " + why->code);
}

void Simulation::request_subscribe() {
  SubscribeOptions options{.queues = {}, .credit = static_cast<int>(1 + below(12))};
  Subscribed subscribed;
  for (const char* queue : kQueues) {
    if (!chance(is_rare(queue) ? 0.3 : 0.6)) continue;
    options.queues.push_back({queue, static_cast<int>(1 + below(3))});
    subscribed.queues.emplace_back(queue);
  }
  if (options.queues.empty()) return;
  options.lease = Milliseconds(chance(0.5) ? between(100, 2000) : between(1000, 60'000));
  options.worker = "worker " + std::to_string(below(3));
  options.outlives_process = chance(0.3);
  subscribed.credit = options.credit;
  subscribed.lease_ms = static_cast<std::uint32_t>(options.lease.count());
  subscribed.outlives_process = options.outlives_process;
  const std::uint32_t number = ++last_subscription_;
  ledger_->subscribe(number, options, [](const std::vector<Lease>&) {});
  subscribed_[number] = std::move(subscribed);
  note("subscribe", number, static_cast<std::uint64_t>(options.credit));
}

void Simulation::request_unsubscribe() {
  if (subscribed_.size() < 2) return;
  const auto at = std::next(subscribed_.begin(), static_cast<std::ptrdiff_t>(below(subscribed_.size())));
  note("unsubscribe", at->first);
  ledger_->unsubscribe(at->first);
  subscribed_.erase(at);
  tally_.add(Event::kUnsubscribes);
}

void Simulation::request_credit() {
  if (subscribed_.empty()) return;
  const auto at = std::next(subscribed_.begin(), static_cast<std::ptrdiff_t>(below(subscribed_.size())));
  at->second.credit = static_cast<int>(below(12));
  note("credit", at->first, static_cast<std::uint64_t>(at->second.credit));
  ledger_->set_credit(at->first, at->second.credit);
}

}  // namespace bide::simulation
