#include "worker/handler_threads.h"

#include <algorithm>
#include <system_error>

#include "bide/wait.h"

namespace bide::worker {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kHurry{200};  // Left to a handler after a second signal.
constexpr milliseconds kLastSettles{500};

int concurrency_of(const WorkerOptions& options) {
  if (options.concurrency > 0) return options.concurrency;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

HandlerThreads::HandlerThreads(const Setup& setup, std::shared_ptr<Broker> broker, OnFailed on_failed)
    : options_(setup.options),
      concurrency_(concurrency_of(setup.options)),
      on_failed_(std::move(on_failed)),
      broker_(std::move(broker)),
      runner_(setup),
      settler_(*broker_, runner_, held_) {}

HandlerThreads::~HandlerThreads() = default;

Result<std::shared_ptr<HandlerThreads>> HandlerThreads::start(const Setup& setup, std::shared_ptr<Broker> broker,
                                                              OnFailed on_failed) {
  std::shared_ptr<HandlerThreads> threads(new HandlerThreads(setup, std::move(broker), std::move(on_failed)));
  threads->settler_.set_owner(threads);
  threads->link_->keep_alive = [weak = std::weak_ptr(threads)] {
    const std::shared_ptr<HandlerThreads> alive = weak.lock();
    if (!alive) return;
    std::lock_guard lock(alive->mutex_);
    alive->extend_now_ = true;
    alive->woken_ = true;
    alive->timekeeper_woken_.notify_one();
  };
  // A handler may outlive the worker's broker.
  threads->link_->save_body = [weak = std::weak_ptr<Broker>(threads->broker_)](LeaseRef lease,
                                                                               std::string body) -> Status {
    const std::shared_ptr<Broker> alive = weak.lock();
    if (!alive) return Error{ErrorCode::kUnavailable, "the worker has ended"};
    return wait<void>([&](auto done) { alive->save_body(lease, std::move(body), std::move(done)); });
  };
  const Capabilities can = threads->broker_->capabilities();
  if (can.steps) {
    threads->link_->save_step = [weak = std::weak_ptr<Broker>(threads->broker_)](LeaseRef lease, Step step) -> Status {
      const std::shared_ptr<Broker> alive = weak.lock();
      if (!alive) return Error{ErrorCode::kUnavailable, "the worker has ended"};
      return wait<void>([&](auto done) { alive->save_step(lease, std::move(step), std::move(done)); });
    };
  }
  if (can.progress) {
    threads->link_->report_progress = [weak = std::weak_ptr<Broker>(threads->broker_)](LeaseRef lease, Progress progress) {
      if (const std::shared_ptr<Broker> alive = weak.lock()) alive->report_progress(lease, std::move(progress));
    };
  }
  threads->link_->find = setup.find;
  threads->link_->request = setup.request;
  try {
    threads->timekeeper_ = std::thread([raw = threads.get()] { raw->run_timekeeper(); });
    std::lock_guard lock(threads->mutex_);
    for (int i = 0; i < threads->concurrency_; ++i) threads->add_thread();
  } catch (const std::system_error& error) {
    threads->stop();
    return Error{ErrorCode::kOverloaded, "cannot start the worker's threads: " + std::string(error.what())};
  }
  if (Status subscribed = threads->subscribe(); !subscribed) {
    threads->stop();
    return subscribed.error();
  }
  return threads;
}

Status HandlerThreads::subscribe() {
  const int handlers = runner_.has_coroutines() ? std::max(concurrency_, wanted_credit()) : concurrency_;
  SubscribeOptions wanted{.queues = {}, .handlers = handlers, .lease = options_.lease, .worker = runner_.name()};
  for (const WorkerQueue& queue : options_.queues) wanted.queues.push_back({queue.name, queue.weight});
  // Where the broker minds it, no job comes that would be given back.
  if (broker_->capabilities().kinds) wanted.kinds = runner_.kinds();
  {
    std::lock_guard lock(mutex_);
    wanted.credit = credit_ = wanted_credit();
  }
  wanted.on_failed = [this](const Error& error) {
    {
      std::lock_guard lock(mutex_);
      refused_ = true;
    }
    on_failed_(error);
  };
  // The subscription ends before the worker does, and with it the calls of the sink.
  auto subscription =
      broker_->subscribe(std::move(wanted), [this](std::vector<Lease> leases) { take(std::move(leases)); });
  if (!subscription) return subscription.error();
  {
    std::lock_guard lock(subscription_mutex_);
    subscription_ = std::move(*subscription);
  }
  wake_timekeeper();  // The credit may want to be another by now.
  return {};
}

void HandlerThreads::take(std::vector<Lease> leases) {
  if (leases.empty()) return;
  std::size_t bytes = 0;
  Milliseconds age{0};
  for (const Lease& lease : leases) {
    bytes += lease.job.body.size();
    age = std::max(age, lease.age);
  }
  typical_bytes_.store((typical_bytes_.load() * 7 + bytes / leases.size()) / 8);

  const Moment now = steady_clock::now();
  auto batch = std::make_shared<LeaseBatch>(std::move(leases), now - age, link_);
  const Moment look = std::min(batch->earliest_deadline(), now + kCheckPeriod);
  held_.add(batch);
  queue_.add(std::move(batch));
  // After it is held: either the timekeeper's round finds the batch, or we find its plan.
  if (look < planned_.load()) wake_timekeeper();
}

// With the mutex held.
void HandlerThreads::add_thread() {
  std::thread([threads = shared_from_this()] { threads->work(); }).detach();
  ++threads_;
}

void HandlerThreads::work() {
  std::shared_ptr<LeaseBatch> batch_of_thread;
  bool had_coroutine = false;
  while (true) {
    settler_.wait_for_room();
    Resumption resumption;
    Attempt* attempt = queue_.claim(batch_of_thread, &resumption, had_coroutine);
    if (attempt == nullptr && resumption.attempt == nullptr) break;
    had_coroutine = attempt == nullptr;
    if (attempt == nullptr) {
      attempt = &resumption.attempt->attempt();
      go_on(resumption);
    } else if (attempt->lost()) {
      settler_.drop(*attempt);
      continue;
    } else {
      attempt->start();
      started_.fetch_add(1, std::memory_order_relaxed);
      // The batch may be left before a coroutine of it has ended.
      if (const TaskHandler* handler = runner_.coroutine_for(*attempt)) {
        const std::shared_ptr<LeaseBatch> batch = batch_of_thread;
        begin_coroutine(*handler, *attempt, batch);
        if (!must_exit(*attempt)) continue;
        queue_.leave(batch_of_thread);
        break;
      }
      run_handler(*attempt);
    }
    if (must_exit(*attempt)) {
      queue_.leave(batch_of_thread);
      break;
    }
  }
  std::lock_guard lock(mutex_);
  --threads_;
  changed_.notify_all();
}

void HandlerThreads::run_handler(Attempt& attempt) {
  const Moment before = steady_clock::now();
  Settlement settlement = runner_.run(attempt);
  const auto took = steady_clock::now() - before;
  if (!attempt.finish()) return;
  const bool first = !queue_.measured();
  queue_.note_duration(took);
  if (first) wake_timekeeper();  // Now the credit can be chosen.
  runner_.tell_hooks(attempt, settlement.outcome, took);
  attempt.release();
  settler_.settle(attempt, std::move(settlement));
}

void HandlerThreads::begin_coroutine(const TaskHandler& handler, Attempt& attempt, const std::shared_ptr<LeaseBatch>& batch) {
  attempt.set_coroutine();
  queue_.add_coroutine();
  const auto coroutine = std::make_shared<CoroutineAttempt>(batch, attempt, shared_from_this(), queue_);
  const std::coroutine_handle<> beginning = coroutine->begin(handler);
  go_on({coroutine, beginning});
}

// Without a handle it has ended somewhere else.
void HandlerThreads::go_on(const Resumption& with) {
  Attempt& attempt = with.attempt->attempt();
  // Nobody looks at its time limit any more, and it may hold the thread all the same.
  const bool overdue = attempt.is_given_up();
  if (overdue) {
    std::lock_guard lock(mutex_);
    overdue_.emplace(&attempt, steady_clock::now());
    woken_ = true;
    timekeeper_woken_.notify_one();
  }
  in_coroutines_.fetch_add(1, std::memory_order_relaxed);
  if (!with.waiting || with.attempt->resume(with.waiting)) finish_coroutine(*with.attempt);
  in_coroutines_.fetch_sub(1, std::memory_order_relaxed);
  if (!overdue) return;
  std::lock_guard lock(mutex_);
  overdue_.erase(&attempt);
}

void HandlerThreads::finish_coroutine(CoroutineAttempt& ended) {
  Attempt& attempt = ended.attempt();
  Settlement settlement = runner_.conclude(ended);
  ended.clear();
  if (attempt.finish()) {
    runner_.tell_hooks(attempt, settlement.outcome, steady_clock::now() - ended.started());
    attempt.release();
    settler_.settle(attempt, std::move(settlement));
  }
  queue_.remove_coroutine();
}

// For a handler that came back, perhaps after its attempt had been settled without it.
bool HandlerThreads::must_exit(Attempt& attempt) {
  if (!attempt.is_given_up()) return false;
  std::lock_guard lock(mutex_);
  if (!std::exchange(attempt.abandoned, false)) return false;
  --abandoned_;
  if (attempt.replaced) return true;
  woken_ = true;  // The worker may take jobs again.
  timekeeper_woken_.notify_one();
  return false;
}

void HandlerThreads::wake_timekeeper() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  timekeeper_woken_.notify_one();
}

bool HandlerThreads::wait_for_threads(Moment until, bool until_hurried) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return threads_ == abandoned_ || (until_hurried && hurried_); });
  return threads_ == abandoned_;
}

void HandlerThreads::stop() {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(stopping_, true)) {
      changed_.wait(lock, [this] { return stopped_; });
      return;
    }
  }
  const Moment begin = steady_clock::now();
  const Moment end = begin + options_.grace;

  // Take no more.
  link_->stopping.store(true);
  {
    std::lock_guard lock(subscription_mutex_);
    subscription_.reset();
  }
  return_unstarted(queue_.close(), "worker " + runner_.name() + " stopped");

  // Finish. Near the end of the grace time handlers are asked to.
  if (!wait_for_threads(begin + options_.grace * 8 / 10, true)) {
    ask_running_to_stop();
    const bool hurried = [this] {
      std::lock_guard lock(mutex_);
      return hurried_;
    }();
    const Moment last = begin + options_.grace * 9 / 10;
    if (hurried) {
      wait_for_threads(std::min(last, steady_clock::now() + kHurry), false);
    } else if (!wait_for_threads(last, true)) {
      wait_for_threads(std::min(last, steady_clock::now() + kHurry), false);
    }
    // Return the rest.
    return_running();
    for (const Resumption& left : queue_.end()) left.attempt->drop();
  }
  const bool refused = [this] {
    std::lock_guard lock(mutex_);
    return refused_;
  }();
  const Moment last_settles = steady_clock::now() + kLastSettles;
  settler_.wait_until_empty(refused ? last_settles : std::max(end, last_settles));
  settler_.close();

  {
    std::lock_guard lock(mutex_);
    timekeeper_ended_ = true;
    timekeeper_woken_.notify_one();
  }
  if (timekeeper_.joinable()) timekeeper_.join();
  broker_.reset();
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void HandlerThreads::ask_running_to_stop() {
  for (const auto& batch : held_.all()) {
    for (std::size_t i = 0; i < batch->size(); ++i) {
      Attempt& attempt = (*batch)[i];
      if (attempt.state() != Attempt::State::kRunning) continue;
      attempt.excuse();
      attempt.request_stop();
    }
  }
}

void HandlerThreads::return_running() {
  for (const auto& batch : held_.all()) {
    for (std::size_t i = 0; i < batch->size(); ++i) {
      Attempt& attempt = (*batch)[i];
      if (attempt.state() != Attempt::State::kRunning) continue;
      {
        std::lock_guard lock(mutex_);
        if (!give_up(attempt)) continue;
        attempt.replaced = true;  // Nobody takes its place, but its thread has nothing left to do.
      }
      settler_.settle(attempt, runner_.returned(attempt, "worker " + runner_.name() + " stopped before it was done"));
    }
  }
}

void HandlerThreads::hurry() {
  std::lock_guard lock(mutex_);
  hurried_ = true;
  changed_.notify_all();
}

WorkerStats HandlerThreads::stats() const {
  WorkerStats stats;
  settler_.add_to(stats);
  stats.started = started_.load(std::memory_order_relaxed);
  stats.waiting = queue_.waiting();
  const int idle = queue_.idle();
  const int waiting_coroutines = std::max(0, queue_.coroutines() - in_coroutines_.load(std::memory_order_relaxed));
  std::lock_guard lock(mutex_);
  stats.timed_out = timed_out_;
  stats.abandoned = abandoned_;
  stats.running = std::max(0, threads_ - abandoned_ - idle) + waiting_coroutines;
  return stats;
}

}  // namespace bide::worker
