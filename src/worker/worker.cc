#include "bide/worker.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "rpc/requester.h"
#include "worker/attempt_runner.h"
#include "worker/handler_threads.h"
#include "worker/worker_state.h"

namespace bide {

namespace {

constexpr int kExitUnavailable = 69;
constexpr int kExitNotPermitted = 77;
constexpr int kExitConfiguration = 78;

int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::kInvalidArgument) return kExitConfiguration;
  return code == ErrorCode::kPermissionDenied ? kExitNotPermitted : kExitUnavailable;
}

}  // namespace

Worker::Worker(Client client, WorkerOptions options)
    : state_(std::make_unique<worker::WorkerState>(std::move(client), worker::Setup{.options = std::move(options)})) {}

Worker::~Worker() { stop(); }

void Worker::add_handler(std::string kind, Handler handler) {
  state_->setup.handlers.emplace_back(std::move(kind), worker::KindHandler{.plain = std::move(handler)});
}

void Worker::add_queue(const std::string& name) {
  std::vector<WorkerQueue>& queues = state_->setup.options.queues;
  const bool is_there = std::any_of(queues.begin(), queues.end(), [&](const WorkerQueue& each) { return each.name == name; });
  if (!is_there) queues.emplace_back(name);
}

void Worker::add_task_handler(std::string kind, TaskHandler handler) {
  state_->setup.handlers.emplace_back(std::move(kind), worker::KindHandler{.coroutine = std::move(handler)});
}

void Worker::use(Middleware middleware, TaskMiddleware for_coroutines) {
  state_->setup.middleware.push_back({std::move(middleware), std::move(for_coroutines)});
}

void Worker::on_outcome(std::function<void(const Finished&)> hook) { state_->setup.on_outcome = std::move(hook); }

void Worker::on_dead(std::function<void(const Finished&)> hook) { state_->setup.on_dead = std::move(hook); }

void Worker::on_problem(std::function<void(std::string_view)> hook) { state_->setup.on_problem = std::move(hook); }

Status Worker::start() {
  if (Status valid = state_->setup.validate(); !valid) return valid;
  std::shared_ptr<Broker> broker = state_->client.shared_broker();
  if (!broker) return Error{ErrorCode::kInvalidArgument, "the client is closed"};
  std::lock_guard lock(state_->mutex);
  if (state_->threads) return Error{ErrorCode::kInvalidArgument, "the worker is running already"};
  state_->failure.reset();
  // A handler may outlive the worker and its client.
  state_->setup.request = [weak = std::weak_ptr(state_->client.requester())](Job job, Milliseconds timeout,
                                                                            std::function<void(Result<Reply>)> done) {
    const std::shared_ptr<rpc::Requester> requests = weak.lock();
    if (!requests) return done(Error{ErrorCode::kUnavailable, "the client is closed"});
    requests->request(std::move(job), timeout, std::move(done));
  };
  state_->setup.find = state_->client.finder();
  auto threads =
      worker::HandlerThreads::start(state_->setup, std::move(broker), [state = state_.get()](const Error& error) {
        {
          std::lock_guard failed(state->mutex);
          state->failure = error;
          state->changed.notify_all();
          if (state->in_run) return;
        }
        worker::AttemptRunner(state->setup).report(error.message);
      });
  if (!threads) return threads.error();
  state_->threads = std::move(*threads);
  state_->changed.notify_all();
  return {};
}

void Worker::stop() {
  std::shared_ptr<worker::HandlerThreads> threads;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop_requested = true;
    state_->changed.notify_all();
    threads = state_->threads;
  }
  if (!threads) return;
  threads->stop();
  std::lock_guard lock(state_->mutex);
  if (state_->threads != threads) return;
  state_->last_stats = threads->stats();
  state_->threads.reset();
  state_->stop_requested = false;
  state_->changed.notify_all();
}

void Worker::hurry() {
  std::lock_guard lock(state_->mutex);
  if (state_->threads) state_->threads->hurry();
}

int Worker::run() {
  // Watched from before the first job, so that no signal finds the process without it.
  worker::SignalWatch signals([this](int count) {
    if (count > 1) {
      hurry();
      return;
    }
    std::lock_guard lock(state_->mutex);
    state_->stop_requested = true;
    state_->changed.notify_all();
  });
  const auto set_in_run = [this](bool in_run) {
    std::lock_guard lock(state_->mutex);
    state_->in_run = in_run;
  };
  set_in_run(true);
  if (Status started = start(); !started) {
    set_in_run(false);
    worker::AttemptRunner(state_->setup).report(started.error().message);
    return exit_code_of(started.error().code);
  }
  std::optional<Error> failure;
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->stop_requested || !state_->threads || state_->failure; });
    if (!state_->stop_requested) failure = state_->failure;
  }
  if (failure) {
    worker::AttemptRunner(state_->setup).report(failure->message);
    hurry();  // What handlers still come to would not be taken.
  }
  stop();
  std::lock_guard lock(state_->mutex);
  state_->stop_requested = false;
  state_->in_run = false;
  return failure ? exit_code_of(failure->code) : 0;
}

WorkerStats Worker::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->threads ? state_->threads->stats() : state_->last_stats;
}

}  // namespace bide
