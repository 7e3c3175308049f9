#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "bide/wait.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/topics.h"

namespace bide::engine {

// Applied, and perhaps written, but the commit failed: whatever the disk said of it, nobody knows what will be there.
Error unconfirmed(const Error& error) {
  return {ErrorCode::kUnconfirmed, "the store failed before this was confirmed: " + error.message};
}
Error not_begun(const Error& error) { return {ErrorCode::kUnavailable, "the store has failed: " + error.message}; }

namespace {

// Housekeeping begins when nobody has asked for anything for so long, or after so many steps without such a moment.
constexpr std::int64_t kQuietUs = 10'000;
constexpr std::uint64_t kStepsBetweenTidying = 64;
constexpr std::uint64_t kStepsBetweenPieces = 4;

// A commit smaller than this is done sooner by the engine's own thread than by another.
constexpr std::size_t kWorthAThread = 16 << 10;
// With so much collected, the step before it is waited for.
constexpr std::size_t kMostCollected = 4 << 20;

constexpr int kExitIoError = 74;

void exit_on_failure(const Error& error) {
  std::fprintf(stderr, "bide: error: the store failed and nothing more can be confirmed: %s\n", error.message.c_str());
  std::_Exit(kExitIoError);
}

void print_damage(const Damage& damage) {
  std::fprintf(stderr, "bide: warning: the store is damaged: %s\n", damage.text.c_str());
}

class EngineSubscription : public Subscription {
 public:
  EngineSubscription(std::shared_ptr<RequestQueue> requests, std::uint32_t number,
                     std::array<std::thread::id, 2> completing_threads, std::shared_ptr<std::atomic<bool>> ended)
      : requests_(std::move(requests)),
        number_(number),
        completing_threads_(completing_threads),
        ended_(std::move(ended)) {}

  ~EngineSubscription() override {
    *ended_ = true;
    const auto end = [this](Completion<void> done) {
      Request request{[number = number_](Ledger& ledger) { ledger.unsubscribe(number); },
                      [done](const Status& status) { done(status); }};
      if (!requests_->post(std::move(request))) done({});
    };
    // A thread that runs completions cannot wait for one, and need not.
    const auto itself = std::find(completing_threads_.begin(), completing_threads_.end(), std::this_thread::get_id());
    if (itself != completing_threads_.end()) {
      end([](const Status&) {});
    } else {
      (void)wait<void>(end);
    }
  }

  void set_credit(int credit) override {
    requests_->post({[number = number_, credit](Ledger& ledger) { ledger.set_credit(number, credit); }, nullptr});
  }
  void set_delivery_limit(std::uint64_t deliveries) override {
    requests_->post(
        {[number = number_, deliveries](Ledger& ledger) { ledger.set_delivery_limit(number, deliveries); }, nullptr});
  }

 private:
  const std::shared_ptr<RequestQueue> requests_;
  const std::uint32_t number_;
  const std::array<std::thread::id, 2> completing_threads_;
  const std::shared_ptr<std::atomic<bool>> ended_;
};

Error too_many_waiting() {
  return Error{ErrorCode::kOverloaded, "too many jobs are waiting to be written: try again in a moment"};
}

Error too_large(std::uint64_t bytes, std::uint64_t most) {
  return Error{ErrorCode::kInvalidArgument, "one call has " + std::to_string(bytes) + " bytes to be written; at most " +
                                                std::to_string(most) + " are taken: make several calls"};
}

Status check_subscription(const SubscribeOptions& options) {
  const auto wrong = [](std::string text) { return Error{ErrorCode::kInvalidArgument, std::move(text)}; };
  if (options.queues.empty()) return wrong("queues: at least one is needed");
  for (const QueueShare& share : options.queues) {
    if (!core::is_name(share.name)) return wrong("queue " + core::quoted(share.name) + " is not a valid name");
    if (share.weight < 1 || share.weight > 1000) return wrong("weight of queue " + share.name + ": 1 to 1000");
  }
  for (const std::string& kind : options.kinds) {
    if (core::is_pattern(kind)) continue;
    return wrong("kind " + core::quoted(kind) + " is neither a name nor a pattern such as mail.*");
  }
  if (options.credit < 0 || options.credit > 1'000'000) return wrong("credit: 0 to 1000000");
  if (options.handlers < 0) return wrong("handlers: not negative");
  if (options.lease < Milliseconds(100) || options.lease > std::chrono::hours(24)) return wrong("lease: 100ms to 24h");
  return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
  if (options.disk == nullptr) options.disk = &platform::real_disk();
  if (options.clock == nullptr) options.clock = &platform::real_clock();
  auto random = std::make_unique<platform::SystemRandom>();
  if (options.random == nullptr) options.random = random.get();
  if (!options.on_fatal) options.on_fatal = exit_on_failure;
  if (!options.on_damage) options.on_damage = print_damage;
  // A file that may not grow to this size would be full for ever.
  const std::uint64_t largest_file = platform::file_size_limit();
  options.segment_bytes = std::min(options.segment_bytes, largest_file / 2);
  options.reserve_bytes = std::min(options.reserve_bytes, largest_file);
  auto ledger = Ledger::open(options);
  if (!ledger) return ledger.error();
  return std::unique_ptr<Engine>(new Engine(std::move(options), std::move(random), std::move(*ledger)));
}

Engine::Engine(EngineOptions options, std::unique_ptr<platform::Random> random, std::unique_ptr<Ledger> ledger)
    : options_(std::move(options)),
      random_(std::move(random)),
      virtual_time_(options_.clock != &platform::real_clock()),
      open_report_(ledger->open_report()),
      clock_watch_(options_.clock->watch([requests = requests_] { requests->wake(); })),
      ledger_(std::move(ledger)),
      committer_([requests = requests_] { requests->wake(); }),
      thread_([this] { run(); }) {}

Engine::~Engine() {
  const std::thread::id caller = std::this_thread::get_id();
  platform::require(caller != thread_.get_id() && caller != completions_.thread_id() && !reads_.is_own_thread(),
                    "an engine is closed by a completion or a sink of its own, which it would wait for");
  requests_->close();
  thread_.join();
  reads_.stop();
}

void Engine::run() {
  std::vector<Request> requests;
  bool open = true;
  while (open) {
    open = requests_->take(requests, time_to_sleep(), !committing_);
    run_step(requests);
    requests.clear();
  }
  while (!failure_ && (ledger_->has_tasks() || committing_)) run_step(requests);
  completions_.wait_until_idle();
  ledger_->abandon(failure_.value_or(Error{ErrorCode::kUnavailable, "the engine was closed"}));
  // The committer may still be deleting segments; the ledger holds the lock of the directory.
  committer_.wait_until_idle();
  ledger_.reset();
}

void Engine::run_step(std::vector<Request>& requests) {
  const bool busy = !requests.empty();
  Status went_well = failure_ ? Status(*failure_) : Status();
  // A new segment can only begin between batches; some requests must not run during a commit.
  const bool alone = std::any_of(requests.begin(), requests.end(), [](const Request& request) { return request.alone; });
  if (went_well && committing_ && (alone || ledger_->journal().segment_full())) went_well = finish_commit();
  if (went_well) went_well = collect(requests);
  const bool full = ledger_->journal().batch_bytes() > kMostCollected;
  if (went_well && committing_ && (committer_.is_done() || full || requests_->is_closed())) went_well = finish_commit();
  if (went_well && !committing_) went_well = commit();
  if (went_well && committed_) complete(*std::exchange(committed_, std::nullopt), {});
  if (went_well && !committing_) complete(std::exchange(collected_, {}), {});
  if (went_well) {
    std::lock_guard lock(mutex_);
    pressure_ = ledger_->pressure();
  }

  const std::int64_t now_us = options_.clock->now().elapsed_us;
  if (busy) busy_until_us_ = now_us + kQuietUs;
  const bool quiet = now_us >= busy_until_us_ || virtual_time_;
  if (went_well && (quiet || ledger_->is_snapshot_behind() ||
                    steps_ % (more_to_tidy_ ? kStepsBetweenPieces : kStepsBetweenTidying) == 0)) {
    went_well = tidy(!quiet);
  }
  if (went_well) return;

  if (!failure_) fail(went_well.error());
  if (committed_) complete(*std::exchange(committed_, std::nullopt), {});
  if (committing_) {
    (void)ledger_->end_commit(committer_.wait());
    complete(*std::exchange(committing_, std::nullopt), went_well);
  }
  keep(requests);
  complete(std::exchange(collected_, {}), went_well);
}

// Completed with the step that is being collected.
void Engine::keep(std::vector<Request>& requests) {
  collected_.requests.insert(collected_.requests.end(), std::make_move_iterator(requests.begin()),
                             std::make_move_iterator(requests.end()));
  requests.clear();
}

// Applies the requests and whatever has become due. The requests are moved from.
Status Engine::collect(std::vector<Request>& requests) {
  if (Status begun = ledger_->begin(); !begun) return begun;
  for (Request& request : requests) {
    if (request.run) request.run(*ledger_);
    // A batch of the journal has less than 4 GiB. What was asked for before is one by itself.
    if (ledger_->journal().batch_bytes() < options_.call_bytes) continue;
    if (committing_) {
      if (Status finished = finish_commit(); !finished) return finished;
    }
    if (Status written = ledger_->write(); !written) return written;
  }
  keep(requests);
  if (Status expired = ledger_->expire_leases(); !expired) return expired;
  auto deliveries = ledger_->grant();
  if (!deliveries) return deliveries.error();
  if (!deliveries->empty()) busy_until_us_ = options_.clock->now().elapsed_us + kQuietUs;
  for (Delivery& delivery : *deliveries) collected_.deliveries.push_back(std::move(delivery));
  for (auto& callback : ledger_->take_callbacks()) collected_.callbacks.push_back(std::move(callback));
  return {};
}

// Runs on the thread that commits.
Status Engine::timed(const std::function<Status()>& commit) const {
  if (!options_.on_commit) return commit();
  const std::int64_t begun_us = options_.clock->now().elapsed_us;
  Status committed = commit();
  if (committed) options_.on_commit(std::chrono::microseconds(options_.clock->now().elapsed_us - begun_us));
  return committed;
}

// A large commit that must be synced goes to the committer; a small one is faster on this thread.
Status Engine::commit() {
  ++steps_;
  const std::size_t bytes = ledger_->journal().batch_bytes();
  if (bytes < kWorthAThread || !ledger_->needs_sync()) {
    Status committed = bytes == 0 ? ledger_->commit() : timed([this] { return ledger_->commit(); });
    if (committed) ledger_->take_garbage()();
    return committed;
  }
  committer_.start([this, commit = ledger_->begin_commit()] { return timed(commit); }, ledger_->take_garbage());
  committing_ = std::exchange(collected_, {});
  committing_->is_large = true;
  return {};
}

Status Engine::finish_commit() {
  Status outcome = ledger_->end_commit(committer_.wait());
  Step step = *std::exchange(committing_, std::nullopt);
  if (outcome) {
    committed_ = std::move(step);
  } else {
    complete(std::move(step), outcome);
  }
  return outcome;
}

// The completions of a large step run on the completion thread, those of a small one on this thread if nothing is
// queued there: completions run in the order of their steps, one at a time.
void Engine::complete(Step step, const Status& committed) {
  if (step.requests.empty() && step.deliveries.empty() && step.callbacks.empty()) return;
  if (!step.is_large && completions_.is_idle()) {
    run_completions(step, committed);
  } else {
    completions_.add(
        [this, shared = std::make_shared<Step>(std::move(step)), committed] { run_completions(*shared, committed); });
  }
}

// Leases first: after the end of a subscription has been completed, its sink is not called again.
void Engine::run_completions(Step& step, const Status& committed) const {
  if (committed) {
    for (Delivery& delivery : step.deliveries) {
      const Milliseconds age((options_.clock->now().elapsed_us - delivery.granted_us + 999) / 1000);
      for (Lease& lease : delivery.leases) lease.age = age;
      delivery.sink(std::move(delivery.leases));
    }
  }
  for (Request& request : step.requests) {
    if (request.finish) request.finish(committed);
  }
  for (const auto& callback : step.callbacks) callback(committed);
}

Status Engine::tidy(bool busy) {
  if (committing_) {
    // Records may have been collected since; only writing the snapshot is allowed between them.
    if (ledger_->is_writing_snapshot()) {
      auto more = ledger_->write_snapshot();
      if (!more) return more.error();
      more_to_tidy_ = *more;
      return {};
    }
    if (!ledger_->journal().batch_empty()) return {};
    if (Status synced = finish_commit(); !synced) return synced;
    complete(*std::exchange(committed_, std::nullopt), {});
  }
  auto more = ledger_->tidy(busy);
  if (!more) return more.error();
  if (!busy) ledger_->take_garbage()();
  more_to_tidy_ = *more;
  if (!more_to_tidy_ && !busy) busy_until_us_ = 0;
  return {};
}

void Engine::fail(const Error& error) {
  failure_ = error;
  {
    std::lock_guard lock(mutex_);
    pressure_ = {Pressure::Level::kBlocked, "the store failed: " + error.message, Milliseconds(0), Pressure::Cause::kDisk};
  }
  completions_.wait_until_idle();
  ledger_->abandon(unconfirmed(error));
  options_.on_fatal(error);
}

std::optional<std::chrono::microseconds> Engine::time_to_sleep() const {
  if (failure_) return std::nullopt;
  if (committing_) return std::nullopt;  // The committer wakes us.
  if (more_to_tidy_) return std::chrono::microseconds(0);
  std::optional<std::int64_t> wake = ledger_->next_wake_us();
  const std::int64_t now_us = options_.clock->now().elapsed_us;
  if (virtual_time_) {
    // Nobody but the test moves this clock, and then it wakes us.
    if (wake && *wake <= now_us) return std::chrono::microseconds(0);
    return std::nullopt;
  }
  if (busy_until_us_ != 0) wake = std::min(wake.value_or(busy_until_us_), busy_until_us_);
  if (!wake) return std::nullopt;
  return std::chrono::microseconds(std::max<std::int64_t>(0, *wake - now_us));
}

void Engine::wait_until_idle() {
  do {
    requests_->wait_until_idle();
    completions_.wait_until_idle();
    reads_.wait_until_idle();
  } while (!requests_->is_idle());  // A completion may have posted a request.
}

void Engine::tidy_up() {
  for (bool more = true; more;) {
    const auto answer = wait<bool>([this](auto done) {
      auto result = std::make_shared<Result<bool>>(false);
      Request request{[result](Ledger& ledger) { *result = ledger.tidy(); },
                      [result, done](const Status& committed) {
                        done(committed ? std::move(*result) : Result<bool>(committed.error()));
                      }};
      request.alone = true;
      if (!requests_->post(std::move(request))) done(false);
    });
    more = answer && *answer;
  }
}

Engine::DiskUse Engine::disk_use() {
  return wait<DiskUse>([this](auto done) {
           submit<DiskUse>(std::move(done), [](Ledger& ledger) {
             return DiskUse{ledger.journal().disk_bytes(), ledger.state().live_bytes().total()};
           });
         })
      .value_or(DiskUse{});
}

Time Engine::wall_time() const { return Time(Milliseconds(options_.clock->now().wall_us / 1000)); }

void Engine::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  if (requests_->bytes() > options_.queued_bytes) return done(too_many_waiting());
  EnqueueBatch batch = EnqueueBatch::of(std::move(jobs), wall_time());
  const std::uint64_t bytes = batch.bytes();
  if (bytes > options_.call_bytes) return done(too_large(bytes, options_.call_bytes));
  submit<std::vector<Result<Enqueued>>>(
      std::move(done),
      [batch = std::move(batch)](Ledger& ledger) mutable { return ledger.enqueue(std::move(batch)); }, bytes);
}

void Engine::publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) {
  if (requests_->bytes() > options_.queued_bytes) return done(too_many_waiting());
  EventBatch batch = EventBatch::of(std::move(events), wall_time());
  const std::uint64_t bytes = batch.bytes();
  if (bytes > options_.call_bytes) return done(too_large(bytes, options_.call_bytes));
  submit<std::vector<Result<Published>>>(
      std::move(done),
      [batch = std::move(batch)](Ledger& ledger) mutable { return ledger.publish(std::move(batch)); }, bytes);
}

Result<std::unique_ptr<Subscription>> Engine::subscribe(SubscribeOptions options, LeaseSink sink) {
  if (Status checked = check_subscription(options); !checked) return checked.error();
  const std::uint32_t number = ++last_subscription_;
  // Leases that were given while the subscription was being ended go back.
  auto ended = std::make_shared<std::atomic<bool>>(false);
  LeaseSink deliver = [ended, requests = requests_, sink = std::move(sink)](std::vector<Lease> leases) {
    if (!*ended) {
      sink(std::move(leases));
      return;
    }
    std::vector<LeaseRef> back;
    for (const Lease& lease : leases) back.push_back({lease.job.id, lease.token});
    requests->post(
        {[back = std::move(back)](Ledger& ledger) { (void)ledger.end_leases(back, WorkerEnd::kStopped); }, nullptr});
  };
  Request request{[number, options = std::move(options), deliver = std::move(deliver)](Ledger& ledger) {
                    ledger.subscribe(number, options, deliver);
                  },
                  nullptr};
  if (!requests_->post(std::move(request))) return Error{ErrorCode::kUnavailable, "the engine is closed"};
  return std::unique_ptr<Subscription>(
      new EngineSubscription(requests_, number, {thread_.get_id(), completions_.thread_id()}, std::move(ended)));
}

void Engine::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  submit<std::vector<Extended>>(std::move(done),
                                [leases = std::move(leases)](Ledger& ledger) { return ledger.extend(leases); });
}

void Engine::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  SettleBatch batch = SettleBatch::of(std::move(settlements), wall_time());
  if (batch.bytes() > options_.call_bytes) return done(too_large(batch.bytes(), options_.call_bytes));
  submit<std::vector<Status>>(std::move(done), [batch = std::move(batch)](Ledger& ledger) mutable {
    return ledger.settle(std::move(batch));
  });
}

void Engine::mark_delivered(std::vector<LeaseRef> leases) {
  if (leases.empty()) return;
  requests_->post({[leases = std::move(leases)](Ledger& ledger) { (void)ledger.mark_delivered(leases); }, nullptr});
}

void Engine::save_body(LeaseRef lease, std::string body, Completion<void> done) {
  const std::uint64_t bytes = body.size();
  submit<void>(
      std::move(done),
      [lease, body = std::move(body)](Ledger& ledger) mutable { return ledger.save_body(lease, std::move(body)); },
      bytes);
}

void Engine::save_step(LeaseRef lease, bide::Step step, Completion<void> done) {
  const std::uint64_t bytes = step.result.size();
  submit<void>(
      std::move(done),
      [lease, step = std::move(step)](Ledger& ledger) mutable { return ledger.save_step(lease, std::move(step)); }, bytes);
}

void Engine::report_progress(LeaseRef lease, Progress progress) {
  requests_->post({[lease, progress = std::move(progress)](Ledger& ledger) mutable {
                     ledger.report_progress(lease, std::move(progress));
                   },
                   nullptr});
}

void Engine::end_leases(std::vector<LeaseRef> leases, WorkerEnd how, Completion<void> done) {
  submit<void>(std::move(done),
               [leases = std::move(leases), how](Ledger& ledger) { return ledger.end_leases(leases, how); });
}

Pressure Engine::pressure() const {
  const std::uint64_t waiting = requests_->bytes();
  std::lock_guard lock(mutex_);
  if (pressure_.level == Pressure::Level::kOk && waiting > options_.queued_bytes / 2) {
    return {Pressure::Level::kHigh, "jobs come faster than the disk takes them", Milliseconds(10), Pressure::Cause::kDisk};
  }
  return pressure_;
}

Capabilities Engine::capabilities() const {
  Capabilities capabilities;
  capabilities.carries_past = true;
  capabilities.save_body = true;
  capabilities.events = true;
  capabilities.group_limits = true;
  capabilities.queue_rules = true;
  capabilities.kinds = true;
  capabilities.edit = true;
  capabilities.dependencies = true;
  capabilities.unique_windows = true;
  capabilities.steps = true;
  capabilities.progress = true;
  capabilities.schedules = true;
  capabilities.virtual_time = virtual_time_;
  return capabilities;
}

}  // namespace bide::engine
